//! How turns end, and how one round leads to the next: two closed sets.

use serde::{Deserialize, Serialize};

macro_rules! names {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident => $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $text)] $variant,)*
        }

        impl $name {
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            /// The name in logs, events and results.
            pub fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)*
                }
            }
        }
    };
}

names! {
    /// Why a turn ended. Durable before it is shown; the exit code is a function of it.
    TerminalReason {
        /// The model ended the turn and every effect is settled or named as unknown.
        Completed => "completed",
        MaxTurns => "max_turns",
        MaxOutputTokens => "max_output_tokens",
        PromptTooLong => "prompt_too_long",
        BlockingLimit => "blocking_limit",
        RapidRefillBreaker => "rapid_refill_breaker",
        MalformedToolUseExhausted => "malformed_tool_use_exhausted",
        ProviderUnavailable => "provider_unavailable",
        RateLimited => "rate_limited",
        Quota => "quota",
        AuthError => "auth_error",
        InvalidRequest => "invalid_request",
        Refusal => "refusal",
        ImageError => "image_error",
        CancelledStreaming => "cancelled_streaming",
        CancelledTools => "cancelled_tools",
        HookStopped => "hook_stopped",
        StopHookPrevented => "stop_hook_prevented",
        ToolLoop => "tool_loop",
        NeedsPermission => "needs_permission",
        /// An effect's outcome is unknown and policy says to stop.
        NeedsDecision => "needs_decision",
        BackgroundRequested => "background_requested",
        ToolDeferred => "tool_deferred",
        BudgetExceeded => "budget_exceeded",
        EmptyAnswer => "empty_answer",
        StructuredOutputExhausted => "structured_output_exhausted",
        /// The process died; written by the next open when the turn is not finished.
        Interrupted => "interrupted",
        StorageFailed => "storage_failed",
        InternalError => "internal_error",
    }
}

names! {
    /// How one attempt or round led to the next.
    Transition {
        NextTurn => "next_turn",
        RequestRetry => "request_retry",
        StreamFallback => "stream_fallback",
        ModelFallback => "model_fallback",
        MaxOutputTokensEscalate => "max_output_tokens_escalate",
        MaxOutputTokensRecovery => "max_output_tokens_recovery",
        CollapseDrainRetry => "collapse_drain_retry",
        PrecomputedCompactSwap => "precomputed_compact_swap",
        ReactiveCompactRetry => "reactive_compact_retry",
        MalformedToolRetry => "malformed_tool_retry",
        ThinkingOnlyNudge => "thinking_only_nudge",
        StopHookBlocking => "stop_hook_blocking",
        TokenBudgetContinuation => "token_budget_continuation",
        PauseTurn => "pause_turn",
    }
}

impl Transition {
    /// Whether the message before it stays and goes on in the next one; the two are one round.
    pub fn continues_message(self) -> bool {
        matches!(self, Self::MaxOutputTokensRecovery | Self::ThinkingOnlyNudge | Self::PauseTurn)
    }
}

impl TerminalReason {
    /// Whether the turn ended as the person who asked would have it.
    pub fn is_good(self) -> bool {
        matches!(self, Self::Completed | Self::ToolDeferred | Self::BackgroundRequested)
    }
}
