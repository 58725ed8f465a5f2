//! Nothing else applies: the turn ends, and says why.
//!
//! Always proposes, has no limit, and stands last.

use super::rule::{Facts, Remedy};
use crate::fault::{Failure, Fault};
use crate::terminal::TerminalReason;

pub(super) fn propose(failure: &Failure, _: &Facts<'_>) -> Option<Remedy> {
    Some(Remedy::GiveUp { reason: reason(&failure.fault), resumes_in_ms: failure.fault.wait_ms() })
}

fn reason(fault: &Fault) -> TerminalReason {
    match fault {
        Fault::Cancelled => TerminalReason::CancelledStreaming,
        Fault::RateLimited { .. } => TerminalReason::RateLimited,
        Fault::Quota { .. } => TerminalReason::Quota,
        Fault::Auth => TerminalReason::AuthError,
        Fault::TooLong => TerminalReason::PromptTooLong,
        Fault::Invalid
        | Fault::HistoryBug
        | Fault::ModelGone
        | Fault::OutputCap { .. }
        | Fault::FeatureRefused { .. } => TerminalReason::InvalidRequest,
        Fault::OutputCut { .. } => TerminalReason::MaxOutputTokens,
        Fault::MalformedCall => TerminalReason::MalformedToolUseExhausted,
        Fault::NothingVisible => TerminalReason::EmptyAnswer,
        Fault::Refused => TerminalReason::Refusal,
        Fault::ToolLoop { .. } => TerminalReason::ToolLoop,
        // Paused once too often, or a text that may be meant as it stands: what was said is the answer.
        Fault::Paused | Fault::PrintedCall => TerminalReason::Completed,
        Fault::NotSent { .. }
        | Fault::StaleConnection
        | Fault::NoAnswer { .. }
        | Fault::Cut { .. }
        | Fault::Overloaded { .. }
        | Fault::Server { .. }
        | Fault::NotTheApi { .. } => TerminalReason::ProviderUnavailable,
    }
}

#[cfg(test)]
mod tests {
    use super::super::rule::failure;
    use super::*;

    #[test]
    fn each_fault_has_its_end() {
        for (fault, want) in [
            (Fault::Auth, TerminalReason::AuthError),
            (Fault::RateLimited { wait_ms: Some(90_000) }, TerminalReason::RateLimited),
            (Fault::Overloaded { wait_ms: None }, TerminalReason::ProviderUnavailable),
            (Fault::TooLong, TerminalReason::PromptTooLong),
        ] {
            let resumes_in_ms = fault.wait_ms();
            let got = propose(&failure(fault), &Facts::calm());
            assert_eq!(got, Some(Remedy::GiveUp { reason: want, resumes_in_ms }));
        }
    }
}
