//! Seeded bugs of the wire, to see that the simulation's checks have teeth. See `yaoki_core::mutants`.

/// Every seeded bug of this crate: its name, and what is broken when it is on.
pub const MUTANTS: &[(&str, &str)] = &[
    ("wire-complete-block-is-enough", "a call runs before the end of its message came"),
    ("wire-cut-stream-is-whole", "what came before a cut is taken for a message"),
    ("wire-fragments-never-renewed", "a message that is shown otherwise now is sent as it was printed first"),
    ("wire-retry-after-not-read", "the time that the server named is not told to the rules"),
    ("wire-stall-has-no-limit", "a stream that stalls is waited for without end"),
    ("wire-text-heard-twice", "each piece of text is shown twice"),
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
