//! The loop's shell where the log or the clock is not as one would like.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use yaoki::core::event::TurnSummary;
use yaoki::core::ids::OpId;
use yaoki::core::message::{Call, Part};
use yaoki::core::policy::Policy;
use yaoki::core::request::{Thinking, ToolSpec};
use yaoki::core::state::State;
use yaoki::core::step::{Finding, PrepareVerdict, RunReport, RunStep};
use yaoki::core::terminal::TerminalReason;
use yaoki::executor::{Executor, Progress};
use yaoki::store::Blobs;
use yaoki::store::mem::{Errno, MemDisk, Op, Verdict};
use yaoki::wire::attempt::Limits;
use yaoki::wire::endpoint::{Credential, Endpoint, Secret};
use yaoki::wire::transport::{HttpAnswer, HttpAsk, Transport, TransportError};
use yaoki::world::World;
use yaoki::{Agent, Config, Durability, Nobody, OpenError, PermissionMode, Ports};

/// A model that never answers, and tools that nobody asks for.
struct Unused;

impl Transport for Unused {
    fn send(&self, _: HttpAsk) -> BoxFuture<'_, Result<HttpAnswer, TransportError>> {
        Box::pin(std::future::pending())
    }
}

impl Executor for Unused {
    fn specs(&self) -> Vec<ToolSpec> {
        Vec::new()
    }

    fn prepare<'a>(&'a self, _: &'a Call) -> BoxFuture<'a, PrepareVerdict> {
        unreachable!("no turn has a call")
    }

    fn run<'a>(&'a self, _: &'a RunStep, _: Progress<'a>, _: CancellationToken) -> BoxFuture<'a, RunReport> {
        unreachable!("no turn has a call")
    }

    fn look<'a>(
        &'a self,
        _: &'a RunStep,
        _: bool,
        _: Progress<'a>,
        _: CancellationToken,
    ) -> BoxFuture<'a, Finding> {
        unreachable!("no turn has a call")
    }

    fn forget(&self, _: OpId) {}
}

/// A machine so slow that the clock goes on between any two looks at it.
struct Slow;

impl World for Slow {
    fn wall_ms(&self) -> u64 {
        1_700_000_000_000
    }

    fn dice(&self) -> u64 {
        let since = Instant::now();
        while since.elapsed() < Duration::from_millis(3) {
            std::hint::spin_loop();
        }
        7
    }
}

fn config() -> Config {
    Config {
        endpoint: Endpoint::new("http://model.test", Credential::ApiKey(Secret::new("sk-test"))),
        model: None,
        effort: "medium".to_owned(),
        max_tokens: None,
        thinking: Thinking::Off,
        limits: Limits::default(),
        policy: Policy::default(),
        permission_mode: PermissionMode::Default,
        allow: Vec::new(),
        deny: Vec::new(),
        cwd: "/work-folder".into(),
        home: "/home".into(),
        system_prompt: Some("You are tested.".to_owned()),
        append_system_prompt: None,
        durability: Durability::Disk,
        max_turns: Some(0),
        secrets: Vec::new(),
        pass_credentials: false,
        ca_bundle: None,
    }
}

async fn agent_on(disk: &MemDisk) -> Agent {
    agent_with(config(), disk).await
}

async fn agent_with(config: Config, disk: &MemDisk) -> Agent {
    Agent::create(config, ports(disk)).await.unwrap()
}

fn ports(disk: &MemDisk) -> Ports {
    Ports {
        disk: Arc::new(disk.clone()),
        transport: Arc::new(Unused),
        person: Arc::new(Nobody),
        world: Arc::new(Slow),
        executor: Box::new(|_, _| Arc::new(Unused)),
    }
}

async fn prompt(agent: &mut Agent) -> TurnSummary {
    agent.prompt(vec![Part::text("hello")], &mut |_| {}).await
}

#[tokio::test]
async fn every_prompt_after_the_log_is_lost_is_answered_with_the_reason() {
    for op in [Op::Append, Op::SyncData] {
        let disk = MemDisk::new();
        let mut agent = agent_on(&disk).await;
        disk.set_faults(move |call| if call.op == op { Verdict::Fail(Errno::Io) } else { Verdict::Go });
        assert_eq!(prompt(&mut agent).await.reason, TerminalReason::StorageFailed, "{op:?}");
        // The disk works again, but what was decided in between stands nowhere.
        disk.clear_faults();
        assert_eq!(prompt(&mut agent).await.reason, TerminalReason::StorageFailed, "{op:?}");
        agent.note("written nowhere");
        agent.set_model("another");
        assert_eq!(prompt(&mut agent).await.reason, TerminalReason::StorageFailed, "{op:?}");
        assert_eq!(agent.finish(&mut |_| {}).now_or_never(), Some(None), "{op:?}");
        let written = |disk: &MemDisk| {
            disk.paths()
                .into_iter()
                .filter_map(|path| disk.peek(&path))
                .any(|bytes| memchr::memmem::find(&bytes, b"written nowhere").is_some())
        };
        let _ = agent.close();
        assert!(!written(&disk), "{op:?}");
    }
}

#[tokio::test]
async fn a_log_that_was_emptied_while_it_is_open_ends_the_turn() {
    let disk = MemDisk::new();
    let mut agent = agent_on(&disk).await;
    assert_ne!(prompt(&mut agent).await.reason, TerminalReason::StorageFailed);
    let is_log = |path: &std::path::PathBuf| path.extension().is_some_and(|name| name == "jsonl");
    let log = disk.paths().into_iter().find(is_log).unwrap();
    disk.poke(&log, b"");
    assert_eq!(prompt(&mut agent).await.reason, TerminalReason::StorageFailed);
}

#[tokio::test]
async fn a_disk_that_cannot_be_looked_at_is_not_a_session_that_is_not_there() {
    let disk = MemDisk::new();
    drop(agent_on(&disk).await);
    let open = || async { Agent::open(config(), ports(&disk), "none").await.err().unwrap() };
    assert!(matches!(open().await, OpenError::NoSession { .. }));
    disk.set_faults(|call| if call.op == Op::List { Verdict::Fail(Errno::Io) } else { Verdict::Go });
    let error = open().await;
    let is_told = matches!(error, OpenError::Open(yaoki::store::OpenError::Storage { .. }));
    assert!(is_told, "{error}");
}

#[tokio::test]
async fn a_prompt_after_an_abandoned_turn_does_not_wait_for_it() {
    let disk = MemDisk::new();
    let mut agent = agent_with(Config { max_turns: None, ..config() }, &disk).await;
    assert_eq!(agent.prompt(vec![Part::text("hello")], &mut |_| {}).now_or_never(), None);
    let summary = prompt(&mut agent).now_or_never().unwrap();
    assert_eq!(summary.reason, TerminalReason::StorageFailed);
}

#[tokio::test]
async fn the_log_bears_the_times_by_which_was_decided() {
    let disk = MemDisk::new();
    let mut agent = agent_on(&disk).await;
    assert_eq!(prompt(&mut agent).await.reason, TerminalReason::MaxTurns);
    let session = agent.session_id().as_str();
    let (lines, _) = yaoki::store::read_only(&disk, agent.folder(), session).unwrap();
    let blobs = Blobs::of(Arc::new(disk.clone()), agent.folder());
    let mut folded = State::default();
    for line in &lines {
        if let Some((place, record)) = yaoki::to_record(line, &blobs).unwrap() {
            folded.apply(place, &record);
        }
    }
    assert_eq!(&folded, agent.state());
}
