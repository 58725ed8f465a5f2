//! Streams of this request keep breaking: ask for the answer in one piece, once.
//!
//! Some gateways cut long streams and deliver whole bodies. The transport changes, not the plan: no round is
//! counted. What was heard of the broken stream is withdrawn first.

use super::rule::{Facts, Remedy, backoff};
use crate::fault::{Failure, Fault};

pub(super) fn propose(failure: &Failure, facts: &Facts<'_>) -> Option<Remedy> {
    let Fault::Cut { .. } = failure.fault else { return None };
    let is_enough = facts.streams_broken >= facts.policy.stream_failures;
    (facts.policy.unstreamed_allowed && facts.is_streamed && is_enough)
        .then(|| Remedy::Unstreamed { after_ms: backoff(&failure.fault, facts) })
}

#[cfg(test)]
mod tests {
    use super::super::rule::failure;
    use super::*;
    use crate::fault::Cut;
    use crate::policy::Policy;

    #[test]
    fn the_second_broken_stream_is_asked_for_in_one_piece() {
        let never = Policy { unstreamed_allowed: false, ..Policy::default() };
        for (broken, is_streamed, policy, want) in [
            (1, true, &Policy::default(), None),
            (2, true, &Policy::default(), Some(Remedy::Unstreamed { after_ms: 500 })),
            (2, false, &Policy::default(), None),
            (2, true, &never, None),
        ] {
            let facts = Facts { streams_broken: broken, is_streamed, policy, ..Facts::calm() };
            let got = propose(&failure(Fault::Cut { cause: Cut::Idle }), &facts);
            assert_eq!(got, want, "{broken} broken, streamed {is_streamed}");
        }
    }
}
