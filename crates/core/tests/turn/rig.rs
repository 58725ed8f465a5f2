//! A turn machine on a bench: its log, what of it is durable, and the steps that are open.
//!
//! Plays the loop's shell to the letter: records first, then the barrier, then events and steps. Everything that
//! passes is watched.

use std::collections::{BTreeMap, BTreeSet};

use yaoki_core::event::{Event, TurnSummary};
use yaoki_core::ids::SessionId;
use yaoki_core::json::RawJson;
use yaoki_core::policy::Policy;
use yaoki_core::record::{ContextSet, Header, Opened, Record, Switched};
use yaoki_core::request::{Context, Thinking, ToolSpec};
use yaoki_core::state::Place;
use yaoki_core::step::{Input, Now, Step, StepId};
use yaoki_core::turn::{Outbox, Turn};
use yaoki_core::view;

use crate::watch::{Checked, Watch};
use crate::world::World;

pub struct Rig {
    pub turn: Turn,
    pub policy: Policy,
    pub log: Vec<(Place, Record)>,
    /// How many of them survive a power cut.
    pub durable: usize,
    pub open: BTreeMap<StepId, Step>,
    /// Open steps that were told to stop.
    pub told_to_stop: BTreeSet<StepId>,
    pub now: Now,
    pub epoch: u32,
    /// Ends that were told, as durable as they claim.
    pub ends: Vec<TurnSummary>,
    /// Events that claim records which are not durable yet, and how many they need.
    held: Vec<(Event, usize)>,
    pub world: World,
    pub watch: Watch,
    /// Off where the count of records makes watching each too slow.
    pub is_watched: bool,
    /// The process dies while it writes what comes next, and so many of its last records are gone.
    pub tear: Option<usize>,
}

pub fn session() -> SessionId {
    SessionId::new("0190aaaa-0000-7000-8000-000000000001")
}

impl Rig {
    /// A new session, its set-up records written. The cap on output is the user's.
    pub fn new(policy: Policy) -> Self {
        Self::with_output_limit(policy, None)
    }

    /// One whose cap on output is ours, and may be raised to the model's own limit.
    pub fn with_output_limit(policy: Policy, max_tokens_model: Option<u32>) -> Self {
        let mut rig = Self {
            turn: Turn::new(policy.clone(), "http://lab"),
            policy,
            log: Vec::new(),
            durable: 0,
            open: BTreeMap::new(),
            told_to_stop: BTreeSet::new(),
            now: Now { wall_ms: 1_796_083_200_000, ..Now::default() },
            epoch: 1,
            ends: Vec::new(),
            held: Vec::new(),
            world: World::default(),
            watch: Watch::default(),
            is_watched: true,
            tear: None,
        };
        let header = Header {
            format: 1,
            session: session(),
            created: "2026-11-30T00:00:00.000Z".into(),
            cwd: "/repo".into(),
            yaoki: "0".into(),
            key: "k".into(),
            parent: None,
        };
        let tool =
            ToolSpec { name: "Read".into(), description: "Reads.".into(), schema: RawJson::empty_object() };
        let context = Context { system: vec!["Be brief.".into()], tools: vec![tool] };
        let switched = Switched {
            model: Some("m".into()),
            max_tokens: Some(32_000),
            max_tokens_model,
            thinking: Some(Thinking::Adaptive),
            permission_mode: Some("default".into()),
        };
        rig.turn.note(header, rig.now);
        rig.turn.note(Opened { epoch: 1, yaoki: "0".into(), cwd: "/repo".into() }, rig.now);
        rig.turn.note(ContextSet { context }, rig.now);
        rig.turn.note(switched, rig.now);
        rig.settle().expect("set-up breaks nothing");
        rig
    }

    /// A process that finds this log.
    pub fn resumed(policy: Policy, log: &[(Place, Record)]) -> Checked<Self> {
        let mut rig = Self::new(policy);
        rig.watch = Watch::default();
        rig.log = log.to_vec();
        rig.durable = log.len();
        rig.epoch = log.last().map_or(1, |(place, _)| place.epoch);
        rig.reopen(log.len())?;
        Ok(rig)
    }

    /// Records that every session begins with.
    pub const SET_UP: usize = 4;

    pub fn input(&mut self, input: Input) -> Checked<Outbox> {
        self.turn.next(input, self.now);
        self.settle()
    }

    /// Does with what the machine left as the loop's shell does.
    pub fn settle(&mut self) -> Checked<Outbox> {
        let out = self.turn.drain();
        for record in &out.records {
            let seq = match self.log.last() {
                // Its line stands for all that are missing.
                Some((_, Record::Gap(gap))) => gap.seq_to + 1,
                Some((place, _)) => place.seq + 1,
                None => 1,
            };
            let place = Place { seq, epoch: self.epoch, ms: out.ms };
            self.log.push((place, record.clone()));
        }
        if let Some(lost) = self.tear.take() {
            self.reopen(self.log.len() - lost.min(out.records.len()))?;
            return Ok(Outbox::default());
        }
        if out.barrier {
            self.durable = self.log.len();
        }
        self.take_steps(&out)?;
        self.show(&out)?;
        Ok(out)
    }

    fn take_steps(&mut self, out: &Outbox) -> Checked<()> {
        // What is let go is gone before what takes its place begins.
        for step in &out.steps {
            if let Step::Cancel(id) = step {
                let is_news = self.open.contains_key(id) && self.told_to_stop.insert(id.clone());
                if !is_news {
                    return Err(format!("{id:?} is not open, or was told to stop before"));
                }
                if matches!(id, StepId::Wait { .. } | StepId::Prepare(_) | StepId::Ask(_)) {
                    self.close(id);
                }
            }
        }
        if self.is_watched {
            self.watch.batch(out, &self.log, self.durable, &self.policy, &self.open)?;
        }
        for step in &out.steps {
            let Some(id) = id_of(step) else { continue };
            if self.is_watched {
                self.watch.step(step, &self.turn, self.durable, self.epoch, &self.open, &self.world)?;
            }
            if self.open.insert(id.clone(), step.clone()).is_some() {
                return Err(format!("{id:?} was given out twice"));
            }
        }
        Ok(())
    }

    fn show(&mut self, out: &Outbox) -> Checked<()> {
        for told in &out.events {
            let needs = if told.durable { self.log.len() } else { 0 };
            self.held.push((told.event.clone(), needs));
        }
        while self.held.first().is_some_and(|(_, needs)| *needs <= self.durable) {
            if let (Event::TurnEnded(summary), _) = self.held.remove(0) {
                self.ends.push(summary);
            }
        }
        if !self.turn.has_open_turn() && !self.held.is_empty() {
            return Err(format!("the turn is over and this was not shown: {:?}", self.held));
        }
        Ok(())
    }

    /// Takes a step off the open ones, as its report does.
    pub fn close(&mut self, id: &StepId) {
        self.open.remove(id);
        self.told_to_stop.remove(id);
    }

    pub fn tick(&mut self, ms: u64) {
        self.now.ms += ms;
        self.now.wall_ms += ms;
        self.watch.ran_ms += ms;
    }

    /// The state that the log gives.
    pub fn refolded(&self) -> Turn {
        let mut turn = Turn::new(self.policy.clone(), "http://lab");
        for (place, record) in &self.log {
            turn.replay(*place, record);
        }
        turn
    }

    /// I5 and I6: what is lived is what is written.
    pub fn check_fold(&self) -> Checked<()> {
        let again = self.refolded();
        if again.state() != self.turn.state() {
            return Err(format!(
                "I5: the log gives another state\nlive  {:#?}\nagain {:#?}",
                self.turn.state(),
                again.state()
            ));
        }
        if view::request(again.state()) != view::request(self.turn.state()) {
            return Err("I6: the log gives another request".into());
        }
        Ok(())
    }

    /// The process dies. The first `kept` records are there when the next one looks.
    pub fn crash(&mut self, kept: usize) -> Checked<()> {
        if kept == self.log.len() {
            self.check_fold()?;
        }
        self.reopen(kept)
    }

    fn reopen(&mut self, kept: usize) -> Checked<()> {
        assert!(kept >= self.durable.max(Self::SET_UP), "what is durable stays");
        let is_whole = kept == self.log.len();
        self.log.truncate(kept);
        self.epoch += 1;
        self.now.ms = 0;
        self.open.clear();
        self.told_to_stop.clear();
        self.held.clear();
        self.turn = self.refolded();
        self.watch.crashed(&self.log, is_whole);
        self.tick(3);
        self.turn.note(Opened { epoch: self.epoch, yaoki: "0".into(), cwd: "/repo".into() }, self.now);
        self.settle()?;
        self.check_fold()
    }
}

pub fn id_of(step: &Step) -> Option<StepId> {
    Some(match step {
        Step::Attempt { request, attempt, .. } => StepId::Attempt { request: *request, attempt: *attempt },
        Step::Wait { request, attempt, .. } => StepId::Wait { request: *request, attempt: *attempt },
        Step::Prepare { call } => StepId::Prepare(call.id.clone()),
        Step::Ask { op, .. } => StepId::Ask(*op),
        Step::Run(run) => StepId::Run(run.op),
        Step::Look { run, .. } => StepId::Look(run.op),
        Step::Cancel(_) => return None,
    })
}
