//! Inputs go into the turn machine, steps come out. Each step is performed outside and reports under its id.

use std::sync::Arc;

use crate::effects::EffectClass;
use crate::fault::Failure;
use crate::ids::{CallId, OpId};
use crate::json::RawJson;
use crate::message::{Call, CallResult, Part, Reply};
use crate::record::{AttemptTiming, OutcomeStatus, Refusal};
use crate::request::Request;

/// When an input came. Monotonic time decides; wall time only stamps; dice are rolled outside.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds since this process took the session.
    pub ms: u64,
    /// Milliseconds since 1970, for stamps only; it may jump.
    pub wall_ms: u64,
    /// Uniform over all of `u64`.
    pub dice: u64,
}

/// The name of an open step. A report under a name that is not open is late, and ignored.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StepId {
    Attempt {
        request: u64,
        attempt: u32,
    },
    /// The wait before the attempt of that number.
    Wait {
        request: u64,
        attempt: u32,
    },
    Prepare(CallId),
    Ask(OpId),
    Run(OpId),
    Look(OpId),
}

/// One thing to perform.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// One HTTP attempt; never more.
    Attempt {
        request: u64,
        attempt: u32,
        ask: Arc<Request>,
        client_id: String,
        fresh_connection: bool,
    },
    Wait {
        request: u64,
        attempt: u32,
        ms: u64,
    },
    /// Shape and judge a call: schema, rules, class, facts. No effect.
    Prepare {
        call: Call,
    },
    /// Ask a person. The intent is durable.
    Ask {
        op: OpId,
        call: Call,
        title: String,
    },
    /// Have the effect. `started` is durable, unless the class is pure.
    Run(RunStep),
    /// Look at what became of an operation that an earlier process started.
    Look {
        run: RunStep,
        wait: bool,
    },
    /// Tell an open step to stop and finish tidily; it still reports.
    Cancel(StepId),
}

#[derive(Debug, Clone, PartialEq)]
pub struct RunStep {
    pub op: OpId,
    pub call: CallId,
    pub tool: String,
    pub class: EffectClass,
    pub title: String,
    pub input: RawJson,
    pub key: String,
    pub pre: Option<RawJson>,
    pub attempt: u32,
}

/// What the outside tells the machine.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    Prompt {
        parts: Vec<Part>,
        uuid: Option<String>,
        max_turns: Option<u32>,
    },
    /// Go on with the turn that an earlier process left open.
    Continue,
    /// The person wants the turn to stop.
    Interrupt,
    AttemptEnded {
        request: u64,
        attempt: u32,
        end: AttemptReport,
    },
    Waited {
        request: u64,
        attempt: u32,
    },
    Prepared {
        call: CallId,
        verdict: PrepareVerdict,
    },
    Answered {
        op: OpId,
        answer: Answer,
    },
    Ran {
        op: OpId,
        report: RunReport,
    },
    Looked {
        op: OpId,
        finding: Finding,
    },
    /// The log could not be written; nothing after this is durable.
    StorageFailed {
        error: String,
    },
}

/// How one attempt ended.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptReport {
    pub result: Result<Reply, Failure>,
    pub timing: AttemptTiming,
    pub request_id: Option<String>,
}

/// Streaming text: data, never a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    Text(String),
    Thinking(String),
    CallForming { tool: String },
}

#[derive(Debug, Clone, PartialEq)]
pub enum PrepareVerdict {
    /// It will not run; this is its result.
    Refused {
        why: Refusal,
        title: String,
        result: CallResult,
    },
    Ready(Plan),
}

/// A call that may run.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub class: EffectClass,
    pub title: String,
    /// The final input: defaults filled, paths absolute.
    pub input: RawJson,
    /// The input that makes two calls equal: canonical JSON, without what has no meaning for the effect.
    pub canonical: String,
    pub pre: Option<RawJson>,
    pub permission: Judgement,
}

/// What rules and mode say of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    Allow {
        by: String,
    },
    /// A person decides.
    Ask,
    Deny {
        by: String,
        reason: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Allow,
    Deny {
        reason: String,
    },
    /// Nobody can answer.
    Nobody {
        reason: String,
    },
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub enum RunReport {
    Ended {
        status: OutcomeStatus,
        result: CallResult,
        post: Option<RawJson>,
        took_ms: u64,
    },
    /// It goes on in the background under this name.
    Detached {
        task: String,
        result: CallResult,
    },
    /// The performer lost it; it may have happened.
    Lost {
        why: String,
    },
}

/// What became of an operation from before.
#[derive(Debug, Clone, PartialEq)]
pub enum Finding {
    Ended(RunReport),
    /// Certainly never executed.
    NeverRan,
    /// It may have happened; nothing is known.
    Nothing {
        why: String,
    },
}
