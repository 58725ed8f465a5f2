//! Print mode: one prompt, its answer on standard output, and the exit code.
//!
//! Promises: standard output holds the answer (or JSON) and nothing else; what else is to be said goes to standard
//! error; the `result` line comes after the end is durable. Deliberately not here: conversations (`repl`).

use std::io::Stderr;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use yaoki::core::event::{Event, TurnSummary};
use yaoki::core::message::Part;
use yaoki::{Agent, Nobody, Status};

use crate::args::{OutputFormat, RunFlags};
use crate::background::{self, Alive};
use crate::exit::{CliError, ENDED_BADLY, GOOD, code_of};
use crate::launch::Launch;
use crate::out::{self, Gone};
use crate::render::plain::clean;
use crate::render::screen::{Detail, Screen};
use crate::render::style::Look;
use crate::signals::Signals;
use crate::stream_json::line::to_line;
use crate::stream_json::{Init, Wire, result};
use crate::turn::{self, Clock, Onlooker, Work};

/// What one print-mode run is to do.
pub struct Job {
    /// None creates one.
    pub session: Option<String>,
    /// None finishes the open turn.
    pub prompt: Option<String>,
}

/// Runs one turn and prints it. Returns the exit code.
///
/// Errors: it could not be started; in the JSON formats a `result` on standard output has told so.
pub async fn run(launch: &Launch, flags: &RunFlags, job: Job) -> Result<u8, CliError> {
    let session = job.session.clone();
    started(launch, flags, job).await.inspect_err(|error| fail_in_json(flags, session.as_deref(), error))
}

/// Tells a program that reads only standard output why there was no turn.
pub fn fail_in_json(flags: &RunFlags, session: Option<&str>, error: &CliError) {
    if flags.output_format.unwrap_or_default() != OutputFormat::Text {
        tell_in_json(session, error);
    }
}

/// Prints the `result` of a start that failed.
pub fn tell_in_json(session: Option<&str>, error: &CliError) {
    let line = to_line(&result::failed_start(session, &error.to_string(), new_uuid()));
    // Who does not read it has standard error and the exit code.
    let _ = out::stdout(&format!("{line}\n"));
}

/// Checks what flags ask for together.
pub fn check(flags: &RunFlags) -> Result<(), CliError> {
    if flags.output_format == Some(OutputFormat::StreamJson) && !flags.verbose {
        return Err(CliError::usage("-p with --output-format stream-json needs --verbose", "add --verbose"));
    }
    Ok(())
}

async fn started(launch: &Launch, flags: &RunFlags, job: Job) -> Result<u8, CliError> {
    let format = flags.output_format.unwrap_or_default();
    let clock = Clock::start();
    let mut signals = Signals::new()?;
    let mut agent = launch.open(job.session.as_deref(), Arc::new(Nobody)).await?;
    let printer = Arc::new(Mutex::new(Printer::new(launch, flags, &agent, clock)));
    launch.warnings.iter().for_each(|warning| out::stderr(&format!("! {warning}")));
    for notice in &agent.found().notices {
        lock(&printer).recovery(notice);
    }
    if agent.found().is_turn_open {
        lock(&printer).recovery(match job.prompt {
            None => "the last turn was left open by a process that ended; it is finished now",
            Some(_) => {
                "the last turn was left open by a process that ended; it is closed before the new prompt"
            }
        });
    }
    let work = match job.prompt {
        Some(prompt) => Work::Prompt(vec![Part::text(prompt)]),
        None => Work::Finish,
    };
    let onlooker: Arc<Mutex<dyn Onlooker>> = printer.clone();
    let ran = turn::run(&mut agent, work, &onlooker, &mut signals, clock).await;
    let mut printer = lock(&printer);
    printer.leave();
    let alive = background::alive(agent.folder());
    if !alive.is_empty() {
        printer.background(&alive, agent.session_id().as_str());
    }
    let code = match &ran.summary {
        Some(summary) => {
            printer.end(summary, &agent.status(), clock.ms());
            code_of(summary.reason, flags.typed_exit_codes, ran.signal)
        }
        None => {
            out::stderr("◇ no turn was left open: there is nothing to finish; give a prompt to go on");
            // The process that ended it may have died before anyone read the answer.
            if let Some(summary) = agent.last_answer() {
                printer.end(&summary, &agent.status(), clock.ms());
            }
            ran.signal.map_or(GOOD, |signal| signal.code())
        }
    };
    launch.complaints().iter().for_each(|complaint| out::stderr(&format!("! {complaint}")));
    if format == OutputFormat::Text && flags.verbose {
        out::stderr(&format!("◇ session {}", agent.session_id()));
    }
    if let Err(error) = agent.close() {
        out::stderr(&format!("! {}", yaoki::error_chain(&error)));
        return Ok(code.max(ENDED_BADLY));
    }
    match printer.gone.take() {
        Some(Gone::Failed(error)) => Err(CliError::environment(
            format_args!("cannot write to standard output: {error}"),
            "the session holds the answer: yaoki resume goes on with it",
        )),
        Some(Gone::Closed) | None => Ok(code),
    }
}

/// Prints what is told, in one of the formats.
struct Printer {
    format: OutputFormat,
    screen: Screen<Stderr>,
    wire: Wire,
    /// Standard output cannot be written any more.
    gone: Option<Gone>,
}

impl Printer {
    fn new(launch: &Launch, flags: &RunFlags, agent: &Agent, clock: Clock) -> Self {
        let format = flags.output_format.unwrap_or_default();
        let mut look = out::stderr_look(&launch.env);
        if format == OutputFormat::StreamJson && out::stdout_look(&launch.env).tty {
            // Lines of JSON and live lines on one screen would tear each other apart.
            look = Look { tty: false, ..look };
        }
        let detail = match (flags.verbose && format == OutputFormat::Text, look.tty) {
            (true, _) => Detail::All,
            (false, true) => Detail::Calls,
            (false, false) => Detail::Notices,
        };
        let status = agent.status();
        let stamp = || jiff::Timestamp::now().round(jiff::Unit::Millisecond).unwrap_or_default().to_string();
        let mut wire = Wire::new(status.session.as_str(), new_uuid, stamp);
        for call in agent.state().turn.iter().flat_map(|turn| &turn.calls) {
            wire.knows(&call.id, &call.provider_id);
        }
        let init = Init {
            cwd: status.cwd.display().to_string(),
            tools: agent.tool_names(),
            model: status.model,
            mode: status.mode.name().to_owned(),
            slash_commands: Vec::new(),
            api_key_source: launch.key_source.to_owned(),
        };
        let mut printer =
            Self { format, screen: Screen::new(std::io::stderr(), look, detail), wire, gone: None };
        let line = printer.wire.init(&init, clock.ms());
        printer.json(&line);
        printer
    }

    /// Prints a line of the stream, if a stream was asked for.
    fn json(&mut self, line: &Value) {
        if self.format == OutputFormat::StreamJson {
            self.write(&format!("{}\n", to_line(line)));
        }
    }

    fn write(&mut self, text: &str) {
        if self.gone.is_none() {
            self.gone = out::stdout(text).err();
        }
    }

    fn recovery(&mut self, notice: &str) {
        let line = self.wire.recovery(notice);
        self.json(&line);
        self.screen.notice_of(yaoki::core::event::Level::Warn, notice);
    }

    fn background(&mut self, alive: &[Alive], session: &str) {
        let text = background::told(alive, session);
        let line = self.wire.background(alive, &text);
        self.json(&line);
        out::stderr(&format!("! {text}"));
    }

    fn end(&mut self, summary: &TurnSummary, status: &Status, now_ms: u64) {
        match self.format {
            OutputFormat::Text if summary.reason.is_good() => {
                let answer = clean(summary.text.trim_end());
                self.write(&format!("{answer}\n"));
            }
            // The error is on standard error already.
            OutputFormat::Text => {}
            OutputFormat::Json | OutputFormat::StreamJson => {
                let mut result = self.wire.result(summary, status.cost, now_ms);
                result["yaoki_log_syncs"] = Value::from(status.log_syncs);
                let line = to_line(&result);
                self.write(&format!("{line}\n"));
            }
        }
    }
}

impl Onlooker for Printer {
    fn event(&mut self, event: &Event, now_ms: u64) {
        // A reader who left does not want to hear that we stop because of it.
        if !matches!(self.gone, Some(Gone::Closed)) {
            self.screen.show(event, now_ms);
        }
        for line in self.wire.lines(event, now_ms) {
            self.json(&line);
        }
    }

    fn tick(&mut self, now_ms: u64) {
        self.screen.tick(now_ms);
    }

    /// Standard error may be closed: the answer is what counts.
    fn is_gone(&self) -> bool {
        self.gone.is_some()
    }

    fn is_live(&self) -> bool {
        self.screen.look.tty
    }

    fn leave(&mut self) {
        self.screen.clear_live();
    }
}

fn lock(printer: &Mutex<Printer>) -> std::sync::MutexGuard<'_, Printer> {
    printer.lock().unwrap_or_else(PoisonError::into_inner)
}

fn new_uuid() -> String {
    uuid::Uuid::now_v7().to_string()
}
