//! Whether the checks have teeth: each seeded bug is turned on and must be found.

use std::process::ExitCode;

/// Seeded bugs that no schedule can show, and why. The core's own tests find them (`crates/core/tests/turn/teeth.rs`).
#[cfg(mutants)]
const NOT_SEEN_HERE: [(&str, &str); 4] = [
    ("graph-second-result-wins", "no performer reports twice"),
    ("late-report-is-taken", "no performer reports twice"),
    ("ledger-streak-kept", "only how often a rule acts changes, within the bounds of all rules"),
    ("ledger-total-not-charged", "a turn is over long before a total of hundreds is reached"),
];

#[cfg(not(mutants))]
pub fn mutants(_seconds: u64, _only: Option<&str>) -> ExitCode {
    eprintln!(
        "this build has no mutants; build with RUSTFLAGS=\"--cfg mutants\" into a target folder of its own"
    );
    ExitCode::from(2)
}

/// Turns each seeded bug on and counts schedules until something breaks.
#[cfg(mutants)]
pub fn mutants(seconds: u64, only: Option<&str>) -> ExitCode {
    use std::time::{Duration, Instant};

    use yaoki::core::mutants::choose;
    use yaoki_sim::coverage::Coverage;
    use yaoki_sim::trace::Look;

    super::keep_panics_quiet();
    let lists = [
        yaoki::core::mutants::MUTANTS,
        yaoki::store::mutants::MUTANTS,
        yaoki::wire::mutants::MUTANTS,
        yaoki::mutants::MUTANTS,
    ];
    let mut missed = 0;
    let mut caught_s = Vec::new();
    for (name, what) in lists.into_iter().flatten().filter(|(name, _)| only.is_none_or(|only| only == *name))
    {
        if let Some((_, why)) = NOT_SEEN_HERE.iter().find(|(unseen, _)| unseen == name) {
            println!("passed over {name:<33} {why}");
            continue;
        }
        choose(Some(name));
        let began = Instant::now();
        let mut found = None;
        let mut seed = 0;
        while found.is_none() && began.elapsed() < Duration::from_secs(seconds) {
            seed += 1;
            found = super::caught(seed, &Coverage::default(), Look::Plain).broken.into_iter().next();
        }
        let took = began.elapsed().as_secs_f64();
        match found {
            Some(broken) => {
                caught_s.push(took);
                println!("caught  {name:<38} {took:>5.1} s  seed {seed:<5} {:<6} ({what})", broken.invariant);
            }
            None => {
                missed += 1;
                println!("MISSED  {name:<38} {took:>5.1} s  {seed} schedules  ({what})");
            }
        }
    }
    choose(None);
    caught_s.sort_by(f64::total_cmp);
    let (median, worst) = (caught_s.get(caught_s.len() / 2), caught_s.last());
    println!(
        "median {:.1} s, worst {:.1} s",
        median.copied().unwrap_or_default(),
        worst.copied().unwrap_or_default()
    );
    println!("{} passed, {missed} failed", caught_s.len());
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
