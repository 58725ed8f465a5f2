//! An answer was cut at a cap that we chose: ask once more with the model's own limit.
//!
//! What was heard is withdrawn, since the longer answer says it all again. A cap that the user set is theirs and is
//! not raised. Calls of the cut answer have not run.

use super::rule::{Facts, Remedy};
use crate::fault::{Failure, Fault};

pub(super) fn propose(failure: &Failure, facts: &Facts<'_>) -> Option<Remedy> {
    let Fault::OutputCut { .. } = failure.fault else { return None };
    let max_tokens = facts.max_tokens_model.filter(|limit| *limit > facts.max_tokens)?;
    Some(Remedy::RaiseCap { max_tokens })
}

#[cfg(test)]
mod tests {
    use super::super::rule::failure;
    use super::*;

    #[test]
    fn only_our_own_cap_is_raised_and_only_to_the_models_limit() {
        for (asked, limit, want) in
            [(32_000, Some(64_000), Some(64_000)), (64_000, Some(64_000), None), (32_000, None, None)]
        {
            let facts = Facts { max_tokens: asked, max_tokens_model: limit, ..Facts::calm() };
            let got = propose(&failure(Fault::OutputCut { has_calls: false }), &facts);
            assert_eq!(got, want.map(|max_tokens| Remedy::RaiseCap { max_tokens }), "{asked} of {limit:?}");
        }
    }
}
