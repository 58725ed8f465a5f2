//! The agent's side of the runner: start one, follow it, stop it, and look at what an earlier one did.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::files::{Claim, ExitReport, Hello, RunFolder, Ticket};
use super::frame::{Frames, Kind};
use super::spool::News;
use super::supervise::STOP_BYTE;
use super::{RUNNER_ARG, spool};
use crate::executor::Progress;

/// Bytes kept of each of a command's two streams; together 64 MiB.
pub(super) const SPOOL_BYTES_MAX: u64 = 32 << 20;
/// Bytes of a stream that onlookers are told while a command runs.
const LIVE_BYTES_MAX: usize = 512 << 10;
/// How long a runner that was told to stop may take: its two graces and the report.
const STOP_WAIT: Duration = Duration::from_secs(6);
/// How often an attached run is looked at, at first and later.
const LOOK_FIRST: Duration = Duration::from_millis(10);
const LOOK_LATER: Duration = Duration::from_millis(200);

/// A command about to be executed.
#[derive(Debug)]
pub struct Launch<'a> {
    /// The binary that is also the runner.
    pub exe: &'a Path,
    pub folder: RunFolder,
    pub command: &'a str,
    pub cwd: &'a Path,
    pub env: Vec<(OsString, OsString)>,
    /// Name and value; they go over a pipe and are never in a file.
    pub secrets: &'a [(String, String)],
    pub timeout_ms: Option<u64>,
}

/// Nothing was executed, and nothing will be.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("could not make the folder of the run, {path}")]
    Folder {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("could not start the runner in {cwd}")]
    Spawn {
        cwd: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// How a followed run ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    Exited(Box<ExitReport>),
    /// It was certainly not executed.
    NeverRan {
        why: String,
    },
    /// Its runner is gone without a word; it may have happened.
    Lost {
        why: String,
    },
}

/// What became of a run, seen from outside.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    NeverRan,
    Running,
    Ended(Box<ExitReport>),
    Died { why: String },
}

/// A runner that this process started.
#[derive(Debug)]
pub struct Running {
    folder: RunFolder,
    to_runner: ChildStdin,
    from_runner: ChildStdout,
    frames: Frames,
}

impl Launch<'_> {
    /// Starts the runner and hands it its ticket. It may be executing when this returns.
    pub async fn go(self) -> Result<Running, LaunchError> {
        let path = self.folder.path();
        std::fs::create_dir_all(path)
            .map_err(|source| LaunchError::Folder { path: path.to_owned(), source })?;
        let ticket = Ticket {
            command: self.command.to_owned(),
            timeout_ms: self.timeout_ms,
            spool_bytes_max: SPOOL_BYTES_MAX,
        };
        // A full disk must not keep a command from running: then the ticket goes over the pipe.
        let is_written = self.folder.write_ticket(&ticket).is_ok();
        let hello = Hello { secrets: self.secrets.to_vec(), ticket: (!is_written).then_some(ticket) };

        let spawned = Command::new(self.exe)
            .arg0("yaoki")
            .arg(RUNNER_ARG)
            .arg(path)
            .current_dir(self.cwd)
            .env_clear()
            .envs(self.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut child = spawned.map_err(|source| LaunchError::Spawn { cwd: self.cwd.to_owned(), source })?;
        let mut to_runner = child.stdin.take().expect("piped above");
        let from_runner = child.stdout.take().expect("piped above");
        // A runner that died already shows it on the other pipe.
        let mut line = serde_json::to_vec(&hello).expect("plain data");
        line.push(b'\n');
        let _ = to_runner.write_all(&line).await;
        Ok(Running { folder: self.folder, to_runner, from_runner, frames: Frames::default() })
    }
}

impl Running {
    /// Waits until the command executes. Errors: the ending, if it never does.
    pub async fn ready(&mut self) -> Result<(), Ending> {
        match self.next().await {
            Ok((Kind::Ready, _)) => Ok(()),
            other => Err(self.ending(other)),
        }
    }

    /// Waits for the end and tells `progress` what is printed. On `cancel` the command is stopped first.
    pub async fn follow(mut self, progress: Progress<'_>, cancel: &CancellationToken) -> Ending {
        let mut give_up = None;
        let mut live = [Live::default(), Live::default()];
        loop {
            let frame = tokio::select! {
                frame = self.next() => frame,
                () = cancel.cancelled(), if give_up.is_none() => {
                    let _ = self.to_runner.write_all(&[STOP_BYTE]).await;
                    give_up = Some(Instant::now() + STOP_WAIT);
                    continue;
                }
                () = sleep_until(give_up) => {
                    return Ending::Lost { why: "the runner did not stop when told to".to_owned() };
                }
            };
            match frame {
                Ok((Kind::Ready, _)) => {}
                Ok((kind @ (Kind::Out | Kind::Err), bytes)) => {
                    live[usize::from(kind == Kind::Err)].tell(&bytes, progress);
                }
                other => return self.ending(other),
            }
        }
    }

    async fn next(&mut self) -> io::Result<(Kind, Vec<u8>)> {
        let mut bytes = [0; 16 << 10];
        loop {
            if let Some(frame) = self.frames.next().map_err(io::Error::other)? {
                return Ok(frame);
            }
            match self.from_runner.read(&mut bytes).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => self.frames.push(&bytes[..count]),
            }
        }
    }

    /// Reads an ending out of the last frame, or out of the files where there was none.
    fn ending(&self, last: io::Result<(Kind, Vec<u8>)>) -> Ending {
        match last {
            Ok((Kind::Exit, body)) => match serde_json::from_slice(&body) {
                Ok(report) => Ending::Exited(report),
                Err(error) => Ending::Lost { why: format!("the runner's report is broken: {error}") },
            },
            Ok((_, why)) => self.settle(&String::from_utf8_lossy(&why)),
            Err(_) => self.settle("the runner did not start"),
        }
    }

    fn settle(&self, refusal: &str) -> Ending {
        match state(&self.folder, true) {
            State::Ended(report) => Ending::Exited(report),
            State::NeverRan => Ending::NeverRan { why: refusal.to_owned() },
            State::Died { why } => Ending::Lost { why },
            State::Running => Ending::Lost { why: "the runner no longer talks to us".to_owned() },
        }
    }
}

/// What onlookers are told of one stream while the command runs; the result does not depend on it.
#[derive(Debug, Default)]
struct Live {
    told: usize,
    /// The beginning of a character whose rest is still to come.
    partial: Vec<u8>,
}

impl Live {
    fn tell(&mut self, bytes: &[u8], progress: Progress<'_>) {
        if self.told > LIVE_BYTES_MAX {
            return;
        }
        self.partial.extend_from_slice(bytes);
        let rest = self.partial.split_off(spool::whole_chars_end(&self.partial));
        let whole = std::mem::replace(&mut self.partial, rest);
        self.told += whole.len();
        if !whole.is_empty() {
            progress(String::from_utf8_lossy(&whole).into_owned());
        }
        if self.told > LIVE_BYTES_MAX {
            progress("\n[more output follows, it is not shown live]\n".to_owned());
        }
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Looks at what became of the run in `folder`. After this a runner that has not started yet never will.
///
/// `same_boot` tells that the machine is still up since the run was asked for: these files are not synced,
/// so after a power cut a missing file proves nothing.
pub fn state(folder: &RunFolder, same_boot: bool) -> State {
    let died = |error: io::Error| State::Died { why: format!("{}: {error}", folder.path().display()) };
    // Twice at most: what is seen as absent may be claimed a moment later, once.
    for _ in 0..3 {
        match folder.exit_report() {
            Ok(Some(report)) => return State::Ended(Box::new(report)),
            Ok(None) => {}
            Err(error) => return died(error),
        }
        match folder.claimed() {
            Ok(Claim::Held) => return State::Running,
            Ok(Claim::Void) => return State::NeverRan,
            Ok(Claim::Free) => {
                return match folder.exit_report() {
                    Ok(Some(report)) => State::Ended(Box::new(report)),
                    Ok(None) => State::Died { why: "its runner died before the command ended".to_owned() },
                    Err(error) => died(error),
                };
            }
            Ok(Claim::Absent) if !same_boot => {
                return State::Died { why: "the machine was restarted since".to_owned() };
            }
            Ok(Claim::Absent) if !folder.path().exists() => return State::NeverRan,
            Ok(Claim::Absent) => match folder.make_void() {
                Ok(()) => return State::NeverRan,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return died(error),
            },
            Err(error) => return died(error),
        }
    }
    State::Died { why: "its files change under our eyes".to_owned() }
}

/// Waits until the run in `folder` has ended, telling `progress` what is printed. On `cancel` it is stopped
/// first.
pub async fn attach(folder: &RunFolder, progress: Progress<'_>, stop: &CancellationToken) -> State {
    let mut pause = LOOK_FIRST;
    let mut heard = 0;
    let mut live = Live::default();
    let mut give_up = None;
    loop {
        let now = state(folder, true);
        if let Ok(piece) = spool::read_from(&folder.out(), SPOOL_BYTES_MAX, heard, 16 << 10)
            && !piece.bytes.is_empty()
        {
            heard = piece.next;
            live.tell(&piece.bytes, progress);
        }
        if now != State::Running {
            return now;
        }
        if give_up.is_some_and(|deadline| Instant::now() > deadline) {
            return State::Died { why: "the runner did not stop when told to".to_owned() };
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => pause = (pause * 2).min(LOOK_LATER),
            () = stop.cancelled(), if give_up.is_none() => {
                give_up = Some(Instant::now() + STOP_WAIT);
                pause = LOOK_FIRST;
                let _ = cancel(folder);
            }
        }
    }
}

/// Reads what a run's stream at `base` carried since `offset`; see [`spool::read_new`].
pub fn read_new(base: &Path, offset: u64, goes_on: bool) -> io::Result<News> {
    spool::read_new(base, SPOOL_BYTES_MAX, offset, goes_on)
}

/// Copies everything that is kept of a run's stream at `base` to the file `to`.
pub fn keep_whole(base: &Path, to: &Path) -> io::Result<()> {
    spool::keep_whole(base, SPOOL_BYTES_MAX, to)
}

/// Whether anything of the run still lives: its command, or what the command left behind.
pub fn is_alive(folder: &RunFolder) -> bool {
    matches!(folder.claimed(), Ok(Claim::Held))
}

/// Asks the runner in `folder`, whoever started it, to end everything of its command.
pub fn cancel(folder: &RunFolder) -> io::Result<()> {
    OpenOptions::new().create(true).write(true).truncate(true).open(folder.cancel())?;
    let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).expect("a small flag");
    match OpenOptions::new().write(true).custom_flags(nonblocking).open(folder.bell()) {
        Ok(mut bell) => bell.write_all(&[STOP_BYTE]),
        // Not open yet, or there are none on this system: the file is looked at too. Or nobody is there.
        Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_attached_onlooker_hears_whole_characters_too() {
        let dir = tempfile::tempdir().unwrap();
        let folder = RunFolder::new(dir.path());
        let held = Mutex::new(Some(folder.claim("ran\n").unwrap()));
        // The first look ends within a character.
        let text = format!("a{}", "é".repeat(10 << 10));
        std::fs::write(folder.out(), &text).unwrap();
        let heard = Mutex::new(String::new());
        let progress = |piece: String| {
            let mut heard = heard.lock().unwrap();
            heard.push_str(&piece);
            if heard.len() >= text.len() {
                held.lock().unwrap().take();
            }
        };
        let state = attach(&folder, &progress, &CancellationToken::new()).await;
        assert!(matches!(state, State::Died { .. }), "{state:?}");
        assert!(*heard.lock().unwrap() == text);
    }

    #[test]
    fn onlookers_hear_whole_characters_and_not_without_end() {
        let heard = Mutex::new(Vec::new());
        let progress = |piece: String| heard.lock().unwrap().push(piece);
        let mut live = Live::default();
        for byte in "a😀b".bytes() {
            live.tell(&[byte], &progress);
        }
        assert_eq!(*heard.lock().unwrap(), ["a", "😀", "b"]);
        for _ in 0..100 {
            live.tell(&[b'x'; 64 << 10], &progress);
        }
        let heard: usize = heard.lock().unwrap().iter().map(String::len).sum();
        assert!(heard < LIVE_BYTES_MAX + (64 << 10) + 100, "{heard} bytes");
    }
}
