//! What the command does, one file each.

pub mod determinism;
pub mod mutants;
pub mod replay;
pub mod run;

use yaoki_sim::broken::Broken;
use yaoki_sim::coverage::Coverage;
use yaoki_sim::schedule::{self, Outcome};
use yaoki_sim::trace::Look;

/// Runs a schedule; a panic is a broken invariant too.
pub fn caught(seed: u64, coverage: &Coverage, look: Look) -> Outcome {
    let result =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| schedule::run(seed, coverage, look)));
    result.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        let broken = Broken { invariant: "panic", what: text.unwrap_or_default() };
        Outcome { steps: 0, lives: 0, broken: vec![broken], trace: 0 }
    })
}

/// A schedule that panics is told with its seed; the default hook would only tell the line.
pub fn keep_panics_quiet() {
    std::panic::set_hook(Box::new(|_| {}));
}
