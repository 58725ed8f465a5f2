//! A session on a simulated disk: what opening it makes of what a crash left.

use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use yaoki::core::ids::OpId;
use yaoki::core::message::Call;
use yaoki::core::policy::Policy;
use yaoki::core::request::{Thinking, ToolSpec};
use yaoki::core::step::{Finding, PrepareVerdict, RunReport, RunStep};
use yaoki::executor::{Executor, Progress};
use yaoki::store::mem::MemDisk;
use yaoki::wire::attempt::Limits;
use yaoki::wire::endpoint::{Credential, Endpoint, Secret};
use yaoki::wire::transport::{HttpAnswer, HttpAsk, Transport, TransportError};
use yaoki::world::RealWorld;
use yaoki::{Agent, Config, DEFAULT_MODEL, Durability, Nobody, PermissionMode, Ports};

/// Nothing is asked and nothing is run in these tests.
struct Nothing;

impl Transport for Nothing {
    fn send(&self, _ask: HttpAsk) -> BoxFuture<'_, Result<HttpAnswer, TransportError>> {
        unreachable!("nothing is asked")
    }
}

impl Executor for Nothing {
    fn specs(&self) -> Vec<ToolSpec> {
        Vec::new()
    }

    fn prepare<'a>(&'a self, _call: &'a Call) -> BoxFuture<'a, PrepareVerdict> {
        unreachable!("nothing is called")
    }

    fn run<'a>(
        &'a self,
        _run: &'a RunStep,
        _progress: Progress<'a>,
        _cancel: CancellationToken,
    ) -> BoxFuture<'a, RunReport> {
        unreachable!("nothing is run")
    }

    fn look<'a>(
        &'a self,
        _run: &'a RunStep,
        _wait: bool,
        _progress: Progress<'a>,
        _cancel: CancellationToken,
    ) -> BoxFuture<'a, Finding> {
        unreachable!("nothing is looked at")
    }

    fn forget(&self, _op: OpId) {}
}

fn ports(disk: &MemDisk) -> Ports {
    Ports {
        disk: Arc::new(disk.clone()),
        transport: Arc::new(Nothing),
        person: Arc::new(Nobody),
        world: Arc::new(RealWorld),
        executor: Box::new(|_, _| Arc::new(Nothing)),
    }
}

fn config() -> Config {
    Config {
        endpoint: Endpoint::new("http://model.test", Credential::ApiKey(Secret::new("key"))),
        model: None,
        effort: "medium".to_owned(),
        max_tokens: None,
        thinking: Thinking::Off,
        limits: Limits::default(),
        policy: Policy::default(),
        permission_mode: PermissionMode::Default,
        allow: Vec::new(),
        deny: Vec::new(),
        cwd: "/work".into(),
        home: "/home".into(),
        system_prompt: Some("You are tested.".to_owned()),
        append_system_prompt: None,
        durability: Durability::Disk,
        max_turns: None,
        secrets: Vec::new(),
        pass_credentials: false,
        ca_bundle: None,
    }
}

fn cut_to_first_line(disk: &MemDisk, log: &Path) {
    let bytes = disk.peek(log).expect("the log is there");
    let end = bytes.iter().position(|byte| *byte == b'\n').expect("it has a line");
    disk.poke(log, &bytes[..=end]);
}

#[tokio::test]
async fn a_session_of_which_a_crash_left_only_the_header_still_has_a_model_and_a_context() {
    let disk = MemDisk::new();
    let agent = Agent::create(config(), ports(&disk)).await.unwrap();
    let session = agent.session_id().to_string();
    let log = agent.folder().join(format!("{session}.jsonl"));
    drop(agent);
    cut_to_first_line(&disk, &log);
    let agent = Agent::open(config(), ports(&disk), &session).await.unwrap();
    let state = agent.state();
    assert_eq!(state.model, DEFAULT_MODEL);
    assert!(state.max_tokens > 0);
    assert!(state.context.is_some());
}
