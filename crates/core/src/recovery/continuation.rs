//! An answer was cut at the output limit: keep it, and ask for the rest.
//!
//! Up to three times. The person sees one text; the line that asks is hidden from them. Not ours: an answer with calls
//! in it; they are refused, and their results ask for smaller pieces.

use super::rule::{Facts, Remedy};
use crate::fault::{Failure, Fault};

const SAY: &str = "Your answer was cut off at the output limit. Go on exactly where it stopped: no apology, no recap, \
no repetition. If much is left, give it in smaller pieces.";

pub(super) fn propose(failure: &Failure, _: &Facts<'_>) -> Option<Remedy> {
    matches!(failure.fault, Fault::OutputCut { has_calls: false }).then_some(Remedy::Continue { say: SAY })
}

#[cfg(test)]
mod tests {
    use super::super::rule::failure;
    use super::*;

    #[test]
    fn text_is_continued_and_calls_are_not() {
        assert_eq!(
            propose(&failure(Fault::OutputCut { has_calls: false }), &Facts::calm()),
            Some(Remedy::Continue { say: SAY })
        );
        assert_eq!(propose(&failure(Fault::OutputCut { has_calls: true }), &Facts::calm()), None);
    }
}
