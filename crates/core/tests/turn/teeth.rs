//! The checks have teeth: each seeded bug of the core is caught by random courses or by written ones.
//!
//! Built with `RUSTFLAGS="--cfg mutants"` only. One test, because a seeded bug is on for the whole process.

use yaoki_core::mutants::{self, MUTANTS};

use crate::course;
use crate::gaps;
use crate::random::{dice_of, play};

const SEEDS: u64 = 3_000;

/// The first random course that breaks an invariant, else the first written one that differs, else the first gap.
fn caught_by(name: &str) -> Option<String> {
    mutants::choose(Some(name));
    let by_seed = (0..SEEDS).find_map(|seed| {
        let played = std::panic::catch_unwind(|| play(&dice_of(seed)));
        let violation = match played {
            Ok(Ok(_)) => return None,
            Ok(Err(violation)) => violation,
            Err(_) => "it panics".to_owned(),
        };
        let first = violation.lines().next().unwrap_or_default().to_owned();
        Some(format!("seed {seed}: {first}"))
    });
    let by_course = || {
        let differs = |name: &&&str| std::panic::catch_unwind(|| course::check(name)).is_err();
        course::ALL.iter().find(differs).map(|name| format!("course {name}"))
    };
    let by_gap = || gaps::every_gap().err().map(|violation| format!("gap in {violation}"));
    let caught = by_seed.or_else(by_course).or_else(by_gap);
    mutants::choose(None);
    caught
}

#[test]
fn every_seeded_bug_is_caught() {
    std::panic::set_hook(Box::new(|_| {}));
    let mut missed = Vec::new();
    for (name, _) in MUTANTS {
        match caught_by(name) {
            Some(by) => println!("{name}: {by}"),
            None => missed.push(*name),
        }
    }
    let _ = std::panic::take_hook();
    assert!(missed.is_empty(), "nobody noticed {missed:?}");
}
