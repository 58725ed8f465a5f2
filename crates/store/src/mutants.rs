//! Seeded bugs of the store, to see that the simulation's checks have teeth. See `yaoki_core::mutants`.

/// Every seeded bug of this crate: its name, and what is broken when it is on.
pub const MUTANTS: &[(&str, &str)] = &[
    ("store-append-not-cut-back", "part of a failed append stays, and the next one is glued to it"),
    ("store-folders-not-synced", "a power cut takes a session's folder with all that was acknowledged"),
    ("store-lost-log-goes-on", "a log whose sync failed for good takes and acknowledges more"),
    ("store-second-sync-trusted", "a failed sync is made again, and believed"),
    ("store-sync-left-out", "what was never synced is acknowledged"),
    ("store-tail-not-cut", "a torn tail stays, and the next append is glued to it"),
];

#[cfg(test)]
mod tests {
    use super::MUTANTS;

    #[test]
    fn every_seeded_bug_has_one_place_and_every_place_a_row() {
        let mut places = Vec::new();
        for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src")).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(path).unwrap();
                let names = text.split("mutant!(\"").skip(1).filter_map(|rest| rest.split('"').next());
                places.extend(names.filter(|name| name.starts_with("store-")).map(str::to_owned));
            }
        }
        places.sort();
        assert_eq!(places, MUTANTS.iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>());
    }
}
