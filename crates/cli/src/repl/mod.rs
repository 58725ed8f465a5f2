//! A conversation: lines in, turns out, until the person leaves.
//!
//! Promises: no failure of a turn ends it; Ctrl+C stops the turn and keeps the session; piped lines are echoed and taken
//! one by one. Deliberately not here: print mode (`print`), and what events look like (`render`).

mod ask;
mod input;
pub mod slash;
mod status;

use std::io::Stdout;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use yaoki::core::event::{Event, Level};
use yaoki::core::message::Part;
use yaoki::{Agent, Nobody, Person};

use self::ask::{Shared, TerminalPerson};
use self::input::{Input, Line, MARK};
use self::slash::Slash;
use crate::exit::{CliError, GOOD, Signal};
use crate::launch::Launch;
use crate::out;
use crate::render::plain::{clean, one_line};
use crate::render::screen::{Detail, Screen};
use crate::render::style::Style;
use crate::signals::Signals;
use crate::turn::{self, Clock, Onlooker, Work};

const SESSIONS_SHOWN_MAX: usize = 10;

/// How a conversation begins.
#[derive(Debug, Default)]
pub struct Begin {
    /// None creates a session.
    pub session: Option<String>,
    pub prompt: Option<String>,
    /// Finish the turn that an earlier process left open.
    pub finish: bool,
}

struct Repl {
    launch: Launch,
    agent: Agent,
    screen: Shared,
    input: Input,
    person: Option<Arc<TerminalPerson>>,
    signals: Signals,
    clock: Clock,
}

/// What a line leads to.
enum Next {
    Go,
    Leave(u8),
}

/// Holds a conversation. Returns the exit code.
///
/// Errors: it could not begin.
pub async fn run(launch: Launch, begin: Begin) -> Result<u8, CliError> {
    let look = out::stdout_look(&launch.env);
    let signals = Signals::new()?;
    let input = Input::open(&launch.config.home.join("history"), look.color)?;
    let screen: Shared = Arc::new(Mutex::new(Screen::new(std::io::stdout(), look, Detail::All)));
    let person = input.is_terminal.then(|| Arc::new(TerminalPerson::new(Arc::clone(&screen))));
    let agent = open(&launch, begin.session.as_deref(), person.as_ref()).await?;
    launch.warnings.iter().for_each(|warning| lock(&screen).notice_of(Level::Warn, warning));
    let mut repl = Repl { launch, agent, screen, input, person, signals, clock: Clock::start() };
    repl.greet(begin.session.is_some());
    let code = repl.converse(begin).await;
    repl.leave();
    Ok(code)
}

async fn open(
    launch: &Launch,
    session: Option<&str>,
    person: Option<&Arc<TerminalPerson>>,
) -> Result<Agent, CliError> {
    let person: Arc<dyn Person> = match person {
        Some(person) => person.clone(),
        None => Arc::new(Nobody),
    };
    launch.open(session, person).await
}

impl Repl {
    /// Says what was loaded and what was found.
    fn greet(&mut self, is_old: bool) {
        let loaded = status::loaded(self.agent.loaded(), &self.launch.config.cwd);
        let mut screen = lock(&self.screen);
        let loaded = screen.look.paint(Style::DIM, &loaded);
        screen.say(&loaded);
        for notice in &self.agent.found().notices {
            screen.notice_of(Level::Warn, notice);
        }
        if is_old {
            let messages = self.agent.status().messages;
            screen.notice_of(
                Level::Info,
                &format!("session {} · {messages} messages", self.agent.session_id()),
            );
        }
    }

    async fn converse(&mut self, begin: Begin) -> u8 {
        if begin.finish && !self.agent.has_open_turn() {
            self.say("◇ no turn was left open: there is nothing to finish");
        } else if begin.finish
            && let Next::Leave(code) = self.turn(Work::Finish).await
        {
            return code;
        } else if self.agent.has_open_turn() {
            self.say(
                "! a turn was left open: the next prompt closes it, yaoki resume --continue finishes it",
            );
        }
        if let Some(prompt) = begin.prompt {
            self.say(&format!("{MARK}{}", clean(&prompt)));
            if let Next::Leave(code) = self.line(&prompt).await {
                return code;
            }
        }
        loop {
            if lock(&self.screen).is_gone() {
                return GOOD;
            }
            let line = tokio::select! {
                line = self.input.next() => line,
                signal = self.signals.next() => return signal.code(),
            };
            let line = match line {
                Line::Text(line) => line,
                Line::Interrupt => {
                    self.say("Ctrl+D or /exit leaves");
                    continue;
                }
                Line::End => return GOOD,
            };
            if !self.input.is_terminal {
                self.say(&format!("{MARK}{}", clean(&line).replace('\n', "\n· ")));
            }
            if let Next::Leave(code) = self.line(&line).await {
                return code;
            }
        }
    }

    async fn line(&mut self, line: &str) -> Next {
        match slash::read(line) {
            slash::Line::Empty => Next::Go,
            slash::Line::Prompt(prompt) => self.turn(Work::Prompt(vec![Part::text(prompt)])).await,
            slash::Line::Slash(Slash::Exit, _) => Next::Leave(GOOD),
            slash::Line::Slash(slash, argument) => {
                self.slash(slash, argument).await;
                Next::Go
            }
            slash::Line::Unknown(name, near) => {
                let near = near.map(|near| format!("did you mean /{near}? ")).unwrap_or_default();
                self.say(&format!("! there is no command /{}; {near}/help lists them", one_line(name)));
                Next::Go
            }
        }
    }

    async fn turn(&mut self, work: Work) -> Next {
        let onlooker: Arc<Mutex<dyn Onlooker>> = Arc::clone(&self.screen) as Arc<Mutex<dyn Onlooker>>;
        let ran = turn::run(&mut self.agent, work, &onlooker, &mut self.signals, self.clock).await;
        lock(&self.screen).clear_live();
        match ran.signal {
            Some(signal @ (Signal::Terminate | Signal::Hangup)) => Next::Leave(signal.code()),
            Some(Signal::Interrupt) | None => Next::Go,
        }
    }

    async fn slash(&mut self, slash: Slash, argument: &str) {
        match slash {
            Slash::Help => self.say(&slash::help()),
            Slash::Status => {
                let always = self.person.as_ref().map(|person| person.always()).unwrap_or_default();
                self.say(&status::status(&self.agent.status(), &always));
            }
            Slash::Cost => self.say(&status::cost(&self.agent.status())),
            Slash::Model if argument.is_empty() => {
                let model = one_line(&self.agent.status().model);
                self.say(&format!("model     {model}"));
            }
            Slash::Model => {
                self.agent.set_model(argument);
                self.launch.config.model = Some(argument.to_owned());
                self.say(&format!("◇ from now on {} is asked", one_line(argument)));
            }
            Slash::Compact => self.say("! /compact is not available yet; /clear begins a new session"),
            Slash::Clear => self.switch(None).await,
            Slash::Resume if argument.is_empty() => self.list_sessions(),
            Slash::Resume if argument == self.agent.session_id().as_str() => {
                self.say("◇ this is that session");
            }
            Slash::Resume => self.switch(Some(argument)).await,
            Slash::Exit => {}
        }
    }

    /// Goes on in another session. The present one stays if the other cannot be opened.
    async fn switch(&mut self, session: Option<&str>) {
        match open(&self.launch, session, self.person.as_ref()).await {
            Ok(agent) => {
                let old = std::mem::replace(&mut self.agent, agent);
                self.close(old);
                self.greet(session.is_some());
                if session.is_none() {
                    self.say(&format!("◇ new session {}", self.agent.session_id()));
                }
            }
            Err(error) => self.say(&format!("✗ {error}")),
        }
    }

    fn list_sessions(&mut self) {
        let config = &self.launch.config;
        match crate::commands::sessions::listed(&config.home, Some(&config.cwd)) {
            Ok(sessions) if sessions.is_empty() => self.say("◇ there is no session of this folder yet"),
            Ok(sessions) => {
                let shown = &sessions[..sessions.len().min(SESSIONS_SHOWN_MAX)];
                self.say(&crate::commands::sessions::table(shown));
            }
            Err(error) => self.say(&format!("✗ {error}")),
        }
    }

    fn leave(self) {
        for complaint in self.launch.complaints() {
            lock(&self.screen).notice_of(Level::Warn, &complaint);
        }
        if self.input.is_terminal {
            self.say(&format!("◇ yaoki resume {} goes on here", self.agent.session_id()));
        }
        let Repl { agent, screen, .. } = self;
        if let Err(error) = agent.close() {
            lock(&screen).notice_of(Level::Error, &yaoki::error_chain(&error));
        }
    }

    fn close(&self, agent: Agent) {
        if let Err(error) = agent.close() {
            lock(&self.screen).notice_of(Level::Error, &yaoki::error_chain(&error));
        }
    }

    fn say(&self, text: &str) {
        lock(&self.screen).say(text);
    }
}

impl Onlooker for Screen<Stdout> {
    fn event(&mut self, event: &Event, now_ms: u64) {
        self.show(event, now_ms);
    }

    fn tick(&mut self, now_ms: u64) {
        Screen::tick(self, now_ms);
    }

    fn is_gone(&self) -> bool {
        Screen::is_gone(self)
    }

    fn is_live(&self) -> bool {
        self.look.tty
    }

    fn leave(&mut self) {
        self.clear_live();
        let _ = crossterm::terminal::disable_raw_mode();
    }
}

fn lock(screen: &Mutex<Screen<Stdout>>) -> MutexGuard<'_, Screen<Stdout>> {
    screen.lock().unwrap_or_else(PoisonError::into_inner)
}
