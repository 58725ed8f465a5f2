//! One schedule: a seed's session, from its first prompt to a last one that must succeed.

use std::sync::Arc;

use crate::broken::{Broken, Verdicts};
use crate::coverage::Coverage;
use crate::dice::Dice;
use crate::disk;
use crate::life::{Life, LifeEnd, Task};
use crate::model::{LAST_PROMPT, PROMPT, SimModel};
use crate::onlooker::Acks;
use crate::plan::Plan;
use crate::story::{Story, check_acks, check_world, forgive};
use crate::trace::{Look, Trace};
use crate::world::{Death, World, log_of};
use yaoki::core::terminal::TerminalReason;

/// What one schedule came to.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Inputs that were fed to the turn machine.
    pub steps: u64,
    pub lives: u32,
    pub broken: Vec<Broken>,
    /// Equal for equal seeds and equal looks.
    pub trace: u64,
}

/// Runs the schedule of a seed.
pub fn run(seed: u64, coverage: &Coverage, look: Look) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime without I/O needs nothing");
    let schedule = Schedule::new(seed, coverage, look);
    let disk = schedule.world.disk.clone();
    let outcome = runtime.block_on(schedule.run());
    // The disk's faults hold the world, which holds the disk.
    disk.clear_faults();
    outcome
}

/// A world in which nothing happens, for tests of what is held against it.
#[cfg(test)]
pub(crate) fn still_world() -> World {
    let trace = Trace::new(Look::Plain);
    World::new(Dice::new(0), Verdicts::default(), Coverage::default(), crate::plan::Swarm::default(), trace)
}

struct Schedule {
    world: World,
    plan: Arc<Plan>,
    model: Arc<SimModel>,
    acks: Acks,
    lives: u32,
}

impl Schedule {
    fn new(seed: u64, coverage: &Coverage, look: Look) -> Self {
        let dice = Dice::new(seed);
        let plan = Arc::new(Plan::new(&dice));
        let world = World::new(dice, Verdicts::default(), coverage.clone(), plan.swarm, Trace::new(look));
        disk::arm(&world);
        let model = Arc::new(SimModel::new(world.clone(), Arc::clone(&plan)));
        Schedule { world, plan, model, acks: Acks::default(), lives: 0 }
    }

    async fn run(mut self) -> Outcome {
        for turn in 0..self.plan.turns.len() {
            self.turn(turn).await;
        }
        self.world.cease();
        self.last_turn().await;
        let world = &self.world;
        Story::check(&world.log(), self.lives, &world.verdicts);
        check_world(world);
        if let Some(seat) = world.seat() {
            let log = world.disk.peek(&log_of(&seat));
            world.trace.bytes(&log.unwrap_or_default());
        }
        let trace = world.trace.digest();
        if world.trace.look == Look::Told && !world.verdicts.is_empty() {
            world.log().print();
        }
        Outcome { steps: world.steps(), lives: self.lives, broken: world.verdicts.take(), trace }
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
        let task = || Task::Prompt(LAST_PROMPT.to_owned());
        let mut end = self.live(task()).await;
        // A session that the power took before anyone was told anything of it: the person begins anew.
        if matches!(end, LifeEnd::NotOpened(_)) && self.world.seat().is_none() {
            end = self.live(task()).await;
        }
        let is_good =
            matches!(&end, LifeEnd::Ended(Some(summary)) if summary.reason == TerminalReason::Completed);
        self.world
            .verdicts
            .hold("I26", is_good, || format!("without any fault the session does not go on: {end:?}"));
    }

    async fn live(&mut self, task: Task) -> LifeEnd {
        self.lives += 1;
        let told = (self.world.trace.look == Look::Told).then(|| format!("{task:?}"));
        let life = Life { world: &self.world, model: &self.model, acks: &mut self.acks };
        let end = life.live(task).await;
        self.world.trace.closely(&end);
        self.world.life_ended();
        match end {
            LifeEnd::Died(Death::Power) => {
                self.world.power_cut();
                let dice = self.world.dice.clone();
                self.world.disk.crash(&mut || dice.roll());
                // A name that was not synced may be another file's again, and what went bad nobody's.
                if !self.world.log().has_gaps() {
                    self.world.take_alarm();
                }
                // What was never synced may be gone, and the model is asked from an earlier point.
                self.model.requests().forget_process(true);
            }
            LifeEnd::Died(Death::Kill) => self.model.requests().forget_process(false),
            LifeEnd::NotOpened(_) | LifeEnd::Ended(_) => {
                let is_shaken = self.world.swarm.disk_faults > 0;
                self.model.requests().forget_process(is_shaken);
            }
        }
        let log = self.world.log();
        if let Some(task) = told {
            let last = log.records().next_back();
            let last = last.map(|(at, record)| format!("{} (epoch {}) {}", at.seq, at.epoch, record.kind()));
            let end = match &end {
                LifeEnd::Ended(Some(summary)) => format!("{:?} {:?}", summary.reason, summary.error),
                other => format!("{other:?}"),
            };
            println!("life {}: {task} -> {end}; last record {last:?}", self.lives);
        }
        check_acks(&log, &self.acks, &self.world.verdicts);
        drop(log);
        if self.world.damage() {
            // The next open sets what went bad apart; until then it is no part of the log.
            forgive(&self.world.log(), &mut self.acks);
            self.model.requests().forget_process(true);
        }
        end
    }
}
