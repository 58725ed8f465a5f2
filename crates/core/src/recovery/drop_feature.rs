//! One optional part of the request is not known where we sent it.
//!
//! Exactly that part is left out, and stays out for the session.

use super::rule::{Facts, Remedy};
use crate::fault::{Failure, Fault};

pub(super) fn propose(failure: &Failure, _: &Facts<'_>) -> Option<Remedy> {
    let Fault::FeatureRefused { feature } = failure.fault else { return None };
    Some(Remedy::Drop { feature })
}

#[cfg(test)]
mod tests {
    use super::super::rule::failure;
    use super::*;
    use crate::fault::Feature;

    #[test]
    fn the_refused_part_is_the_one_left_out() {
        let got = propose(&failure(Fault::FeatureRefused { feature: Feature::CacheControl }), &Facts::calm());
        assert_eq!(got, Some(Remedy::Drop { feature: Feature::CacheControl }));
        assert_eq!(propose(&failure(Fault::Invalid), &Facts::calm()), None);
    }
}
