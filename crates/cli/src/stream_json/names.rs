//! Claude's names on the wire for our ends and faults. Ours stand beside them, as `yaoki_terminal_reason`.
//!
//! Promises: every end has a row. Source: the recorded lines of Claude Code 2.1.235, by ending.

use yaoki::core::fault::Fault;
use yaoki::core::terminal::TerminalReason;

/// How an end looks in a `result`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireEnd {
    pub reason: TerminalReason,
    pub terminal_reason: &'static str,
    pub subtype: &'static str,
    /// Told as an answer that is an error, with a synthetic message before it, as API failures are.
    pub as_answer: bool,
}

const fn good(reason: TerminalReason, terminal_reason: &'static str) -> WireEnd {
    WireEnd { reason, terminal_reason, subtype: "success", as_answer: false }
}

/// Ends like a failed request: `subtype: success` with `is_error`.
const fn api(reason: TerminalReason, terminal_reason: &'static str) -> WireEnd {
    WireEnd { reason, terminal_reason, subtype: "success", as_answer: true }
}

const fn bad(reason: TerminalReason, terminal_reason: &'static str, subtype: &'static str) -> WireEnd {
    WireEnd { reason, terminal_reason, subtype, as_answer: false }
}

const EXECUTION: &str = "error_during_execution";

pub const WIRE_ENDS: &[WireEnd] = &[
    good(TerminalReason::Completed, "completed"),
    good(TerminalReason::BackgroundRequested, "background_requested"),
    good(TerminalReason::ToolDeferred, "tool_deferred"),
    bad(TerminalReason::MaxTurns, "max_turns", "error_max_turns"),
    bad(TerminalReason::BudgetExceeded, "budget_exhausted", "error_max_budget_usd"),
    bad(
        TerminalReason::StructuredOutputExhausted,
        "structured_output_retry_exhausted",
        "error_max_structured_output_retries",
    ),
    api(TerminalReason::MaxOutputTokens, "api_error"),
    api(TerminalReason::ProviderUnavailable, "api_error"),
    api(TerminalReason::RateLimited, "api_error"),
    api(TerminalReason::Quota, "api_error"),
    api(TerminalReason::AuthError, "api_error"),
    api(TerminalReason::InvalidRequest, "api_error"),
    api(TerminalReason::PromptTooLong, "prompt_too_long"),
    api(TerminalReason::BlockingLimit, "blocking_limit"),
    api(TerminalReason::RapidRefillBreaker, "rapid_refill_breaker"),
    api(TerminalReason::MalformedToolUseExhausted, "malformed_tool_use_exhausted"),
    api(TerminalReason::ImageError, "image_error"),
    api(TerminalReason::Refusal, "refusal"),
    api(TerminalReason::EmptyAnswer, "model_error"),
    bad(TerminalReason::InternalError, "model_error", EXECUTION),
    bad(TerminalReason::CancelledStreaming, "aborted_streaming", EXECUTION),
    bad(TerminalReason::CancelledTools, "aborted_tools", EXECUTION),
    bad(TerminalReason::Interrupted, "aborted_tools", EXECUTION),
    bad(TerminalReason::HookStopped, "hook_stopped", EXECUTION),
    bad(TerminalReason::StopHookPrevented, "stop_hook_prevented", EXECUTION),
    bad(TerminalReason::ToolLoop, "tool_loop", EXECUTION),
    bad(TerminalReason::NeedsPermission, "needs_permission", EXECUTION),
    bad(TerminalReason::NeedsDecision, "needs_decision", EXECUTION),
    bad(TerminalReason::StorageFailed, "storage_failed", EXECUTION),
];

/// Returns the row of an end.
pub fn wire_end(reason: TerminalReason) -> &'static WireEnd {
    WIRE_ENDS.iter().find(|end| end.reason == reason).expect("every end has a row")
}

/// The class of a failure in `api_retry`.
pub fn retry_class(fault: &Fault) -> &'static str {
    match fault {
        Fault::Overloaded { .. } => "overloaded",
        other => error_class(other),
    }
}

/// The class of a failure in the synthetic message that tells it.
pub fn error_class(fault: &Fault) -> &'static str {
    match fault {
        Fault::Overloaded { .. }
        | Fault::Server { .. }
        | Fault::NotSent { .. }
        | Fault::StaleConnection
        | Fault::NoAnswer { .. }
        | Fault::Cut { .. }
        | Fault::NotTheApi { .. } => "server_error",
        Fault::RateLimited { .. } => "rate_limit",
        Fault::Quota { .. } => "billing_error",
        Fault::Auth => "authentication_failed",
        Fault::ModelGone => "model_not_found",
        Fault::TooLong => "invalid_request",
        Fault::OutputCut { .. } => "max_output_tokens",
        // Of a whole answer, not of a request.
        Fault::MalformedCall
        | Fault::PrintedCall
        | Fault::NothingVisible
        | Fault::Paused
        | Fault::Refused
        | Fault::ToolLoop { .. }
        | Fault::Cancelled
        | Fault::Invalid
        | Fault::HistoryBug
        | Fault::OutputCap { .. }
        | Fault::FeatureRefused { .. } => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_has_one_row_and_only_good_ends_look_good() {
        for reason in TerminalReason::ALL {
            assert_eq!(WIRE_ENDS.iter().filter(|end| end.reason == *reason).count(), 1, "{}", reason.name());
            let end = wire_end(*reason);
            assert_eq!(end.subtype == "success" && !end.as_answer, reason.is_good(), "{}", reason.name());
        }
    }

    #[test]
    fn a_name_that_is_ours_is_kept_or_translated_and_never_means_another_end() {
        for reason in TerminalReason::ALL {
            let wire = wire_end(*reason).terminal_reason;
            let same_name = TerminalReason::ALL.iter().find(|other| other.name() == wire);
            assert!(same_name.is_none_or(|other| other == reason), "{wire} is the name of another end");
        }
        let of = |wire: &str| -> Vec<&str> {
            let ends = WIRE_ENDS.iter().filter(|end| end.terminal_reason == wire);
            ends.map(|end| end.reason.name()).collect()
        };
        assert_eq!(
            of("api_error"),
            [
                "max_output_tokens",
                "provider_unavailable",
                "rate_limited",
                "quota",
                "auth_error",
                "invalid_request"
            ]
        );
        assert_eq!(of("model_error"), ["empty_answer", "internal_error"]);
        assert_eq!(of("aborted_tools"), ["cancelled_tools", "interrupted"]);
    }
}
