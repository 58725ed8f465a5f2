//! Commands in the background: BashOutput and KillShell, and the run folders of all commands.
//!
//! A command is known to the model as `bash_N`, N being the number of its operation. Everything else is read
//! from its folder, so a later process knows it too.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use yaoki_core::effects::EffectClass;
use yaoki_core::ids::OpId;
use yaoki_core::step::{RunReport, RunStep};

use super::outcome_text::{self, StreamName};
use super::permission::Subject;
use super::{Done, Shaped, Shared, ended, failed, text};
use crate::runner::{self, End, RunFolder, State};

/// Digits of the key in a folder's name: an operation number that a lost log tail gave out twice does not
/// meet the other's folder.
const KEY_DIGITS: usize = 12;
/// The runner's two graces and a little.
const KILL_WAIT: Duration = Duration::from_secs(6);
const KILL_LOOK: Duration = Duration::from_millis(10);

pub(super) const OUTPUT_DESCRIPTION: &str =
    "Shows what a background command has printed since you last asked, and whether it still runs.";

pub(super) const KILL_DESCRIPTION: &str = "Ends a background command and everything it started.";

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The command's name, such as `bash_12`.
    bash_id: String,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct KillInput {
    /// The command's name, such as `bash_12`.
    shell_id: String,
}

pub(super) fn name_of(op: OpId) -> String {
    format!("bash_{}", op.0)
}

fn run_root(shared: &Shared) -> PathBuf {
    shared.env.session_folder.join("run")
}

/// The folder of one run: `run/op17-51c0a7be9f3c`, and `…-2` for a second start.
pub(super) fn folder_of(shared: &Shared, step: &RunStep) -> RunFolder {
    let key: String = step.key.chars().filter(char::is_ascii_alphanumeric).take(KEY_DIGITS).collect();
    let again = if step.attempt > 1 { format!("-{}", step.attempt) } else { String::new() };
    RunFolder::new(run_root(shared).join(format!("{}-{key}{again}", step.op)))
}

/// Operations that have a folder, with it.
fn kept(shared: &Shared) -> Vec<(OpId, PathBuf)> {
    let Ok(entries) = fs::read_dir(run_root(shared)) else { return Vec::new() };
    let of = |entry: fs::DirEntry| {
        let name = entry.file_name();
        let (op, _) = name.to_str()?.split_once('-')?;
        Some((op.parse().ok()?, entry.path()))
    };
    let mut found: Vec<(OpId, PathBuf)> = entries.flatten().filter_map(of).collect();
    found.sort();
    found
}

pub(super) fn kept_ops(shared: &Shared) -> Vec<OpId> {
    let mut ops: Vec<OpId> = kept(shared).into_iter().map(|(op, _)| op).collect();
    ops.dedup();
    ops
}

/// Removes the folders of an operation, unless something of it still runs.
pub(super) fn forget(shared: &Shared, op: OpId) {
    for (_, path) in kept(shared).into_iter().filter(|(kept, _)| *kept == op) {
        if !runner::is_alive(&RunFolder::new(&path)) {
            // What cannot be removed now is removed at the next start.
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// Keeps a whole stream where the model can read it after the run's folder is gone.
pub(super) fn keep_whole(shared: &Shared, step: &RunStep, stream: StreamName) -> Option<PathBuf> {
    let folder = folder_of(shared, step);
    let (from, ending) = match stream {
        StreamName::Out => (folder.out(), "out"),
        StreamName::Err => (folder.err(), "err"),
    };
    let kept = shared.env.session_folder.join("output");
    fs::create_dir_all(&kept).ok()?;
    let path = kept.join(format!("{}.{ending}.txt", step.op));
    runner::keep_whole(&from, &path).ok()?;
    Some(path)
}

pub(super) fn note_heard(shared: &Shared, op: OpId, bytes: [u64; 2]) {
    let mut heard = shared.heard.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    heard.insert(op, bytes);
}

/// The newest folder of a command by the model's name for it. Errors: in words for the model.
fn find(shared: &Shared, name: &str) -> Result<(OpId, RunFolder), String> {
    let number = name.strip_prefix("bash_").and_then(|number| number.parse().ok()).map(OpId);
    let all = kept(shared);
    let newest = all.iter().rfind(|(op, _)| Some(*op) == number);
    newest.map(|(op, path)| (*op, RunFolder::new(path))).ok_or_else(|| {
        let alive = all.iter().filter(|(_, path)| runner::is_alive(&RunFolder::new(path)));
        let names: Vec<String> = alive.map(|(op, _)| name_of(*op)).collect();
        let running = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        format!("Error: there is no background command {name}. Running: {running}")
    })
}

pub(super) fn shape_output(_shared: &Shared, input: Input) -> Shaped {
    let title = text::title("BashOutput", &input.bash_id);
    Shaped::new(EffectClass::Pure, title, &input, Subject::Session)
}

pub(super) fn run_output(shared: &Shared, step: &RunStep, _stop: &CancellationToken) -> Result<Done, String> {
    let input: Input = shared.input(step)?;
    let (op, folder) = find(shared, &input.bash_id)?;
    // Asked before reading: what is printed until the end is then part of it.
    let state = runner::state(&folder, true);
    let is_alive = runner::is_alive(&folder);
    let before = {
        let heard = shared.heard.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        heard.get(&op).copied().unwrap_or_default()
    };
    let complain =
        |error: std::io::Error| format!("Error: the output of {} cannot be read: {error}", input.bash_id);
    let out = runner::read_new(&folder.out(), before[0], is_alive).map_err(complain)?;
    let err = runner::read_new(&folder.err(), before[1], is_alive).map_err(complain)?;
    note_heard(shared, op, [out.next, err.next]);

    let keep = |stream| match stream {
        StreamName::Out => Some(folder.out()),
        StreamName::Err => Some(folder.err()),
    };
    let mut parts = outcome_text::streams(&out.excerpt, &err.excerpt, &keep);
    if parts.is_empty() {
        parts.push("(no new output)".to_owned());
    }
    parts.push(match (state, is_alive) {
        (State::Running, _) => format!("[{} is running]", input.bash_id),
        (State::Ended(report), true) => {
            format!("[the shell has ended, {}; what it started is still running]", end_words(&report.end))
        }
        (State::Ended(report), false) => format!("[{} has ended, {}]", input.bash_id, end_words(&report.end)),
        (State::Died { why }, _) => format!("[it is not known how {} ended: {why}]", input.bash_id),
        (State::NeverRan, _) => format!("[{} was never run]", input.bash_id),
    });
    Ok(Done::ok(parts.join("\n")))
}

fn end_words(end: &End) -> String {
    match end {
        End::Code(code) => format!("exit code {code}"),
        End::Signal(signal) => format!("ended by signal {signal}"),
        End::NotStarted(why) => format!("not started: {why}"),
    }
}

pub(super) fn shape_kill(_shared: &Shared, input: KillInput) -> Shaped {
    let title = text::title("KillShell", &input.shell_id);
    Shaped::new(EffectClass::Idempotent, title, &input, Subject::Session)
}

pub(super) async fn run_kill(shared: &Shared, step: &RunStep, cancel: CancellationToken) -> RunReport {
    match kill(shared, step, cancel).await {
        Ok(text) => ended(Done::ok(text)),
        Err(text) => failed(text),
    }
}

async fn kill(shared: &Shared, step: &RunStep, cancel: CancellationToken) -> Result<String, String> {
    let input: KillInput = shared.input(step)?;
    let name = &input.shell_id;
    let (_, folder) = find(shared, name)?;
    if !runner::is_alive(&folder) {
        return Ok(format!("{name} was not running any more."));
    }
    runner::cancel(&folder).map_err(|error| format!("Error: {name} could not be told to stop: {error}"))?;
    let deadline = Instant::now() + KILL_WAIT;
    while runner::is_alive(&folder) {
        if Instant::now() > deadline || cancel.is_cancelled() {
            return Err(format!("Error: {name} was told to stop, but something of it is still running."));
        }
        tokio::time::sleep(KILL_LOOK).await;
    }
    Ok(format!("{name} and everything it started have been stopped."))
}
