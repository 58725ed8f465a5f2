//! No answer began: nothing was sent, or the line went dead before the headers.
//!
//! We wait and send the same bytes. A request that was sent may be billed twice; the API takes no key against
//! that, and no effect of ours depends on it.

use super::rule::{Facts, Remedy, backoff};
use crate::fault::{Failure, Fault};

pub(super) fn propose(failure: &Failure, facts: &Facts<'_>) -> Option<Remedy> {
    match failure.fault {
        Fault::NotSent { .. } | Fault::NoAnswer { .. } | Fault::StaleConnection => {
            Some(Remedy::Resend { after_ms: backoff(&failure.fault, facts) })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::rule::failure;
    use super::*;
    use crate::fault::{Cut, NotSent, Silence};

    #[test]
    fn what_was_never_answered_is_asked_again_after_a_wait() {
        let wait = Some(Remedy::Resend { after_ms: 500 });
        for (fault, want) in [
            (Fault::NotSent { cause: NotSent::Refused }, wait.clone()),
            (Fault::NotSent { cause: NotSent::Tls }, wait.clone()),
            (Fault::NoAnswer { cause: Silence::Timeout }, wait.clone()),
            (Fault::StaleConnection, wait),
            (Fault::Cut { cause: Cut::Reset }, None),
            (Fault::Invalid, None),
        ] {
            assert_eq!(propose(&failure(fault.clone()), &Facts::calm()), want, "{fault:?}");
        }
    }
}
