//! The state of a session: a fold over its records, and nothing else.
//!
//! Running and resuming are the same code because both only ever apply records here. What is open – a request, a
//! wait, an operation – is part of it, so a new process knows what the old one was doing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::fault::{Failure, Fault, Feature};
use crate::graph::MessageGraph;
use crate::ids::{CallId, MessageId, OpId, SessionId, derive_uuid};
use crate::ledger::Ledger;
use crate::message::{Block, BlockBody, Call, Reply, StopReason, Usage};
use crate::record::{Header, Intent, Record, Refusal, Verdict};
use crate::recovery;
use crate::request::{Context, Thinking};
use crate::terminal::{TerminalReason, Transition};

/// Where a record stands and when it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub seq: u64,
    pub epoch: u32,
    /// Monotonic milliseconds since that epoch opened.
    pub ms: u64,
}

/// Everything the records so far say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    pub header: Option<Header>,
    pub epoch: u32,
    pub seq_last: u64,
    /// Running time of all epochs together; time while no process ran does not count.
    pub clock_ms: u64,
    epoch_ms: u64,
    pub context: Option<Arc<Context>>,
    pub model: String,
    pub max_tokens: u32,
    pub thinking: Thinking,
    pub permission_mode: Option<String>,
    pub dropped: BTreeSet<FeatureKey>,
    pub graph: MessageGraph,
    pub ops: BTreeMap<OpId, Op>,
    /// The operation that stands for a call now.
    pub op_of_call: BTreeMap<CallId, OpId>,
    pub turn: Option<OpenTurn>,
    pub requests: u64,
    pub totals: Totals,
    pub last_end: Option<TerminalReason>,
}

/// A feature, ordered, so that a set of them has one order everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FeatureKey(u8);

impl From<Feature> for FeatureKey {
    fn from(feature: Feature) -> Self {
        FeatureKey(match feature {
            Feature::CacheControl => 0,
            Feature::Streaming => 1,
            Feature::Thinking => 2,
            Feature::Beta => 3,
        })
    }
}

/// Sums over the session, for `/status` and results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    pub usage: Usage,
    /// Requests that got an answer.
    pub answered: u64,
    pub attempts_failed: u64,
    /// Input tokens of the last answered request.
    pub context: u64,
}

/// A turn that has begun and not ended.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenTurn {
    /// The seq of the input that opened it.
    pub input_seq: u64,
    pub max_turns: Option<u32>,
    /// Messages committed in it.
    pub rounds: u32,
    pub ledger: Ledger,
    pub usage: Usage,
    pub attempts_failed: u32,
    pub pauses: u32,
    /// The request that is being asked, from its first attempt to its answer.
    pub request: Option<OpenRequest>,
    /// The committed message whose calls are being answered.
    pub calls: Vec<Call>,
    pub stop: Option<StopReason>,
    /// Calls that permission was refused for.
    pub denials: Vec<Call>,
    pub last_failure: Option<Failure>,
    /// The turn's latest message from the model.
    pub last_blocks: Vec<Block>,
}

/// One logical request and its attempts so far.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenRequest {
    pub number: u64,
    /// Attempts that began.
    pub attempts: u32,
    /// Whether the last one has not ended.
    pub is_asking: bool,
    pub is_streamed: bool,
    /// Retries that cost one.
    pub retries: u32,
    pub streams_broken: u32,
    /// The session clock at the first failure.
    pub failing_since_ms: Option<u64>,
    pub wait: Option<Wait>,
    /// Whether the next attempt goes out in one piece.
    pub unstreamed_next: bool,
    pub max_tokens: Option<u32>,
}

/// A wait before the next attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    pub rule: String,
    pub transition: Transition,
    pub after_ms: u64,
    /// The session clock when it began.
    pub since_ms: u64,
}

/// One operation, from its intent on.
#[derive(Debug, Clone, PartialEq)]
pub struct Op {
    pub intent: Intent,
    pub phase: OpPhase,
    /// The epoch in which it was allowed.
    pub allowed_in: Option<u32>,
    pub starts: u32,
}

/// The states of effects.md that this version reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpPhase {
    Intended,
    Permitted,
    Started,
    Detached,
    Done,
    /// Denied or cancelled before it started.
    Dropped,
    Unknown,
    Settled,
}

impl OpPhase {
    pub fn is_open(self) -> bool {
        match self {
            OpPhase::Intended | OpPhase::Permitted | OpPhase::Started => true,
            OpPhase::Detached | OpPhase::Done | OpPhase::Dropped | OpPhase::Unknown | OpPhase::Settled => {
                false
            }
        }
    }
}

impl State {
    pub fn session(&self) -> Option<&SessionId> {
        self.header.as_ref().map(|header| &header.session)
    }

    /// Folds one record in. The only way state changes.
    pub fn apply(&mut self, place: Place, record: &Record) {
        self.advance(place);
        match record {
            Record::Header(header) => self.header = Some(header.clone()),
            Record::Opened(opened) => self.epoch = opened.epoch,
            Record::ContextSet(set) => self.context = Some(Arc::new(set.context.clone())),
            Record::Switched(switched) => {
                if let Some(model) = &switched.model {
                    self.model.clone_from(model);
                }
                self.max_tokens = switched.max_tokens.unwrap_or(self.max_tokens);
                self.thinking = switched.thinking.unwrap_or(self.thinking);
                if switched.permission_mode.is_some() {
                    self.permission_mode.clone_from(&switched.permission_mode);
                }
            }
            Record::InputGiven(input) => {
                let id = self.derived(place.seq, 0);
                self.graph.append_user(MessageId::new(id), input.parts.clone());
                self.turn = Some(OpenTurn::opened_by(place.seq, input.max_turns));
            }
            Record::AttemptStart(start) => {
                self.requests = self.requests.max(start.request);
                if let Some(turn) = &mut self.turn {
                    turn.request
                        .get_or_insert_with(|| OpenRequest::new(start.request))
                        .begin(start.attempt, start.streamed);
                }
            }
            Record::AttemptEnd(end) => self.attempt_ended(end.failure.as_ref()),
            Record::Budget(budget) => {
                let clock_ms = self.clock_ms;
                if let Some(turn) = &mut self.turn {
                    turn.ledger.charge(&budget.rule);
                    if let Some(request) = &mut turn.request {
                        request.retries += u32::from(recovery::costs_retry(&budget.rule));
                        request.unstreamed_next = budget.transition == Transition::StreamFallback;
                        request.max_tokens = budget.max_tokens.or(request.max_tokens);
                        request.wait = Some(Wait {
                            rule: budget.rule.clone(),
                            transition: budget.transition,
                            after_ms: budget.after_ms,
                            since_ms: clock_ms,
                        });
                    }
                }
            }
            Record::AssistantCommitted(committed) => {
                self.committed(place.seq, &committed.message, &committed.reply)
            }
            Record::CallRefused(refused) => {
                self.graph.settle(&refused.call, refused.result.clone());
                if refused.why == Refusal::Denied
                    && let Some(turn) = &mut self.turn
                {
                    turn.denials.extend(turn.calls.iter().find(|call| call.id == refused.call).cloned());
                }
                self.set_phase_of_call(&refused.call, OpPhase::Dropped);
            }
            Record::Intent(intent) => {
                self.op_of_call.insert(intent.call.clone(), intent.op);
                let op = Op { intent: intent.clone(), phase: OpPhase::Intended, allowed_in: None, starts: 0 };
                self.ops.insert(intent.op, op);
            }
            Record::Permission(permission) => {
                if let Some(op) = self.ops.get_mut(&permission.op)
                    && permission.allowed
                {
                    op.phase = OpPhase::Permitted;
                    op.allowed_in = Some(permission.epoch);
                }
            }
            Record::Started(started) => {
                if let Some(op) = self.ops.get_mut(&started.op) {
                    op.phase = OpPhase::Started;
                    op.starts = started.attempt;
                }
            }
            Record::Outcome(outcome) => {
                if let Some(op) = self.ops.get_mut(&outcome.op) {
                    op.phase = OpPhase::Done;
                    let call = op.intent.call.clone();
                    self.graph.settle(&call, outcome.result.clone());
                }
            }
            Record::Detached(detached) => {
                if let Some(op) = self.ops.get_mut(&detached.op) {
                    op.phase = OpPhase::Detached;
                    let call = op.intent.call.clone();
                    self.graph.settle(&call, detached.result.clone());
                }
            }
            Record::Unknown(unknown) => {
                if let Some(op) = self.ops.get_mut(&unknown.op) {
                    op.phase = OpPhase::Unknown;
                    let call = op.intent.call.clone();
                    self.graph.settle(&call, unknown.result.clone());
                }
            }
            Record::Resolved(resolved) => {
                if let Some(op) = self.ops.get_mut(&resolved.op) {
                    op.phase = OpPhase::Settled;
                    // The call is open again, and what runs next is an operation of its own.
                    if matches!(resolved.verdict, Verdict::Not | Verdict::Again) {
                        let call = op.intent.call.clone();
                        self.op_of_call.remove(&call);
                    }
                }
            }
            Record::Moved(moved) => self.graph.move_to(moved.leaf.clone()),
            Record::Dropped(dropped) => {
                self.dropped.insert(dropped.feature.into());
            }
            Record::TurnEnd(end) => {
                self.last_end = Some(end.reason);
                self.turn = None;
            }
            Record::Discarded(_)
            | Record::Beat(_)
            | Record::Gap(_)
            | Record::Repaired(_)
            | Record::Todo(_)
            | Record::Notice(_) => {}
        }
    }

    fn advance(&mut self, place: Place) {
        if place.epoch == self.epoch {
            self.clock_ms += place.ms.saturating_sub(self.epoch_ms);
        } else {
            self.epoch = place.epoch;
        }
        self.epoch_ms = place.ms;
        self.seq_last = place.seq;
    }

    /// The session clock at a moment of this epoch.
    pub fn clock_at(&self, ms: u64) -> u64 {
        self.clock_ms + ms.saturating_sub(self.epoch_ms)
    }

    fn derived(&self, seq: u64, index: u32) -> String {
        let nobody = SessionId::new("");
        derive_uuid(self.session().unwrap_or(&nobody), seq, index)
    }

    /// The id that the message committed in record `seq` will have.
    pub fn message_id(&self, seq: u64) -> MessageId {
        MessageId::new(self.derived(seq, 0))
    }

    fn attempt_ended(&mut self, failure: Option<&Failure>) {
        let clock_ms = self.clock_ms;
        if failure.is_some() {
            self.totals.attempts_failed += 1;
        }
        let Some(turn) = &mut self.turn else { return };
        turn.last_failure = failure.cloned();
        let Some(request) = &mut turn.request else { return };
        request.is_asking = false;
        let Some(failure) = failure else { return };
        turn.attempts_failed += 1;
        request.failing_since_ms.get_or_insert(clock_ms);
        let is_broken_stream = matches!(failure.fault, Fault::Cut { .. }) && request.is_streamed;
        request.streams_broken += u32::from(is_broken_stream);
    }

    fn committed(&mut self, seq: u64, message: &MessageId, reply: &Reply) {
        let mut blocks = reply.blocks.clone();
        let mut calls = Vec::new();
        for (index, block) in blocks.iter_mut().enumerate() {
            if let BlockBody::Call(call) = &mut block.body {
                call.id = CallId::new(self.derived(seq, index as u32 + 1));
                calls.push(call.clone());
            }
        }
        self.graph.append_assistant(message.clone(), reply.origin.clone(), blocks.clone());
        self.totals.usage.add(reply.usage);
        self.totals.answered += 1;
        self.totals.context = reply.usage.context();
        if let Some(turn) = &mut self.turn {
            turn.ledger.progress();
            turn.usage.add(reply.usage);
            turn.rounds += 1;
            turn.pauses += u32::from(reply.stop == StopReason::PauseTurn);
            turn.request = None;
            turn.calls = calls;
            turn.stop = Some(reply.stop.clone());
            turn.last_blocks = blocks;
        }
    }

    fn set_phase_of_call(&mut self, call: &CallId, phase: OpPhase) {
        if let Some(op) = self.op_of_call.get(call).and_then(|op| self.ops.get_mut(op)) {
            op.phase = phase;
        }
    }

    /// Calls of the open turn that have no result yet, in order.
    pub fn open_calls(&self) -> impl Iterator<Item = &Call> {
        let calls = self.turn.as_ref().map_or(&[][..], |turn| &turn.calls);
        calls.iter().filter(|call| !self.graph.has_result(&call.id))
    }

    /// The operation that stands for a call, if one is open.
    pub fn open_op(&self, call: &CallId) -> Option<(OpId, &Op)> {
        let op = self.op_of_call.get(call)?;
        let found = self.ops.get(op)?;
        found.phase.is_open().then_some((*op, found))
    }

    /// Operations that started and whose end is not in the records.
    pub fn orphans(&self) -> impl Iterator<Item = (OpId, &Op)> {
        self.ops.iter().filter(|(_, op)| op.phase == OpPhase::Started).map(|(id, op)| (*id, op))
    }

    pub fn is_dropped(&self, feature: Feature) -> bool {
        self.dropped.contains(&feature.into())
    }

    /// Whether equal calls stand before this one in the same message: the ordinal that tells them apart.
    pub fn ordinal(&self, call: &CallId, digest: &str) -> u32 {
        let calls = self.turn.as_ref().map_or(&[][..], |turn| &turn.calls);
        let earlier = calls.iter().take_while(|one| &one.id != call);
        let is_equal =
            |one: &&Call| self.ops.values().any(|op| op.intent.call == one.id && op.intent.digest == digest);
        earlier.filter(is_equal).count() as u32
    }
}

impl OpenTurn {
    fn opened_by(input_seq: u64, max_turns: Option<u32>) -> Self {
        Self {
            input_seq,
            max_turns,
            rounds: 0,
            ledger: Ledger::default(),
            usage: Usage::default(),
            attempts_failed: 0,
            pauses: 0,
            request: None,
            calls: Vec::new(),
            stop: None,
            denials: Vec::new(),
            last_failure: None,
            last_blocks: Vec::new(),
        }
    }
}

impl OpenRequest {
    fn new(number: u64) -> Self {
        Self {
            number,
            attempts: 0,
            is_asking: false,
            is_streamed: true,
            retries: 0,
            streams_broken: 0,
            failing_since_ms: None,
            wait: None,
            unstreamed_next: false,
            max_tokens: None,
        }
    }

    fn begin(&mut self, attempt: u32, is_streamed: bool) {
        self.attempts = attempt;
        self.is_asking = true;
        self.is_streamed = is_streamed;
        self.wait = None;
    }
}
