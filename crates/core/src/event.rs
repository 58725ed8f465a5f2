//! Events: what onlookers (terminal, stream-json, reports) are told. They cannot reach back.

use crate::fault::Failure;
use crate::ids::{CallId, MessageId, OpId};
use crate::message::{CallResult, Part, Reply, Usage};
use crate::record::{OutcomeStatus, Refusal};
use crate::terminal::{TerminalReason, Transition};

/// One thing an onlooker may want to show. Those that claim something final come after its record is durable.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The prompt is on disk.
    Accepted {
        message: MessageId,
        parts: Vec<Part>,
    },
    /// An attempt went out.
    Asking {
        request: u64,
        attempt: u32,
        model: String,
        streamed: bool,
    },
    /// Provisional text; a later `Withdrawn` of the same request takes it back.
    Text {
        request: u64,
        piece: String,
    },
    Thinking {
        request: u64,
        piece: String,
    },
    /// A call is being written by the model; its input is not complete.
    CallForming {
        request: u64,
        tool: String,
    },
    /// What was shown of this attempt is withdrawn. Where a whole answer is not kept it says what that cost, even if
    /// nothing of it was shown.
    Withdrawn {
        request: u64,
        shown: u64,
        reason: String,
        spent: Option<Spent>,
    },
    /// A message is history now.
    Committed {
        message: MessageId,
        reply: Reply,
    },
    /// A rule acted and the same request goes out again after a wait.
    Retrying {
        request: u64,
        /// Which retry this is, from 1.
        retry: u32,
        retries_max: u32,
        after_ms: u64,
        rule: String,
        transition: Transition,
        failure: Failure,
    },
    /// A rule acted on an answer, or changed the request; `text` says it in words.
    Recovering {
        request: u64,
        rule: String,
        transition: Transition,
        text: String,
    },
    /// A request failed for good.
    RequestFailed {
        request: u64,
        attempts: u32,
        failure: Failure,
    },
    /// A call will run (or did not need to); `title` is `Bash(cargo test)`.
    CallStarted {
        call: CallId,
        op: OpId,
        tool: String,
        title: String,
    },
    /// Output of a running call, as it comes; not what the model will get.
    CallOutput {
        op: OpId,
        piece: String,
    },
    CallEnded {
        call: CallId,
        op: OpId,
        tool: String,
        status: OutcomeStatus,
        result: CallResult,
        took_ms: u64,
    },
    CallRefused {
        call: CallId,
        tool: String,
        title: String,
        why: Refusal,
        result: CallResult,
    },
    /// The outcome of an operation of an earlier process is not known.
    OutcomeUnknown {
        call: CallId,
        op: OpId,
        tool: String,
        title: String,
        result: CallResult,
    },
    /// It goes on in the background.
    Detached {
        call: CallId,
        op: OpId,
        task: String,
        result: CallResult,
    },
    Notice {
        level: Level,
        text: String,
    },
    TurnEnded(TurnSummary),
}

/// What an answer that is not kept cost, and whose it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spent {
    pub model: String,
    pub usage: Usage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Info,
    Warn,
    Error,
}

/// What one turn came to.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnSummary {
    pub reason: TerminalReason,
    /// The last message's text, where the turn completed.
    pub text: String,
    /// The error in words, where it did not.
    pub error: Option<String>,
    pub resumes_at: Option<String>,
    /// Status of the failure that ended it, if one did.
    pub failure: Option<Failure>,
    /// Rounds: committed messages of this turn.
    pub rounds: u32,
    pub usage: Usage,
    /// Attempts that failed, in this turn.
    pub attempts_failed: u32,
    pub denials: Vec<Denial>,
    pub stop: Option<crate::message::StopReason>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Denial {
    pub call: CallId,
    pub tool: String,
    pub input: crate::json::RawJson,
}
