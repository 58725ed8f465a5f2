//! The files of one run, and what stands in them. Agent and runner meet here.
//!
//! `ticket` is written by the agent; `started` appears whole and locked, or not at all, and only once;
//! `exit` appears by rename. What a crash leaves: any prefix of that order.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

/// What a looker writes into `started` so that a runner which comes late never executes.
const VOID: &str = "void\n";

/// The folder of one run: `run/op17`, and `run/op17.2` for a second start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFolder(PathBuf);

impl RunFolder {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn ticket(&self) -> PathBuf {
        self.0.join("ticket")
    }

    pub(super) fn started(&self) -> PathBuf {
        self.0.join("started")
    }

    pub(super) fn exit(&self) -> PathBuf {
        self.0.join("exit")
    }

    /// A request to stop; its bell is rung after it is written.
    pub(super) fn cancel(&self) -> PathBuf {
        self.0.join("cancel")
    }

    pub(super) fn bell(&self) -> PathBuf {
        self.0.join("bell")
    }

    /// What the command printed; later parts are numbered from 0 behind it (see `spool`).
    pub fn out(&self) -> PathBuf {
        self.0.join("out")
    }

    pub fn err(&self) -> PathBuf {
        self.0.join("err")
    }
}

/// What to execute. Folder and environment of the command are the runner's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ticket {
    pub command: String,
    /// The runner ends the command after this long, also when the agent is gone.
    pub timeout_ms: Option<u64>,
    /// Bytes kept of each of the two streams.
    pub spool_bytes_max: u64,
}

/// The first line over the inherited pipe.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Hello {
    /// Name and value of each secret; they are never in a file.
    pub secrets: Vec<(String, String)>,
    /// Only where the file could not be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<Ticket>,
}

/// How a command ended: the content of `exit`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExitReport {
    pub end: End,
    /// Why it was stopped, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    pub took_ms: u64,
    pub out: Excerpt,
    pub err: Excerpt,
    /// Processes the command left running: `sleep (4711)`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<String>,
    /// Why the output files are not whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spool_error: Option<String>,
    /// BLAKE3 of all that was printed, stdout before stderr.
    pub digest: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    Code(i32),
    Signal(i32),
    /// The shell could not be executed.
    NotStarted(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    TimedOut { after_ms: u64 },
    Cancelled,
}

/// Beginning and end of what one stream carried, as text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Excerpt {
    pub bytes: u64,
    pub chars: u64,
    pub head: String,
    /// Empty where `head` is everything.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tail: String,
}

/// What stands in `started`, and whether its writer lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claim {
    Absent,
    /// Claimed by a looker: it never ran and never will.
    Void,
    /// A runner holds it.
    Held,
    /// A runner held it and is gone.
    Free,
}

impl RunFolder {
    /// Makes `started`, locked, if nobody has; the lock lasts as long as the file is open.
    ///
    /// `note` is for people. Errors: `AlreadyExists` when it is claimed.
    pub(super) fn claim(&self, note: &str) -> io::Result<File> {
        self.make_started(|file| {
            // On a full disk the file is empty, which is as good.
            let _ = file.write_all(note.as_bytes());
            Ok(())
        })
    }

    /// Claims the run for nobody: a runner that comes after this never executes.
    pub(super) fn make_void(&self) -> io::Result<()> {
        self.make_started(|file| file.write_all(VOID.as_bytes())).map(drop)
    }

    fn make_started(&self, fill: impl Fn(&mut File) -> io::Result<()>) -> io::Result<File> {
        // It has to appear with the lock already held, or a looker could take a runner in its first
        // microseconds for a dead one. So it is made under another name and linked.
        let own = self.0.join(format!("started.{}", std::process::id()));
        let _ = std::fs::remove_file(&own);
        let mut file = create_private(&own)?;
        let linked = fill(&mut file)
            .and_then(|()| Ok(flock(&file, FlockOperation::NonBlockingLockExclusive)?))
            .and_then(|()| std::fs::hard_link(&own, self.started()));
        let _ = std::fs::remove_file(&own);
        match linked {
            Ok(()) => Ok(file),
            Err(error) if has_no_links(&error) => {
                let mut file = create_private(&self.started())?;
                flock(&file, FlockOperation::NonBlockingLockExclusive)?;
                fill(&mut file)?;
                Ok(file)
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn claimed(&self) -> io::Result<Claim> {
        let file = match File::open(self.started()) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Claim::Absent),
            Err(error) => return Err(error),
        };
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(Claim::Held),
            Err(error) => return Err(error.into()),
        }
        let note = io::read_to_string(&file)?;
        Ok(if note == VOID { Claim::Void } else { Claim::Free })
    }

    /// Reads how the command ended; none while there is no such file.
    ///
    /// Errors: also when it is there but is not a whole report (a power cut, a foreign hand).
    pub(super) fn exit_report(&self) -> io::Result<Option<ExitReport>> {
        match std::fs::read(self.exit()) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes `exit` by rename: it is there whole, or not at all.
    pub(super) fn write_exit(&self, report: &str) -> io::Result<()> {
        let new = self.0.join("exit.new");
        let written = create_private(&new)
            .and_then(|mut file| file.write_all(report.as_bytes()))
            .and_then(|()| std::fs::rename(&new, self.exit()));
        if written.is_err() {
            let _ = std::fs::remove_file(&new);
        }
        written
    }

    pub(super) fn write_ticket(&self, ticket: &Ticket) -> io::Result<()> {
        let text = serde_json::to_string(ticket)?;
        create_private(&self.ticket())?.write_all(text.as_bytes())
    }

    pub(super) fn read_ticket(&self) -> io::Result<Ticket> {
        Ok(serde_json::from_slice(&std::fs::read(self.ticket())?)?)
    }
}

/// Only the owner may read what a command was and what it printed.
pub(super) fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn has_no_links(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_claimed_once_and_its_holder_is_seen_alive() {
        let dir = tempfile::tempdir().unwrap();
        let folder = RunFolder::new(dir.path());
        assert_eq!(folder.claimed().unwrap(), Claim::Absent);
        let held = folder.claim("ran\n").unwrap();
        assert_eq!(folder.claimed().unwrap(), Claim::Held);
        assert_eq!(folder.claim("ran\n").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        drop(held);
        assert_eq!(folder.claimed().unwrap(), Claim::Free);
        assert_eq!(folder.claim("ran\n").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn a_voided_run_stays_void_and_cannot_be_claimed() {
        let dir = tempfile::tempdir().unwrap();
        let folder = RunFolder::new(dir.path());
        folder.make_void().unwrap();
        assert_eq!(folder.claimed().unwrap(), Claim::Void);
        assert!(folder.claim("ran\n").is_err());
    }
}
