//! The server says itself that asking again may help (`x-should-retry: true`), for an error we would not repeat.
//!
//! Never for money, credentials, or a request that is too long: their answer does not change by asking.

use super::rule::{Facts, Remedy, backoff};
use crate::fault::{Failure, Fault};

pub(super) fn propose(failure: &Failure, facts: &Facts<'_>) -> Option<Remedy> {
    let is_permitted = failure.evidence.should_retry == Some(true);
    let is_open = matches!(failure.fault, Fault::Invalid | Fault::HistoryBug | Fault::ModelGone);
    (is_permitted && is_open).then(|| Remedy::Resend { after_ms: backoff(&failure.fault, facts) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Evidence;

    #[test]
    fn the_header_permits_a_400_and_never_a_quota() {
        for (fault, should_retry, want) in [
            (Fault::Invalid, Some(true), true),
            (Fault::Invalid, Some(false), false),
            (Fault::Invalid, None, false),
            (Fault::Quota { resets_at: None }, Some(true), false),
            (Fault::Auth, Some(true), false),
            (Fault::TooLong, Some(true), false),
        ] {
            let failure =
                Failure { fault: fault.clone(), evidence: Evidence { should_retry, ..Evidence::default() } };
            assert_eq!(propose(&failure, &Facts::calm()).is_some(), want, "{fault:?} {should_retry:?}");
        }
    }
}
