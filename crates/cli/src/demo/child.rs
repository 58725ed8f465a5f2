//! The agent, as a child: this program run again, and what it says line by line.
//!
//! Promises: it gets an environment of its own, is ended by its own id, and nothing waits for it longer than the
//! demo may take. Deliberately not here: what its lines mean.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::project::Project;
use super::script::KEY;
use crate::exit::CliError;

/// One thing that happened.
#[derive(Debug, PartialEq)]
pub enum Heard {
    /// A line of the agent's, as JSON.
    Line(Value),
    /// A word of the smoke test.
    Smoke(String),
    /// The agent says no more.
    End,
}

/// Everything that may happen while the demo runs, in order.
#[derive(Debug)]
pub struct Ear {
    heard: Receiver<Heard>,
    say: Sender<Heard>,
    deadline: Instant,
}

/// The agent's process. Ended when dropped.
#[derive(Debug)]
pub struct Agent {
    process: std::process::Child,
}

/// Between two looks at a process that has said its last.
const LOOK: Duration = Duration::from_millis(2);
/// Bytes of one line; more is not what we wrote the script for.
const LINE_BYTES_MAX: u64 = 1 << 20;

impl Ear {
    /// Starts to listen to the smoke test; the agent comes later.
    ///
    /// Errors: the pipe or a thread cannot be had.
    pub fn open(project: &Project, deadline: Instant) -> std::io::Result<Self> {
        let (say, heard) = mpsc::channel();
        let smoke = project.hear_smoke()?;
        listen(smoke, say.clone(), |word| Some(Heard::Smoke(word)))?;
        Ok(Self { heard, say, deadline })
    }

    /// Waits for what comes next. Errors: the demo's time is up.
    pub fn next(&self) -> Result<Heard, CliError> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        match self.heard.recv_timeout(left) {
            Ok(heard) => Ok(heard),
            Err(RecvTimeoutError::Timeout) => Err(late("nothing more is heard")),
            Err(RecvTimeoutError::Disconnected) => unreachable!("this end holds a sender"),
        }
    }
}

impl Agent {
    /// Runs this program again with these arguments, against the lab at `url`.
    ///
    /// Errors: it cannot be started.
    pub fn start(project: &Project, url: &str, args: &[&str], ear: &Ear) -> Result<Self, CliError> {
        let failed = |error: std::io::Error| {
            CliError::environment(format_args!("cannot run this program again: {error}"), "see yaoki --help")
        };
        let exe = std::env::current_exe().map_err(failed)?;
        let errors =
            File::options().create(true).append(true).open(project.base().join("errors")).map_err(failed)?;
        let mut process = Command::new(exe)
            .args(args)
            .args(["--dangerously-skip-permissions", "--output-format", "stream-json", "--verbose"])
            .current_dir(project.root())
            .env_clear()
            .envs(project.env())
            .envs([("ANTHROPIC_BASE_URL", url), ("ANTHROPIC_API_KEY", KEY), ("IS_SANDBOX", "1")])
            .env("YAOKI_HOME", project.home())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .map_err(failed)?;
        let out = process.stdout.take().expect("piped above");
        let say = ear.say.clone();
        let agent = Self { process };
        let at_end = ear.say.clone();
        let reader =
            listen(out, say, |line| serde_json::from_str(&line).ok().map(Heard::Line)).map_err(failed)?;
        thread::spawn(move || {
            // A reader that panicked has said its last, too.
            let _ = reader.join();
            let _ = at_end.send(Heard::End);
        });
        Ok(agent)
    }

    /// Ends it as the kernel does when memory runs out: at once, without a word.
    pub fn kill(&mut self) -> std::io::Result<()> {
        self.process.kill()
    }

    /// Waits for the exit of an agent that was heard to end. Errors: it does not leave in time.
    pub fn exit(mut self, ear: &Ear) -> Result<ExitStatus, CliError> {
        loop {
            match self.process.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) if Instant::now() < ear.deadline => thread::park_timeout(LOOK),
                Ok(None) => return Err(late("the agent does not leave")),
                Err(error) => {
                    return Err(CliError::environment(
                        format_args!("cannot wait for the agent: {error}"),
                        "",
                    ));
                }
            }
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It may have left by itself; then there is nothing to end, and its id is still ours.
        if let Ok(None) = self.process.try_wait() {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}

fn listen(
    from: impl Read + Send + 'static,
    say: Sender<Heard>,
    heard: impl Fn(String) -> Option<Heard> + Send + 'static,
) -> std::io::Result<thread::JoinHandle<()>> {
    thread::Builder::new().name("demo-ear".to_owned()).spawn(move || {
        let mut lines = BufReader::new(from);
        loop {
            let mut line = String::new();
            match lines.by_ref().take(LINE_BYTES_MAX).read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            if let Some(heard) = heard(line.trim_end().to_owned())
                && say.send(heard).is_err()
            {
                return;
            }
        }
    })
}

fn late(what: &str) -> CliError {
    CliError::environment(
        format_args!("the demo takes too long: {what}"),
        "run it again on a calmer machine, or with --keep to look at what is there",
    )
}
