//! The model ended without anything to see: only thoughts, or nothing at all.
//!
//! Asking the same again gives the same, so one hidden line asks for a visible answer, once. A second time the turn
//! ends: well, with a notice, where tools ran in it; else as an empty answer.

use super::rule::{Facts, Remedy};
use crate::fault::{Failure, Fault};

const SAY: &str = "Your last answer held nothing that the user can see. Say in a few words what was done or found, \
or go on with the work.";

pub(super) fn propose(failure: &Failure, _: &Facts<'_>) -> Option<Remedy> {
    matches!(failure.fault, Fault::NothingVisible).then_some(Remedy::Nudge { say: SAY })
}

#[cfg(test)]
mod tests {
    use super::super::rule::failure;
    use super::*;

    #[test]
    fn nothing_to_see_is_asked_about() {
        assert_eq!(
            propose(&failure(Fault::NothingVisible), &Facts::calm()),
            Some(Remedy::Nudge { say: SAY })
        );
        assert_eq!(propose(&failure(Fault::Paused), &Facts::calm()), None);
    }
}
