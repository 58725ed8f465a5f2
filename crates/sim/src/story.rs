//! What must be true of a whole log once its story is over.

use std::collections::{BTreeMap, BTreeSet};

use yaoki::core::ids::{CallId, OpId};
use yaoki::core::record::{Intent, Record};
use yaoki::core::state::Place;

use crate::broken::Verdicts;
use crate::life::CANARY;
use crate::log::Log;
use crate::onlooker::Acks;
use crate::world::World;

/// Retries that the default policy allows one request.
const RETRIES_MAX: u32 = 10;
/// Attempts that cost no retry: other models, higher caps, corrections.
const FREE_MAX: u32 = 16;

/// What onlookers were told is in the log, whatever happened since (I1).
pub fn check_acks(log: &Log, acks: &Acks, verdicts: &Verdicts) {
    let inputs = log.count(|record| matches!(record, Record::InputGiven(_)));
    let ends = log.count(|record| matches!(record, Record::TurnEnd(_)));
    let told = (acks.inputs, acks.ends);
    verdicts.hold("I1", inputs >= told.0, || format!("{} prompts accepted, {inputs} kept", told.0));
    verdicts.hold("I1", ends >= told.1, || format!("{} turns told as ended, {ends} kept", told.1));
    verdicts.hold("I25", ends <= inputs, || format!("{inputs} prompts and {ends} ends"));
    let over: BTreeSet<OpId> = log.records().filter_map(|(_, record)| is_over(record)).collect();
    for op in acks.ops.difference(&over) {
        verdicts.broken("I1", format!("the outcome of {op} was shown and is lost"));
    }
}

/// What damage took, nobody can rely on any more.
pub fn forgive(log: &Log, acks: &mut Acks) {
    acks.inputs = acks.inputs.min(log.count(|record| matches!(record, Record::InputGiven(_))));
    acks.retries = acks.retries.min(log.count(|record| matches!(record, Record::Budget(_))));
    acks.ends = acks.ends.min(log.count(|record| matches!(record, Record::TurnEnd(_))));
    let over: BTreeSet<OpId> = log.records().filter_map(|(_, record)| is_over(record)).collect();
    acks.ops.retain(|op| over.contains(op));
}

/// The operation whose call has its result by this record.
fn is_over(record: &Record) -> Option<OpId> {
    match record {
        Record::Outcome(outcome) => Some(outcome.op),
        Record::Unknown(unknown) => Some(unknown.op),
        Record::Detached(detached) => Some(detached.op),
        _ => None,
    }
}

/// Reads a log from its beginning, and holds each record against those before it.
#[derive(Default)]
pub struct Story {
    seq_last: u64,
    is_turn_open: bool,
    /// Records are missing, so what must follow what is not known any more.
    is_gapped: bool,
    permitted: BTreeMap<OpId, u32>,
    /// Started, and by which record.
    open: BTreeMap<OpId, u64>,
    attempts: BTreeMap<u64, u32>,
    retries: BTreeMap<u64, u32>,
    /// The request whose last attempt failed, until a rule has answered that.
    unanswered: Option<u64>,
    /// A request, and when on the session's clock its next attempt may go out.
    wait: Option<(u64, u64)>,
    clock: Clock,
    calls_by_key: BTreeMap<String, CallId>,
    keys_by_call: BTreeMap<CallId, String>,
}

/// The session's clock: the time that processes ran, from the records alone.
#[derive(Default)]
struct Clock {
    ms: u64,
    epoch: u32,
    epoch_ms: u64,
}

impl Clock {
    fn tick(&mut self, place: Place) -> u64 {
        if self.epoch != place.epoch {
            (self.epoch, self.epoch_ms) = (place.epoch, 0);
        }
        self.ms += place.ms.saturating_sub(self.epoch_ms);
        self.epoch_ms = self.epoch_ms.max(place.ms);
        self.ms
    }
}

impl Story {
    pub fn check(log: &Log, lives: u32, verdicts: &Verdicts) {
        let mut story = Story::default();
        for (place, record) in log.records() {
            story.read(place, record, verdicts);
        }
        for (op, seq) in story.open.into_iter().filter(|_| !story.is_gapped) {
            verdicts.broken("I16", format!("{op} started at {seq} and nothing says how it ended"));
        }
        // Of what was retried, too, a gap may have taken the count.
        for (request, count) in story.retries.into_iter().filter(|_| !story.is_gapped) {
            verdicts
                .hold("I21", count <= RETRIES_MAX, || format!("request {request} was retried {count} times"));
        }
        for (request, count) in story.attempts {
            let bound = RETRIES_MAX + FREE_MAX + lives;
            verdicts.hold("I21", count <= bound, || format!("request {request} had {count} attempts"));
        }
    }

    fn read(&mut self, place: Place, record: &Record, verdicts: &Verdicts) {
        let Place { seq, epoch, .. } = place;
        let clock_ms = self.clock.tick(place);
        let last = std::mem::replace(&mut self.seq_last, seq);
        verdicts.hold("I2", seq == last + 1, || format!("record {seq} after {last}"));
        match record {
            Record::InputGiven(_) => {
                let is_outside = !std::mem::replace(&mut self.is_turn_open, true);
                verdicts.hold("I25", is_outside || self.is_gapped, || {
                    format!("a turn opened at {seq} inside another one")
                });
            }
            Record::TurnEnd(_) => {
                let is_inside = std::mem::take(&mut self.is_turn_open);
                verdicts.hold("I25", is_inside || self.is_gapped, || {
                    format!("a turn ended at {seq} that was not open")
                });
                verdicts.hold("I16", self.open.is_empty() || self.is_gapped, || {
                    format!("a turn ended at {seq} with {:?} open", self.open)
                });
            }
            Record::Permission(permission) if permission.allowed => {
                self.permitted.insert(permission.op, permission.epoch);
            }
            Record::Started(started) => {
                let is_covered = self.permitted.get(&started.op) == Some(&epoch);
                verdicts.hold("I18", is_covered || self.is_gapped, || {
                    format!("{} started in epoch {epoch} without permission in it", started.op)
                });
                self.open.insert(started.op, seq);
            }
            Record::Gap(gap) => {
                self.seq_last = gap.seq_to;
                self.is_gapped = true;
            }
            Record::Resolved(resolved) => drop(self.open.remove(&resolved.op)),
            Record::Intent(intent) => self.intended(intent, verdicts),
            Record::AttemptStart(start) => {
                *self.attempts.entry(start.request).or_default() += 1;
                let is_answered = self.unanswered.take() != Some(start.request) || self.is_gapped;
                verdicts.hold("I21", is_answered, || {
                    format!("request {} is sent again at {seq} and no rule was asked", start.request)
                });
                let is_early =
                    self.wait.take().is_some_and(|(request, ms)| request == start.request && clock_ms < ms);
                verdicts.hold("I23", !is_early || self.is_gapped, || {
                    format!("request {} is sent again at {seq} before its wait is over", start.request)
                });
            }
            Record::AttemptEnd(end) => self.unanswered = end.failure.is_some().then_some(end.request),
            Record::Budget(budget) => {
                self.unanswered = None;
                self.wait = Some((budget.request, clock_ms + budget.after_ms));
                if yaoki::core::recovery::costs_retry(&budget.rule) {
                    *self.retries.entry(budget.request).or_default() += 1;
                }
            }
            other => {
                if let Some(op) = is_over(other) {
                    self.open.remove(&op);
                }
            }
        }
    }
}

impl Story {
    /// One call has one key, over attempts and processes, and no other call has it (I19).
    fn intended(&mut self, intent: &Intent, verdicts: &Verdicts) {
        let of_key = self.calls_by_key.entry(intent.key.clone()).or_insert_with(|| intent.call.clone());
        verdicts.hold("I19", *of_key == intent.call, || format!("{} and {of_key} share a key", intent.call));
        let of_call = self.keys_by_call.entry(intent.call.clone()).or_insert_with(|| intent.key.clone());
        let is_same = *of_call == intent.key || self.is_gapped;
        verdicts.hold("I19", is_same, || format!("{} has two keys", intent.call));
    }
}

/// What the world knows beside the log: no two effects share a key (I19), and no byte on disk is the secret (I29).
pub fn check_world(world: &World) {
    let keys = world.keys();
    let mut by_key: BTreeMap<&str, &str> = BTreeMap::new();
    for (tag, key) in &keys {
        if let Some(other) = by_key.insert(key, tag) {
            world.verdicts.broken("I19", format!("{tag} and {other} share a key"));
        }
    }
    for path in world.disk.paths() {
        let bytes = world.disk.peek(&path).unwrap_or_default();
        let is_clean = memchr::memmem::find(&bytes, CANARY.as_bytes()).is_none();
        world.verdicts.hold("I29", is_clean, || format!("the API key is in {}", path.display()));
    }
}
