//! One seed again, told fault by fault and life by life.

use std::process::ExitCode;

use yaoki_sim::coverage::Coverage;
use yaoki_sim::schedule;
use yaoki_sim::trace::Look;

pub fn replay(seed: u64) -> ExitCode {
    let first = schedule::run(seed, &Coverage::default(), Look::Told);
    let second = schedule::run(seed, &Coverage::default(), Look::Close);
    println!("seed {seed}: {} steps, {} lives, trace {:016x}", first.steps, first.lives, first.trace);
    for broken in &first.broken {
        println!("  {}: {}", broken.invariant, broken.what);
    }
    if first.trace != second.trace {
        println!("  G3: the second run of this seed differs");
        return ExitCode::FAILURE;
    }
    if first.broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
