//! The service paused work of its own (a server-side tool that takes long) and wants its answer back to go on.
//!
//! It is sent back as it is, up to eight times in a row.

use super::rule::{Facts, Remedy};
use crate::fault::{Failure, Fault};

pub(super) fn propose(failure: &Failure, _: &Facts<'_>) -> Option<Remedy> {
    matches!(failure.fault, Fault::Paused).then_some(Remedy::GoOn)
}

#[cfg(test)]
mod tests {
    use super::super::rule::failure;
    use super::*;

    #[test]
    fn a_pause_is_answered_by_going_on() {
        assert_eq!(propose(&failure(Fault::Paused), &Facts::calm()), Some(Remedy::GoOn));
        assert_eq!(propose(&failure(Fault::Refused), &Facts::calm()), None);
    }
}
