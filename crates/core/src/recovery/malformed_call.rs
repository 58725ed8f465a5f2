//! The model meant to use a tool and no call arrived: nothing where one was announced, or one printed as text.
//!
//! The answer is withdrawn and never enters history, so the model does not learn from it; the old history goes out with
//! one correcting line. Once: a second time in a row it is not an accident.

use super::rule::{Facts, Remedy};
use crate::fault::{Failure, Fault};

const NO_CALL: &str = "Your last answer stopped for tool use but held no complete tool call. \
Call the tool through the tool interface, or answer in text.";
const PRINTED: &str = "Your last answer printed a tool call as text, so nothing was called. \
Call the tool through the tool interface, or answer in plain words.";

pub(super) fn propose(failure: &Failure, _: &Facts<'_>) -> Option<Remedy> {
    match failure.fault {
        Fault::MalformedCall => Some(Remedy::Correct { say: NO_CALL }),
        Fault::PrintedCall => Some(Remedy::Correct { say: PRINTED }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::rule::failure;
    use super::*;

    #[test]
    fn each_kind_has_its_correction() {
        for (fault, want) in [
            (Fault::MalformedCall, Some(NO_CALL)),
            (Fault::PrintedCall, Some(PRINTED)),
            (Fault::OutputCut { has_calls: true }, None),
        ] {
            assert_eq!(propose(&failure(fault), &Facts::calm()), want.map(|say| Remedy::Correct { say }));
        }
    }
}
