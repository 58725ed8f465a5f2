//! One schedule: a seed's session, from its first prompt to a last one that must succeed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use yaoki::core::record::Record;
use yaoki::core::terminal::TerminalReason;
use yaoki::store::mem::{Call, Errno, MemDisk, Op, Verdict};

use crate::broken::{Broken, Verdicts};
use crate::coverage::Coverage;
use crate::dice::Dice;
use crate::life::{Acks, CANARY, HOME, Life, LifeEnd, Task};
use crate::model::{LAST_PROMPT, PROMPT, SimModel};
use crate::plan::Plan;
use crate::world::{Death, World};

/// What one schedule came to.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub steps: u64,
    pub lives: u32,
    pub broken: Vec<Broken>,
    /// A digest of the final log: equal for equal seeds.
    pub trace: u64,
}

/// Retries that the default policy allows one request.
const RETRIES_MAX: u32 = 10;

/// Runs the schedule of a seed.
pub fn run(seed: u64, coverage: &Coverage) -> Outcome {
    run_told(seed, coverage, false)
}

/// The same, and prints each life of the process.
pub fn run_told(seed: u64, coverage: &Coverage, is_told: bool) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime without I/O needs nothing");
    runtime.block_on(Schedule::new(seed, coverage, is_told).run())
}

struct Schedule {
    world: World,
    plan: Arc<Plan>,
    disk: MemDisk,
    model: Arc<SimModel>,
    session: Option<String>,
    acks: Acks,
    lives: u32,
    /// Print each life, for someone who replays a seed.
    is_told: bool,
}

impl Schedule {
    fn new(seed: u64, coverage: &Coverage, is_told: bool) -> Self {
        let dice = Dice::new(seed);
        let plan = Arc::new(Plan::new(&dice));
        let world = World::new(dice, Verdicts::default(), coverage.clone(), plan.swarm);
        let disk = MemDisk::new();
        arm(&disk, &world);
        let model = Arc::new(SimModel::new(world.clone(), Arc::clone(&plan)));
        Schedule { world, plan, disk, model, session: None, acks: Acks::default(), lives: 0, is_told }
    }

    async fn run(mut self) -> Outcome {
        for turn in 0..self.plan.turns.len() {
            self.turn(turn).await;
        }
        self.world.cease();
        self.last_turn().await;
        self.check_end();
        let trace = self.trace();
        Outcome { steps: self.world.steps(), lives: self.lives, broken: self.world.verdicts.take(), trace }
    }

    /// One prompt, through as many lives as it takes.
    async fn turn(&mut self, turn: usize) {
        let accepted = self.acks.inputs;
        let mut task = Task::Prompt(format!("{PROMPT}{turn}"));
        for _ in 0..=self.world.swarm.lives_max + 4 {
            let end = self.live(task.clone()).await;
            let is_accepted = self.acks.inputs > accepted;
            match end {
                LifeEnd::Ended(Some(summary)) if summary.reason != TerminalReason::StorageFailed => return,
                LifeEnd::Ended(None) if is_accepted => return,
                // Someone may also give up on the turn and ask for something else.
                LifeEnd::Died(_) | LifeEnd::Ended(_) if is_accepted && self.world.dice.is(150) => return,
                LifeEnd::Died(_) | LifeEnd::NotOpened(_) | LifeEnd::Ended(_) if is_accepted => {
                    task = Task::Continue
                }
                LifeEnd::Died(_) | LifeEnd::NotOpened(_) | LifeEnd::Ended(_) => {}
            }
        }
    }

    /// When faults have ceased, a stored session can always go on.
    async fn last_turn(&mut self) {
        let end = self.live(Task::Prompt(LAST_PROMPT.to_owned())).await;
        let is_good =
            matches!(&end, LifeEnd::Ended(Some(summary)) if summary.reason == TerminalReason::Completed);
        self.world
            .verdicts
            .hold("I26", is_good, || format!("without any fault the session does not go on: {end:?}"));
    }

    async fn live(&mut self, task: Task) -> LifeEnd {
        self.lives += 1;
        let told = self.is_told.then(|| format!("{task:?}"));
        let life = Life {
            world: &self.world,
            disk: &self.disk,
            model: &self.model,
            session: &mut self.session,
            acks: &mut self.acks,
        };
        let end = life.live(task).await;
        match end {
            LifeEnd::Died(Death::Power) => {
                self.world.power_cut();
                let dice = self.world.dice.clone();
                self.disk.crash(&mut || dice.roll());
                // What was never synced may be gone, and the model is asked from an earlier point.
                self.model.forget_connection(true);
            }
            LifeEnd::Died(Death::Kill) => {
                self.world.killed();
                self.model.forget_connection(false);
            }
            LifeEnd::NotOpened(_) | LifeEnd::Ended(_) => {
                let is_shaken = self.world.swarm.disk_faults > 0;
                self.model.forget_connection(is_shaken);
            }
        }
        if let Some(task) = told {
            let held = self
                .records()
                .last()
                .map(|(seq, epoch, record)| format!("{seq} (epoch {epoch}) {}", record.kind()));
            let end = match &end {
                LifeEnd::Ended(Some(summary)) => format!("{:?} {:?}", summary.reason, summary.error),
                other => format!("{other:?}"),
            };
            println!("life {}: {task} -> {end}; last record {held:?}", self.lives);
        }
        self.check_acks();
        end
    }

    fn folder(&self) -> Option<(PathBuf, &str)> {
        let session = self.session.as_deref()?;
        let name = format!("{session}.jsonl");
        let log =
            self.disk.paths().into_iter().find(|path| path.file_name().is_some_and(|file| *file == *name))?;
        Some((log.parent()?.to_owned(), session))
    }

    fn records(&self) -> Vec<(u64, u32, Record)> {
        let Some((folder, session)) = self.folder() else { return Vec::new() };
        // A reader's own look must not meet a fault meant for the agent.
        let still = self.disk.fork();
        let lines = match yaoki::store::read_only(&still, &folder, session) {
            Ok((lines, _)) => lines,
            Err(error) => {
                self.world
                    .verdicts
                    .broken("I1", format!("the log cannot be read: {}", yaoki::error_chain(&error)));
                return Vec::new();
            }
        };
        let blobs = yaoki::store::Blobs::of(Arc::new(still), &folder);
        lines
            .iter()
            .filter_map(|line| yaoki::to_record(line, &blobs).ok().flatten())
            .map(|(place, record)| (place.seq, place.epoch, record))
            .collect()
    }

    /// What onlookers were told is in the log, whatever happened since (I1).
    fn check_acks(&mut self) {
        let records = self.records();
        let verdicts = &self.world.verdicts;
        let count =
            |is: fn(&Record) -> bool| records.iter().filter(|(_, _, record)| is(record)).count() as u64;
        let inputs = count(|record| matches!(record, Record::InputGiven(_)));
        let ends = count(|record| matches!(record, Record::TurnEnd(_)));
        verdicts.hold("I1", inputs >= self.acks.inputs, || {
            format!("{} prompts accepted, {inputs} kept", self.acks.inputs)
        });
        verdicts.hold("I1", ends >= self.acks.ends, || {
            format!("{} turns told as ended, {ends} kept", self.acks.ends)
        });
        verdicts.hold("I25", ends <= inputs, || format!("{inputs} prompts and {ends} ends"));
        for op in &self.acks.ops {
            let is_kept = records
                .iter()
                .any(|(_, _, record)| matches!(record, Record::Outcome(outcome) if outcome.op == *op));
            verdicts.hold("I1", is_kept, || format!("the outcome of {op} was shown and is lost"));
        }
    }

    /// What must be true of the whole story once it is over.
    fn check_end(&mut self) {
        let records = self.records();
        let verdicts = &self.world.verdicts;
        let mut seq_last = 0;
        let mut permitted: BTreeMap<_, u32> = BTreeMap::new();
        let mut open = BTreeMap::new();
        let mut attempts: BTreeMap<u64, u32> = BTreeMap::new();
        let mut retries: BTreeMap<u64, u32> = BTreeMap::new();
        let mut is_turn_open = false;
        for (seq, epoch, record) in &records {
            verdicts.hold("I2", *seq > seq_last, || format!("record {seq} after {seq_last}"));
            seq_last = *seq;
            match record {
                Record::InputGiven(_) => {
                    verdicts
                        .hold("I25", !is_turn_open, || format!("a turn opened at {seq} inside another one"));
                    is_turn_open = true;
                }
                Record::TurnEnd(_) => {
                    verdicts.hold("I25", is_turn_open, || format!("a turn ended at {seq} that was not open"));
                    is_turn_open = false;
                }
                Record::Permission(permission) if permission.allowed => {
                    permitted.insert(permission.op, permission.epoch);
                }
                Record::Started(started) => {
                    let is_covered = permitted.get(&started.op) == Some(epoch);
                    verdicts.hold("I18", is_covered, || {
                        format!("{} started in epoch {epoch} without permission in it", started.op)
                    });
                    open.insert(started.op, *seq);
                }
                Record::Outcome(outcome) => drop(open.remove(&outcome.op)),
                Record::Unknown(unknown) => drop(open.remove(&unknown.op)),
                Record::Resolved(resolved) => drop(open.remove(&resolved.op)),
                Record::Detached(detached) => drop(open.remove(&detached.op)),
                Record::AttemptStart(start) => *attempts.entry(start.request).or_default() += 1,
                Record::Budget(budget) if yaoki::core::recovery::costs_retry(&budget.rule) => {
                    *retries.entry(budget.request).or_default() += 1;
                }
                _ => {}
            }
        }
        for (op, seq) in open {
            verdicts.broken("I16", format!("{op} started at {seq} and nothing says how it ended"));
        }
        for (request, count) in retries {
            verdicts
                .hold("I21", count <= RETRIES_MAX, || format!("request {request} was retried {count} times"));
        }
        for (request, count) in attempts {
            let bound = RETRIES_MAX + 4 + self.lives;
            verdicts.hold("I21", count <= bound, || format!("request {request} had {count} attempts"));
        }
        let keys = self.world.keys();
        let mut by_key: BTreeMap<&str, &str> = BTreeMap::new();
        for (tag, key) in &keys {
            if let Some(other) = by_key.insert(key, tag) {
                verdicts.broken("I19", format!("{tag} and {other} share a key"));
            }
        }
        for path in self.disk.paths() {
            let bytes = self.disk.peek(&path).unwrap_or_default();
            let is_clean = !contains(&bytes, CANARY.as_bytes());
            verdicts.hold("I29", is_clean, || format!("the API key is in {}", path.display()));
        }
    }

    fn trace(&self) -> u64 {
        let bytes = self
            .folder()
            .and_then(|(folder, session)| self.disk.peek(&folder.join(format!("{session}.jsonl"))));
        bytes
            .unwrap_or_default()
            .iter()
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
    }
}

fn contains(bytes: &[u8], what: &[u8]) -> bool {
    bytes.windows(what.len()).any(|window| window == what)
}

/// Puts the world's deaths and faults into the disk's calls that write the log.
fn arm(disk: &MemDisk, world: &World) {
    let world = world.clone();
    disk.set_faults(move |call: &Call<'_>| {
        if world.is_dying() {
            return Verdict::Fail(Errno::Io);
        }
        let is_log = call.path.starts_with(HOME)
            && call.path.extension().is_some_and(|extension| extension == "jsonl");
        let site = match call.op {
            Op::Append if is_log => "append",
            Op::SyncData if is_log => "sync",
            _ => return Verdict::Go,
        };
        if world.point_in_disk(site) {
            // The write may be caught half-way.
            let torn = 1 + world.dice.below(call.bytes.max(1) as u64) as usize;
            return if world.dice.is(500) && call.op == Op::Append {
                Verdict::Short(torn)
            } else {
                Verdict::Fail(Errno::Io)
            };
        }
        if !world.may_fault(world.swarm.disk_faults) {
            return Verdict::Go;
        }
        let (name, verdict) = match (call.op, world.dice.below(4)) {
            (Op::Append, 0) => {
                ("short", Verdict::Short(1 + world.dice.below(call.bytes.max(1) as u64) as usize))
            }
            (Op::Append, 1) => ("enospc", Verdict::Fail(Errno::NoSpace)),
            (Op::Append, 2) => ("eio", Verdict::Fail(Errno::Io)),
            (Op::Append, _) => ("eio_after", Verdict::FailAfter(Errno::Io)),
            (_, 0) => ("eio", Verdict::Fail(Errno::Io)),
            (_, 1) => ("eio_after", Verdict::FailAfter(Errno::Io)),
            (_, _) => ("eio_dropping", Verdict::FailDropping(Errno::Io)),
        };
        world.coverage.hit(name, site);
        verdict
    });
}
