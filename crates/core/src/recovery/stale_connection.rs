//! A kept connection turned out to be dead before the server took a byte.
//!
//! The same bytes go out at once on a new connection; nothing was asked, so nothing is charged.
//! Not ours: a server that drops new connections too; the row `transport` paces those.

use super::rule::{Facts, Remedy};
use crate::fault::{Failure, Fault};

pub(super) fn propose(failure: &Failure, _: &Facts<'_>) -> Option<Remedy> {
    matches!(failure.fault, Fault::StaleConnection).then_some(Remedy::ResendFresh)
}

#[cfg(test)]
mod tests {
    use super::super::rule::failure;
    use super::*;
    use crate::fault::NotSent;

    #[test]
    fn only_a_stale_connection_is_asked_again_at_once() {
        for (fault, want) in [
            (Fault::StaleConnection, Some(Remedy::ResendFresh)),
            (Fault::NotSent { cause: NotSent::Refused }, None),
        ] {
            assert_eq!(propose(&failure(fault.clone()), &Facts::calm()), want, "{fault:?}");
        }
    }
}
