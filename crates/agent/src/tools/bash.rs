//! Bash: one shell command under the runner.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::OnceLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use yaoki_core::effects::EffectClass;
use yaoki_core::message::CallResult;
use yaoki_core::record::OutcomeStatus;
use yaoki_core::step::{Finding, RunReport, RunStep};

use super::permission::Subject;
use super::{Shaped, Shared, ToolEnv, commands, failed, outcome_text, tasks, text};
use crate::executor::Progress;
use crate::runner::{self, Ending, ExitReport, Launch, State};

const TIMEOUT_MS_DEFAULT: u64 = 120_000;
/// Told to the command, so that a service it calls can know a repeat.
const KEY_VARIABLE: &str = "YAOKI_IDEMPOTENCY_KEY";
/// Ours to talk to the model with; commands have no use for them.
const CREDENTIALS: [&str; 2] = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"];

pub(super) const DESCRIPTION: &str = "Runs a shell command with bash and gives its output and exit code.

- Every command starts in the working folder; a `cd` holds within its own command only.
- Standard input is closed and there is no terminal: use flags such as -y or -m instead of prompts and editors.
- `timeout` is in milliseconds, at most 600000, 120000 if not given. At the limit everything the command started is ended.
- Output beyond 30,000 characters is cut in the middle; the whole is kept in a file that the result names.
- With `run_in_background` the command goes on while you work; see BashOutput and KillShell.
- Prefer Read, Edit, Write, Grep and Glob to cat, sed, echo, grep and find.";

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The command, as for `bash -c`.
    #[schemars(length(min = 1))]
    command: String,
    /// Milliseconds after which the command is ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 600_000))]
    timeout: Option<u64>,
    /// What the command does, in a few words for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// Go on without waiting for the command.
    #[serde(default)]
    run_in_background: bool,
}

/// What has to be known to judge a missing file later.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Facts {
    /// Names the time the machine has been up; the runner's files survive no longer for certain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    boot: Option<String>,
}

pub(super) fn shape(shared: &Shared, input: Input) -> Shaped {
    let title = text::title("Bash", &input.command);
    let is_pure =
        shared.env.classify_commands && !input.run_in_background && commands::only_reads(&input.command);
    let class = if is_pure { EffectClass::Pure } else { EffectClass::Unknown };
    let subject = Subject::Command(input.command.clone());
    Shaped::new(class, title, &input, subject).without(&["description", "timeout"])
}

pub(super) fn save(_shared: &Shared, _input: &Input) -> Result<Facts, String> {
    Ok(Facts { boot: boot_id().map(str::to_owned) })
}

pub(super) async fn run(
    shared: &Shared,
    step: &RunStep,
    progress: Progress<'_>,
    cancel: CancellationToken,
) -> RunReport {
    let input: Input = match shared.input(step) {
        Ok(input) => input,
        Err(text) => return failed(text),
    };
    let mut env = shared.env.env.clone();
    env.push((KEY_VARIABLE.into(), step.key.clone().into()));
    let timeout_ms = match (input.timeout, input.run_in_background) {
        (None, true) => None,
        (given, _) => Some(given.unwrap_or(TIMEOUT_MS_DEFAULT)),
    };
    let launch = Launch {
        exe: &shared.env.runner_exe,
        folder: tasks::folder_of(shared, step),
        command: &input.command,
        cwd: &shared.env.cwd,
        env,
        secrets: &shared.env.secrets,
        timeout_ms,
    };
    let mut running = match launch.go().await {
        Ok(running) => running,
        Err(error) => return failed(format!("Error: {}", with_sources(&error))),
    };
    if !input.run_in_background {
        return settled(shared, step, running.follow(progress, &cancel).await);
    }
    let ready = tokio::select! {
        ready = running.ready() => ready,
        () = cancel.cancelled() => return settled(shared, step, running.follow(progress, &cancel).await),
    };
    match ready {
        Ok(()) => detached(step, "is running in the background"),
        Err(ending) => settled(shared, step, ending),
    }
}

/// Finds out what became of a command that an earlier process started.
pub(super) async fn look(
    shared: &Shared,
    step: &RunStep,
    wait: bool,
    progress: Progress<'_>,
    cancel: CancellationToken,
) -> Finding {
    let folder = tasks::folder_of(shared, step);
    let facts: Option<Facts> = shared.pre(step);
    let same_boot = facts.and_then(|facts| facts.boot).is_some_and(|boot| boot_id() == Some(boot.as_str()));
    let mut state = runner::state(&folder, same_boot);
    if state == State::Running && wait {
        state = runner::attach(&folder, progress, &cancel).await;
    }
    match state {
        State::NeverRan => Finding::NeverRan,
        State::Ended(report) => Finding::Ended(ended(shared, step, &report)),
        State::Running => Finding::Ended(detached(step, "is still running")),
        State::Died { why } => Finding::Nothing { why },
    }
}

fn settled(shared: &Shared, step: &RunStep, ending: Ending) -> RunReport {
    match ending {
        Ending::Exited(report) => ended(shared, step, &report),
        Ending::NeverRan { why } => failed(format!("Error: the command was not run: {why}")),
        Ending::Lost { why } => RunReport::Lost { why },
    }
}

fn ended(shared: &Shared, step: &RunStep, report: &ExitReport) -> RunReport {
    if !report.left.is_empty() {
        // Its further output is asked for with BashOutput; what is in this result is known.
        tasks::note_heard(shared, step.op, [report.out.bytes, report.err.bytes]);
    }
    let status = outcome_text::status(report, step.class);
    let result = outcome_text::result(report, &tasks::name_of(step.op), |stream| {
        tasks::keep_whole(shared, step, stream)
    });
    RunReport::Ended { status, result, post: None, took_ms: report.took_ms }
}

fn detached(step: &RunStep, how: &str) -> RunReport {
    let task = tasks::name_of(step.op);
    let text = format!(
        "The command {how} as {task}. See what it prints with BashOutput, end it with KillShell (both take \
         that name)."
    );
    RunReport::Detached { task, result: CallResult::ok(text) }
}

/// The environment of every command: what we were given without our credentials, and nothing that would
/// open a prompt, a pager or an editor where nobody can answer.
pub(super) fn environment(env: &ToolEnv) -> Vec<(OsString, OsString)> {
    const NO_EDITOR: &str =
        "echo 'there is no editor here: pass the text with -m or use --no-edit' >&2; false";
    const FIXED: [(&str, &str); 8] = [
        ("TERM", "dumb"),
        ("PAGER", "cat"),
        ("GIT_PAGER", "cat"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_EDITOR", NO_EDITOR),
        ("EDITOR", NO_EDITOR),
        ("VISUAL", NO_EDITOR),
        ("YAOKI", "1"),
    ];
    let is_kept = |name: &OsStr| {
        let is_ours = CREDENTIALS.iter().any(|ours| name == *ours) && !env.pass_credentials;
        !is_ours && !FIXED.iter().any(|(fixed, _)| name == *fixed)
    };
    let mut all: Vec<(OsString, OsString)> =
        env.env.iter().filter(|(name, _)| is_kept(name)).cloned().collect();
    all.extend(FIXED.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))));
    all
}

/// Names the time this machine has been up, where the system tells.
fn boot_id() -> Option<&'static str> {
    static BOOT: OnceLock<Option<String>> = OnceLock::new();
    let read = || {
        let text = std::fs::read_to_string(Path::new("/proc/sys/kernel/random/boot_id")).ok()?;
        Some(text.trim().to_owned())
    };
    BOOT.get_or_init(read).as_deref()
}

fn with_sources(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", with_sources(source)),
        None => error.to_string(),
    }
}

/// A command that was stopped may have done part of its work; one that only reads has nothing to show.
pub(super) fn stopped_status(class: EffectClass) -> OutcomeStatus {
    if class.is_pure() { OutcomeStatus::CancelledClean } else { OutcomeStatus::CancelledPartial }
}
