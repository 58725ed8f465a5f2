//! The numbers of recovery, as data.

use serde::{Deserialize, Serialize};

/// Limits and waits in force. Times are milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Retries of one logical request after its first attempt.
    pub max_retries: u32,
    pub backoff_first_ms: u64,
    pub backoff_max_ms: u64,
    /// A longer wait named by the server is not slept through in silence.
    pub retry_after_cap_ms: u64,
    /// All waiting and retrying for one request.
    pub max_elapsed_ms: u64,
    /// Broken streams of one request before it is asked for in one piece.
    pub stream_failures: u32,
    pub unstreamed_allowed: bool,
    /// The cap on output when neither user nor model table names one.
    pub max_tokens: u32,
    /// Overloads of one model in a row before the next one is asked.
    pub overloads_before_fallback: u32,
    /// Models to ask when the one before them can't serve, in order.
    pub fallback_models: Vec<String>,
    pub on_unknown: OnUnknown,
}

/// What a headless turn does about an outcome that nobody knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnUnknown {
    /// The model is told that it is unknown, and decides what to check.
    #[default]
    TellModel,
    /// The turn ends `needs_decision`.
    Stop,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            max_retries: 10,
            backoff_first_ms: 500,
            backoff_max_ms: 32_000,
            retry_after_cap_ms: 60_000,
            max_elapsed_ms: 600_000,
            stream_failures: 2,
            unstreamed_allowed: true,
            max_tokens: 32_000,
            overloads_before_fallback: 3,
            fallback_models: Vec::new(),
            on_unknown: OnUnknown::TellModel,
        }
    }
}
