//! The outside world of a schedule: where the process dies, what the tools really did, what the clock says.
//!
//! It alone knows how often each operation was executed; the agent never sees these counts.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::Notify;
use yaoki::core::effects::EffectClass;
use yaoki::core::ids::OpId;
use yaoki::world::World as AgentWorld;

use crate::broken::Verdicts;
use crate::coverage::Coverage;
use crate::dice::Dice;
use crate::plan::Swarm;

/// No schedule needs more: past this it turns in a circle.
const STEPS_MAX: u64 = 20_000;

/// A shared handle to the world of one schedule.
#[derive(Clone)]
pub struct World {
    pub dice: Dice,
    pub verdicts: Verdicts,
    pub coverage: Coverage,
    pub swarm: Swarm,
    inner: Arc<Inner>,
}

struct Inner {
    state: Mutex<State>,
    /// Told when the process is to die.
    death: Notify,
    is_dying: AtomicBool,
    /// All faults have ceased.
    is_calm: AtomicBool,
    /// Told when a command under the runner ended.
    ended: Notify,
    interrupt: Mutex<Option<yaoki::Interrupter>>,
    wall_ms: AtomicU64,
    steps: AtomicU64,
}

#[derive(Default)]
struct State {
    faults: u32,
    death: Option<Death>,
    ops: BTreeMap<OpId, OpState>,
    executed: BTreeMap<String, Executed>,
    in_flight: u32,
    runners: Vec<tokio::task::JoinHandle<()>>,
}

/// How the process dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Death {
    /// The process is gone; the disk's cache and the runners stay.
    Kill,
    /// Everything unsynced is gone, and the runners with it.
    Power,
}

/// What became of an operation, as its runner or its target knows it.
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
#[derive(Debug, Clone)]
pub struct Executed {
    pub class: EffectClass,
    pub count: u32,
    pub key: String,
}

impl World {
    pub fn new(dice: Dice, verdicts: Verdicts, coverage: Coverage, swarm: Swarm) -> Self {
        let inner = Inner {
            state: Mutex::default(),
            death: Notify::new(),
            is_dying: AtomicBool::new(false),
            is_calm: AtomicBool::new(false),
            ended: Notify::new(),
            interrupt: Mutex::new(None),
            wall_ms: AtomicU64::new(1_796_000_000_000),
            steps: AtomicU64::new(0),
        };
        World { dice, verdicts, coverage, swarm, inner: Arc::new(inner) }
    }

    /// A point at which the agent waits for the outside: the process may die here, or the person interrupt.
    pub async fn point(&self, site: &'static str) {
        self.step();
        if self.is_dying() {
            return std::future::pending().await;
        }
        if self.may_fault(self.swarm.crashes) {
            self.die(site);
            return std::future::pending().await;
        }
        if self.may_fault(self.swarm.interrupts) {
            self.coverage.hit("interrupt", site);
            if let Some(interrupter) = self.inner.interrupt.lock().expect("unpoisoned").as_ref() {
                interrupter.interrupt();
            }
        }
    }

    /// The same for a call that cannot wait: a disk call. Returns whether the power goes now.
    pub fn point_in_disk(&self, site: &'static str) -> bool {
        if !self.is_dying() && self.may_fault(self.swarm.crashes) {
            self.die(site);
        }
        self.is_dying()
    }

    fn die(&self, site: &'static str) {
        let death = if self.dice.is(500) { Death::Kill } else { Death::Power };
        self.coverage.hit(if death == Death::Kill { "kill" } else { "power" }, site);
        self.state().death = Some(death);
        self.inner.is_dying.store(true, Ordering::Relaxed);
        self.inner.death.notify_one();
    }

    pub fn is_dying(&self) -> bool {
        self.inner.is_dying.load(Ordering::Relaxed)
    }

    pub async fn until_death(&self) {
        self.inner.death.notified().await;
    }

    /// Takes the death that ended a life; the next life begins alive.
    pub fn take_death(&self) -> Option<Death> {
        self.inner.is_dying.store(false, Ordering::Relaxed);
        // A death inside a disk call may end the life before anyone waited for it.
        let _ = self.inner.death.notified().now_or_never();
        self.state().death.take()
    }

    /// Whether a fault of this rate happens now; counted against the schedule's bound, so that faults cease.
    pub fn may_fault(&self, per_mille: u64) -> bool {
        if per_mille == 0 || self.inner.is_calm.load(Ordering::Relaxed) || !self.dice.is(per_mille) {
            return false;
        }
        let mut state = self.state();
        let is_left = state.faults < self.swarm.faults_max;
        state.faults += u32::from(is_left);
        is_left
    }

    /// No fault happens any more.
    pub fn cease(&self) {
        self.inner.is_calm.store(true, Ordering::Relaxed);
    }

    pub fn step(&self) {
        let steps = self.inner.steps.fetch_add(1, Ordering::Relaxed);
        assert!(steps < STEPS_MAX, "a schedule does not come to an end");
    }

    pub fn steps(&self) -> u64 {
        self.inner.steps.load(Ordering::Relaxed)
    }

    pub fn set_interrupter(&self, interrupter: Option<yaoki::Interrupter>) {
        *self.inner.interrupt.lock().expect("unpoisoned") = interrupter;
    }

    /// An attempt goes out: at most one may be in flight (I23).
    pub fn attempt_begins(&self) -> InFlight {
        let mut state = self.state();
        state.in_flight += 1;
        let count = state.in_flight;
        self.verdicts.hold("I23", count == 1, || format!("{count} attempts in flight"));
        InFlight(self.clone())
    }

    /// The effect happens, once more.
    pub fn execute(&self, tag: &str, class: EffectClass, key: &str) -> u32 {
        let mut state = self.state();
        let seen = state.executed.entry(tag.to_owned()).or_insert_with(|| Executed {
            class,
            count: 0,
            key: key.to_owned(),
        });
        seen.count += 1;
        let (count, first_key) = (seen.count, seen.key.clone());
        drop(state);
        match class {
            EffectClass::Pure => {}
            EffectClass::Idempotent => {
                self.verdicts.hold("I19", first_key == key, || format!("{tag} ran under two keys"));
            }
            EffectClass::Reversible | EffectClass::Irreversible | EffectClass::Unknown => {
                self.verdicts.hold("I15", count <= 1, || format!("{tag} ({class:?}) happened {count} times"));
            }
        }
        count
    }

    pub fn executed(&self, tag: &str) -> u32 {
        self.state().executed.get(tag).map_or(0, |seen| seen.count)
    }

    pub fn keys(&self) -> Vec<(String, String)> {
        self.state().executed.iter().map(|(tag, seen)| (tag.clone(), seen.key.clone())).collect()
    }

    pub fn op(&self, op: OpId) -> Option<OpState> {
        self.state().ops.get(&op).cloned()
    }

    /// Starts a command under a runner, which lives on without the agent. At most once per ticket.
    pub fn start_command(
        &self,
        op: OpId,
        tag: String,
        class: EffectClass,
        key: String,
        before_ms: u64,
        after_ms: u64,
    ) {
        let mut state = self.state();
        if state.ops.contains_key(&op) {
            drop(state);
            return self.verdicts.broken("runner", format!("{op} was started twice under one ticket"));
        }
        state.ops.insert(op, OpState::Running);
        let world = self.clone();
        let is_killed = self.swarm.runner_faults > 0 && self.dice.is(self.swarm.runner_faults);
        let task = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(before_ms)).await;
            if is_killed && world.may_fault(500) {
                world.coverage.hit("runner_killed", "in_run");
                world.state().ops.insert(op, OpState::Lost);
                return world.inner.ended.notify_waiters();
            }
            let count = world.execute(&tag, class, &key);
            tokio::time::sleep(Duration::from_millis(after_ms)).await;
            world.state().ops.insert(op, OpState::Exited { text: format!("{tag} ran ({count})") });
            world.inner.ended.notify_waiters();
        });
        state.runners.push(task);
    }

    /// Waits until the command under a runner ended, one way or the other.
    pub async fn until_ended(&self, op: OpId) -> OpState {
        loop {
            let ended = self.inner.ended.notified();
            match self.op(op) {
                Some(OpState::Running) => {}
                Some(state) => return state,
                None => return OpState::Lost,
            }
            ended.await;
        }
    }

    /// The person stops a command: the whole group is gone.
    pub fn stop_command(&self, op: OpId) {
        let mut state = self.state();
        if state.ops.get(&op) == Some(&OpState::Running) {
            state.ops.insert(op, OpState::Exited { text: format!("{op} was stopped") });
        }
        for runner in &state.runners {
            runner.abort();
        }
        drop(state);
        self.inner.ended.notify_waiters();
    }

    /// The power went: every runner is gone, and with it what only it knew.
    pub fn power_cut(&self) {
        let mut state = self.state();
        for runner in state.runners.drain(..) {
            runner.abort();
        }
        for op in state.ops.values_mut() {
            *op = OpState::Lost;
        }
        state.in_flight = 0;
    }

    pub fn killed(&self) {
        self.state().in_flight = 0;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().expect("unpoisoned")
    }
}

/// Held while an attempt is in flight.
pub struct InFlight(World);

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.in_flight = state.in_flight.saturating_sub(1);
    }
}

/// The wall clock jumps by a day now and then; nothing may care.
pub struct Clock(pub World);

impl AgentWorld for Clock {
    fn wall_ms(&self) -> u64 {
        let wall = &self.0.inner.wall_ms;
        if self.0.dice.is(2) {
            self.0.coverage.hit("clock_jump", "wall");
            let day_ms = 86_400_000;
            if self.0.dice.is(500) {
                return wall.fetch_add(day_ms, Ordering::Relaxed);
            }
            return wall.fetch_sub(day_ms, Ordering::Relaxed);
        }
        wall.fetch_add(1, Ordering::Relaxed)
    }

    fn dice(&self) -> u64 {
        self.0.dice.roll()
    }
}
