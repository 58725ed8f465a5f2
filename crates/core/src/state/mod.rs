//! The state of a session: a fold over its records, and nothing else.
//!
//! Running and resuming are the same code because both only ever apply records here. What is open – a request, a
//! wait, an operation – is part of it, so a new process knows what the old one was doing.

mod open;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::fault::{Failure, Fault, Feature};
use crate::graph::MessageGraph;
use crate::ids::{CallId, MessageId, OpId, SessionId, derive_uuid};
use crate::message::{BlockBody, Call, CallResult, Part, Reply, StopReason, Usage, visible_text};
use crate::record::{Budget, Header, Record, Refusal, Verdict};
use crate::recovery;
use crate::request::{Context, Thinking};
use crate::terminal::{TerminalReason, Transition};

use open::OpKey;
pub use open::{Op, OpPhase, OpenRequest, OpenTurn, Wait};

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
    /// The model's own limit, where the cap is ours and may be raised; 0 where it is the user's.
    pub max_tokens_model: u32,
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
    /// What the person reads as the answer of the turn that ended last.
    pub last_text: String,
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
            Feature::SignedThinking => 4,
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

impl State {
    pub fn session(&self) -> Option<&SessionId> {
        self.header.as_ref().map(|header| &header.session)
    }

    /// The model that is asked now: the session's, or the one that serves the rest of the turn in its place.
    pub fn model_asked(&self) -> &str {
        self.turn.as_ref().and_then(|turn| turn.model.as_deref()).unwrap_or(&self.model)
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
                self.max_tokens_model = switched.max_tokens_model.unwrap_or(self.max_tokens_model);
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
            Record::AttemptEnd(end) => {
                // What an answer cost is spent, whether it is kept or not.
                if let Some(usage) = end.usage.filter(|_| !crate::mutant!("withdrawn-answers-cost-nothing")) {
                    self.totals.usage.add(usage);
                    if let Some(turn) = &mut self.turn {
                        turn.usage.add(usage);
                    }
                }
                self.attempt_ended(end.failure.as_ref());
            }
            Record::Budget(budget) => self.charged(place.seq, budget),
            Record::AssistantCommitted(committed) => {
                self.committed(place.seq, &committed.message, &committed.reply)
            }
            Record::CallRefused(refused) => {
                self.settle(&refused.call, &refused.result);
                if refused.why == Refusal::Denied
                    && let Some(turn) = &mut self.turn
                {
                    turn.denials.extend(turn.calls.iter().find(|call| call.id == refused.call).cloned());
                }
                self.set_phase_of_call(&refused.call, OpPhase::Dropped);
            }
            Record::Intent(intent) => {
                self.op_of_call.insert(intent.call.clone(), intent.op);
                if let Some(turn) = &mut self.turn {
                    let equal = turn.intended.entry(intent.digest.clone()).or_default();
                    if !equal.contains(&intent.call) {
                        equal.push(intent.call.clone());
                    }
                    let key = OpKey { digest: intent.digest.clone(), key: intent.key.clone() };
                    turn.keys.insert(intent.call.clone(), key);
                }
                self.ops.insert(intent.op, Op::intended(intent.clone()));
            }
            Record::Permission(permission) => {
                if let Some(op) = self.ops.get_mut(&permission.op) {
                    if permission.allowed {
                        op.phase = OpPhase::Permitted;
                        op.allowed_in = Some(permission.epoch);
                    } else {
                        op.denied = Some(permission.reason.clone().unwrap_or_default());
                    }
                }
            }
            Record::Started(started) => {
                if let Some(op) = self.ops.get_mut(&started.op) {
                    op.phase = OpPhase::Started;
                    op.starts = started.attempt;
                }
            }
            Record::Outcome(outcome) => self.came_to(outcome.op, OpPhase::Done, &outcome.result),
            Record::Detached(detached) => self.came_to(detached.op, OpPhase::Detached, &detached.result),
            Record::Unknown(unknown) => self.came_to(unknown.op, OpPhase::Unknown, &unknown.result),
            Record::Resolved(resolved) => self.resolved(resolved.op, resolved.verdict),
            Record::Moved(moved) => self.graph.move_to(moved.leaf.clone()),
            Record::Dropped(dropped) => {
                self.dropped.insert(dropped.feature.into());
            }
            Record::TurnEnd(end) => {
                self.last_end = Some(end.reason);
                self.last_text = self.turn.take().map(|turn| turn.text()).unwrap_or_default();
            }
            Record::Gap(gap) => {
                self.gapped();
                // Its line stands for all that are missing.
                self.seq_last = self.seq_last.max(gap.seq_to);
            }
            Record::Discarded(_)
            | Record::Beat(_)
            | Record::Repaired(_)
            | Record::Todo(_)
            | Record::Notice(_) => {}
        }
    }

    /// Takes a record that says nothing (a type every reader skips): its number is used, and time has passed.
    pub fn skip(&mut self, place: Place) {
        self.advance(place);
    }

    fn advance(&mut self, place: Place) {
        if place.epoch != self.epoch {
            self.epoch = place.epoch;
            self.epoch_ms = 0;
            if crate::mutant!("wait-lost-with-the-process")
                && let Some(request) = self.turn.as_mut().and_then(|turn| turn.request.as_mut())
            {
                request.wait = None;
            }
        }
        self.clock_ms = self.clock_at(place.ms);
        self.epoch_ms = self.epoch_ms.max(place.ms);
        self.seq_last = place.seq;
    }

    /// The session clock at a moment of this epoch.
    pub fn clock_at(&self, ms: u64) -> u64 {
        self.clock_ms.saturating_add(ms.saturating_sub(self.epoch_ms))
    }

    /// An operation of an earlier process is settled without an outcome.
    fn resolved(&mut self, op: OpId, verdict: Verdict) {
        let is_open_again = matches!(verdict, Verdict::Not | Verdict::Again);
        let Some(found) = self.ops.get_mut(&op) else {
            // Its intent went with a part of the log since: it may have been any call that is open.
            if verdict == Verdict::Again {
                let open: Vec<CallId> = self.open_calls().map(|call| call.id.clone()).collect();
                if let Some(turn) = &mut self.turn {
                    turn.ran_perhaps.extend(open);
                }
            }
            return;
        };
        found.phase = OpPhase::Settled;
        // The call is open again, and what runs next is an operation of its own.
        if is_open_again {
            let call = found.intent.call.clone();
            let ran_perhaps = verdict == Verdict::Again && !found.intent.class.is_pure();
            self.op_of_call.remove(&call);
            if let Some(turn) = self.turn.as_mut().filter(|_| ran_perhaps) {
                turn.ran_perhaps.insert(call);
            }
        }
    }

    /// The end of an operation is known, and its call has its result.
    fn came_to(&mut self, op: OpId, phase: OpPhase, result: &CallResult) {
        let Some(found) = self.ops.get_mut(&op) else { return };
        found.phase = phase;
        let call = found.intent.call.clone();
        self.settle(&call, result);
    }

    fn settle(&mut self, call: &CallId, result: &CallResult) {
        self.graph.settle(call, result.clone());
        let Some(turn) = &mut self.turn else { return };
        let was_open = turn.settled_to < turn.calls.len();
        while turn.calls.get(turn.settled_to).is_some_and(|call| self.graph.has_result(&call.id)) {
            turn.settled_to += 1;
        }
        if was_open && turn.settled_to == turn.calls.len() {
            let round: Vec<_> =
                turn.calls.iter().filter_map(|call| Some((call, self.graph.result(&call.id)?))).collect();
            turn.alike.take(&round);
        }
    }

    /// Records are gone here. What was not settled before may have started, and ended, in them.
    fn gapped(&mut self) {
        for op in self.ops.values_mut().filter(|op| op.phase.is_open()) {
            op.phase = OpPhase::Started;
            op.is_doubtful = true;
        }
        if let Some(turn) = &mut self.turn {
            turn.is_gapped = true;
        }
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
        request.unanswered = failure.cloned();
        let Some(failure) = failure else {
            // It answered. What comes now is about the answer, and a later failure begins anew.
            request.overloads = 0;
            request.failing_since_ms = None;
            return;
        };
        turn.attempts_failed += 1;
        turn.rounds += u32::from(crate::mutant!("attempts-count-as-rounds"));
        request.failing_since_ms.get_or_insert(clock_ms);
        // Only an answer clears it: a stream that broke between two overloads is no sign that the load has ceased.
        request.overloads += u32::from(matches!(failure.fault, Fault::Overloaded { .. }));
        let is_broken_stream = matches!(failure.fault, Fault::Cut { .. }) && request.is_streamed;
        request.streams_broken += u32::from(is_broken_stream);
    }

    /// A rule acted: its cost, and what it changed, take effect together.
    fn charged(&mut self, seq: u64, budget: &Budget) {
        if let Some(say) = &budget.say {
            let id = self.message_id(seq);
            self.graph.append_user(id, vec![Part::text(say.clone())]);
        }
        let clock_ms = self.clock_ms;
        let Some(turn) = &mut self.turn else { return };
        turn.ledger.charge(&budget.rule);
        if budget.rule == "tool-loop" {
            turn.alike.told();
        }
        if budget.transition.continues_message() {
            turn.continue_message();
        }
        if budget.model.is_some() {
            turn.model.clone_from(&budget.model);
        }
        let Some(request) = &mut turn.request else { return };
        request.retries += u32::from(recovery::costs_retry(&budget.rule));
        // In one piece once: if that answer broke as well, the next one is a stream again.
        let is_still_whole = request.unstreamed_next && budget.rule != "cut";
        request.unstreamed_next = budget.transition == Transition::StreamFallback || is_still_whole;
        request.unanswered = None;
        request.max_tokens = budget.max_tokens.or(request.max_tokens);
        if budget.model.is_some() {
            request.overloads = 0;
        }
        request.wait = Some(Wait {
            rule: budget.rule.clone(),
            transition: budget.transition,
            after_ms: budget.after_ms,
            since_ms: clock_ms,
        });
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
        self.totals.answered += 1;
        self.totals.context = reply.usage.context();
        if let Some(turn) = &mut self.turn {
            // An answer that has to be continued is not yet progress.
            let is_whole = !matches!(
                reply.stop,
                StopReason::MaxTokens | StopReason::ContextWindow | StopReason::PauseTurn
            );
            if is_whole && !(calls.is_empty() && visible_text(&blocks).trim().is_empty()) {
                turn.ledger.progress();
            }
            turn.rounds += 1;
            if !calls.is_empty() {
                turn.text_before.clear();
            }
            if crate::mutant!("fallback-for-one-request") {
                turn.model = None;
            }
            turn.request = None;
            turn.calls = calls;
            turn.settled_to = 0;
            turn.intended.clear();
            turn.keys.clear();
            turn.is_gapped = false;
            turn.ran_perhaps.clear();
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
        let calls = self.turn.as_ref().map_or(&[][..], |turn| &turn.calls[turn.settled_to..]);
        calls.iter().filter(|call| !self.graph.has_result(&call.id))
    }

    /// The operation that stands for a call, if one is open.
    pub fn open_op(&self, call: &CallId) -> Option<(OpId, &Op)> {
        let op = self.op_of_call.get(call)?;
        let found = self.ops.get(op)?;
        found.phase.is_open().then_some((*op, found))
    }

    /// Whether a call may have had an operation that is not in the records any more.
    pub fn is_lost(&self, call: &CallId) -> bool {
        !self.op_of_call.contains_key(call) && self.turn.as_ref().is_some_and(|turn| turn.is_gapped)
    }

    /// Whether a call that no operation stands for may have had its effect all the same.
    pub fn ran_perhaps(&self, call: &CallId) -> bool {
        self.is_lost(call) || self.turn.as_ref().is_some_and(|turn| turn.ran_perhaps.contains(call))
    }

    /// Operations that started and whose end is not in the records.
    pub fn orphans(&self) -> impl Iterator<Item = (OpId, &Op)> {
        self.ops.iter().filter(|(_, op)| op.phase == OpPhase::Started).map(|(id, op)| (*id, op))
    }

    pub fn is_dropped(&self, feature: Feature) -> bool {
        self.dropped.contains(&feature.into())
    }

    /// The key of a call that was intended before with an equal input: intended again, it is the same operation.
    pub fn key_before(&self, call: &CallId, digest: &str) -> Option<&str> {
        let before = self.turn.as_ref()?.keys.get(call)?;
        (before.digest == digest).then_some(before.key.as_str())
    }

    /// How many equal calls of the same message were intended before this one: the ordinal that tells them apart.
    pub fn ordinal(&self, call: &CallId, digest: &str) -> u32 {
        let equal =
            self.turn.as_ref().and_then(|turn| turn.intended.get(digest)).map_or(&[][..], Vec::as_slice);
        equal.iter().position(|one| one == call).unwrap_or(equal.len()) as u32
    }
}
