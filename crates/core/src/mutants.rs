//! Seeded bugs, to see that the checks have teeth.
//!
//! `mutant!("name")` is `false`, and gone, in every ordinary build. In a build with `--cfg mutants` it is true
//! for the one name chosen with [`choose`].

/// Every seeded bug of this crate: its name, and what is broken when it is on.
pub const MUTANTS: &[(&str, &str)] = &[
    ("attempts-count-as-rounds", "a failed attempt raises the count that the limit of rounds means"),
    ("backoff-ignores-retry-after", "the time that the server named is not waited for"),
    ("broken-input-runs", "a call whose input is no JSON is judged and run"),
    ("budget-not-synced", "a crash forgets what a recovery cost"),
    ("calls-run-beside-effects", "a call starts while one before it still has its effect"),
    ("continuation-counts-as-round", "a text that is continued uses up the limit of rounds"),
    ("continuation-repeats-itself", "the last words of a cut text stand twice in the whole one"),
    ("correction-is-not-said", "what is asked again is not corrected"),
    ("cut-text-not-withdrawn", "text of a cut stream stays on the screen"),
    ("denied-calls-run", "a call runs that a person said no to"),
    ("failure-before-a-crash-is-forgotten", "a crash sends again at once, and free of charge"),
    ("fallback-cures-a-rate-limit", "another model is asked because this one's quota is used up"),
    ("fallback-for-one-request", "the next request of the turn names the model again that can't serve"),
    ("gap-is-forgotten", "what lost its traces with a part of the log is run again"),
    ("gap-leaves-calls-open", "a call runs again whose intent went with a part of the log"),
    ("graph-results-swapped", "a call is answered with the result of the one beside it"),
    ("graph-second-result-wins", "a late second result changes what the model was told"),
    ("interrupt-lets-go-of-runs", "an interrupted turn ends while a call still runs"),
    ("key-ordinal-reused", "two equal calls of a message share one key"),
    ("late-report-is-taken", "a doubled report settles an operation again"),
    ("ledger-streak-kept", "progress does not clear a streak"),
    ("ledger-total-not-charged", "a rule may act without end in one turn"),
    ("no-barrier-before-effect", "an effect begins before its start is durable"),
    ("no-barrier-before-results-are-read", "the model reads an outcome that a crash can take back"),
    ("permission-outlives-the-process", "a resumed session runs what an earlier one was allowed"),
    ("refusal-is-kept", "a refused answer becomes history"),
    ("resume-reruns-unknown", "what may have happened is done again"),
    ("stale-judgement-stands", "a call is decided by what was true before the last effect"),
    ("truncated-calls-run", "a call runs from a message that was cut at the output limit"),
    ("turn-end-not-synced", "an end is told that a crash can take back"),
    ("users-cap-is-raised", "an answer may be longer than the user said"),
    ("wait-lost-with-the-process", "a crash ends the wait that the server asked for"),
    ("walker-ignores-max-retries", "a request is retried without bound"),
    ("withdrawn-answers-cost-nothing", "the tokens of an answer that is not kept are not counted"),
    ("loop-is-not-seen", "a model that repeats itself goes on for ever"),
];

/// Whether the seeded bug of this name is on.
#[macro_export]
macro_rules! mutant {
    ($name:literal) => {{
        #[cfg(mutants)]
        {
            $crate::mutants::is($name)
        }
        #[cfg(not(mutants))]
        {
            false
        }
    }};
}

#[cfg(mutants)]
mod chosen {
    use std::sync::RwLock;

    static CHOSEN: RwLock<Option<String>> = RwLock::new(None);

    /// Turns one seeded bug on, for the whole process; `None` turns all off.
    pub fn choose(name: Option<&str>) {
        *CHOSEN.write().expect("nothing panics under this lock") = name.map(str::to_owned);
    }

    pub fn is(name: &str) -> bool {
        CHOSEN.read().expect("nothing panics under this lock").as_deref() == Some(name)
    }
}

#[cfg(mutants)]
pub use chosen::{choose, is};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::MUTANTS;

    /// Names at the places in the code of this crate.
    fn places(folder: &Path, into: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                places(&path, into);
            } else if path.file_name().is_some_and(|name| name != "mutants.rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let pieces = text.split("mutant!(\"").skip(1);
                into.extend(pieces.map(|piece| piece.split('"').next().unwrap().to_owned()));
            }
        }
    }

    #[test]
    fn every_seeded_bug_has_one_place_and_one_row() {
        let mut found = Vec::new();
        places(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
        let names: BTreeSet<&str> = found.iter().map(String::as_str).collect();
        assert_eq!(names.len(), found.len(), "a name stands at two places: {found:?}");
        let rows: BTreeSet<&str> = MUTANTS.iter().map(|(name, _)| *name).collect();
        assert_eq!(rows.len(), MUTANTS.len());
        assert_eq!(names, rows);
    }
}
