//! A working folder, a session folder and the standard tools over them, for tests with real processes.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use yaoki::PermissionMode;
use yaoki::core::effects::EffectClass;
use yaoki::core::ids::{CallId, OpId};
use yaoki::core::json::RawJson;
use yaoki::core::message::Call;
use yaoki::core::record::OutcomeStatus;
use yaoki::core::step::{Finding, PrepareVerdict, RunReport, RunStep};
use yaoki::executor::Executor;
use yaoki::tools::{RuleSet, StandardTools, ToolEnv};

pub const AGENT_ARG: &str = "__agent";
pub const SECRET: &str = "s3cr3t-t0ken-0123456789";
const DEADLINE: Duration = Duration::from_secs(20);

/// Looks again and again until it holds. Panics at the deadline.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < DEADLINE, "waited in vain until {what}");
        // Nothing is timed by it; it only keeps the loop from taking a core away from what it waits for.
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

pub struct Bench {
    dir: tempfile::TempDir,
    tools: StandardTools,
    runtime: Runtime,
    ops: u64,
    last: Option<RunStep>,
    /// A length of sleep that only this test uses.
    nap: String,
    cancel: Option<Box<dyn FnMut() -> bool + Send>>,
}

impl Bench {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("cwd")).unwrap();
        let nap = format!("3{:06}.25", fastrand::u32(..1_000_000));
        let tools = tools_in(dir.path());
        let (ops, last, cancel) = (6, None, None);
        Self { tools, dir, runtime: runtime(), ops, last, nap, cancel }
    }

    /// The same folders, another process's memory.
    pub fn restarted(&mut self) -> &mut Self {
        self.tools = tools_in(self.dir.path());
        self
    }

    /// Starts the runner from a shell that has done this first.
    pub fn wrap_runner(&mut self, first: &str) {
        let script = self.dir.path().join("runner.sh");
        let runner = std::env::current_exe().unwrap();
        std::fs::write(&script, format!("#!/bin/sh\n{first}\nexec '{}' \"$@\"\n", runner.display())).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        self.tools = tools_under(self.dir.path(), script);
    }

    pub fn tools(&self) -> &StandardTools {
        &self.tools
    }

    pub fn cwd(&self) -> PathBuf {
        self.dir.path().join("cwd")
    }

    pub fn folder(&self, step: &RunStep) -> PathBuf {
        let key: String = step.key.chars().filter(char::is_ascii_alphanumeric).take(12).collect();
        self.dir.path().join("session/run").join(format!("{}-{key}", step.op))
    }

    pub fn has(&self, name: &str) -> bool {
        self.cwd().join(name).exists()
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.cwd().join(name)).unwrap()
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.cwd().join(name), text).unwrap();
    }

    pub fn sh(&self, script: &str) {
        let status = Command::new("sh").args(["-c", script]).current_dir(self.cwd()).status().unwrap();
        assert!(status.success(), "{script}");
    }

    /// A command that sleeps for good, and can be told from all others.
    pub fn sleeper(&self) -> String {
        format!("sleep {}", self.nap)
    }

    pub fn sleepers(&self) -> usize {
        let is_ours = |entry: std::fs::DirEntry| {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            line.starts_with(b"sleep\0") && String::from_utf8_lossy(&line).contains(&self.nap)
        };
        std::fs::read_dir("/proc").unwrap().flatten().map(is_ours).filter(|ours| *ours).count()
    }

    pub fn end_sleepers(&self) {
        until("the sleepers are gone", || {
            let _ = Command::new("pkill").args(["-9", "-xf", &format!("sleep {}", self.nap)]).status();
            self.sleepers() == 0
        });
    }

    /// Prepares a call, as the machine would.
    pub fn step(&mut self, tool: &str, input: Value) -> RunStep {
        self.ops += 1;
        let call = Call {
            id: CallId::new(format!("call-{}", self.ops)),
            provider_id: String::new(),
            tool: tool.to_owned(),
            input: RawJson::of(&input),
            broken: None,
        };
        match self.runtime.block_on(self.tools.prepare(&call)) {
            PrepareVerdict::Ready(plan) => RunStep {
                op: OpId(self.ops),
                call: call.id,
                tool: call.tool,
                class: plan.class,
                title: plan.title,
                input: plan.input,
                key: format!("key-{}", self.ops),
                pre: plan.pre,
                attempt: 1,
            },
            PrepareVerdict::Refused { result, .. } => panic!("{}", result.text()),
        }
    }

    pub fn run(&mut self, step: &RunStep) -> RunReport {
        self.last = Some(step.clone());
        let token = self.token();
        self.runtime.block_on(async { self.tools.run(step, &|_| {}, token).await })
    }

    /// Cancels the next run or look as soon as this holds.
    pub fn cancel_when(&mut self, holds: impl FnMut() -> bool + Send + 'static) {
        self.cancel = Some(Box::new(holds));
    }

    fn token(&mut self) -> CancellationToken {
        let token = CancellationToken::new();
        if let Some(holds) = self.cancel.take() {
            let token = token.clone();
            std::thread::spawn(move || {
                until("it is time to cancel", holds);
                token.cancel();
            });
        }
        token
    }

    pub fn bash(&mut self, input: Value) -> (OutcomeStatus, String, bool) {
        let step = self.step("Bash", input);
        match self.run(&step) {
            RunReport::Ended { status, result, .. } => (status, result.text(), result.is_error),
            other => panic!("{other:?}"),
        }
    }

    pub fn call(&mut self, tool: &str, input: Value) -> (OutcomeStatus, String) {
        let step = self.step(tool, input);
        let kept = self.last.take();
        let report = self.run(&step);
        self.last = kept;
        match report {
            RunReport::Ended { status, result, .. } => (status, result.text()),
            other => panic!("{other:?}"),
        }
    }

    pub fn detach(&mut self, input: Value) -> String {
        let step = self.step("Bash", input);
        assert_eq!(step.class, EffectClass::Unknown);
        match self.run(&step) {
            RunReport::Detached { task, .. } => task,
            other => panic!("{other:?}"),
        }
    }

    pub fn find_out(&mut self, step: &RunStep, wait: bool) -> Finding {
        let token = self.token();
        self.runtime.block_on(async { self.tools.look(step, wait, &|_| {}, token).await })
    }

    /// The outcome that an earlier process's operation had; none while it runs.
    pub fn look(&mut self, step: &RunStep, wait: bool) -> Option<(OutcomeStatus, String)> {
        match self.find_out(step, wait) {
            Finding::Ended(RunReport::Ended { status, result, .. }) => Some((status, result.text())),
            Finding::Ended(RunReport::Detached { .. }) => None,
            other => panic!("{other:?}"),
        }
    }

    /// Waits for a run that may not have begun yet, without calling it off.
    pub fn until_looked(&mut self, step: &RunStep) -> (OutcomeStatus, String) {
        let exit = self.folder(step).join("exit");
        until("the run has ended", || exit.exists());
        self.look(step, true).expect("an outcome")
    }

    pub fn last_step(&self) -> RunStep {
        self.last.clone().expect("something ran")
    }

    pub fn last_op(&self) -> u64 {
        self.last_step().op.0
    }

    pub fn forget_last(&self) {
        self.tools.forget(self.last_step().op);
    }

    /// Another process that runs this step, to be killed.
    pub fn spawn_agent(&self, step: &RunStep) -> Child {
        let told = json!({
            "op": step.op.0, "title": step.title, "input": step.input, "key": step.key, "pre": step.pre,
        });
        Command::new(std::env::current_exe().unwrap())
            .args([OsString::from(AGENT_ARG), self.dir.path().into(), told.to_string().into()])
            .stdin(Stdio::null())
            .spawn()
            .unwrap()
    }
}

/// The agent's part of a test in which it is killed.
pub fn be_an_agent(args: &[OsString]) -> ExitCode {
    let told: Value = serde_json::from_str(args[1].to_str().unwrap()).unwrap();
    let step = RunStep {
        op: OpId(told["op"].as_u64().unwrap()),
        call: CallId::new("call"),
        tool: "Bash".to_owned(),
        class: EffectClass::Unknown,
        title: told["title"].as_str().unwrap().to_owned(),
        input: RawJson::of(&told["input"]),
        key: told["key"].as_str().unwrap().to_owned(),
        pre: Some(RawJson::of(&told["pre"])),
        attempt: 1,
    };
    let tools = tools_in(Path::new(&args[0]));
    runtime().block_on(tools.run(&step, &|_| {}, CancellationToken::new()));
    ExitCode::SUCCESS
}

fn tools_in(dir: &Path) -> StandardTools {
    tools_under(dir, std::env::current_exe().unwrap())
}

fn tools_under(dir: &Path, runner: PathBuf) -> StandardTools {
    let cwd = dir.join("cwd");
    let permission = Arc::new(RuleSet::new(PermissionMode::BypassPermissions, &cwd));
    let mut env = ToolEnv::new(cwd, dir.join("session"), runner, permission);
    env.secrets = vec![("TOKEN".to_owned(), SECRET.to_owned())];
    env.env.push(("ANTHROPIC_API_KEY".into(), "sk-ant-of-ours".into()));
    StandardTools::new(env)
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}
