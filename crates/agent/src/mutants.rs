//! Seeded bugs of the loop, to see that the simulation's checks have teeth. See `yaoki_core::mutants`.

/// Every seeded bug of this crate: its name, and what is broken when it is on.
pub const MUTANTS: &[(&str, &str)] = &[
    ("agent-barrier-not-passed-on", "what the machine wants durable is only written"),
    ("agent-budgets-not-replayed", "a resumed turn has its budgets anew"),
    ("agent-cancelled-run-is-dropped", "a run that is told to stop is dropped, and nobody hears of it"),
    ("agent-claims-before-sync", "onlookers are told of an outcome that a crash can take back"),
    ("agent-forgets-before-sync", "what was kept of a command goes before its outcome is durable"),
    ("agent-last-words-lost", "what an attempt said just before it ended is not shown"),
    ("agent-sends-again-by-itself", "a failed attempt is sent again, and no record says so"),
    ("agent-steps-without-records", "steps start although their records could not be written"),
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::MUTANTS;

    fn places(folder: &Path, into: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                places(&path, into);
            } else if path.file_name().is_some_and(|name| name != "mutants.rs") {
                let text = std::fs::read_to_string(path).unwrap();
                let names = text.split("mutant!(\"").skip(1).filter_map(|rest| rest.split('"').next());
                into.extend(names.map(str::to_owned));
            }
        }
    }

    #[test]
    fn every_seeded_bug_has_one_place_and_every_place_a_row() {
        let mut found = Vec::new();
        places(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
        found.sort();
        assert_eq!(found, MUTANTS.iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>());
    }
}
