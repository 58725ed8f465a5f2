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
mod outcomes;
mod output;
mod stopping;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::event::{Event, Level};
use crate::ids::CallId;
use crate::message::{CallResult, Part};
use crate::policy::Policy;
use crate::record::{CallRefused, InputGiven, OutcomeStatus, Record, Refusal};
use crate::state::{Place, State};
use crate::step::{Delta, Input, Now, PrepareVerdict, Step, StepId};
use crate::terminal::TerminalReason;
use stopping::{StopCause, Stopping};

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
        // What an earlier process may have done is not undone by a no.
        let is_open = why != Refusal::Lost && self.state.ran_perhaps(call);
        let result = if is_open { calls::not_again(&result) } else { result };
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
