//! The outside world of a schedule: where the process dies, what goes wrong, what the clock says.
//!
//! It alone knows what really happened; the agent never sees these counts.

mod clock;
mod truth;

pub use clock::Clock;
pub use truth::{InFlight, OpState};

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use futures_util::FutureExt;
use tokio::sync::Notify;
use yaoki::Seat;
use yaoki::store::mem::MemDisk;

use crate::broken::Verdicts;
use crate::coverage::{self, Coverage};
use crate::dice::Dice;
use crate::log::{Kept, Log};
use crate::plan::Swarm;
use crate::trace::{Look, Trace};
use truth::Truth;

/// No schedule needs more waits for the outside: past this it turns in a circle.
const POINTS_MAX: u64 = 5_000;

/// So many lines at the end of a log are its late ones.
const LATE_LINES: usize = 12;

/// A shared handle to the world of one schedule.
#[derive(Clone)]
pub struct World {
    pub dice: Dice,
    pub verdicts: Verdicts,
    pub coverage: Coverage,
    pub swarm: Swarm,
    pub disk: MemDisk,
    pub trace: Trace,
    inner: Arc<Inner>,
}

struct Inner {
    fate: Mutex<Fate>,
    truth: Mutex<Truth>,
    /// Told when the process is to die.
    death: Notify,
    is_dying: AtomicBool,
    /// All faults have ceased.
    is_calm: AtomicBool,
    /// Told when a command under the runner ended.
    ended: Notify,
    interrupt: Mutex<Option<yaoki::Interrupter>>,
    wall_ms: AtomicU64,
    points: AtomicU64,
    steps: AtomicU64,
    /// Lines of the log went bad at least once.
    is_damaged: AtomicBool,
    /// The next process to open the session must say so.
    is_alarm_due: AtomicBool,
    seat: Mutex<Option<Arc<Seat>>>,
    log: Mutex<Log>,
}

#[derive(Default)]
struct Fate {
    faults: u32,
    death: Option<Death>,
}

/// How the process dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Death {
    /// The process is gone; the disk's cache and the runners stay.
    Kill,
    /// Everything unsynced is gone, and the runners with it.
    Power,
}

impl World {
    pub fn new(dice: Dice, verdicts: Verdicts, coverage: Coverage, swarm: Swarm, trace: Trace) -> Self {
        let inner = Inner {
            fate: Mutex::default(),
            truth: Mutex::default(),
            death: Notify::new(),
            is_dying: AtomicBool::new(false),
            is_calm: AtomicBool::new(false),
            ended: Notify::new(),
            interrupt: Mutex::new(None),
            wall_ms: AtomicU64::new(1_796_000_000_000),
            points: AtomicU64::new(0),
            steps: AtomicU64::new(0),
            is_damaged: AtomicBool::new(false),
            is_alarm_due: AtomicBool::new(false),
            seat: Mutex::new(None),
            log: Mutex::default(),
        };
        World { dice, verdicts, coverage, swarm, disk: MemDisk::new(), trace, inner: Arc::new(inner) }
    }

    /// A fault really happened.
    pub fn hit(&self, fault: &'static str, site: &'static str) {
        self.coverage.hit(fault, site);
        if self.trace.look == Look::Told {
            println!("  {fault} at {site}");
        }
    }

    /// A point at which the agent waits for the outside: the process may die here, or the person interrupt.
    pub async fn point(&self, site: &'static str) {
        let points = self.inner.points.fetch_add(1, Ordering::Relaxed);
        assert!(points < POINTS_MAX, "a schedule does not come to an end");
        if self.is_dying() {
            return std::future::pending().await;
        }
        if self.may_fault(self.swarm.crashes * coverage::weight(site)) {
            self.die(site);
            return std::future::pending().await;
        }
        if self.may_fault(self.swarm.interrupts * coverage::weight(site)) {
            self.hit("interrupt", site);
            if let Some(interrupter) = self.inner.interrupt.lock().expect("unpoisoned").as_ref() {
                interrupter.interrupt();
            }
        }
    }

    /// The same for a call that cannot wait: a disk call. Returns whether the process is gone.
    pub fn point_in_disk(&self, site: &'static str) -> bool {
        if !self.is_dying() && self.may_fault(self.swarm.crashes * coverage::weight(site)) {
            self.die(site);
        }
        self.is_dying()
    }

    fn die(&self, site: &'static str) {
        let death = if self.dice.is(500) { Death::Kill } else { Death::Power };
        self.hit(if death == Death::Kill { "kill" } else { "power" }, site);
        self.fate().death = Some(death);
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
        self.fate().death.take()
    }

    /// Whether a fault of this rate happens now; counted against the schedule's bound, so that faults cease.
    pub fn may_fault(&self, per_mille: u64) -> bool {
        if per_mille == 0 || self.inner.is_calm.load(Ordering::Relaxed) || !self.dice.is(per_mille) {
            return false;
        }
        let mut fate = self.fate();
        let is_left = fate.faults < self.swarm.faults_max;
        fate.faults += u32::from(is_left);
        is_left
    }

    /// No fault happens any more.
    pub fn cease(&self) {
        self.inner.is_calm.store(true, Ordering::Relaxed);
    }

    /// Inputs that were fed to the turn machine.
    pub fn steps(&self) -> u64 {
        self.inner.steps.load(Ordering::Relaxed)
    }

    pub fn set_interrupter(&self, interrupter: Option<yaoki::Interrupter>) {
        *self.inner.interrupt.lock().expect("unpoisoned") = interrupter;
    }

    /// Where the session is, once it was created.
    pub fn seat(&self) -> Option<Arc<Seat>> {
        self.inner.seat.lock().expect("unpoisoned").clone()
    }

    pub fn set_seat(&self, seat: Option<Seat>) {
        *self.inner.seat.lock().expect("unpoisoned") = seat.map(Arc::new);
    }

    /// The session's log as it is now, read anew where it has changed.
    pub fn log(&self) -> MutexGuard<'_, Log> {
        let mut log = self.inner.log.lock().expect("unpoisoned");
        let seat = self.seat().filter(|seat| self.disk.peek(&log_of(seat)).is_some());
        match seat {
            // A power cut may take a session that nobody was told anything of.
            None => *log = Log::default(),
            Some(seat) => {
                if let Err(error) = log.read(&self.disk, &seat) {
                    self.verdicts.broken("I1", format!("the log cannot be read: {error}"));
                }
            }
        }
        log
    }

    /// What no power cut can take of the log.
    pub fn kept(&self) -> Kept {
        Kept::of(self.seat().and_then(|seat| self.disk.kept(&log_of(&seat))))
    }

    /// Between two lives a few lines of the log go bad, behind which others are known to be durable.
    ///
    /// Not a message and not a prompt: the model would go by what is left, and repeat itself.
    pub fn damage(&self) -> bool {
        let Some(seat) = self.seat() else { return false };
        // Not before the damage so far was found: more of it could hit the lines that tell it from a torn tail.
        if self.inner.is_alarm_due.load(Ordering::Relaxed) {
            return false;
        }
        let victims = self.log().victims();
        if victims.is_empty() || !self.may_fault(self.swarm.damages) {
            return false;
        }
        let mut bytes = self.disk.peek(&log_of(&seat)).unwrap_or_default();
        // Rather a late one: what an open turn goes by stands there. And rather an outcome than another.
        let late = victims.len().saturating_sub(LATE_LINES);
        let from = if self.dice.is(700) { late } else { 0 };
        let any = from + self.dice.below((victims.len() - from) as u64) as usize;
        let outcome = victims.iter().rposition(|line| line.is_outcome).filter(|_| self.dice.is(700));
        let first = outcome.unwrap_or(any);
        for line in victims.iter().map(|line| &line.place).skip(first).take(1 + self.dice.below(3) as usize) {
            let at = line.start + self.dice.below(line.len() as u64) as usize;
            bytes[at] ^= 1 << self.dice.below(7);
        }
        self.disk.poke(&log_of(&seat), &bytes);
        self.hit("flip", "log");
        self.inner.is_damaged.store(true, Ordering::Relaxed);
        self.inner.is_alarm_due.store(true, Ordering::Relaxed);
        true
    }

    pub fn is_damaged(&self) -> bool {
        self.inner.is_damaged.load(Ordering::Relaxed)
    }

    pub fn take_alarm(&self) -> bool {
        self.inner.is_alarm_due.swap(false, Ordering::Relaxed)
    }

    fn fate(&self) -> MutexGuard<'_, Fate> {
        self.inner.fate.lock().expect("unpoisoned")
    }
}

/// The session's log file.
pub fn log_of(seat: &Seat) -> PathBuf {
    seat.folder.join(format!("{}.jsonl", seat.session))
}
