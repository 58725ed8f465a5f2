//! The provider asked us to slow down.
//!
//! We wait as told, else twice as long each time. Safe: the request had no effect.
//! Not ours: a wait longer than the policy's cap; the turn ends with the time at which it may go on.

use super::rule::{Facts, Remedy, backoff};
use crate::fault::{Failure, Fault};

pub(super) fn propose(failure: &Failure, facts: &Facts<'_>) -> Option<Remedy> {
    let Fault::RateLimited { wait_ms } = failure.fault else { return None };
    // Asking again before the named time only spends the budget.
    if wait_ms.is_some_and(|told| told > facts.policy.retry_after_cap_ms) {
        return None;
    }
    Some(Remedy::Resend { after_ms: backoff(&failure.fault, facts) })
}

#[cfg(test)]
mod tests {
    use super::super::rule::failure;
    use super::*;

    #[test]
    fn waits_as_told_up_to_the_cap_else_doubles() {
        for (told, retries, want) in [
            (None, 0, Some(500)),
            (None, 3, Some(4_000)),
            (Some(1_200), 3, Some(1_200)),
            (Some(60_000), 0, Some(60_000)),
            (Some(60_001), 0, None),
        ] {
            let got =
                propose(&failure(Fault::RateLimited { wait_ms: told }), &Facts { retries, ..Facts::calm() });
            assert_eq!(got, want.map(|after_ms| Remedy::Resend { after_ms }), "{told:?}, retry {retries}");
        }
    }
}
