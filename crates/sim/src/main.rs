//! `yaoki-sim run|replay|mutants`: the simulation as a command, for the test stage and for people with a seed.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use yaoki_sim::coverage::{Coverage, wanted};
use yaoki_sim::schedule::{self, Outcome};

const USAGE: &str = "\
yaoki-sim run [--seconds N] [--schedules N] [--workers N] [--from SEED] [--gate]
yaoki-sim replay SEED
yaoki-sim mutants [--seconds N]      (in a build with --cfg mutants)";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str, default: u64| {
        let at = args.iter().position(|arg| arg == name);
        at.and_then(|at| args.get(at + 1)).and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    match args.first().map(String::as_str) {
        Some("run") => run(&Run {
            seconds: number("--seconds", 20),
            schedules: number("--schedules", u64::MAX),
            workers: number("--workers", 2),
            from: number("--from", 1),
            is_gate: args.iter().any(|arg| arg == "--gate"),
        }),
        Some("replay") => match args.get(1).and_then(|seed| seed.parse().ok()) {
            Some(seed) => replay(seed),
            None => usage(),
        },
        Some("mutants") => mutants(number("--seconds", 60)),
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}

struct Run {
    seconds: u64,
    schedules: u64,
    workers: u64,
    from: u64,
    /// Hold the run against the figures that a landing needs.
    is_gate: bool,
}

/// What a full run must reach.
const GATE_SCHEDULES: u64 = 50_000;
const GATE_STEPS: u64 = 30;
const GATE_HITS: u64 = 100;

#[derive(Default)]
struct Tally {
    steps: Vec<u32>,
    lives: u64,
    failed: Vec<(u64, Outcome)>,
}

fn run(run: &Run) -> ExitCode {
    // A schedule that panics is told with its seed; the default hook would only tell the line.
    std::panic::set_hook(Box::new(|_| {}));
    let coverage = Coverage::default();
    let tally = Arc::new(Mutex::new(Tally::default()));
    let next = Arc::new(AtomicU64::new(run.from));
    let is_over = Arc::new(AtomicBool::new(false));
    let began = Instant::now();
    let end = run.from.saturating_add(run.schedules);
    let workers: Vec<_> = (0..run.workers)
        .map(|_| {
            let (next, tally, is_over) = (Arc::clone(&next), Arc::clone(&tally), Arc::clone(&is_over));
            let (coverage, seconds) = (coverage.clone(), run.seconds);
            std::thread::spawn(move || {
                let own = Coverage::default();
                while !is_over.load(Ordering::Relaxed) && began.elapsed() < Duration::from_secs(seconds) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        break;
                    }
                    let outcome = caught(seed, &own);
                    let mut tally = tally.lock().expect("unpoisoned");
                    tally.steps.push(outcome.steps as u32);
                    tally.lives += u64::from(outcome.lives);
                    if !outcome.broken.is_empty() {
                        tally.failed.push((seed, outcome));
                        is_over.store(tally.failed.len() >= 5, Ordering::Relaxed);
                    }
                }
                coverage.add(&own);
            })
        })
        .collect();
    for worker in workers {
        worker.join().expect("workers catch what panics");
    }
    let mut tally = Arc::into_inner(tally).expect("workers are gone").into_inner().expect("unpoisoned");
    tally.steps.sort_unstable();
    report(run, &tally, &coverage, began.elapsed())
}

/// Runs a schedule; a panic is a broken invariant too.
fn caught(seed: u64, coverage: &Coverage) -> Outcome {
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| schedule::run(seed, coverage)));
    result.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        let broken = yaoki_sim::broken::Broken { invariant: "panic", what: text.unwrap_or_default() };
        Outcome { steps: 0, lives: 0, broken: vec![broken], trace: 0 }
    })
}

fn report(run: &Run, tally: &Tally, coverage: &Coverage, took: Duration) -> ExitCode {
    let count = tally.steps.len() as u64;
    let median = tally.steps.get(tally.steps.len() / 2).copied().unwrap_or(0);
    let long = tally.steps.iter().filter(|steps| u64::from(**steps) >= GATE_STEPS).count() as u64;
    let total: u64 = tally.steps.iter().map(|steps| u64::from(*steps)).sum();
    println!(
        "{count} schedules in {:.0} s ({:.0}/s): {total} steps, median {median}, {long} of at least {GATE_STEPS}; {} lives",
        took.as_secs_f64(),
        count as f64 / took.as_secs_f64(),
        tally.lives,
    );
    println!("\nfault               site            hits");
    let rows = coverage.rows();
    for (fault, site, hits) in &rows {
        println!("{fault:<18}  {site:<12}  {hits:>6}");
    }
    let seen = |pair: &(&str, &str)| {
        rows.iter().find(|(fault, site, _)| (*fault, *site) == *pair).map_or(0, |row| row.2)
    };
    let thin: BTreeSet<_> = wanted().into_iter().filter(|pair| seen(pair) < GATE_HITS).collect();
    if !thin.is_empty() {
        println!("\nhit less than {GATE_HITS} times:");
        for (fault, site) in &thin {
            println!("  {fault} at {site}: {}", seen(&(fault, site)));
        }
    }
    for (seed, outcome) in &tally.failed {
        println!("\nseed {seed} breaks:");
        for broken in &outcome.broken {
            println!("  {}: {}", broken.invariant, broken.what);
        }
        println!("  replay: cargo run -p yaoki-sim -- replay {seed}");
    }
    println!("\n{} violations", tally.failed.len());
    let is_short = run.is_gate && (long < GATE_SCHEDULES || !thin.is_empty());
    if is_short {
        println!(
            "the gate wants {GATE_SCHEDULES} schedules of {GATE_STEPS} steps and {GATE_HITS} hits of each pair"
        );
    }
    if tally.failed.is_empty() && !is_short { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn replay(seed: u64) -> ExitCode {
    let coverage = Coverage::default();
    let first = schedule::run_told(seed, &coverage, true);
    for (fault, site, hits) in coverage.rows() {
        println!("{fault} at {site}: {hits}");
    }
    let second = schedule::run(seed, &Coverage::default());
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

#[cfg(not(mutants))]
fn mutants(_seconds: u64) -> ExitCode {
    eprintln!(
        "this build has no mutants; build with RUSTFLAGS=\"--cfg mutants\" into a target folder of its own"
    );
    ExitCode::from(2)
}

/// Turns each seeded bug on and counts schedules until something breaks.
#[cfg(mutants)]
fn mutants(seconds: u64) -> ExitCode {
    std::panic::set_hook(Box::new(|_| {}));
    let mut missed = 0;
    let mut caught_count = 0;
    for (name, what) in yaoki::core::mutants::MUTANTS {
        yaoki::core::mutants::choose(Some(name));
        let began = Instant::now();
        let mut found = None;
        let mut seed = 0;
        while found.is_none() && began.elapsed() < Duration::from_secs(seconds) {
            seed += 1;
            let outcome = caught(seed, &Coverage::default());
            found = outcome.broken.into_iter().next();
        }
        let took = began.elapsed().as_secs_f64();
        match found {
            Some(broken) => {
                caught_count += 1;
                println!("caught  {name:<38} {took:>6.1} s  seed {seed:<6} {}  ({what})", broken.invariant);
            }
            None => {
                missed += 1;
                println!("MISSED  {name:<38} {took:>6.1} s  {seed} schedules  ({what})");
            }
        }
    }
    yaoki::core::mutants::choose(None);
    println!("{caught_count} passed, {missed} failed");
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
