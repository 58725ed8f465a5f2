//! The model makes the same calls again and gets the same results.
//!
//! Results are compared too: asking again how a build is going is no loop as long as the answer changes. It is told so
//! twice; if it still goes on the turn ends. Failures are noticed sooner than results that may be waited for.

use super::rule::{Facts, Remedy};
use crate::fault::{Failure, Fault};

const ERRORS_MIN: u32 = 3;
const RESULTS_MIN: u32 = 60;

const SAY: &str = "You have made the same tool call several times in a row with the same result. \
It will not come out differently. Change the approach, or say what stands in the way.";

/// Whether so many equal rounds are a loop.
pub(crate) fn is_due(rounds: u32, are_errors: bool) -> bool {
    rounds >= if are_errors { ERRORS_MIN } else { RESULTS_MIN }
}

pub(super) fn propose(failure: &Failure, _: &Facts<'_>) -> Option<Remedy> {
    let Fault::ToolLoop { rounds, are_errors } = failure.fault else { return None };
    is_due(rounds, are_errors).then_some(Remedy::Warn { say: SAY })
}

#[cfg(test)]
mod tests {
    use super::super::rule::failure;
    use super::*;

    #[test]
    fn errors_are_a_loop_sooner_than_results() {
        for (rounds, are_errors, want) in
            [(2, true, false), (3, true, true), (59, false, false), (60, false, true)]
        {
            let got = propose(&failure(Fault::ToolLoop { rounds, are_errors }), &Facts::calm());
            assert_eq!(got.is_some(), want, "{rounds} rounds, errors {are_errors}");
        }
    }
}
