//! The standard tools: files, search, commands, the task list.
//!
//! Every call ends in a result that a model can act on: unknown tools, inputs that do not fit, refusals,
//! failures and panics included. Nothing here decides whether a call runs; rules and mode are asked, and the
//! turn machine starts it.

mod bash;
mod change;
mod commands;
mod edit;
mod glob;
mod grep;
mod image;
mod matching;
mod nearest;
mod outcome_text;
mod paths;
mod permission;
mod read;
mod rules;
mod schema;
mod seen;
mod table;
mod tasks;
mod text;
mod todo;
mod walk;
mod write;

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use yaoki_core::effects::{EffectClass, canonical};
use yaoki_core::ids::OpId;
use yaoki_core::json::RawJson;
use yaoki_core::message::{Call, CallResult, Part};
use yaoki_core::record::{OutcomeStatus, Refusal};
use yaoki_core::request::ToolSpec;
use yaoki_core::step::{Finding, Judgement, Plan, PrepareVerdict, RunReport, RunStep};

use crate::executor::{Executor, Progress};
use crate::runner::Redactor;

pub use permission::{PermissionPolicy, RuleSet, Subject};
pub use rules::{RuleError, unknown_tool};
pub use table::{TOOLS, Tool};

use seen::Seen;
use table::Run;

/// Keeps bytes and gives their name.
pub type SaveBlob = Arc<dyn Fn(&[u8]) -> io::Result<String> + Send + Sync>;

/// What the tools work in and with.
#[derive(Clone)]
pub struct ToolEnv {
    /// Relative paths and commands start here.
    pub cwd: PathBuf,
    /// `run/` and `output/` are made in it.
    pub session_folder: PathBuf,
    /// The binary that is also the runner; its first argument is [`crate::runner::RUNNER_ARG`].
    pub runner_exe: PathBuf,
    /// Name and value of texts that no result may hold.
    pub secrets: Vec<(String, String)>,
    pub permission: Arc<dyn PermissionPolicy>,
    /// The environment of commands, before what every command gets.
    pub env: Vec<(OsString, OsString)>,
    /// Whether commands see our own credentials.
    pub pass_credentials: bool,
    /// Whether commands that are known only to read count as such.
    pub classify_commands: bool,
    /// Where old bytes go that are too large for the log.
    pub save_blob: Option<SaveBlob>,
}

impl ToolEnv {
    /// The usual: this process's environment, no secrets.
    pub fn new(
        cwd: impl Into<PathBuf>,
        session_folder: impl Into<PathBuf>,
        runner_exe: impl Into<PathBuf>,
        permission: Arc<dyn PermissionPolicy>,
    ) -> Self {
        Self {
            cwd: cwd.into(),
            session_folder: session_folder.into(),
            runner_exe: runner_exe.into(),
            secrets: Vec::new(),
            permission,
            env: std::env::vars_os().collect(),
            pass_credentials: false,
            classify_commands: true,
            save_blob: None,
        }
    }
}

/// What all tools share.
struct Shared {
    env: ToolEnv,
    seen: Seen,
    redactor: Redactor,
    /// What of a background command's two streams was shown already.
    heard: Mutex<HashMap<OpId, [u64; 2]>>,
}

/// A call whose input is valid.
struct Shaped {
    class: EffectClass,
    title: String,
    input: Value,
    canonical: String,
    subject: Subject,
}

impl Shaped {
    fn new(class: EffectClass, title: String, input: &impl Serialize, subject: Subject) -> Self {
        let input = serde_json::to_value(input).expect("inputs are plain data");
        let canonical = canonical(&input);
        Self { class, title, input, canonical, subject }
    }

    /// Leaves out what has no meaning for the effect.
    fn without(mut self, names: &[&str]) -> Self {
        let mut meant = self.input.clone();
        if let Some(members) = meant.as_object_mut() {
            members.retain(|name, _| !names.contains(&name.as_str()));
        }
        self.canonical = canonical(&meant);
        self
    }
}

/// A call that came to an end by itself.
struct Done {
    status: OutcomeStatus,
    result: CallResult,
    post: Option<RawJson>,
}

impl Done {
    fn ok(text: impl Into<String>) -> Self {
        Self { status: OutcomeStatus::Success, result: CallResult::ok(text), post: None }
    }
}

impl Shared {
    /// The final input of a run, which was made from the same type.
    fn input<T: DeserializeOwned>(&self, step: &RunStep) -> Result<T, String> {
        serde_json::from_str(step.input.get()).map_err(|error| format!("InputValidationError: {error}"))
    }

    fn pre<T: DeserializeOwned>(&self, step: &RunStep) -> Option<T> {
        step.pre.as_ref().and_then(|pre| serde_json::from_str(pre.get()).ok())
    }

    fn prepare(&self, call: &Call) -> PrepareVerdict {
        let Some(tool) = table::find(&call.tool) else {
            let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
            let text =
                format!("Error: No such tool available: {}. Available: {}", call.tool, names.join(", "));
            return refused(Refusal::UnknownTool, call.tool.clone(), text);
        };
        let mut input = call.input.value();
        let first = input.as_object().and_then(|members| members.values().find_map(Value::as_str));
        let title = text::title(tool.name, first.unwrap_or_default());
        if let Some(broken) = &call.broken {
            let text = format!(
                "InputValidationError: the input of {} is not valid JSON and the call was not run: {broken}",
                tool.name
            );
            return refused(Refusal::InvalidInput, title, text);
        }
        let schema = (tool.schema)();
        schema::drop_nulls(&schema, &mut input);
        let violations = schema::violations(&schema, &input);
        if !violations.is_empty() {
            let lines = violations.join("\n");
            let text =
                format!("InputValidationError: {} failed due to the following issues:\n{lines}", tool.name);
            return refused(Refusal::InvalidInput, title, text);
        }
        let shaped = match (tool.shape)(self, input) {
            Ok(shaped) => shaped,
            Err(text) => return refused(Refusal::InvalidInput, title, text),
        };
        let permission = self.env.permission.judge(tool.name, &shaped.subject);
        // What may not be touched is not looked at either.
        let is_denied = matches!(permission, Judgement::Deny { .. });
        let pre = match tool.save.filter(|_| !is_denied).map(|save| save(self, shaped.input.clone())) {
            None => None,
            Some(Ok(facts)) => Some(RawJson::of(&facts)),
            Some(Err(text)) => return refused(Refusal::Precondition, shaped.title, text),
        };
        PrepareVerdict::Ready(Plan {
            class: shaped.class,
            title: shaped.title,
            input: RawJson::of(&shaped.input),
            canonical: shaped.canonical,
            pre,
            permission,
        })
    }

    /// Whether a rule forbids a tool to read this file, which was come upon below one that it may read.
    fn is_forbidden(&self, tool: &str, path: &Path) -> bool {
        self.env.permission.forbids(tool, &Subject::Reads(path.to_owned()))
    }

    /// Takes secrets out of what a model and the log will see.
    fn redact(&self, result: &mut CallResult) {
        for part in &mut result.parts {
            if let Part::Text { text } = part {
                *text = self.redactor.whole(text);
            }
        }
    }
}

fn refused(why: Refusal, title: String, text: String) -> PrepareVerdict {
    PrepareVerdict::Refused { why, title, result: text::call_error(text) }
}

/// The standard tools over one working folder and one session.
pub struct StandardTools {
    shared: Arc<Shared>,
}

impl StandardTools {
    pub fn new(mut env: ToolEnv) -> Self {
        env.env = bash::environment(&env);
        let redactor = Redactor::new(env.secrets.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let (seen, heard) = Default::default();
        Self { shared: Arc::new(Shared { env, seen, redactor, heard }) }
    }

    async fn perform(&self, step: &RunStep, progress: Progress<'_>, cancel: CancellationToken) -> RunReport {
        match table::find(&step.tool) {
            Some(tool) => self.perform_with(tool, step, progress, cancel).await,
            None => failed(format!("Error: No such tool available: {}", step.tool)),
        }
    }

    /// Runs the tool and catches what it throws.
    async fn perform_with(
        &self,
        tool: &Tool,
        step: &RunStep,
        progress: Progress<'_>,
        cancel: CancellationToken,
    ) -> RunReport {
        match tool.run {
            Run::Async(run) => {
                let run = AssertUnwindSafe(run(&self.shared, step, progress, cancel)).catch_unwind();
                run.await.unwrap_or_else(|panic| panicked(step, panic.as_ref()))
            }
            Run::Blocking(run) => {
                let (shared, owned) = (self.shared.clone(), step.clone());
                let ran = tokio::task::spawn_blocking(move || run(&shared, &owned, &cancel)).await;
                match ran {
                    Ok(Ok(done)) => ended(done),
                    Ok(Err(text)) => failed(text),
                    Err(error) => match error.try_into_panic() {
                        Ok(panic) => panicked(step, panic.as_ref()),
                        Err(error) => RunReport::Lost { why: error.to_string() },
                    },
                }
            }
        }
    }
}

impl Executor for StandardTools {
    fn specs(&self) -> Vec<ToolSpec> {
        let spec = |tool: &Tool| ToolSpec {
            name: tool.name.to_owned(),
            description: tool.description.to_owned(),
            schema: RawJson::of(&(tool.schema)()),
        };
        TOOLS.iter().map(spec).collect()
    }

    fn prepare<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, PrepareVerdict> {
        let (shared, owned) = (self.shared.clone(), call.clone());
        Box::pin(async move {
            let prepared = tokio::task::spawn_blocking(move || shared.prepare(&owned)).await;
            let mut verdict = prepared.unwrap_or_else(|error| {
                let text = match error.try_into_panic() {
                    Ok(panic) => format!("Error: {} failed: {}", call.tool, panic_words(panic.as_ref())),
                    Err(error) => format!("Error: {} could not be prepared: {error}", call.tool),
                };
                refused(Refusal::Precondition, call.tool.clone(), text)
            });
            // A refusal may show what stands in a file.
            if let PrepareVerdict::Refused { result, .. } = &mut verdict {
                self.shared.redact(result);
            }
            verdict
        })
    }

    fn run<'a>(
        &'a self,
        run: &'a RunStep,
        progress: Progress<'a>,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, RunReport> {
        Box::pin(async move {
            let began = Instant::now();
            let mut report = self.perform(run, progress, cancel).await;
            match &mut report {
                RunReport::Ended { result, took_ms, .. } => {
                    self.shared.redact(result);
                    *took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                }
                RunReport::Detached { result, .. } => self.shared.redact(result),
                RunReport::Lost { .. } => {}
            }
            report
        })
    }

    fn look<'a>(
        &'a self,
        run: &'a RunStep,
        wait: bool,
        progress: Progress<'a>,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, Finding> {
        Box::pin(async move {
            match table::find(&run.tool).and_then(|tool| tool.look.as_ref()) {
                Some(look) => {
                    let mut finding = look.go(&self.shared, run, wait, progress, cancel).await;
                    if let Finding::Ended(
                        RunReport::Ended { result, .. } | RunReport::Detached { result, .. },
                    ) = &mut finding
                    {
                        self.shared.redact(result);
                    }
                    finding
                }
                None if run.class.is_pure() => Finding::NeverRan,
                None => Finding::Nothing { why: format!("{} leaves nothing to look at", run.tool) },
            }
        })
    }

    fn forget(&self, op: OpId) {
        tasks::forget(&self.shared, op);
    }

    fn sweep(&self, is_settled: &dyn Fn(OpId) -> bool) {
        for op in tasks::kept_ops(&self.shared) {
            if is_settled(op) {
                self.forget(op);
            }
        }
    }

    fn recall(&self, _tool: &str, post: &RawJson) {
        if let Ok(after) = serde_json::from_str::<change::After>(post.get()) {
            self.shared.seen.note(after.path.as_ref(), &after.hash);
        }
    }
}

fn ended(done: Done) -> RunReport {
    RunReport::Ended { status: done.status, result: done.result, post: done.post, took_ms: 0 }
}

/// A failure of the call itself, in words for the model.
fn failed(text: String) -> RunReport {
    let (status, result) = (OutcomeStatus::FailedClean, text::call_error(text));
    RunReport::Ended { status, result, post: None, took_ms: 0 }
}

fn panicked(step: &RunStep, panic: &(dyn std::any::Any + Send)) -> RunReport {
    let status = if step.class.is_pure() { OutcomeStatus::FailedClean } else { OutcomeStatus::FailedPartial };
    let text = format!("Error: {} failed inside: {}", step.tool, panic_words(panic));
    RunReport::Ended { status, result: text::call_error(text), post: None, took_ms: 0 }
}

fn panic_words(panic: &(dyn std::any::Any + Send)) -> String {
    let words = panic.downcast_ref::<&str>().map(|words| (*words).to_owned());
    words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no reason given".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(run: Run) -> Tool {
        Tool {
            name: "Trip",
            description: "",
            schema: || Value::Null,
            shape: |_, _| Err(String::new()),
            save: None,
            run,
            look: None,
        }
    }

    #[tokio::test]
    async fn a_panic_in_a_tool_is_a_result() {
        let permission = Arc::new(RuleSet::new(crate::PermissionMode::Default, "/"));
        let tools = StandardTools::new(ToolEnv::new("/", "/nonexistent", "/nonexistent", permission));
        let step = RunStep {
            op: OpId(1),
            call: yaoki_core::ids::CallId::new("call"),
            tool: "Trip".to_owned(),
            class: EffectClass::Unknown,
            title: String::new(),
            input: RawJson::empty_object(),
            key: String::new(),
            pre: None,
            attempt: 1,
        };
        for run in [
            Run::Blocking(|_, step, _| panic!("over {}", step.tool)),
            Run::Async(|_, step, _, _| Box::pin(async move { panic!("over {}", step.tool) })),
        ] {
            let ran = tools.perform_with(&tool(run), &step, &|_| {}, CancellationToken::new()).await;
            let RunReport::Ended { status, result, .. } = ran else { panic!("{ran:?}") };
            assert_eq!(status, OutcomeStatus::FailedPartial, "nobody knows how far it came");
            let want = "<tool_use_error>Error: Trip failed inside: over Trip</tool_use_error>";
            assert_eq!((result.text().as_str(), result.is_error), (want, true));
        }
    }
}
