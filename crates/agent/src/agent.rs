//! One open session: the facade that people embed.
//!
//! Promises: when a method returns a [`TurnSummary`], its reason is durable (or is `storage_failed`). Dropping an
//! `Agent` between turns loses nothing; dropping the future of a turn is what a kill is, and the next open says so.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::Notify;
use tokio::time::Instant;
use yaoki_core::event::{Event, TurnSummary};
use yaoki_core::ids::SessionId;
use yaoki_core::message::{Part, Usage};
use yaoki_core::record::{ContextSet, Gap, Header, Notice, Opened, Record, RecordError, Repaired, Switched};
use yaoki_core::state::OpPhase;
use yaoki_core::step::{Input, Now};
use yaoki_core::terminal::TerminalReason;
use yaoki_core::turn::Turn;
use yaoki_store::disk::Disk;
use yaoki_store::{Blobs, CreateError, NewLine, SessionLog};
use yaoki_wire::anthropic::encode::Encoder;
use yaoki_wire::transport::Transport;

use crate::config::{Config, DEFAULT_MODEL, Durability, PermissionMode};
use crate::drive::{Drive, Hands};
use crate::executor::Executor;
use crate::journal::{Journal, JournalError, LineError, place_of, to_record};
use crate::person::Person;
use crate::prompt::{self, Loaded};
use crate::world::{self, World};

/// The outside, as the agent reaches it.
pub struct Ports {
    pub disk: Arc<dyn Disk>,
    pub transport: Arc<dyn Transport>,
    pub person: Arc<dyn Person>,
    pub world: Arc<dyn World>,
    /// Makes the executor once the session's folder is known.
    pub executor: MakeExecutor,
}

pub type MakeExecutor = Box<dyn FnOnce(&Config, &Seat) -> Arc<dyn Executor> + Send>;

/// Where a session lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seat {
    pub session: SessionId,
    pub folder: PathBuf,
}

/// A session could not be created or opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("No conversation found with session ID: {id}")]
    NoSession { id: String },
    #[error("the session cannot be created")]
    Create(#[from] CreateError),
    #[error("the session cannot be opened")]
    Open(#[from] yaoki_store::OpenError),
    #[error("the session cannot be continued by this version, only read")]
    Newer(#[from] RecordError),
    #[error("the session cannot be written")]
    Write(#[from] JournalError),
}

/// What an open found, besides a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Sentences for the user: what was damaged, mended, or left open.
    pub notices: Vec<String>,
    /// A turn had begun and not ended.
    pub is_turn_open: bool,
}

/// Figures of a session, for `/status`.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    pub model: String,
    pub effort: String,
    pub cwd: PathBuf,
    pub session: SessionId,
    pub mode: PermissionMode,
    pub allow: Vec<String>,
    /// As a request would hold them.
    pub messages: usize,
    /// Input tokens of the last answered request.
    pub context: u64,
    pub input: u64,
    pub output: u64,
    pub requests_answered: u64,
    pub attempts_failed: u64,
    /// In dollars; none where the model's prices are not known.
    pub cost: Option<f64>,
    /// Syncs of the log by this process.
    pub log_syncs: u64,
}

/// Interrupts a running turn from elsewhere.
#[derive(Debug, Clone)]
pub struct Interrupter(Arc<Notify>);

impl Interrupter {
    pub fn interrupt(&self) {
        self.0.notify_one();
    }
}

/// One open session.
pub struct Agent {
    config: Config,
    drive: Drive,
    seat: Seat,
    found: Found,
    loaded: Loaded,
}

impl Agent {
    /// Creates a session in the working folder of `config`.
    ///
    /// Errors: [`OpenError::Create`] when its files cannot be made, [`OpenError::Write`] when they cannot be written.
    /// Crash: before the first prompt is accepted there may be an empty session.
    pub async fn create(config: Config, ports: Ports) -> Result<Agent, OpenError> {
        let opened = Instant::now();
        let session = SessionId::new(world::session_id(ports.world.as_ref()));
        let folder = crate::sessions::folder(&config.home, &config.cwd, session.as_str());
        let seat = Seat { session, folder };
        let header = Header {
            format: 1,
            session: seat.session.clone(),
            created: yaoki_core::stamp::rfc3339(ports.world.wall_ms()),
            cwd: config.cwd.to_string_lossy().into_owned(),
            yaoki: VERSION.to_owned(),
            key: world::session_key(ports.world.as_ref()),
            parent: None,
        };
        let record = Record::Header(header);
        let data = record.data();
        let at = yaoki_core::stamp::rfc3339(ports.world.wall_ms());
        let line = NewLine { agent: "main", kind: record.kind(), data: &data, at: &at, ms: 0 };
        let log = SessionLog::create(
            Arc::clone(&ports.disk),
            &seat.folder,
            seat.session.as_str(),
            config.durability.into(),
            line,
        )?;
        let mut turn = Turn::new(config.policy.clone(), config.endpoint.authority());
        turn.replay(yaoki_core::state::Place { seq: 1, epoch: 1, ms: 0 }, &record);
        let mut agent = Agent::seated(config, ports, seat, log, turn, opened);
        let tools = agent.drive.hands.executor.specs();
        let now = agent.drive.now();
        let (context, loaded) = prompt::context(&agent.config, tools, now.wall_ms);
        agent.loaded = loaded;
        agent.note_opened(now);
        agent.drive.turn.note(ContextSet { context }, now);
        agent.switch_to_config(now);
        agent.write_notes()?;
        Ok(agent)
    }

    /// Opens a session that exists: verifies and mends its log, and rebuilds the state from it.
    ///
    /// Errors: [`OpenError::NoSession`]; [`OpenError::Open`] when it is open elsewhere or cannot be read;
    /// [`OpenError::Newer`] when it holds records this version does not know.
    pub async fn open(config: Config, ports: Ports, session: &str) -> Result<Agent, OpenError> {
        let opened_at = Instant::now();
        let found = crate::sessions::find(ports.disk.as_ref(), &config.home, session).map_err(|source| {
            yaoki_store::OpenError::Storage {
                session: session.to_owned(),
                doing: "look for the folder",
                source,
            }
        })?;
        let folder = found.ok_or_else(|| OpenError::NoSession { id: session.to_owned() })?;
        let seat = Seat { session: SessionId::new(session), folder };
        let opened =
            SessionLog::open(Arc::clone(&ports.disk), &seat.folder, session, config.durability.into())?;
        let mut turn = Turn::new(config.policy.clone(), config.endpoint.authority());
        let blobs = Blobs::of(Arc::clone(&ports.disk), &seat.folder);
        let mut outcomes = Vec::new();
        let mut served = Vec::new();
        let mut notices = opened.found.notices();
        // Of a gap that an earlier process found and did not live to tell.
        let mut untold: Option<Gap> = None;
        for line in &opened.lines {
            let (place, record) = match to_record(line, &blobs) {
                Ok(Some(found)) => found,
                Ok(None) => {
                    turn.skip(place_of(line));
                    continue;
                }
                Err(LineError::Record(error)) => return Err(error.into()),
                Err(error @ LineError::Body { .. }) => {
                    notices.push(crate::error_chain(&error));
                    // As if the line itself were damaged, so that whoever reads the log comes to the same state.
                    let gap = Gap { seq_from: line.seq, seq_to: line.seq };
                    turn.replay(place_of(line), &gap.into());
                    continue;
                }
            };
            if yaoki_core::mutant!("agent-budgets-not-replayed") && matches!(record, Record::Budget(_)) {
                turn.skip(place);
                continue;
            }
            turn.replay(place, &record);
            match record {
                Record::Gap(gap) => untold = Some(gap),
                Record::Repaired(_) => untold = None,
                Record::Outcome(outcome) => outcomes.extend(outcome.post.map(|post| (outcome.op, post))),
                Record::AssistantCommitted(committed) => {
                    served.push((turn.state().model_asked().to_owned(), committed.reply.origin.model));
                }
                _ => {}
            }
        }
        if let Some(Gap { seq_from, seq_to }) = untold.filter(|_| notices.is_empty()) {
            notices.push(format!("records {seq_from} to {seq_to} are missing"));
        }
        served.dedup();
        let mut agent = Agent::seated(config, ports, seat, opened.log, turn, opened_at);
        for (op, post) in outcomes {
            if let Some(op) = agent.drive.turn.state().ops.get(&op) {
                agent.drive.hands.executor.recall(&op.intent.tool, &post);
            }
        }
        let ops = &agent.drive.turn.state().ops;
        // What is detached may still run, and an operation that the log lost is kept until someone has looked at it.
        let is_settled =
            |op| ops.get(&op).is_some_and(|op| !op.phase.is_open() && op.phase != OpPhase::Detached);
        agent.drive.hands.executor.sweep(&is_settled);
        // A gateway may serve under names of its own; its signed blocks still go back to it.
        for (asked, served) in served {
            agent.drive.hands.encoder.learn_served(&asked, &served);
        }
        agent.loaded = prompt::look_around(&agent.config, agent.drive.hands.world.wall_ms());
        agent.found = Found { notices: notices.clone(), is_turn_open: agent.drive.turn.has_open_turn() };
        let now = agent.drive.now();
        agent.note_opened(now);
        for what in notices {
            agent.drive.turn.note(Repaired { what }, now);
        }
        if agent.drive.turn.state().context.is_none() {
            let (context, _) =
                prompt::context(&agent.config, agent.drive.hands.executor.specs(), now.wall_ms);
            agent.drive.turn.note(ContextSet { context }, now);
        }
        agent.switch_to_config(now);
        agent.write_notes()?;
        Ok(agent)
    }

    fn seated(
        config: Config,
        ports: Ports,
        seat: Seat,
        log: SessionLog,
        turn: Turn,
        opened: Instant,
    ) -> Agent {
        let executor = (ports.executor)(&config, &seat);
        let hands = Hands {
            transport: ports.transport,
            encoder: Encoder::new(),
            endpoint: config.endpoint.clone(),
            limits: config.limits,
            executor,
            person: ports.person,
            world: Arc::clone(&ports.world),
        };
        let blobs = Blobs::of(ports.disk, &seat.folder);
        let journal = Journal::new(log, blobs, ports.world);
        let drive = Drive::new(turn, journal, Arc::new(hands), opened);
        Agent { config, drive, seat, found: Found::default(), loaded: Loaded::default() }
    }

    fn note_opened(&mut self, now: Now) {
        let epoch = self.drive.journal.epoch();
        let cwd = self.config.cwd.to_string_lossy().into_owned();
        self.drive.turn.note(Opened { epoch, yaoki: VERSION.to_owned(), cwd }, now);
    }

    /// Records what the flags and settings of this process change about the session's requests.
    fn switch_to_config(&mut self, now: Now) {
        let state = self.drive.turn.state();
        let model = match &self.config.model {
            Some(model) => model.clone(),
            // A new session, or one whose first records a crash took.
            None if state.model.is_empty() => DEFAULT_MODEL.to_owned(),
            None => state.model.clone(),
        };
        let known = yaoki_wire::models::facts(&model);
        let ours = self.config.policy.max_tokens.min(known.output_max);
        let max_tokens = self.config.max_tokens.unwrap_or(ours);
        // A cap that the user set is theirs: it is never raised.
        let max_tokens_model = if self.config.max_tokens.is_none() { known.output_max } else { 0 };
        let switched = Switched {
            model: (model != state.model).then_some(model),
            max_tokens: (max_tokens != state.max_tokens).then_some(max_tokens),
            max_tokens_model: (max_tokens_model != state.max_tokens_model).then_some(max_tokens_model),
            thinking: (self.config.thinking != state.thinking).then_some(self.config.thinking),
            permission_mode: Some(self.config.permission_mode.name().to_owned())
                .filter(|mode| state.permission_mode.as_ref() != Some(mode)),
        };
        if switched != Switched::default() {
            self.drive.turn.note(switched, now);
        }
    }

    /// Appends what was noted. Durable with the first prompt's barrier.
    fn write_notes(&mut self) -> Result<(), JournalError> {
        let out = self.drive.turn.drain();
        if self.drive.is_lost {
            return Ok(());
        }
        self.drive.journal.write(&out.records, out.ms, false)
    }

    /// Runs one turn to its end. Events come in order; those that claim something final come after it is durable.
    ///
    /// If an earlier process left a turn open, it is settled and closed first (`interrupted`).
    pub async fn prompt(&mut self, parts: Vec<Part>, on: &mut (dyn FnMut(&Event) + Send)) -> TurnSummary {
        let input = Input::Prompt { parts, uuid: None, max_turns: self.config.max_turns };
        let ended = self.drive.run(input, on).await;
        ended.expect("a prompt opens a turn, and a turn ends with a summary")
    }

    /// Finishes the turn that an earlier process left open: takes real outcomes, attaches to what still runs, and
    /// goes on where it stood. `None` if no turn was open.
    pub async fn finish(&mut self, on: &mut (dyn FnMut(&Event) + Send)) -> Option<TurnSummary> {
        self.drive.run(Input::Continue, on).await
    }

    /// The answer of the session's last turn, if that turn is over and completed: what a process that died between
    /// ending a turn and showing it did not show.
    pub fn last_answer(&self) -> Option<TurnSummary> {
        let state = self.drive.turn.state();
        if self.has_open_turn() || state.last_end != Some(TerminalReason::Completed) {
            return None;
        }
        Some(TurnSummary {
            reason: TerminalReason::Completed,
            text: state.last_text.clone(),
            error: None,
            resumes_at: None,
            failure: None,
            rounds: 0,
            usage: Usage::default(),
            attempts_failed: 0,
            denials: Vec::new(),
            stop: None,
        })
    }

    pub fn has_open_turn(&self) -> bool {
        self.drive.turn.has_open_turn()
    }

    pub fn found(&self) -> &Found {
        &self.found
    }

    pub fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    pub fn session_id(&self) -> &SessionId {
        &self.seat.session
    }

    /// The session's folder: log, blobs, run folders.
    pub fn folder(&self) -> &Path {
        &self.seat.folder
    }

    pub fn interrupter(&self) -> Interrupter {
        Interrupter(Arc::clone(&self.drive.interrupts))
    }

    /// What the model is told of the tools, in order.
    pub fn tool_names(&self) -> Vec<String> {
        let context = self.drive.turn.state().context.clone();
        context
            .map(|context| context.tools.iter().map(|tool| tool.name.clone()).collect())
            .unwrap_or_default()
    }

    /// The folded state, for those who want to look closer.
    pub fn state(&self) -> &yaoki_core::state::State {
        self.drive.turn.state()
    }

    pub fn status(&self) -> Status {
        let state = self.drive.turn.state();
        let totals = state.totals;
        Status {
            model: state.model.clone(),
            effort: self.config.effort.clone(),
            cwd: self.config.cwd.clone(),
            session: self.seat.session.clone(),
            mode: self.config.permission_mode,
            allow: self.config.allow.clone(),
            messages: state.graph.active().len(),
            context: totals.context,
            input: totals.usage.context(),
            output: totals.usage.output,
            requests_answered: totals.answered,
            attempts_failed: totals.attempts_failed,
            cost: yaoki_wire::models::facts(&state.model).price.map(|price| price.cost(&totals.usage)),
            log_syncs: self.drive.journal.syncs(),
        }
    }

    /// Uses another model from the next request on.
    pub fn set_model(&mut self, model: &str) {
        self.config.model = Some(model.to_owned());
        let now = self.drive.now();
        self.switch_to_config(now);
    }

    /// Adds a notice to the session's story; it is no part of the conversation.
    pub fn note(&mut self, text: impl Into<String>) {
        let now = self.drive.now();
        self.drive.turn.note(Notice { text: text.into() }, now);
    }

    /// Makes everything durable and lets go of the session.
    ///
    /// Errors: [`JournalError`] when the last records could not be made durable.
    pub fn close(mut self) -> Result<(), JournalError> {
        self.write_notes()?;
        self.drive.journal.close()
    }
}

/// The version in logs and headers.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

impl From<Durability> for yaoki_store::Durability {
    fn from(durability: Durability) -> Self {
        match durability {
            Durability::Disk => yaoki_store::Durability::Disk,
            Durability::Process => yaoki_store::Durability::Process,
        }
    }
}
