//! The shape of a recovery rule: plain facts in, a proposal out.

use crate::fault::{Failure, Fault, Feature};
use crate::ledger::Limit;
use crate::policy::Policy;
use crate::terminal::{TerminalReason, Transition};

/// One row of a table; its place is its precedence.
pub struct Rule {
    pub name: &'static str,
    pub limit: Limit,
    /// Whether acting costs none of the request's retries.
    pub is_free: bool,
    /// What it does, in one line, for the docs.
    pub what: &'static str,
    pub propose: fn(&Failure, &Facts<'_>) -> Option<Remedy>,
}

/// All a rule may know.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    pub policy: &'a Policy,
    /// How often this rule has acted in a row.
    pub streak: u32,
    /// Retries of this request so far that cost one.
    pub retries: u32,
    /// Streams of this request that broke, this one included.
    pub streams_broken: u32,
    /// Whether the failed attempt was a stream.
    pub is_streamed: bool,
    /// Time since this request's first failure, in milliseconds.
    pub elapsed_ms: u64,
    /// The cap on output that the failed attempt asked for.
    pub max_tokens: u32,
    /// The model's own limit, where the cap was ours to choose and may be raised to it.
    pub max_tokens_model: Option<u32>,
    /// Overloads in a row of the model that is asked, this one included.
    pub overloads: u32,
    /// The model that is asked next if this one can't serve.
    pub model_next: Option<&'a str>,
    pub dice: u64,
}

/// What to do about a failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// The same bytes again, in `after_ms`.
    Resend { after_ms: u64 },
    /// The same bytes again, at once, on a connection of its own.
    ResendFresh,
    /// The same request once in one piece.
    Unstreamed { after_ms: u64 },
    /// The same request with a lower cap on output.
    LowerCap { max_tokens: u32 },
    /// The same request without one optional part, from here on.
    Drop { feature: Feature },
    /// The same request to another model, for the rest of the turn.
    Switch { model: String },
    /// The same request with a higher cap; the cut answer is withdrawn.
    RaiseCap { max_tokens: u32 },
    /// The answer is withdrawn, and the same history goes out with one line behind it that the person does not see.
    Correct { say: &'static str },
    /// The answer stays, and one such line asks to go on.
    Continue { say: &'static str },
    /// The answer stays, and one such line asks for something to see.
    Nudge { say: &'static str },
    /// The answer stays and is sent back as it is.
    GoOn,
    /// The results stay, and one such line stands behind them.
    Warn { say: &'static str },
    /// The turn ends. `resumes_in_ms` is when the server said it may go on.
    GiveUp { reason: TerminalReason, resumes_in_ms: Option<u64> },
}

impl Remedy {
    pub fn transition(&self) -> Transition {
        match self {
            Remedy::Unstreamed { .. } => Transition::StreamFallback,
            Remedy::Switch { .. } => Transition::ModelFallback,
            Remedy::RaiseCap { .. } => Transition::MaxOutputTokensEscalate,
            Remedy::Correct { .. } => Transition::MalformedToolRetry,
            Remedy::Continue { .. } => Transition::MaxOutputTokensRecovery,
            Remedy::Nudge { .. } => Transition::ThinkingOnlyNudge,
            Remedy::GoOn => Transition::PauseTurn,
            Remedy::Warn { .. } => Transition::NextTurn,
            Remedy::Resend { .. }
            | Remedy::ResendFresh
            | Remedy::LowerCap { .. }
            | Remedy::Drop { .. }
            | Remedy::GiveUp { .. } => Transition::RequestRetry,
        }
    }

    pub fn after_ms(&self) -> u64 {
        match self {
            Remedy::Resend { after_ms } | Remedy::Unstreamed { after_ms } => *after_ms,
            Remedy::ResendFresh
            | Remedy::LowerCap { .. }
            | Remedy::Drop { .. }
            | Remedy::Switch { .. }
            | Remedy::RaiseCap { .. }
            | Remedy::Correct { .. }
            | Remedy::Continue { .. }
            | Remedy::Nudge { .. }
            | Remedy::GoOn
            | Remedy::Warn { .. }
            | Remedy::GiveUp { .. } => 0,
        }
    }
}

/// The wait before the next retry: as the server told, else twice as long each time, plus up to a quarter.
pub(super) fn backoff(fault: &Fault, facts: &Facts<'_>) -> u64 {
    if let Some(told) = fault.wait_ms()
        && !crate::mutant!("backoff-ignores-retry-after")
    {
        return told;
    }
    let step = facts
        .policy
        .backoff_first_ms
        .saturating_mul(1u64 << facts.retries.min(32))
        .min(facts.policy.backoff_max_ms);
    step + quarter(step, facts.dice)
}

/// Up to a quarter of `step`, as the dice fall.
fn quarter(step: u64, dice: u64) -> u64 {
    ((u128::from(step / 4 + 1) * u128::from(dice)) >> 64) as u64
}

#[cfg(test)]
impl Facts<'static> {
    /// Facts of a first failure of a stream, with dice that add nothing.
    pub(super) fn calm() -> Self {
        static POLICY: std::sync::LazyLock<Policy> = std::sync::LazyLock::new(Policy::default);
        Facts {
            policy: &POLICY,
            streak: 0,
            retries: 0,
            streams_broken: 0,
            is_streamed: true,
            elapsed_ms: 0,
            max_tokens: 32_000,
            max_tokens_model: None,
            overloads: 0,
            model_next: None,
            dice: 0,
        }
    }
}

/// A failure with nothing seen of it but the fault.
#[cfg(test)]
pub(super) fn failure(fault: Fault) -> Failure {
    Failure { fault, evidence: crate::fault::Evidence::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_to_its_maximum_and_adds_at_most_a_quarter() {
        let fault = Fault::Overloaded { wait_ms: None };
        for (retries, dice, want) in [
            (0, 0, 500),
            (1, 0, 1_000),
            (5, 0, 16_000),
            (6, 0, 32_000),
            (40, 0, 32_000),
            (0, u64::MAX, 625),
            (6, u64::MAX, 40_000),
            (6, u64::MAX / 2, 36_000),
        ] {
            let got = backoff(&fault, &Facts { retries, dice, ..Facts::calm() });
            assert_eq!(got, want, "retry {retries}, dice {dice}");
        }
        assert_eq!(
            backoff(&Fault::Overloaded { wait_ms: Some(1_200) }, &Facts { retries: 9, ..Facts::calm() }),
            1_200
        );
    }
}
