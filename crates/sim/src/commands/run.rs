//! Many schedules, on all workers, and the figures they come to.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use yaoki_sim::coverage::{Coverage, wanted};
use yaoki_sim::schedule::Outcome;
use yaoki_sim::trace::Look;

use super::{caught, determinism, keep_panics_quiet};

pub struct Run {
    pub seconds: u64,
    pub schedules: u64,
    pub workers: u64,
    pub from: u64,
    /// Hold the run against the figures that a landing needs.
    pub is_gate: bool,
}

/// What a full run must reach.
const GATE_SCHEDULES: u64 = 50_000;
const GATE_STEPS: u64 = 30;
const GATE_HITS: u64 = 100;
const GATE_SEEDS_TWICE: u64 = 200;
/// After so many failures more of them tell nothing new.
const FAILURES_MAX: usize = 5;

#[derive(Default)]
struct Tally {
    steps: Vec<u32>,
    lives: u64,
    failed: Vec<(u64, Outcome)>,
}

pub fn run(run: &Run) -> ExitCode {
    keep_panics_quiet();
    if run.is_gate && !determinism::check(GATE_SEEDS_TWICE) {
        return ExitCode::FAILURE;
    }
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
                    let outcome = caught(seed, &own, Look::Plain);
                    let mut tally = tally.lock().expect("unpoisoned");
                    tally.steps.push(outcome.steps as u32);
                    tally.lives += u64::from(outcome.lives);
                    if !outcome.broken.is_empty() {
                        tally.failed.push((seed, outcome));
                        is_over.store(tally.failed.len() >= FAILURES_MAX, Ordering::Relaxed);
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

fn report(run: &Run, tally: &Tally, coverage: &Coverage, took: Duration) -> ExitCode {
    let count = tally.steps.len() as u64;
    let median = tally.steps.get(tally.steps.len() / 2).copied().unwrap_or(0);
    let long = tally.steps.iter().filter(|steps| u64::from(**steps) >= GATE_STEPS).count() as u64;
    let total: u64 = tally.steps.iter().map(|steps| u64::from(*steps)).sum();
    println!(
        "{count} schedules in {:.0} s ({:.0}/s{}): {total} steps, median {median}, {long} of at least {GATE_STEPS}; {} lives",
        took.as_secs_f64(),
        count as f64 / took.as_secs_f64(),
        cpu_ms().map(|ms| format!(", {:.1} ms CPU each", ms / count.max(1) as f64)).unwrap_or_default(),
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

/// Processor time of this process so far, in milliseconds; none where the system does not tell.
fn cpu_ms() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // Fields 14 and 15, counted behind the name, in ticks of a hundredth of a second.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let ticks: f64 = fields.next()?.parse::<f64>().ok()? + fields.next()?.parse::<f64>().ok()?;
    Some(ticks * 10.0)
}
