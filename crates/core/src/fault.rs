//! Faults: the world let us down, in the ways that worlds do.
//!
//! A failure is classified once, where it is seen, by status, typed error and stream state; from then on it is
//! one of these. Rules answer faults; nothing else does. `Evidence` is for people and for the log.

use serde::{Deserialize, Serialize};

/// The closed set of what can go wrong with a request: with one attempt at it, or with a whole answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub enum Fault {
    /// Someone told us to stop.
    Cancelled,
    /// No byte of the request was accepted: refused, reset while connecting, DNS, TLS.
    NotSent { cause: NotSent },
    /// A pooled connection turned out to be dead before any byte of the answer.
    StaleConnection,
    /// Sent, but no answer began: reset or time-out before the headers.
    NoAnswer { cause: Silence },
    /// The answer began and did not end: reset, end of stream, idle, protocol error.
    Cut { cause: Cut },
    /// 529 and its in-stream twin.
    Overloaded { wait_ms: Option<u64> },
    /// 429 that is neither a spend cap nor a quota.
    RateLimited { wait_ms: Option<u64> },
    /// 408, 409, 5xx and their in-stream twins.
    Server { status: Option<u16>, wait_ms: Option<u64> },
    /// A body that is not the API's: HTML from a gateway, an empty 200, the wrong content type.
    NotTheApi { wait_ms: Option<u64> },
    /// Spend limit, billing, credit: asking again changes nothing.
    Quota { resets_at: Option<String> },
    /// 401, 403.
    Auth,
    /// The model is not there for us.
    ModelGone,
    /// The request itself is wrong.
    Invalid,
    /// The request breaks a rule about history that we should have kept.
    HistoryBug,
    /// More tokens, or more bytes, than the model takes.
    TooLong,
    /// Input plus `max_tokens` is over the limit while the input alone fits; `room` is what is left, in tokens.
    OutputCap { room: Option<u32> },
    /// One optional part of the request is not known there.
    FeatureRefused { feature: Feature },
    /// A whole answer that stopped at the output limit.
    OutputCut { has_calls: bool },
    /// An answer that stopped for tool use and holds no call.
    MalformedCall,
    /// A call printed as text, in an answer that ended as if it were done.
    PrintedCall,
    /// An answer that ended with nothing to see in it.
    NothingVisible,
    /// The service paused its own work and wants to be asked again.
    Paused,
    /// The model refused.
    Refused,
    /// The model makes the same calls again and gets the same results; so many rounds in a row.
    ToolLoop { rounds: u32, are_errors: bool },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotSent {
    Refused,
    Reset,
    Dns,
    Tls,
    Timeout,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Silence {
    Reset,
    /// The first-byte limit passed.
    Timeout,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    Reset,
    /// The body ended without the closing event.
    Ended,
    /// No bytes for the idle limit.
    Idle,
    /// Bytes, but nothing new in them, for the content idle limit.
    OnlyPings,
    /// An event out of order, twice, unreadable, or over the size cap.
    Protocol,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Feature {
    CacheControl,
    Streaming,
    Thinking,
    Beta,
    /// Earlier thinking in the history, which carries signatures.
    SignedThinking,
}

impl Fault {
    /// Names the class, as logs and notices print it.
    pub fn name(&self) -> &'static str {
        match self {
            Fault::Cancelled => "cancelled",
            Fault::NotSent { .. } => "not_sent",
            Fault::StaleConnection => "stale_connection",
            Fault::NoAnswer { .. } => "no_answer",
            Fault::Cut { .. } => "cut",
            Fault::Overloaded { .. } => "overloaded",
            Fault::RateLimited { .. } => "rate_limited",
            Fault::Server { .. } => "server",
            Fault::NotTheApi { .. } => "not_the_api",
            Fault::Quota { .. } => "quota",
            Fault::Auth => "auth",
            Fault::ModelGone => "model_gone",
            Fault::Invalid => "invalid",
            Fault::HistoryBug => "history_bug",
            Fault::TooLong => "too_long",
            Fault::OutputCap { .. } => "output_cap",
            Fault::FeatureRefused { .. } => "feature_refused",
            Fault::OutputCut { .. } => "output_cut",
            Fault::MalformedCall => "malformed_call",
            Fault::PrintedCall => "printed_call",
            Fault::NothingVisible => "nothing_visible",
            Fault::Paused => "paused",
            Fault::Refused => "refused",
            Fault::ToolLoop { .. } => "tool_loop",
        }
    }

    /// The time the server named, in milliseconds from its answer.
    pub fn wait_ms(&self) -> Option<u64> {
        match self {
            Fault::Overloaded { wait_ms }
            | Fault::RateLimited { wait_ms }
            | Fault::Server { wait_ms, .. }
            | Fault::NotTheApi { wait_ms } => *wait_ms,
            Fault::Cancelled
            | Fault::NotSent { .. }
            | Fault::StaleConnection
            | Fault::NoAnswer { .. }
            | Fault::Cut { .. }
            | Fault::Quota { .. }
            | Fault::Auth
            | Fault::ModelGone
            | Fault::Invalid
            | Fault::HistoryBug
            | Fault::TooLong
            | Fault::OutputCap { .. }
            | Fault::FeatureRefused { .. }
            | Fault::OutputCut { .. }
            | Fault::MalformedCall
            | Fault::PrintedCall
            | Fault::NothingVisible
            | Fault::Paused
            | Fault::Refused
            | Fault::ToolLoop { .. } => None,
        }
    }
}

/// What was seen, for people and logs. Text from outside: escape it where it is shown, never search it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Evidence {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// `error.type` or a code below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The server's words, or the transport's; at most 2,000 characters.
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// `x-should-retry`, where the server sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub should_retry: Option<bool>,
}

/// One failed attempt: what it was, and what was seen of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    #[serde(flatten)]
    pub fault: Fault,
    pub evidence: Evidence,
}

impl Failure {
    /// A short label for a notice: `529 overloaded`, `connection reset`, `stream cut`.
    pub fn label(&self) -> String {
        let words = match &self.fault {
            Fault::Cancelled => "cancelled",
            Fault::NotSent { cause: NotSent::Refused } => "connection refused",
            Fault::NotSent { cause: NotSent::Reset } => "connection reset",
            Fault::NotSent { cause: NotSent::Dns } => "name not resolved",
            Fault::NotSent { cause: NotSent::Tls } => "TLS failed",
            Fault::NotSent { cause: NotSent::Timeout } => "connect timed out",
            Fault::NotSent { cause: NotSent::Other } => "not sent",
            Fault::StaleConnection => "stale connection",
            Fault::NoAnswer { cause: Silence::Reset } => "connection reset before an answer",
            Fault::NoAnswer { cause: Silence::Timeout } => "no answer in time",
            Fault::Cut { cause: Cut::Reset } => "stream reset",
            Fault::Cut { cause: Cut::Ended } => "stream ended early",
            Fault::Cut { cause: Cut::Idle } => "stream stalled",
            Fault::Cut { cause: Cut::OnlyPings } => "stream sends only pings",
            Fault::Cut { cause: Cut::Protocol } => "stream not understood",
            Fault::Overloaded { .. } => "overloaded",
            Fault::RateLimited { .. } => "rate limited",
            Fault::Server { .. } => "server error",
            Fault::NotTheApi { .. } => "not the API's answer",
            Fault::Quota { .. } => "quota",
            Fault::Auth => "auth",
            Fault::ModelGone => "model not available",
            Fault::Invalid => "invalid request",
            Fault::HistoryBug => "invalid history",
            Fault::TooLong => "too long",
            Fault::OutputCap { .. } => "output cap too high",
            Fault::FeatureRefused { .. } => "feature refused",
            Fault::OutputCut { .. } => "answer cut at the output limit",
            Fault::MalformedCall => "tool use without a call",
            Fault::PrintedCall => "call printed as text",
            Fault::NothingVisible => "answer with nothing to see",
            Fault::Paused => "paused",
            Fault::Refused => "refused",
            Fault::ToolLoop { .. } => "same calls with the same results",
        };
        match self.evidence.status {
            Some(status) => format!("{status} {words}"),
            None => words.to_owned(),
        }
    }
}
