//! The service refuses our history, most likely a thinking block whose signature does not fit any more.
//!
//! A stream that doubled or lost a piece of a thought gives a block that looks whole and is refused in every later
//! request. Thinking is left out of what is sent, not out of history, and the request goes out again; once a
//! session, because what is then still refused is something else.

use super::rule::{Facts, Remedy};
use crate::fault::{Failure, Fault, Feature};

pub(super) fn propose(failure: &Failure, _: &Facts<'_>) -> Option<Remedy> {
    matches!(failure.fault, Fault::HistoryBug).then_some(Remedy::Drop { feature: Feature::SignedThinking })
}

#[cfg(test)]
mod tests {
    use super::super::rule::failure;
    use super::*;

    #[test]
    fn a_refused_history_is_sent_without_its_signatures() {
        let want = Some(Remedy::Drop { feature: Feature::SignedThinking });
        assert_eq!(propose(&failure(Fault::HistoryBug), &Facts::calm()), want);
        assert_eq!(propose(&failure(Fault::Invalid), &Facts::calm()), None);
    }
}
