//! The answer began and broke off.
//!
//! What was heard is withdrawn and never enters history, so the same bytes go out again and no tool can have run:
//! none starts before the closing event.

use super::rule::{Facts, Remedy, backoff};
use crate::fault::{Failure, Fault};

pub(super) fn propose(failure: &Failure, facts: &Facts<'_>) -> Option<Remedy> {
    let Fault::Cut { .. } = failure.fault else { return None };
    Some(Remedy::Resend { after_ms: backoff(&failure.fault, facts) })
}

#[cfg(test)]
mod tests {
    use super::super::rule::failure;
    use super::*;
    use crate::fault::Cut;

    #[test]
    fn every_kind_of_cut_is_asked_again() {
        for cause in [Cut::Reset, Cut::Ended, Cut::Idle, Cut::OnlyPings, Cut::Protocol] {
            let got = propose(&failure(Fault::Cut { cause }), &Facts { retries: 2, ..Facts::calm() });
            assert_eq!(got, Some(Remedy::Resend { after_ms: 2_000 }), "{cause:?}");
        }
        assert_eq!(propose(&failure(Fault::Invalid), &Facts::calm()), None);
    }
}
