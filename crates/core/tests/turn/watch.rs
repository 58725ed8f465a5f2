//! The invariants, asserted on all that passes between the machine and the bench.
//!
//! Facts are folded from the log by other code than the machine's own; what the world has seen outlives a crash.

use std::collections::{BTreeMap, BTreeSet};

use yaoki_core::effects::EffectClass;
use yaoki_core::event::Event;
use yaoki_core::ids::{CallId, MessageId, OpId, derive_uuid};
use yaoki_core::message::{BlockBody, CallResult, Part, StopReason, Usage, ViewMessage};
use yaoki_core::policy::Policy;
use yaoki_core::record::{Budget, Record};
use yaoki_core::recovery;
use yaoki_core::request::Request;
use yaoki_core::state::Place;
use yaoki_core::step::{RunStep, Step, StepId};
use yaoki_core::terminal::TerminalReason;
use yaoki_core::turn::{Outbox, Turn};
use yaoki_core::view;

use crate::rig::session;
use crate::world::World;

pub type Checked<T> = Result<T, String>;

#[derive(Default)]
pub struct Watch {
    facts: Facts,
    /// Running time of all epochs together.
    pub ran_ms: u64,
    not_before: Option<NotBefore>,
    crashes: u32,
    /// Operations that this process started.
    started_here: BTreeSet<OpId>,
    last_ask: Option<(u64, Request)>,
}

/// Until when the server asked to be left alone, and in answer to which attempt.
struct NotBefore {
    request: u64,
    attempt: u32,
    model: String,
    until_ms: u64,
}

/// What the log says.
#[derive(Default)]
struct Facts {
    calls: BTreeMap<CallId, CallFact>,
    ops: BTreeMap<OpId, OpFact>,
    results: BTreeMap<CallId, CallResult>,
    messages: BTreeSet<MessageId>,
    /// Lines that only the model reads.
    said: BTreeMap<MessageId, String>,
    inputs: u32,
    ends: u32,
    turn: TurnFact,
    /// Records so far.
    count: usize,
}

struct CallFact {
    stop: StopReason,
    is_broken: bool,
}

struct OpFact {
    call: CallId,
    class: EffectClass,
    key: String,
    digest: String,
    allowed_in: Option<u32>,
    intended_at: usize,
    started_at: Option<usize>,
    ends: u32,
    ended_at: usize,
}

#[derive(Default)]
struct TurnFact {
    max_turns: Option<u32>,
    rounds: u32,
    /// By rule: since progress, and in all.
    charged: BTreeMap<String, (u32, u32)>,
    /// Attempts of the open request, and what its recoveries cost.
    starts: u32,
    recoveries: u32,
    retries: u32,
    is_changed: bool,
    /// Models asked in place of the session's, in order.
    models: Vec<String>,
    usage: Usage,
    /// Whether the latest message has no calls: only then a message that goes on is one round with it.
    is_plain: bool,
}

impl TurnFact {
    fn model(&self) -> &str {
        self.models.last().map_or("m", String::as_str)
    }
}

impl Facts {
    fn of(log: &[(Place, Record)]) -> Self {
        let mut facts = Facts::default();
        for (place, record) in log {
            facts.note(*place, record);
        }
        facts
    }

    fn note(&mut self, place: Place, record: &Record) {
        self.count += 1;
        match record {
            Record::InputGiven(input) => {
                self.inputs += 1;
                self.turn = TurnFact { max_turns: input.max_turns, ..TurnFact::default() };
            }
            Record::TurnEnd(_) => self.ends += 1,
            Record::AttemptStart(start) => {
                if start.attempt == 1 {
                    (self.turn.starts, self.turn.recoveries, self.turn.retries) = (0, 0, 0);
                }
                self.turn.starts += 1;
            }
            Record::AttemptEnd(end) => {
                if let Some(usage) = end.usage {
                    self.turn.usage.add(usage);
                }
            }
            Record::Budget(budget) => {
                if let Some(say) = &budget.say {
                    let id = MessageId::new(derive_uuid(&session(), place.seq, 0));
                    self.said.insert(id, say.clone());
                }
                self.turn.models.extend(budget.model.clone());
                let goes_on = ["continuation", "nudge", "pause"].contains(&budget.rule.as_str());
                if goes_on && std::mem::take(&mut self.turn.is_plain) {
                    self.turn.rounds -= 1;
                }
                let charged = self.turn.charged.entry(budget.rule.clone()).or_default();
                *charged = (charged.0 + 1, charged.1 + 1);
                self.turn.recoveries += 1;
                self.turn.retries += u32::from(recovery::costs_retry(&budget.rule));
                self.turn.is_changed = recovery::TURN.iter().any(|rule| rule.name == budget.rule);
            }
            Record::AssistantCommitted(committed) => {
                self.turn.rounds += 1;
                let is_cut = matches!(
                    committed.reply.stop,
                    StopReason::MaxTokens | StopReason::ContextWindow | StopReason::PauseTurn
                );
                self.turn.is_plain = committed.reply.calls().next().is_none();
                let is_empty = self.turn.is_plain && committed.reply.text().trim().is_empty();
                if !is_cut && !is_empty {
                    self.turn.charged.values_mut().for_each(|charged| charged.0 = 0);
                }
                self.messages.insert(committed.message.clone());
                for (index, block) in committed.reply.blocks.iter().enumerate() {
                    let BlockBody::Call(call) = &block.body else { continue };
                    let id = CallId::new(derive_uuid(&session(), place.seq, index as u32 + 1));
                    let fact =
                        CallFact { stop: committed.reply.stop.clone(), is_broken: call.broken.is_some() };
                    self.calls.insert(id, fact);
                }
            }
            Record::CallRefused(refused) => self.result(&refused.call, &refused.result),
            Record::Intent(intent) => {
                let fact = OpFact {
                    call: intent.call.clone(),
                    class: intent.class,
                    key: intent.key.clone(),
                    digest: intent.digest.clone(),
                    allowed_in: None,
                    intended_at: self.count,
                    started_at: None,
                    ends: 0,
                    ended_at: 0,
                };
                self.ops.insert(intent.op, fact);
            }
            Record::Permission(permission) if permission.allowed => {
                self.with_op(permission.op, |op| op.allowed_in = Some(permission.epoch));
            }
            Record::Started(started) => {
                let count = self.count;
                self.with_op(started.op, |op| op.started_at = Some(count));
            }
            Record::Outcome(outcome) => self.ended(outcome.op, Some(&outcome.result)),
            Record::Detached(detached) => self.ended(detached.op, Some(&detached.result)),
            Record::Unknown(unknown) => self.ended(unknown.op, Some(&unknown.result)),
            Record::Resolved(resolved) => self.ended(resolved.op, None),
            _ => {}
        }
    }

    /// An intent is recorded first, if it is not in a part of the log that is gone.
    fn with_op(&mut self, op: OpId, change: impl FnOnce(&mut OpFact)) {
        if let Some(fact) = self.ops.get_mut(&op) {
            change(fact);
        }
    }

    fn ended(&mut self, op: OpId, result: Option<&CallResult>) {
        let count = self.count;
        self.with_op(op, |fact| {
            fact.ends += 1;
            if fact.ends == 1 {
                fact.ended_at = count;
            }
        });
        let call = self.ops.get(&op).map(|fact| fact.call.clone());
        if let (Some(call), Some(result)) = (call, result) {
            self.result(&call, result);
        }
    }

    fn result(&mut self, call: &CallId, result: &CallResult) {
        self.results.entry(call.clone()).or_insert_with(|| result.clone());
    }
}

fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Checked<()> {
    if holds { Ok(()) } else { Err(otherwise()) }
}

impl Watch {
    /// The next process reads `log`.
    pub fn crashed(&mut self, log: &[(Place, Record)], is_whole: bool) {
        self.facts = Facts::of(log);
        let opened = log.iter().filter(|(_, record)| matches!(record, Record::Opened(_))).count() as u32;
        self.crashes = opened.max(self.crashes + 1);
        self.started_here.clear();
        if !is_whole {
            // What is asked next may be something else.
            self.last_ask = None;
        }
        // A failure that nobody remembers binds nobody.
        self.not_before = self.not_before.take().filter(|told| {
            log.iter().any(|(_, record)| {
                matches!(record, Record::AttemptEnd(end)
                    if end.failure.is_some() && (end.request, end.attempt) == (told.request, told.attempt))
            })
        });
    }

    /// The server asked to be left alone, from now on.
    pub fn told_to_wait(&mut self, request: u64, attempt: u32, ms: u64) {
        let model = self.facts.turn.model().to_owned();
        let until_ms = self.ran_ms.saturating_add(ms);
        self.not_before = Some(NotBefore { request, attempt, model, until_ms });
    }

    /// Checks what was written in one go, and that it was synced where it must be.
    pub fn batch(
        &mut self,
        out: &Outbox,
        log: &[(Place, Record)],
        durable: usize,
        policy: &Policy,
        open: &BTreeMap<StepId, Step>,
    ) -> Checked<()> {
        let mut ends = Vec::new();
        let is_answer = |record: &Record| matches!(record, Record::AttemptEnd(end) if end.failure.is_none());
        let is_fate =
            |record: &Record| matches!(record, Record::AssistantCommitted(_) | Record::Discarded(_));
        if out.records.iter().any(is_answer) {
            let fates = out.records.iter().filter(|record| is_fate(record)).count();
            ensure(fates == 1, || format!("I7: a whole answer met {fates} fates"))?;
        }
        for (place, record) in &log[log.len() - out.records.len()..] {
            self.facts.note(*place, record);
            if let Record::TurnEnd(end) = record {
                ends.push((end.reason, self.facts.turn.rounds, self.facts.turn.usage));
            }
            self.record(record, policy, open)?;
            let must_sync = matches!(record, Record::InputGiven(_) | Record::Budget(_) | Record::TurnEnd(_));
            ensure(!must_sync || out.barrier, || format!("{} was not synced", record.kind()))?;
        }
        ensure(!out.barrier || durable == log.len(), || "a barrier covers all that is written".into())?;
        let mut told = out.events.iter().filter_map(|told| match &told.event {
            Event::TurnEnded(summary) if summary.reason != TerminalReason::StorageFailed => {
                Some((summary.reason, summary.rounds, summary.usage, told.durable))
            }
            _ => None,
        });
        for (reason, rounds, usage) in ends {
            let told = told.next();
            ensure(told == Some((reason, rounds, usage, true)), || {
                format!("I22, I25: {reason:?} after {rounds} rounds, {usage:?} is recorded, {told:?} is told")
            })?;
        }
        ensure(told.next().is_none(), || "I25: an end is told that is not recorded".into())?;
        Ok(())
    }

    fn record(&self, record: &Record, policy: &Policy, open: &BTreeMap<StepId, Step>) -> Checked<()> {
        let facts = &self.facts;
        match record {
            Record::InputGiven(_) => {
                ensure(facts.inputs == facts.ends + 1, || "I25: a turn began in another".into())
            }
            Record::TurnEnd(_) => {
                ensure(facts.inputs == facts.ends, || "I25: a turn ended twice".into())?;
                ensure(open.is_empty(), || format!("the turn ended while {:?} was open", open.keys()))?;
                for (op, fact) in facts.ops.iter().filter(|(_, fact)| fact.started_at.is_some()) {
                    ensure(fact.ends >= 1, || format!("I16: {op} has no end"))?;
                }
                Ok(())
            }
            Record::AttemptStart(start) => {
                let model = facts.turn.model();
                ensure(start.model == model, || format!("{} is asked, it is {model}'s turn", start.model))?;
                let bound = 1 + facts.turn.recoveries + self.crashes;
                ensure(facts.turn.starts <= bound, || {
                    format!("I21: attempt {} of request {} was not paid for", start.attempt, start.request)
                })
            }
            Record::Budget(budget) => {
                let rule = recovery::rules().find(|rule| rule.name == budget.rule);
                let limit = rule.ok_or_else(|| format!("no rule is called {}", budget.rule))?.limit;
                let (streak, total) = facts.turn.charged[&budget.rule];
                ensure(streak <= limit.streak && total <= limit.total, || {
                    format!("I21: {} acted {streak} times in a row, {total} in all", budget.rule)
                })?;
                ensure(facts.turn.retries <= policy.max_retries, || {
                    format!("I21: {} retries of one request", facts.turn.retries)
                })?;
                self.switch(budget, policy)?;
                let stale = facts.turn.charged.get("stale-connection").copied().unwrap_or_default();
                ensure(budget.fault != "stale_connection" || stale.0 > 0 || stale.1 >= 20, || {
                    "a stale connection was not answered at once after progress".into()
                })
            }
            Record::AssistantCommitted(committed) => {
                let is_useless = match committed.reply.stop {
                    StopReason::Refusal => true,
                    StopReason::ToolUse => committed.reply.calls().next().is_none(),
                    _ => false,
                };
                ensure(!is_useless, || "an answer that is to be withdrawn became history".into())?;
                let is_within = facts.turn.max_turns.is_none_or(|limit| facts.turn.rounds <= limit);
                ensure(is_within, || "I22: more rounds than the limit".into())
            }
            Record::CallRefused(refused) => {
                let fact = facts.calls.get(&refused.call);
                ensure(fact.is_some(), || format!("{} is refused and was never made", refused.call))
            }
            Record::Intent(intent) => {
                let twin = facts.ops.values().find(|fact| fact.key == intent.key && fact.call != intent.call);
                ensure(twin.is_none(), || format!("I19: {} has the key of another call", intent.op))?;
                let other = facts.ops.values().find(|fact| {
                    fact.call == intent.call && fact.digest == intent.digest && fact.key != intent.key
                });
                ensure(other.is_none(), || format!("I19: {} has another key than before", intent.op))
            }
            _ => Ok(()),
        }
    }

    /// Another model is asked for what it may cure only, in the order of the chain, and each once in a turn.
    fn switch(&self, budget: &Budget, policy: &Policy) -> Checked<()> {
        let Some(model) = &budget.model else { return Ok(()) };
        ensure(["overloaded", "model_gone", "server"].contains(&budget.fault.as_str()), || {
            format!("{} led to another model", budget.fault)
        })?;
        let mut chain = vec!["m"];
        for name in &policy.fallback_models {
            if !chain.contains(&name.as_str()) {
                chain.push(name);
            }
        }
        let models = &self.facts.turn.models;
        ensure(models.last() == Some(model) && chain[1..].iter().zip(models).all(|(a, b)| a == b), || {
            format!("{models:?} are asked, the chain is {chain:?}")
        })?;
        ensure(models.len() < chain.len(), || format!("{models:?} are more than {chain:?}"))
    }

    /// Checks a step as it is given out.
    pub fn step(
        &mut self,
        step: &Step,
        turn: &Turn,
        durable: usize,
        epoch: u32,
        open: &BTreeMap<StepId, Step>,
        world: &World,
    ) -> Checked<()> {
        let is_asking = open.keys().any(|id| matches!(id, StepId::Attempt { .. } | StepId::Wait { .. }));
        match step {
            Step::Attempt { request, ask, .. } => {
                ensure(!is_asking, || "I23: two attempts at once".into())?;
                self.attempt(*request, ask, turn, durable)
            }
            Step::Wait { .. } => ensure(!is_asking, || "I23: a wait beside an attempt".into()),
            Step::Prepare { call } => {
                self.may_run(&call.id)?;
                ensure(call.broken.is_none(), || "I12: a call with broken input is judged".into())
            }
            Step::Ask { op, .. } => {
                let fact = self.facts.ops.get(op).ok_or("an ask without an intent")?;
                ensure(fact.intended_at <= durable, || format!("{op} is asked for before it is durable"))
            }
            Step::Run(run) => self.run(run, durable, epoch, open, world),
            Step::Look { run, .. } => {
                let is_ours = self.started_here.contains(&run.op);
                ensure(!is_ours, || format!("{} is ours, and looked for", run.op))?;
                let fact = self.facts.ops.get(&run.op).ok_or("a look without an intent")?;
                ensure(fact.started_at.is_some() && fact.ends == 0, || format!("{} is not open", run.op))
            }
            Step::Cancel(_) => Ok(()),
        }
    }

    fn may_run(&self, call: &CallId) -> Checked<()> {
        let fact = self.facts.calls.get(call).ok_or("I12: a call of a message that is not committed")?;
        ensure(fact.stop == StopReason::ToolUse, || format!("I12: the message ended for {:?}", fact.stop))?;
        ensure(!fact.is_broken, || "I12: its input is no JSON".into())?;
        ensure(!self.facts.results.contains_key(call), || "I15: it has its result".into())
    }

    fn run(
        &mut self,
        run: &RunStep,
        durable: usize,
        epoch: u32,
        open: &BTreeMap<StepId, Step>,
        world: &World,
    ) -> Checked<()> {
        self.may_run(&run.call)?;
        let fact = self.facts.ops.get(&run.op).ok_or("I14: a run without an intent")?;
        let started_at = fact.started_at.ok_or("I14: a run without a start")?;
        let is_pure = fact.class.is_pure();
        ensure(is_pure || started_at <= durable, || format!("I14: {} runs before it is durable", run.title))?;
        ensure(fact.allowed_in == Some(epoch), || {
            format!("I18: {} runs in epoch {epoch}, allowed in {:?}", run.title, fact.allowed_in)
        })?;
        for other in open.values() {
            if let Step::Run(other) = other {
                ensure(is_pure && other.class.is_pure(), || {
                    format!("{} runs beside {}", run.title, other.title)
                })?;
            }
        }
        let judged = run.pre.as_ref().map(|pre| pre.get().to_owned());
        ensure(judged == Some(world.version.to_string()), || {
            format!("{} was judged at {judged:?}, it is {}", run.title, world.version)
        })?;
        self.started_here.insert(run.op);
        Ok(())
    }

    fn attempt(&mut self, request: u64, ask: &Request, turn: &Turn, durable: usize) -> Checked<()> {
        if let Some(told) = self.not_before.take() {
            // Another model has a time of its own.
            let is_same = told.request == request && told.model == ask.model;
            let is_early = is_same && self.ran_ms < told.until_ms;
            ensure(!is_early, || format!("I23: asked {} ms too early", told.until_ms - self.ran_ms))?;
        }
        for (op, fact) in self.facts.ops.iter().filter(|(_, fact)| !fact.class.is_pure() && fact.ends > 0) {
            let is_read = self.facts.results.contains_key(&fact.call);
            ensure(!is_read || fact.ended_at <= durable, || {
                format!("the model reads the outcome of {op} before it is durable")
            })?;
        }
        ensure(*ask == view::request(turn.state()), || "I6: the request is not the state's".into())?;
        self.pairing(ask)?;
        if let Some((number, last)) = &self.last_ask
            && *number == request
            && !self.facts.turn.is_changed
        {
            let same = Request { streamed: last.streamed, ..ask.clone() };
            ensure(same == *last, || "I6: a resend is not equal".into())?;
        }
        self.last_ask = Some((request, ask.clone()));
        Ok(())
    }

    /// I9, I10, I13; and what was said to the model only is said once.
    fn pairing(&self, ask: &Request) -> Checked<()> {
        for (id, text) in &self.facts.said {
            let parts = [Part::text(text.clone())];
            let is_it = |message: &ViewMessage| match message {
                ViewMessage::User { id: one, parts: said } => one == id && said[..] == parts,
                _ => false,
            };
            let count = ask.messages.iter().filter(|message| is_it(message)).count();
            ensure(count == 1, || format!("I10: {text:?} is said {count} times"))?;
        }
        let mut seen = BTreeSet::new();
        let mut due: Vec<CallId> = Vec::new();
        for message in &ask.messages {
            match &**message {
                ViewMessage::Results { results, .. } => {
                    let ids: Vec<CallId> = results.iter().map(|result| result.call.clone()).collect();
                    ensure(ids == due, || format!("I9: results {ids:?} for calls {due:?}"))?;
                    due.clear();
                    for result in results {
                        let recorded = self.facts.results.get(&result.call);
                        ensure(recorded == Some(&result.result), || {
                            format!("I13: {:?} is told, {recorded:?} recorded", result.result)
                        })?;
                    }
                }
                ViewMessage::User { .. } => {
                    ensure(due.is_empty(), || format!("I9: no results for {due:?}"))?;
                }
                ViewMessage::Assistant { id, blocks, .. } => {
                    ensure(due.is_empty(), || format!("I9: no results for {due:?}"))?;
                    ensure(self.facts.messages.contains(id), || format!("I10: {id} was never committed"))?;
                    for block in blocks {
                        let BlockBody::Call(call) = &block.body else { continue };
                        ensure(seen.insert(call.id.clone()), || format!("I9: {} twice", call.id))?;
                        due.push(call.id.clone());
                    }
                }
            }
        }
        ensure(due.is_empty(), || format!("I9: no results for {due:?}"))
    }
}
