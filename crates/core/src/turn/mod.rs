//! The turn machine: inputs in, records, steps and events out.
//!
//! Promises: `next` never waits, never fails, and ignores reports nobody waits for. What it decides it first writes
//! as records, and its state changes only by applying them; the caller makes them durable, then performs the steps.
//! Not here: how anything is performed.
//!
//! - [`Turn::replay`] and [`Turn::note`] bring it to where the log is,
//! - [`Turn::next`] and [`Turn::hear`] tell it what happened,
//! - [`Turn::drain`] takes what follows from it.

mod asking;
mod calls;
mod ends;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::effects::EffectClass;
use crate::event::{Event, Level};
use crate::ids::{CallId, OpId};
use crate::message::{CallResult, Part};
use crate::policy::{OnUnknown, Policy};
use crate::record::{
    CallRefused, Detached, InputGiven, Outcome, OutcomeStatus, Record, Refusal, Resolved, Unknown, Verdict,
};
use crate::state::{OpPhase, Place, State};
use crate::step::{Delta, Finding, Input, Now, PrepareVerdict, RunReport, Step, StepId};
use crate::terminal::TerminalReason;

/// One agent's course through a session.
#[derive(Debug, Clone)]
pub struct Turn {
    state: State,
    policy: Policy,
    /// Where requests go, for the record.
    endpoint: String,
    now: Now,
    out: Outbox,
    /// Steps given out and not reported yet.
    performing: BTreeSet<StepId>,
    /// Those of them that were told to stop.
    told_to_stop: BTreeSet<StepId>,
    /// What is known of calls that have no operation yet. Not durable: judging again is free.
    judged: BTreeMap<CallId, Judged>,
    /// Runs that ended in this process; a judgement made before the last one is stale.
    runs_ended: u64,
    /// Characters of the running attempt that onlookers have seen.
    shown: u64,
    /// Set once the turn is to end as soon as nothing is open.
    stopping: Option<Stopping>,
    /// Prompts that came while a turn was open, oldest first.
    next_prompts: VecDeque<InputGiven>,
    is_dead: bool,
    /// Effectful records written since the last barrier, or read from a log that may not have been synced.
    is_dirty: bool,
    /// Records of an earlier process were read, and what it left open has not been looked at.
    has_leftovers: bool,
}

#[derive(Debug, Clone, PartialEq)]
struct Judged {
    verdict: PrepareVerdict,
    runs_ended: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stopping {
    reason: StopCause,
    /// A person waits for it: what an earlier process left running is stopped too.
    is_hurried: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StopCause {
    /// A person interrupted.
    Person,
    /// The process that ran this turn died, and something else was asked.
    Died,
    /// Something else was asked while it ran.
    Replaced,
    /// An effect's outcome is unknown, and policy says to stop.
    Undecided,
}

/// What a call of `next` leaves.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outbox {
    /// Append these, in order, before anything else.
    pub records: Vec<Record>,
    /// The time all of them bear, in milliseconds of this epoch. Logged with any other, a replay would give another
    /// state than this one.
    pub ms: u64,
    /// Make the log durable up to here before performing a step or showing a `durable` event.
    pub barrier: bool,
    pub steps: Vec<Step>,
    pub events: Vec<Told>,
}

/// An event, and whether it claims something that must be on disk first.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    pub event: Event,
    pub durable: bool,
}

impl Turn {
    pub fn new(policy: Policy, endpoint: impl Into<String>) -> Self {
        Self {
            state: State::default(),
            policy,
            endpoint: endpoint.into(),
            now: Now::default(),
            out: Outbox::default(),
            performing: BTreeSet::new(),
            told_to_stop: BTreeSet::new(),
            judged: BTreeMap::new(),
            runs_ended: 0,
            shown: 0,
            stopping: None,
            next_prompts: VecDeque::new(),
            is_dead: false,
            is_dirty: false,
            has_leftovers: false,
        }
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    /// Folds in a record that the log already holds.
    pub fn replay(&mut self, place: Place, record: &Record) {
        self.state.apply(place, record);
        self.is_dirty = true;
        self.has_leftovers = true;
    }

    /// Passes over a record that the log holds and no reader needs, so that the next one is numbered as the log will.
    pub fn skip(&mut self, place: Place) {
        self.state.skip(place);
    }

    /// Writes a record that is a fact of set-up (opened, context, switched, notice), not a decision of the turn.
    pub fn note(&mut self, record: impl Into<Record>, now: Now) {
        self.now = now;
        self.write(record);
    }

    /// Part of the log is missing: what is open may have started, and what looks as if it never ran may only have
    /// lost its traces. Where a `gap` record stands for what is missing, its replay does the same.
    pub fn distrust(&mut self) {
        self.state.gapped();
    }

    /// Whether a turn has begun and not ended. Once the log is lost there is none: nothing goes on.
    pub fn has_open_turn(&self) -> bool {
        self.state.turn.is_some() && !self.is_dead
    }

    /// Takes what the last inputs led to.
    pub fn drain(&mut self) -> Outbox {
        let out = std::mem::take(&mut self.out);
        if out.barrier {
            self.is_dirty = false;
        }
        out
    }

    /// Tells the machine what happened. Late and doubled reports change nothing.
    pub fn next(&mut self, input: Input, now: Now) {
        if self.is_dead {
            return self.refuse_when_dead(&input);
        }
        self.now = now;
        match input {
            Input::Prompt { parts, uuid, max_turns } => self.prompted(InputGiven { parts, uuid, max_turns }),
            Input::Continue => {
                self.stop_if_undecided();
                self.go_on();
            }
            Input::Interrupt => self.stop(StopCause::Person),
            Input::AttemptEnded { request, attempt, end } => self.attempt_ended(request, attempt, end),
            Input::Waited { request, attempt } => {
                if self.close(&StepId::Wait { request, attempt }) {
                    self.go_on();
                }
            }
            Input::Prepared { call, verdict } => {
                if self.close(&StepId::Prepare(call.clone())) {
                    self.judged.insert(call, Judged { verdict, runs_ended: self.runs_ended });
                    self.go_on();
                }
            }
            Input::Answered { op, answer } => {
                if self.close(&StepId::Ask(op)) {
                    self.answered(op, answer);
                    self.go_on();
                }
            }
            Input::Ran { op, report } => {
                if self.close(&StepId::Run(op)) || crate::mutant!("late-report-is-taken") {
                    self.ran(op, report);
                    self.go_on();
                }
            }
            Input::Looked { op, finding } => {
                if self.close(&StepId::Look(op)) {
                    self.looked(op, finding);
                    self.go_on();
                }
            }
            Input::StorageFailed { error } => self.storage_failed(error),
        }
    }

    /// Takes streaming text of the running attempt. It is shown, and decides nothing.
    pub fn hear(&mut self, request: u64, attempt: u32, delta: Delta) {
        if !self.performing.contains(&StepId::Attempt { request, attempt }) {
            return;
        }
        match delta {
            Delta::Text(piece) => {
                self.shown += piece.chars().count() as u64;
                self.tell(Event::Text { request, piece });
            }
            Delta::Thinking(piece) => {
                self.shown += piece.chars().count() as u64;
                self.tell(Event::Thinking { request, piece });
            }
            Delta::CallForming { tool } => self.tell(Event::CallForming { request, tool }),
        }
    }

    fn prompted(&mut self, input: InputGiven) {
        if self.has_open_turn() {
            // Somebody who performs nothing has only read of this turn.
            let cause = if self.performing.is_empty() { StopCause::Died } else { StopCause::Replaced };
            self.next_prompts.push_back(input);
            self.stop(cause);
        } else {
            self.begin(input);
        }
    }

    fn begin(&mut self, input: InputGiven) {
        let message = self.state.message_id(self.seq_next());
        let parts = input.parts.clone();
        self.stopping = None;
        self.judged.clear();
        self.write(input);
        self.barrier();
        self.tell_durable(Event::Accepted { message, parts });
        self.go_on();
    }

    /// Decides what is next from the state alone. Called whenever something settled.
    fn go_on(&mut self) {
        let Some(turn) = &self.state.turn else { return };
        if self.stopping.is_some() {
            return self.wind_down();
        }
        if self.state.open_calls().next().is_some() {
            return self.work_calls();
        }
        if turn.request.is_some() {
            return self.ask_on();
        }
        if turn.stop.is_some() { self.answer_is_complete() } else { self.ask() }
    }

    /// The process died between an unknown outcome and the end that policy wants for it.
    fn stop_if_undecided(&mut self) {
        let Some(turn) = &self.state.turn else { return };
        let is_unknown = |call: &CallId| {
            let op = self.state.op_of_call.get(call).and_then(|op| self.state.ops.get(op));
            op.is_some_and(|op| op.phase == OpPhase::Unknown)
        };
        let is_at_calls = turn.request.is_none();
        if self.policy.on_unknown == OnUnknown::Stop
            && is_at_calls
            && turn.calls.iter().any(|call| is_unknown(&call.id))
        {
            self.stopping.get_or_insert(Stopping { reason: StopCause::Undecided, is_hurried: false });
        }
    }

    fn stop(&mut self, reason: StopCause) {
        if !self.has_open_turn() {
            return;
        }
        let stopping = self.stopping.get_or_insert(Stopping { reason, is_hurried: false });
        stopping.is_hurried |= reason == StopCause::Person;
        self.wind_down();
    }

    /// Ends what is open, and the turn once nothing is. What has an effect is asked to stop and waited for; what has
    /// none is let go at once.
    fn wind_down(&mut self) {
        let Some(stopping) = self.stopping else { return };
        let mut is_waiting = false;
        if crate::mutant!("interrupt-lets-go-of-runs") {
            self.performing.retain(|step| !matches!(step, StepId::Run(_)));
        }
        for step in self.performing.clone() {
            match step {
                StepId::Attempt { .. } | StepId::Run(_) => {
                    is_waiting = true;
                    self.cancel_once(step);
                }
                // Looking without waiting ends by itself; one that waits is told not to.
                StepId::Look(_) => {
                    is_waiting = true;
                    if stopping.is_hurried {
                        self.cancel_once(step);
                    }
                }
                StepId::Wait { .. } | StepId::Prepare(_) | StepId::Ask(_) => {
                    self.close(&step);
                    self.out.steps.push(Step::Cancel(step));
                }
            }
        }
        let open: Vec<CallId> = self.state.open_calls().map(|call| call.id.clone()).collect();
        for call in open {
            match self.state.open_op(&call) {
                Some((op, found)) if found.phase == OpPhase::Started => {
                    let is_ours = self.performing.contains(&StepId::Run(op))
                        || self.performing.contains(&StepId::Look(op));
                    if !is_ours {
                        self.look(op, false);
                    }
                    is_waiting = true;
                }
                Some(_) | None => self.refuse(&call, Refusal::NotStarted, not_started(stopping.reason)),
            }
        }
        if !is_waiting {
            self.end_stopped(stopping.reason);
        }
    }

    fn cancel_once(&mut self, step: StepId) {
        if self.told_to_stop.insert(step.clone()) {
            self.out.steps.push(Step::Cancel(step));
        }
    }

    fn end_stopped(&mut self, cause: StopCause) {
        // While a request is open, the calls of the message before it are long answered.
        let is_at_calls =
            self.state.turn.as_ref().is_some_and(|turn| turn.request.is_none() && !turn.calls.is_empty());
        let cancelled =
            if is_at_calls { TerminalReason::CancelledTools } else { TerminalReason::CancelledStreaming };
        let (reason, error) = match cause {
            StopCause::Person if is_at_calls => (cancelled, "interrupted while tools ran"),
            StopCause::Person => (cancelled, "interrupted"),
            StopCause::Replaced => (cancelled, "another prompt came before this turn ended"),
            StopCause::Died => {
                (TerminalReason::Interrupted, "the process that ran this turn ended before it did")
            }
            StopCause::Undecided => (TerminalReason::NeedsDecision, "an operation's outcome is not known"),
        };
        self.end(reason, Some(error.to_owned()), None);
    }

    fn ran(&mut self, op: OpId, report: RunReport) {
        let Some(found) = self.state.ops.get(&op) else { return };
        let (call, tool, class) = (found.intent.call.clone(), found.intent.tool.clone(), found.intent.class);
        let is_effect = !class.is_pure();
        self.runs_ended += 1;
        self.is_dirty |= is_effect;
        match report {
            RunReport::Ended { status, result, post, took_ms } => {
                self.write(Outcome { op, status, result: result.clone(), post, took_ms });
                let ended = Event::CallEnded { call, op, tool, status, result, took_ms };
                self.out.events.push(Told { event: ended, durable: is_effect });
            }
            RunReport::Detached { task, result } => {
                self.is_dirty = true;
                self.write(Detached { op, task: task.clone(), result: result.clone() });
                self.out
                    .events
                    .push(Told { event: Event::Detached { call, op, task, result }, durable: true });
            }
            RunReport::Lost { why } => self.surface_unknown(op, &why),
        }
    }

    /// Takes what was found of an operation that an earlier process started.
    fn looked(&mut self, op: OpId, finding: Finding) {
        let Some(found) = self.state.ops.get(&op) else { return };
        let class = found.intent.class;
        let finding = match finding {
            Finding::NeverRan if found.is_doubtful && !crate::mutant!("gap-is-forgotten") => {
                Finding::Nothing { why: "part of the log is missing".to_owned() }
            }
            other => other,
        };
        match finding {
            Finding::Ended(report) => self.ran(op, report),
            Finding::NeverRan => self.reopen(op, "probe", Verdict::Not),
            Finding::Nothing { why } => {
                let may_run_again = match class {
                    EffectClass::Pure => true,
                    // When the turn stops it will not be run again, so what became of it stays open.
                    EffectClass::Idempotent => self.stopping.is_none(),
                    EffectClass::Reversible | EffectClass::Irreversible | EffectClass::Unknown => {
                        crate::mutant!("resume-reruns-unknown")
                    }
                };
                if may_run_again {
                    self.reopen(op, "recorded", Verdict::Again);
                } else {
                    self.surface_unknown(op, &why);
                }
            }
        }
    }

    /// The call is open again: judged anew, with a permission of its own.
    fn reopen(&mut self, op: OpId, by: &str, verdict: Verdict) {
        self.write(Resolved { op, by: by.to_owned(), verdict });
    }

    fn surface_unknown(&mut self, op: OpId, why: &str) {
        let Some(found) = self.state.ops.get(&op) else { return };
        let intent = found.intent.clone();
        let result = CallResult::error(unknown_text(op, &intent.title, why));
        self.is_dirty = true;
        self.write(Unknown { op, why: why.to_owned(), result: result.clone() });
        let event =
            Event::OutcomeUnknown { call: intent.call, op, tool: intent.tool, title: intent.title, result };
        self.tell_durable(event);
        if self.policy.on_unknown == OnUnknown::Stop {
            self.stopping.get_or_insert(Stopping { reason: StopCause::Undecided, is_hurried: false });
        }
    }

    fn storage_failed(&mut self, error: String) {
        self.is_dead = true;
        // Nothing that was decided since may be started: no record of it will ever be durable.
        self.out = Outbox::default();
        for step in std::mem::take(&mut self.performing) {
            self.out.steps.push(Step::Cancel(step));
        }
        let summary = self.summary(TerminalReason::StorageFailed, Some(error), None);
        self.out.events.push(Told { event: Event::TurnEnded(summary), durable: false });
    }

    /// A prompt after the log is lost is answered, with the reason; nothing else is waited for.
    fn refuse_when_dead(&mut self, input: &Input) {
        if matches!(input, Input::Prompt { .. }) {
            let error = "the session log was lost; nothing more can be recorded in this session".to_owned();
            let mut summary = self.summary(TerminalReason::StorageFailed, Some(error), None);
            summary.text.clear();
            self.tell(Event::TurnEnded(summary));
        }
    }

    /// Takes a step off the open ones. Returns whether it was one.
    fn close(&mut self, step: &StepId) -> bool {
        self.told_to_stop.remove(step);
        self.performing.remove(step)
    }

    fn refuse(&mut self, call: &CallId, why: Refusal, result: CallResult) {
        let (tool, title) = self
            .state
            .open_calls()
            .find(|one| &one.id == call)
            .map(|one| (one.tool.clone(), one.tool.clone()))
            .unwrap_or_default();
        self.refuse_as(call, tool, title, why, result);
    }

    fn refuse_as(&mut self, call: &CallId, tool: String, title: String, why: Refusal, result: CallResult) {
        self.judged.remove(call);
        self.write(CallRefused { call: call.clone(), why, result: result.clone() });
        self.tell(Event::CallRefused { call: call.clone(), tool, title, why, result });
    }

    fn seq_next(&self) -> u64 {
        self.state.seq_last + 1
    }

    fn write(&mut self, record: impl Into<Record>) {
        let record = record.into();
        let epoch = match &record {
            // The first record of an epoch stands in it, not in the one before.
            Record::Opened(opened) => opened.epoch,
            _ => self.state.epoch.max(1),
        };
        if self.out.records.is_empty() {
            self.out.ms = self.now.ms;
        }
        let place = Place { seq: self.seq_next(), epoch, ms: self.out.ms };
        self.state.apply(place, &record);
        self.out.records.push(record);
    }

    fn barrier(&mut self) {
        self.out.barrier = true;
    }

    fn perform(&mut self, id: StepId, step: Step) {
        self.performing.insert(id);
        self.out.steps.push(step);
    }

    fn tell(&mut self, event: Event) {
        self.out.events.push(Told { event, durable: false });
    }

    fn tell_durable(&mut self, event: Event) {
        self.out.events.push(Told { event, durable: true });
    }

    fn notice(&mut self, level: Level, text: impl Into<String>) {
        self.tell(Event::Notice { level, text: text.into() });
    }
}

fn not_started(cause: StopCause) -> CallResult {
    CallResult::error(match cause {
        StopCause::Person => "[not started: interrupted by the user before this call ran]",
        StopCause::Replaced => "[not started: another prompt came before this call ran]",
        StopCause::Died => "[not started: the process ended before this call ran]",
        StopCause::Undecided => "[not started: the turn stopped at an operation whose outcome is not known]",
    })
}

/// What the model is told of an outcome that nobody knows. Never phrased as a failure, and never as a success.
fn unknown_text(op: OpId, title: &str, why: &str) -> String {
    format!(
        "[outcome unknown] {op} {title} was started and may or may not have happened ({why}). \
         Check what it should have changed before doing anything else; do not repeat it without checking."
    )
}

/// Whether an ended run left nothing behind that was not asked for.
pub fn is_clean(status: OutcomeStatus) -> bool {
    match status {
        OutcomeStatus::Success | OutcomeStatus::FailedClean | OutcomeStatus::CancelledClean => true,
        OutcomeStatus::FailedPartial | OutcomeStatus::CancelledPartial => false,
    }
}

/// A prompt of plain text.
pub fn prompt(text: impl Into<String>) -> Input {
    Input::Prompt { parts: vec![Part::text(text)], uuid: None, max_turns: None }
}
