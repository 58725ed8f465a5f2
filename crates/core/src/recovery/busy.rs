//! The service is overloaded, failed inside, or something between us and it answered in its place.
//!
//! The same bytes after a wait. Overload of one model may later lead to another one; that is a change of the
//! request, and not this row's.

use super::rule::{Facts, Remedy, backoff};
use crate::fault::{Failure, Fault};

pub(super) fn propose(failure: &Failure, facts: &Facts<'_>) -> Option<Remedy> {
    let wait_ms = match failure.fault {
        Fault::Overloaded { wait_ms } | Fault::Server { wait_ms, .. } | Fault::NotTheApi { wait_ms } => {
            wait_ms
        }
        _ => return None,
    };
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
    fn overload_and_server_errors_are_asked_again() {
        let wait = |after_ms| Some(Remedy::Resend { after_ms });
        for (fault, want) in [
            (Fault::Overloaded { wait_ms: None }, wait(500)),
            (Fault::Server { status: Some(503), wait_ms: Some(3_000) }, wait(3_000)),
            (Fault::NotTheApi { wait_ms: None }, wait(500)),
            (Fault::Overloaded { wait_ms: Some(90_000) }, None),
            (Fault::RateLimited { wait_ms: None }, None),
            (Fault::Quota { resets_at: None }, None),
        ] {
            assert_eq!(propose(&failure(fault.clone()), &Facts::calm()), want, "{fault:?}");
        }
    }
}
