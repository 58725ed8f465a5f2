//! What really happened outside: how often each effect did, and what became of each command under its runner.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::MutexGuard;
use std::time::Duration;

use yaoki::core::effects::EffectClass;
use yaoki::core::ids::{CallId, OpId};
use yaoki::core::step::RunStep;

use super::World;
use crate::plan::TWIN;

#[derive(Default)]
pub(super) struct Truth {
    commands: BTreeMap<OpId, Command>,
    executed: BTreeMap<String, Executed>,
    /// Calls of messages that the model ended for tool use and of which every byte arrived.
    callable: BTreeSet<String>,
    boots: u64,
    life: Life,
}

/// What is true of one process only.
#[derive(Default)]
struct Life {
    attempts_in_flight: u32,
    /// Operations a person was asked about.
    asked: BTreeSet<OpId>,
    /// Operations the person said no to.
    denied: BTreeSet<OpId>,
    /// Effects whose runs have reported.
    effects_ended: u64,
    /// How many had when a call was judged.
    judged: BTreeMap<CallId, u64>,
    /// What runs now, and whether it only reads.
    active: BTreeMap<OpId, bool>,
}

struct Command {
    state: OpState,
    runner: tokio::task::JoinHandle<()>,
}

/// What became of an operation, as its runner knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpState {
    Running,
    Exited {
        text: String,
    },
    /// The runner died.
    Lost,
}

/// How often an operation's effect happened, by the tag the model gave it.
struct Executed {
    class: EffectClass,
    count: u32,
    key: String,
}

impl World {
    /// An attempt goes out: at most one may be in flight (I23).
    pub fn attempt_begins(&self) -> InFlight {
        let mut truth = self.truth();
        truth.life.attempts_in_flight += 1;
        let count = truth.life.attempts_in_flight;
        self.verdicts.hold("I23", count == 1, || format!("{count} attempts in flight"));
        InFlight(self.clone())
    }

    /// Every byte of a message with these calls has arrived, and it ended for them.
    pub fn may_call(&self, tags: &[String]) {
        self.truth().callable.extend(tags.iter().cloned());
    }

    pub fn judged(&self, call: &CallId) {
        let mut truth = self.truth();
        let now = truth.life.effects_ended;
        truth.life.judged.insert(call.clone(), now);
    }

    /// A person is asked: once about each operation, and about nothing that a crash could take (I17).
    pub fn asked(&self, op: OpId) {
        if self.is_dying() {
            return;
        }
        let is_new = self.truth().life.asked.insert(op);
        self.verdicts.hold("I17", is_new, || format!("{op} is asked about twice"));
        let is_durable = self.kept().has("intent", op);
        self.verdicts.hold("I17", is_durable, || format!("{op} is asked about before its intent is durable"));
    }

    pub fn denied(&self, op: OpId) {
        self.truth().life.denied.insert(op);
    }

    /// A call runs: only one whose message arrived whole (I12), judged after the last effect and not beside another
    /// (order), not denied (I18), and one with an effect only after its start is where no power cut takes it (I14).
    pub fn begins(&self, run: &RunStep, tag: &str) -> Active {
        let (op, is_pure) = (run.op, run.class.is_pure());
        let is_durable = is_pure || self.kept().has("started", op);
        self.verdicts.hold("I14", is_durable, || format!("{op} ({tag}) runs before its start is durable"));
        let mut truth = self.truth();
        let is_callable = truth.callable.contains(tag);
        self.verdicts.hold("I12", is_callable, || format!("{tag} runs from a message that was not whole"));
        let life = &mut truth.life;
        self.verdicts.hold("I18", !life.denied.contains(&op), || format!("{tag} runs, and was denied"));
        let is_fresh = life.judged.get(&run.call) == Some(&life.effects_ended);
        self.verdicts.hold("order", is_fresh, || format!("{tag} was judged before the last effect ended"));
        let is_alone = life.active.is_empty() || is_pure && life.active.values().all(|is_pure| *is_pure);
        self.verdicts.hold("order", is_alone, || format!("{tag} runs beside an effect, or is one"));
        life.active.insert(op, is_pure);
        Active { world: self.clone(), op }
    }

    /// The effect happens, once more.
    pub fn execute(&self, tag: &str, class: EffectClass, key: &str) -> u32 {
        let mut truth = self.truth();
        let first = || Executed { class, count: 0, key: key.to_owned() };
        let seen = truth.executed.entry(tag.to_owned()).or_insert_with(first);
        seen.count += 1;
        let (count, is_same_key) = (seen.count, seen.key == key);
        drop(truth);
        match class {
            EffectClass::Pure => {}
            // Of equal calls each has a key of its own; the log is held against that.
            EffectClass::Idempotent if tag.ends_with(TWIN) => {}
            EffectClass::Idempotent => {
                self.verdicts.hold("I19", is_same_key, || format!("{tag} ran under two keys"));
            }
            EffectClass::Reversible | EffectClass::Irreversible | EffectClass::Unknown => {
                self.verdicts.hold("I15", count <= 1, || format!("{tag} ({class:?}) happened {count} times"));
            }
        }
        count
    }

    pub fn executed(&self, tag: &str) -> u32 {
        self.truth().executed.get(tag).map_or(0, |seen| seen.count)
    }

    /// Whether something happened for this call that cannot be said not to have. Of twins nobody knows which.
    pub fn had_effect(&self, tag: &str) -> bool {
        if tag.ends_with(TWIN) {
            return false;
        }
        self.truth().executed.get(tag).is_some_and(|seen| !seen.class.is_pure())
    }

    /// Tag and key of every effect that happened.
    pub fn keys(&self) -> Vec<(String, String)> {
        self.truth().executed.iter().map(|(tag, seen)| (tag.clone(), seen.key.clone())).collect()
    }

    /// How often the machine was started: a ticket of an earlier boot may be gone.
    pub fn boots(&self) -> u64 {
        self.truth().boots
    }

    pub fn command(&self, op: OpId) -> Option<OpState> {
        self.truth().commands.get(&op).map(|command| command.state.clone())
    }

    pub fn running(&self) -> Vec<OpId> {
        let truth = self.truth();
        let running = truth.commands.iter().filter(|(_, command)| command.state == OpState::Running);
        running.map(|(op, _)| *op).collect()
    }

    /// Starts a command under a runner, which lives on without the agent. At most once per ticket.
    pub fn start_command(&self, op: OpId, tag: String, class: EffectClass, key: String) {
        let mut truth = self.truth();
        if truth.commands.contains_key(&op) {
            drop(truth);
            return self.verdicts.broken("runner", format!("{op} was started twice under one ticket"));
        }
        let (before_ms, after_ms) = (1 + self.dice.below(3_000), 1 + self.dice.below(3_000));
        let is_killed = self.swarm.runner_faults > 0 && self.dice.is(self.swarm.runner_faults);
        let world = self.clone();
        let runner = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(before_ms)).await;
            if is_killed && world.may_fault(500) {
                world.hit("runner_killed", "in_run");
                return world.command_ended(op, OpState::Lost);
            }
            let count = world.execute(&tag, class, &key);
            tokio::time::sleep(Duration::from_millis(after_ms)).await;
            world.command_ended(op, OpState::Exited { text: format!("{tag} ran ({count})") });
        });
        truth.commands.insert(op, Command { state: OpState::Running, runner });
    }

    fn command_ended(&self, op: OpId, state: OpState) {
        if let Some(command) = self.truth().commands.get_mut(&op) {
            command.state = state;
        }
        self.inner.ended.notify_waiters();
    }

    /// Waits until the command under a runner ended, one way or the other.
    pub async fn until_ended(&self, op: OpId) -> OpState {
        loop {
            let ended = self.inner.ended.notified();
            match self.command(op) {
                Some(OpState::Running) => {}
                Some(state) => return state,
                None => return OpState::Lost,
            }
            ended.await;
        }
    }

    /// The person stops a command: the whole group is gone.
    pub fn stop_command(&self, op: OpId) {
        if let Some(command) = self.truth().commands.get_mut(&op)
            && command.state == OpState::Running
        {
            command.runner.abort();
            command.state = OpState::Exited { text: format!("{op} was stopped") };
        }
        self.inner.ended.notify_waiters();
    }

    /// What the runner kept of a command goes. Only an outcome that no power cut can take allows it (I1).
    pub fn forget_command(&self, op: OpId) {
        if self.is_dying() || self.command(op).is_none() {
            return;
        }
        let kept = self.kept();
        let is_settled = ["outcome", "resolved", "unknown"].iter().any(|kind| kept.has(kind, op));
        self.verdicts.hold("I1", is_settled, || format!("{op} is forgotten before its outcome is durable"));
        let mut truth = self.truth();
        if truth.commands.get(&op).is_some_and(|command| command.state != OpState::Running) {
            truth.commands.remove(&op);
        }
    }

    pub fn kept_commands(&self) -> Vec<OpId> {
        self.truth().commands.keys().copied().collect()
    }

    /// The power went: every runner is gone, and with some of them what only they knew.
    pub fn power_cut(&self) {
        let mut truth = self.truth();
        for command in truth.commands.values_mut() {
            command.runner.abort();
            command.state = OpState::Lost;
        }
        truth.commands.retain(|_, _| self.dice.is(500));
        truth.boots += 1;
    }

    pub fn life_ended(&self) {
        self.truth().life = Life::default();
    }

    fn truth(&self) -> MutexGuard<'_, Truth> {
        self.inner.truth.lock().expect("unpoisoned")
    }
}

/// Held while an attempt is in flight.
pub struct InFlight(World);

impl Drop for InFlight {
    fn drop(&mut self) {
        let life = &mut self.0.truth().life;
        life.attempts_in_flight = life.attempts_in_flight.saturating_sub(1);
    }
}

/// Held while a call runs.
pub struct Active {
    world: World,
    op: OpId,
}

impl Drop for Active {
    fn drop(&mut self) {
        let life = &mut self.world.truth().life;
        let was_pure = life.active.remove(&self.op);
        life.effects_ended += u64::from(was_pure == Some(false));
    }
}
