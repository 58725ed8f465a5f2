//! Input and `max_tokens` together are over the limit, while the input alone fits.
//!
//! The cap comes down to what is left, less a thousand tokens for what we count differently; history is not
//! touched. Below three thousand an answer is not worth having: then it is an overflow.

use super::rule::{Facts, Remedy};
use crate::fault::{Failure, Fault};

const SLACK_TOKENS: u32 = 1_000;
const CAP_TOKENS_MIN: u32 = 3_000;

pub(super) fn propose(failure: &Failure, facts: &Facts<'_>) -> Option<Remedy> {
    let Fault::OutputCap { room: Some(room) } = failure.fault else { return None };
    let max_tokens = room.saturating_sub(SLACK_TOKENS).max(CAP_TOKENS_MIN);
    (max_tokens < facts.max_tokens).then_some(Remedy::LowerCap { max_tokens })
}

#[cfg(test)]
mod tests {
    use super::super::rule::failure;
    use super::*;

    #[test]
    fn the_cap_comes_down_to_what_is_left() {
        for (room, asked, want) in [
            (Some(20_000), 32_000, Some(19_000)),
            (Some(500), 32_000, Some(3_000)),
            (Some(500), 3_000, None),
            (None, 32_000, None),
        ] {
            let got =
                propose(&failure(Fault::OutputCap { room }), &Facts { max_tokens: asked, ..Facts::calm() });
            assert_eq!(got, want.map(|max_tokens| Remedy::LowerCap { max_tokens }), "{room:?} of {asked}");
        }
    }
}
