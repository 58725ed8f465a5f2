//! Many schedules, on all workers, and the figures they come to.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
/// How many times the time asked for a run may take until the figures are reached.
const LAPS_MAX: u32 = 3;
/// After so many failures more of them tell nothing new.
const FAILURES_MAX: usize = 5;

#[derive(Default)]
struct Tally {
    steps: Vec<u32>,
    lives: u64,
    failed: Vec<(u64, Outcome)>,
}

impl Tally {
    /// Schedules that were long enough to count.
    fn long(&self) -> u64 {
        self.steps.iter().filter(|steps| u64::from(**steps) >= GATE_STEPS).count() as u64
    }
}

pub fn run(run: &Run) -> ExitCode {
    keep_panics_quiet();
    if run.is_gate && !determinism::check(GATE_SEEDS_TWICE) {
        return ExitCode::FAILURE;
    }
    let coverage = Coverage::default();
    let mut tally = Tally::default();
    let next = AtomicU64::new(run.from);
    let began = Instant::now();
    let asked = Duration::from_secs(run.seconds);
    let mut until = asked;
    // A slow machine gets more time for the same figures, not less to show.
    while lap(run, began + until, &next, &coverage, &mut tally)
        && run.is_gate
        && !is_enough(&tally, &coverage)
        && until < asked * LAPS_MAX
    {
        until += asked / 2;
    }
    tally.steps.sort_unstable();
    report(run, &tally, &coverage, began.elapsed())
}

/// Runs schedules on all workers until a moment. Returns whether more may follow.
fn lap(run: &Run, until: Instant, next: &AtomicU64, coverage: &Coverage, tally: &mut Tally) -> bool {
    let end = run.from.saturating_add(run.schedules);
    let is_over = AtomicBool::new(false);
    let shared = Mutex::new(std::mem::take(tally));
    std::thread::scope(|scope| {
        for _ in 0..run.workers {
            scope.spawn(|| {
                let own = Coverage::default();
                while !is_over.load(Ordering::Relaxed) && Instant::now() < until {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        is_over.store(true, Ordering::Relaxed);
                        break;
                    }
                    let outcome = caught(seed, &own, Look::Plain);
                    let mut tally = shared.lock().expect("unpoisoned");
                    tally.steps.push(outcome.steps as u32);
                    tally.lives += u64::from(outcome.lives);
                    if !outcome.broken.is_empty() {
                        tally.failed.push((seed, outcome));
                        is_over.fetch_or(tally.failed.len() >= FAILURES_MAX, Ordering::Relaxed);
                    }
                }
                coverage.add(&own);
            });
        }
    });
    *tally = shared.into_inner().expect("unpoisoned");
    !is_over.into_inner()
}

/// Whether the figures of a landing are reached.
fn is_enough(tally: &Tally, coverage: &Coverage) -> bool {
    tally.long() >= GATE_SCHEDULES && thin(coverage).is_empty()
}

/// The pairs that were hit too seldom, with how often they were.
fn thin(coverage: &Coverage) -> BTreeMap<(&'static str, &'static str), u64> {
    let rows: BTreeMap<_, _> =
        coverage.rows().into_iter().map(|(fault, site, hits)| ((fault, site), hits)).collect();
    let hits = |pair| rows.get(&pair).copied().unwrap_or(0);
    wanted().into_iter().map(|pair| (pair, hits(pair))).filter(|(_, hits)| *hits < GATE_HITS).collect()
}

fn report(run: &Run, tally: &Tally, coverage: &Coverage, took: Duration) -> ExitCode {
    let count = tally.steps.len() as u64;
    let median = tally.steps.get(tally.steps.len() / 2).copied().unwrap_or(0);
    let long = tally.long();
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
    let thin = thin(coverage);
    if !thin.is_empty() {
        println!("\nhit less than {GATE_HITS} times:");
        for ((fault, site), hits) in &thin {
            println!("  {fault} at {site}: {hits}");
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
