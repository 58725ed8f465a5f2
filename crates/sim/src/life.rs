//! One life of the process: from opening the session to its end, tidy or not.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use yaoki::core::event::{Event, TurnSummary};
use yaoki::core::ids::OpId;
use yaoki::core::message::Part;
use yaoki::core::policy::Policy;
use yaoki::core::request::Thinking;
use yaoki::core::terminal::TerminalReason;
use yaoki::store::mem::MemDisk;
use yaoki::wire::attempt::Limits;
use yaoki::wire::endpoint::{Credential, Endpoint, Secret};
use yaoki::{Agent, Config, Durability, PermissionMode, Ports};

use crate::hands::{SimExecutor, SimPerson};
use crate::model::SimModel;
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

/// What onlookers were told and may rely on.
#[derive(Debug, Clone, Default)]
pub struct Acks {
    pub inputs: u64,
    pub ends: u64,
    pub ops: BTreeSet<OpId>,
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
    pub disk: &'a MemDisk,
    pub model: &'a Arc<SimModel>,
    pub session: &'a mut Option<String>,
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
        let opened = match self.session.as_deref() {
            None => Agent::create(config(), ports).await,
            Some(session) => Agent::open(config(), ports, session).await,
        };
        let mut agent = match opened {
            Ok(agent) => agent,
            Err(error) => {
                // Nobody was told anything of it, so it may be gone, and the person begins anew.
                if self.acks.inputs == 0 {
                    *self.session = None;
                }
                return LifeEnd::NotOpened(yaoki::error_chain(&error));
            }
        };
        *self.session = Some(agent.session_id().to_string());
        self.world.set_interrupter(Some(agent.interrupter()));
        self.try_second_writer(&agent);
        let (world, acks) = (self.world.clone(), &mut *self.acks);
        let mut on = |event: &Event| acknowledge(&world, acks, event);
        let summary = match task {
            Task::Prompt(text) => Some(agent.prompt(vec![Part::text(text)], &mut on).await),
            Task::Continue => agent.finish(&mut on).await,
        };
        let is_stored =
            summary.as_ref().is_none_or(|summary| summary.reason != TerminalReason::StorageFailed);
        if is_stored && !self.world.is_dying() {
            self.check_fold(&agent);
        }
        LifeEnd::Ended(summary.map(Box::new))
    }

    fn ports(&self) -> Ports {
        let world = self.world.clone();
        Ports {
            disk: Arc::new(self.disk.clone()),
            transport: Arc::clone(self.model) as _,
            person: Arc::new(SimPerson { world: world.clone() }),
            world: Arc::new(Clock(world.clone())),
            executor: Box::new(move |_, _| Arc::new(SimExecutor { world })),
        }
    }

    /// While one process has the session, no other gets it (I8).
    fn try_second_writer(&self, agent: &Agent) {
        if self.world.is_dying() || !self.world.dice.is(100) {
            return;
        }
        self.world.coverage.hit("second_writer", "open");
        let disk = Arc::new(self.disk.clone());
        let session = agent.session_id().as_str();
        let second =
            yaoki::store::SessionLog::open(disk, agent.folder(), session, yaoki::store::Durability::Disk);
        let is_locked = matches!(second, Err(yaoki::store::OpenError::Locked { .. }));
        // A disk that fails just now is no second writer either.
        let is_refused = is_locked || matches!(second, Err(yaoki::store::OpenError::Storage { .. }));
        self.world.verdicts.hold("I8", is_refused, || "a second process opened the session".to_owned());
    }

    /// What runs is what the log says (I5).
    fn check_fold(&self, agent: &Agent) {
        let session = agent.session_id().as_str();
        match fold(self.disk, agent.folder(), session) {
            Ok(state) if state == *agent.state() => {}
            Ok(state) => {
                let (left, right) = (format!("{:?}", agent.state()), format!("{state:?}"));
                let at = left
                    .bytes()
                    .zip(right.bytes())
                    .position(|(a, b)| a != b)
                    .unwrap_or(left.len().min(right.len()));
                let around = |text: &str| {
                    text.get(at.saturating_sub(80)..).unwrap_or("").chars().take(200).collect::<String>()
                };
                self.world
                    .verdicts
                    .broken("I5", format!("live …{}… log …{}…", around(&left), around(&right)));
            }
            Err(error) => self.world.verdicts.broken("I5", error),
        }
    }
}

/// Rebuilds the state from what is in the log.
pub fn fold(disk: &MemDisk, folder: &Path, session: &str) -> Result<yaoki::core::state::State, String> {
    let (lines, _) =
        yaoki::store::read_only(disk, folder, session).map_err(|error| yaoki::error_chain(&error))?;
    let mut state = yaoki::core::state::State::default();
    let blobs = yaoki::store::Blobs::of(Arc::new(disk.clone()), folder);
    for line in &lines {
        if let Some((place, record)) =
            yaoki::to_record(line, &blobs).map_err(|error| yaoki::error_chain(&error))?
        {
            state.apply(place, &record);
        }
    }
    Ok(state)
}

fn acknowledge(world: &World, acks: &mut Acks, event: &Event) {
    // The dead tell nobody anything.
    if world.is_dying() {
        return;
    }
    match event {
        Event::Accepted { .. } => acks.inputs += 1,
        Event::CallEnded { op, tool, .. } if tool != "look" => {
            acks.ops.insert(*op);
        }
        Event::TurnEnded(summary) if summary.reason != TerminalReason::StorageFailed => acks.ends += 1,
        _ => {}
    }
}

fn config() -> Config {
    let credential = Credential::ApiKey(Secret::new(CANARY));
    Config {
        endpoint: Endpoint::new("http://model.sim", credential),
        model: None,
        effort: "medium".to_owned(),
        max_tokens: None,
        thinking: Thinking::Off,
        limits: Limits::default(),
        policy: Policy::default(),
        permission_mode: PermissionMode::Default,
        allow: Vec::new(),
        deny: Vec::new(),
        cwd: "/sim".into(),
        home: HOME.into(),
        system_prompt: Some("You are simulated.".to_owned()),
        append_system_prompt: None,
        durability: Durability::Disk,
        max_turns: None,
        secrets: Vec::new(),
        pass_credentials: false,
        ca_bundle: None,
    }
}
