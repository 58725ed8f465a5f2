//! One life of the process: from opening the session to its end, tidy or not.

use std::sync::Arc;
use std::time::Duration;

use yaoki::core::event::{Event, TurnSummary};
use yaoki::core::message::Part;
use yaoki::core::policy::{OnUnknown, Policy};
use yaoki::core::record::Record;
use yaoki::core::request::Thinking;
use yaoki::core::state::OpPhase;
use yaoki::core::terminal::TerminalReason;
use yaoki::wire::attempt::Limits;
use yaoki::wire::endpoint::{Credential, Endpoint, Secret};
use yaoki::{Agent, Config, Durability, PermissionMode, Ports, Seat};

use crate::hands::{SimExecutor, SimPerson};
use crate::model::SimModel;
use crate::onlooker::{Acks, Onlooker};
use crate::plan::FALLBACK;
use crate::world::{Clock, Death, World};

/// Where the simulated sessions live.
pub const HOME: &str = "/home";
/// Must be in no byte that is written.
pub const CANARY: &str = "sk-canary-5eed-0123456789";
/// No life may take longer, in virtual time: everything in it has a limit.
const LIFE_S_MAX: u64 = 12 * 3_600;

/// What a life is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Task {
    Prompt(String),
    /// Finish the open turn, if there is one.
    Continue,
}

/// How a life ended.
#[derive(Debug, Clone, PartialEq)]
pub enum LifeEnd {
    Died(Death),
    /// The session could not be created or opened.
    NotOpened(String),
    Ended(Option<Box<TurnSummary>>),
}

pub struct Life<'a> {
    pub world: &'a World,
    pub model: &'a Arc<SimModel>,
    pub acks: &'a mut Acks,
}

impl Life<'_> {
    /// Lives until the task is done or the process dies.
    pub async fn live(mut self, task: Task) -> LifeEnd {
        let world = self.world.clone();
        let end = {
            let living = tokio::time::timeout(Duration::from_secs(LIFE_S_MAX), self.work(task));
            tokio::select! {
                biased;
                () = world.until_death() => None,
                end = living => Some(end),
            }
        };
        world.set_interrupter(None);
        if let Some(death) = world.take_death() {
            return LifeEnd::Died(death);
        }
        match end {
            Some(Ok(end)) => end,
            Some(Err(_)) | None => {
                world.verdicts.broken("I26", format!("a life did not end within {LIFE_S_MAX} s"));
                LifeEnd::NotOpened("hung".to_owned())
            }
        }
    }

    async fn work(&mut self, task: Task) -> LifeEnd {
        let ports = self.ports();
        let opened = match self.world.seat() {
            None => Agent::create(self.config(), ports).await,
            Some(seat) => Agent::open(self.config(), ports, seat.session.as_str()).await,
        };
        let mut agent = match opened {
            Ok(agent) => agent,
            Err(error) => {
                // Nobody was told anything of it, so it may be gone, and the person begins anew.
                if self.acks.inputs == 0 && !self.world.is_dying() {
                    self.world.take_alarm();
                    self.world.set_seat(None);
                }
                return LifeEnd::NotOpened(yaoki::error_chain(&error));
            }
        };
        let seat = Seat { session: agent.session_id().clone(), folder: agent.folder().to_owned() };
        self.world.set_seat(Some(seat));
        self.world.set_interrupter(Some(agent.interrupter()));
        self.try_second_writer(&agent);
        self.check_alarm(&agent);
        let plan = &self.model.plan;
        let mut onlooker =
            Onlooker::new(self.world.clone(), self.acks, agent.has_open_turn(), plan.max_turns);
        let mut on = |event: &Event| onlooker.see(event);
        let summary = match task {
            Task::Prompt(text) => Some(agent.prompt(vec![Part::text(text)], &mut on).await),
            Task::Continue => agent.finish(&mut on).await,
        };
        let is_stored =
            summary.as_ref().is_none_or(|summary| summary.reason != TerminalReason::StorageFailed);
        if !self.world.is_dying() {
            self.world.log().hold_whole(&self.world.verdicts);
        }
        if is_stored && !self.world.is_dying() {
            self.world.log().hold_fold(agent.state(), &self.world.verdicts);
            self.check_orphans(&agent);
        }
        LifeEnd::Ended(summary.map(Box::new))
    }

    fn ports(&self) -> Ports {
        let world = self.world.clone();
        Ports {
            disk: Arc::new(self.world.disk.clone()),
            transport: Arc::clone(self.model) as _,
            person: Arc::new(SimPerson { world: world.clone() }),
            world: Arc::new(Clock(world.clone())),
            executor: Box::new(move |_, _| Arc::new(SimExecutor { world })),
        }
    }

    fn config(&self) -> Config {
        let fallback_models =
            if self.model.plan.has_fallback { vec![FALLBACK.to_owned()] } else { Vec::new() };
        let on_unknown = if self.model.plan.is_cautious { OnUnknown::Stop } else { OnUnknown::default() };
        let credential = Credential::ApiKey(Secret::new(CANARY));
        Config {
            endpoint: Endpoint::new("http://model.sim", credential),
            model: None,
            effort: "medium".to_owned(),
            max_tokens: self.model.plan.max_tokens,
            thinking: Thinking::Off,
            limits: Limits::default(),
            policy: Policy { on_unknown, fallback_models, ..Policy::default() },
            permission_mode: PermissionMode::Default,
            allow: Vec::new(),
            deny: Vec::new(),
            cwd: "/sim".into(),
            home: HOME.into(),
            system_prompt: Some("You are simulated.".to_owned()),
            append_system_prompt: None,
            durability: Durability::Disk,
            max_turns: self.model.plan.max_turns,
            secrets: Vec::new(),
            pass_credentials: false,
            ca_bundle: None,
        }
    }

    /// While one process has the session, no other gets it (I8).
    fn try_second_writer(&self, agent: &Agent) {
        if self.world.is_dying() || !self.world.dice.is(100) {
            return;
        }
        self.world.hit("second_writer", "open");
        let disk = Arc::new(self.world.disk.clone());
        let session = agent.session_id().as_str();
        let second =
            yaoki::store::SessionLog::open(disk, agent.folder(), session, yaoki::store::Durability::Disk);
        let is_locked = matches!(second, Err(yaoki::store::OpenError::Locked { .. }));
        // A disk that fails just now is no second writer either.
        let is_refused = is_locked || matches!(second, Err(yaoki::store::OpenError::Storage { .. }));
        self.world.verdicts.hold("I8", is_refused, || "a second process opened the session".to_owned());
    }

    /// Damage is loud, and what it took is kept beside the log (I3).
    fn check_alarm(&self, agent: &Agent) {
        if !self.world.take_alarm() {
            return;
        }
        // Or by the process before, which then died.
        let was_told = || self.world.log().count(|record| matches!(record, Record::Repaired(_))) > 0;
        let is_told = !agent.found().notices.is_empty() || was_told();
        self.world.verdicts.hold("I3", is_told, || "damage was found and nobody is told".to_owned());
        let original = agent.folder().join(format!("{}.damaged", agent.session_id()));
        let is_there = self.world.disk.peek(&original).is_some();
        self.world.verdicts.hold("I3", is_there, || "the damaged log is not kept".to_owned());
    }

    /// When the turn is over, what still runs was handed over as a background task (I31).
    fn check_orphans(&self, agent: &Agent) {
        for op in self.world.running() {
            let phase = agent.state().ops.get(&op).map(|op| op.phase);
            // What a damaged log lost has no owner; the model was told that nobody knows.
            let is_owned = phase == Some(OpPhase::Detached) || self.world.is_damaged();
            self.world.verdicts.hold("I31", is_owned, || format!("{op} runs on and is {phase:?}"));
        }
    }
}
