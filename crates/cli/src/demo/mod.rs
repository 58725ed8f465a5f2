//! `yaoki demo`: a chain of faults and recoveries, played offline, with this program as the agent.
//!
//! Promises: nothing but loopback is talked to; nothing outside of one temporary folder is touched; the agent is
//! a process of its own, killed for real; what must be true afterwards is checked, and is the exit code.
//! Deliberately not here: the command line (`commands::demo`).

mod checks;
mod child;
mod closing;
mod project;
mod script;
mod tale;

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use yaoki_lab::Lab;
use yaoki_lab::serve::Server;

use self::checks::Check;
use self::child::{Agent, Ear, Heard};
use self::project::Project;
use self::script::{PROMPT, PROMPT_LATER};
use self::tale::Tale;
use crate::exit::CliError;
use crate::render::style::{Look, Style};

/// The whole demo; it takes a few seconds.
const WAIT_MAX: Duration = Duration::from_secs(60);
const SIGKILL: i32 = 9;

/// Plays the story to `out`. `keep` leaves the temporary folder behind.
///
/// Returns whether everything was as it must be.
/// Errors: it could not be played to its end.
pub fn play(out: &mut dyn Write, look: Look, keep: bool) -> Result<bool, CliError> {
    let began = Instant::now();
    let project = Project::make()?;
    let server = Server::start_on_thread(Lab::new(script::script(&project.root())), "127.0.0.1:0").map_err(
        |error| CliError::environment(format_args!("cannot listen on loopback: {error}"), "run it again"),
    )?;
    let mut tale = Tale::new(out, look);
    let stage = Stage {
        project: &project,
        server: &server,
        ear: Ear::open(&project, began + WAIT_MAX).map_err(unheard)?,
    };
    let played = stage.story(&mut tale).and_then(|checks| stage.close(&mut tale, checks, began));
    if keep {
        project.keep();
        tale.plain(&format!("The folder is kept: {}", project.base().display())).map_err(untold)?;
    }
    played.map_err(|error| stage.with_last_words(error))
}

/// All that the story needs.
struct Stage<'a> {
    project: &'a Project,
    server: &'a Server,
    ear: Ear,
}

impl Stage<'_> {
    /// Plays three processes on one session; returns what is checked about how they ended.
    fn story<W: Write>(&self, tale: &mut Tale<W>) -> Result<Vec<Check>, CliError> {
        tale.plain(&format!("A repository with a failing test, a scripted model at {}.", self.server.url()))
            .map_err(untold)?;
        tale.plain(&format!("$ yaoki -p {PROMPT:?}")).map_err(untold)?;
        let killed = self.until_killed(tale)?;
        let session = tale.told.session.clone().ok_or_else(|| {
            CliError::environment("the agent never said which session it works in", "see what it said above")
        })?;

        tale.act("The session is resumed").map_err(untold)?;
        tale.plain(&format!("    $ yaoki resume {session} --continue")).map_err(untold)?;
        let resumed = self.to_its_end(tale, &["resume", &session, "--continue"])?;
        let answer = tale.told.result["result"].as_str().unwrap_or_default().to_owned();

        tale.act("The key is refused").map_err(untold)?;
        tale.plain(&format!("    $ yaoki resume {session} {PROMPT_LATER:?}")).map_err(untold)?;
        let refused = self.to_its_end(tale, &["resume", &session, PROMPT_LATER])?;
        let reason = tale.told.result["yaoki_terminal_reason"].clone();
        Ok(vec![
            Check::new(
                "the agent was killed, and not asked to leave",
                killed.signal() == Some(SIGKILL),
                || format!("it ended with {killed}"),
            ),
            Check::new(
                "the resumed turn ended well, with its answer",
                resumed.success() && answer.contains("deployed once"),
                || format!("it ended with {resumed} and said {answer:?}"),
            ),
            Check::new(
                "a refused key ends the turn and not the session",
                refused.code() == Some(1) && reason == "auth_error",
                || format!("it ended with {refused} {reason}"),
            ),
            Check::new("the whole story was told", tale.is_whole(), || "a heading never came".to_owned()),
        ])
    }

    /// Runs the agent until the smoke test says that it runs, then kills the agent. The smoke test goes on.
    fn until_killed<W: Write>(&self, tale: &mut Tale<W>) -> Result<ExitStatus, CliError> {
        let mut agent = Agent::start(self.project, &self.server.url(), &["-p", PROMPT], &self.ear)?;
        loop {
            match self.ear.next()? {
                Heard::Line(line) => tale.line(&line).map_err(untold)?,
                Heard::Smoke(_) => break,
                Heard::End => {
                    return Err(CliError::environment(
                        "the agent left before its time",
                        "see what it said above",
                    ));
                }
            }
        }
        agent.kill().map_err(unheard)?;
        tale.fault("SIGKILL to the agent").map_err(untold)?;
        self.drain(tale)?;
        let killed = agent.exit(&self.ear)?;
        self.project.let_smoke_end().map_err(unheard)?;
        match self.ear.next()? {
            Heard::Smoke(_) => {
                tale.aside("nobody watches, and the command goes on to its end").map_err(untold)?
            }
            other => {
                return Err(CliError::environment(format_args!("unexpected: {other:?}"), "run it again"));
            }
        }
        Ok(killed)
    }

    fn to_its_end<W: Write>(&self, tale: &mut Tale<W>, args: &[&str]) -> Result<ExitStatus, CliError> {
        let agent = Agent::start(self.project, &self.server.url(), args, &self.ear)?;
        self.drain(tale)?;
        agent.exit(&self.ear)
    }

    fn drain<W: Write>(&self, tale: &mut Tale<W>) -> Result<(), CliError> {
        loop {
            match self.ear.next()? {
                Heard::Line(line) => tale.line(&line).map_err(untold)?,
                Heard::Smoke(_) => {}
                Heard::End => return Ok(()),
            }
        }
    }

    /// Checks everything and prints the table.
    fn close<W: Write>(
        &self,
        tale: &mut Tale<W>,
        mut checks: Vec<Check>,
        began: Instant,
    ) -> Result<bool, CliError> {
        checks.extend(checks::of_the_world(self.project));
        checks.extend(checks::of_the_lab(&self.server.report()));
        checks.push(checks::of_the_log(self.project, tale.told.session.as_deref().unwrap_or_default()));
        let table = closing::table(&tale.told, &self.project.ledger());
        tale.plain("").map_err(untold)?;
        for line in table.lines() {
            tale.plain(line).map_err(untold)?;
        }
        tale.plain("").map_err(untold)?;
        for check in &checks {
            let line = match &check.instead {
                None => format!("{} {}", tale.paint(Style::GOOD, "✓"), check.what),
                Some(instead) => format!("{} {}: {instead}", tale.paint(Style::BAD, "✗"), check.what),
            };
            tale.plain(&line).map_err(untold)?;
        }
        let failed = checks.iter().filter(|check| check.instead.is_some()).count();
        let seconds = began.elapsed().as_secs_f64();
        let requests = self.server.report().requests;
        let last = match failed {
            0 => format!("All {} checks hold: {requests} requests, {seconds:.1} s.", checks.len()),
            _ => format!("{failed} of {} checks do not hold.", checks.len()),
        };
        tale.plain(&last).map_err(untold)?;
        Ok(failed == 0)
    }

    /// Adds what the agent printed to standard error.
    fn with_last_words(&self, error: CliError) -> CliError {
        let words = std::fs::read_to_string(self.project.base().join("errors")).unwrap_or_default();
        let complaints = self.server.report().complaints().join("; ");
        match (words.trim(), complaints.as_str()) {
            ("", "") => error,
            (words, complaints) => {
                CliError { message: format!("{} ({words} {complaints})", error.message), ..error }
            }
        }
    }
}

fn untold(error: std::io::Error) -> CliError {
    CliError::environment(format_args!("cannot print: {error}"), "")
}

fn unheard(error: std::io::Error) -> CliError {
    CliError::environment(format_args!("cannot talk to the demo's processes: {error}"), "run it again")
}
