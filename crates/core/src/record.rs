//! Records: what is durable. Every state is a fold over these.
//!
//! A record says what happened or what was decided, never what to do next. Names and members are snake_case
//! and stable: they are the session log's format. New optional members need no new format.

use serde::{Deserialize, Serialize};

use crate::effects::EffectClass;
use crate::fault::Failure;
use crate::ids::{CallId, MessageId, OpId, SessionId};
use crate::json::RawJson;
use crate::message::{CallResult, Part, Reply, Usage};
use crate::request::{Context, Thinking};
use crate::terminal::{TerminalReason, Transition};

macro_rules! records {
    ($($(#[$doc:meta])* $variant:ident => $kind:literal,)*) => {
        /// One durable fact, with its type's name in the log.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Record {
            $($(#[$doc])* $variant($variant),)*
        }

        impl Record {
            /// All type names of this format, in the order they are documented.
            pub const KINDS: &'static [&'static str] = &[$($kind),*];

            /// The log's `type`.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Record::$variant(_) => $kind,)*
                }
            }

            /// The log's `data`, as JSON text.
            pub fn data(&self) -> String {
                match self {
                    $(Record::$variant(body) => serde_json::to_string(body),)*
                }
                .expect("records are plain data")
            }

            /// Reads a record back.
            ///
            /// Returns `None` for types that start with `x_`, which every reader skips.
            /// Errors: [`RecordError`] for a type this version does not know, or a body that does not fit.
            pub fn parse(kind: &str, data: &str) -> Result<Option<Self>, RecordError> {
                let fits = |source| RecordError::Body { kind: kind.to_owned(), source };
                match kind {
                    $($kind => serde_json::from_str(data).map(Record::$variant).map(Some).map_err(fits),)*
                    other if other.starts_with("x_") => Ok(None),
                    other => Err(RecordError::Kind(other.to_owned())),
                }
            }
        }

        $(impl From<$variant> for Record {
            fn from(body: $variant) -> Self {
                Record::$variant(body)
            }
        })*
    };
}

#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Written by a newer yaoki; the session can be read but not continued.
    #[error("this version does not know records of type {0:?}")]
    Kind(String),
    #[error("a {kind:?} record does not have the shape this version knows")]
    Body {
        kind: String,
        #[source]
        source: serde_json::Error,
    },
}

records! {
    /// Line 1.
    Header => "header",
    /// A process took the session.
    Opened => "opened",
    /// System prompt, tools and memory, made once.
    ContextSet => "context",
    /// A model, cap or mode chosen from here on.
    Switched => "switched",
    /// A person's prompt; opens a turn.
    InputGiven => "input",
    /// One HTTP attempt began.
    AttemptStart => "attempt_start",
    /// It ended, well or not.
    AttemptEnd => "attempt_end",
    /// A rule acted; this is what its budget is counted from.
    Budget => "budget",
    /// Text shown and withdrawn.
    Discarded => "discarded",
    /// A model's message is history now.
    AssistantCommitted => "assistant_committed",
    /// A call was answered without running.
    CallRefused => "call_refused",
    Intent => "intent",
    Permission => "permission",
    Started => "started",
    /// A sign of life or a remote handle of a running operation.
    Beat => "beat",
    Outcome => "outcome",
    Unknown => "unknown",
    Resolved => "resolved",
    /// The call has its result; the command goes on in the background.
    Detached => "detached",
    /// The active leaf moved back; nothing is removed.
    Moved => "moved",
    /// Part of the log is gone.
    Gap => "gap",
    /// The store mended the file.
    Repaired => "repaired",
    /// An optional part of requests is left out from here on.
    Dropped => "dropped",
    /// The task list as the model last wrote it.
    Todo => "todo",
    Notice => "notice",
    TurnEnd => "turn_end",
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    pub format: u32,
    pub session: SessionId,
    /// RFC 3339.
    pub created: String,
    pub cwd: String,
    /// The version that made the session.
    pub yaoki: String,
    /// Random, hex: keys of operations are derived with it, so that nobody can guess inputs from keys.
    pub key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Opened {
    pub epoch: u32,
    pub yaoki: String,
    pub cwd: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContextSet {
    pub context: Context,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Switched {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// The model's own output limit, where `max_tokens` was not the user's choice; 0 where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens_model: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Thinking>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputGiven {
    pub parts: Vec<Part>,
    /// The client's id of this prompt; the same one again is answered from the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// Rounds this turn may take; none means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptStart {
    /// The logical request, counted from 1 in the session.
    pub request: u64,
    /// From 1 within the request.
    pub attempt: u32,
    pub model: String,
    pub endpoint: String,
    /// Our id of this attempt, sent as a header.
    pub client_id: String,
    pub streamed: bool,
    /// BLAKE3 of the body sent, first 16 hex digits; equal attempts sent equal bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptEnd {
    pub request: u64,
    pub attempt: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    #[serde(flatten)]
    pub timing: AttemptTiming,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The model that answered, where it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AttemptTiming {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_byte_ms: Option<u64>,
    pub total_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    pub request: u64,
    /// The attempt whose end the rule answered.
    pub attempt: u32,
    pub rule: String,
    pub fault: String,
    pub transition: Transition,
    /// How long the rule waits, in milliseconds from this record.
    pub after_ms: u64,
    /// The cap on output that the request has from here on, where the rule changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// The model that the turn asks from here on, where the rule changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// A line that only the model reads, behind the history so far. In this record, so that no crash comes between what
    /// it costs and that it is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub say: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Discarded {
    pub request: u64,
    pub attempt: u32,
    /// Characters that had been shown.
    pub shown: u64,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AssistantCommitted {
    pub message: MessageId,
    pub request: u64,
    pub reply: Reply,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallRefused {
    pub call: CallId,
    pub why: Refusal,
    pub result: CallResult,
}

/// Why a call never ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    UnknownTool,
    /// The input does not fit the schema, or is not JSON.
    InvalidInput,
    /// A precondition failed before anything was done (file not read, text not found).
    Precondition,
    Denied,
    /// The message ended at the output limit; the input may be half.
    Truncated,
    NotStarted,
    /// Nobody knows whether it ran, and no operation is left to say so of. It is not run again.
    Lost,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Intent {
    pub op: OpId,
    pub call: CallId,
    pub tool: String,
    pub class: EffectClass,
    /// One line for people: `Bash(cargo test)`.
    pub title: String,
    /// The final input.
    pub input: RawJson,
    pub key: String,
    pub digest: String,
    /// What was true of the world before, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre: Option<RawJson>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Permission {
    pub op: OpId,
    pub allowed: bool,
    /// `rule`, `mode`, `person`, `headless`.
    pub by: String,
    /// The epoch it holds in; a resumed session asks again.
    pub epoch: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Started {
    pub op: OpId,
    /// Counts from 1; a second start follows a "never executed" only.
    pub attempt: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Beat {
    pub op: OpId,
    pub progress: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub op: OpId,
    pub status: OutcomeStatus,
    pub result: CallResult,
    /// What is true of the world after, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post: Option<RawJson>,
    pub took_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeStatus {
    Success,
    /// It failed and changed nothing, or says so itself (a command's exit code).
    FailedClean,
    /// Some of it happened.
    FailedPartial,
    CancelledClean,
    /// It was stopped while it ran; part of it may have happened.
    CancelledPartial,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Unknown {
    pub op: OpId,
    pub why: String,
    /// What the model is told in place of a result.
    pub result: CallResult,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resolved {
    pub op: OpId,
    /// `probe`, `user`, `recorded`.
    pub by: String,
    pub verdict: Verdict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Happened,
    Not,
    Again,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Detached {
    pub op: OpId,
    /// The name the model knows it by: `bash_3`.
    pub task: String,
    pub result: CallResult,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Moved {
    /// The new leaf; none is before the first message.
    pub leaf: Option<MessageId>,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gap {
    pub seq_from: u64,
    pub seq_to: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repaired {
    pub what: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dropped {
    pub feature: crate::fault::Feature,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Todo {
    pub items: RawJson,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Notice {
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnEnd {
    pub reason: TerminalReason,
    /// The error in words; none for a completed turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When a limit lifts, RFC 3339 or the server's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumes_at: Option<String>,
}
