//! The question before a call that needs permission, on a terminal.
//!
//! Promises: what is asked is shown cleaned, and cut only with a word about it; keys typed before the question was
//! shown do not answer it; a withdrawn question leaves the terminal in its normal mode.
//! Deliberately not here: which calls need a question (the library decides).

use std::collections::HashSet;
use std::io::Stdout;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crossterm::event::{self, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use serde_json::Value;
use yaoki::{Answer, Person, Question};

use crate::render::plain::{clean, one_line};
use crate::render::screen::Screen;
use crate::render::style::Style;

/// Lines of an input that are shown at first.
const INPUT_LINES_MAX: usize = 30;
/// How soon a withdrawn question lets go of the keyboard.
const LOOK: Duration = Duration::from_millis(50);

pub type Shared = Arc<Mutex<Screen<Stdout>>>;

/// Asks on this terminal.
pub struct TerminalPerson {
    screen: Shared,
    always: Mutex<HashSet<Scope>>,
}

/// What "always" means for a call: the same command, the same file, or the same input.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Scope {
    tool: String,
    subject: String,
    words: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    Yes,
    No,
    Always,
    ShowAll,
    Stop,
}

impl TerminalPerson {
    pub fn new(screen: Shared) -> Self {
        Self { screen, always: Mutex::default() }
    }

    /// What was allowed for the rest of this session, for `/status`.
    pub fn always(&self) -> Vec<String> {
        let always = self.always.lock().unwrap_or_else(PoisonError::into_inner);
        let mut words: Vec<String> =
            always.iter().map(|scope| format!("{}({})", scope.tool, one_line(&scope.subject))).collect();
        words.sort();
        words
    }

    fn screen(&self) -> MutexGuard<'_, Screen<Stdout>> {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_always(&self, scope: &Scope) -> bool {
        self.always.lock().unwrap_or_else(PoisonError::into_inner).contains(scope)
    }

    async fn ask_now(&self, question: Question) -> Answer {
        let scope = Scope::of(&question);
        if self.is_always(&scope) {
            return Answer::Allow;
        }
        let mut lines_max = INPUT_LINES_MAX;
        loop {
            {
                let mut screen = self.screen();
                screen.hold(true);
                let text = text(&question, &scope, lines_max);
                let mark = screen.look.paint(Style::WARN, "?");
                screen.say(&format!("{mark} {text}"));
            }
            let choice = choose().await;
            self.screen().hold(false);
            match choice {
                Choice::Yes => return Answer::Allow,
                Choice::Always => {
                    self.always.lock().unwrap_or_else(PoisonError::into_inner).insert(scope);
                    return Answer::Allow;
                }
                Choice::ShowAll => lines_max = usize::MAX,
                Choice::No => return Answer::Deny { reason: "The user said no to this call.".to_owned() },
                Choice::Stop => {
                    // The signal that Ctrl+C would have been outside of raw mode. It withdraws the question:
                    // an answer now would let the turn go on until the signal is heard.
                    let _ = rustix::process::kill_process(
                        rustix::process::getpid(),
                        rustix::process::Signal::INT,
                    );
                    return std::future::pending().await;
                }
            }
        }
    }
}

impl Person for TerminalPerson {
    fn ask(&self, question: Question) -> futures_util::future::BoxFuture<'_, Answer> {
        Box::pin(self.ask_now(question))
    }
}

impl Scope {
    fn of(question: &Question) -> Self {
        let input = question.input.value();
        let member = |name: &str| input.get(name).and_then(Value::as_str).map(str::to_owned);
        let (subject, words) = if let Some(command) = member("command") {
            (command, "this command".to_owned())
        } else if let Some(path) = member("file_path") {
            let words = format!("{} of {}", one_line(&question.tool), one_line(&path));
            (path, words)
        } else {
            (question.input.get().to_owned(), "this call".to_owned())
        };
        Self { tool: question.tool.clone(), subject, words }
    }
}

/// Title, input and the keys.
fn text(question: &Question, scope: &Scope, lines_max: usize) -> String {
    let mut input = Vec::new();
    if let Value::Object(members) = question.input.value() {
        for (name, value) in members {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let value = clean(value.trim_end()).replace('\n', "\n      ");
            input.extend(format!("    {}: {value}", one_line(&name)).lines().map(str::to_owned));
        }
    }
    let left = input.len().saturating_sub(lines_max);
    input.truncate(lines_max);
    let mut text = format!("{} needs your permission\n{}\n", one_line(&question.title), input.join("\n"));
    if left > 0 {
        text.push_str(&format!("    … {left} more lines\n"));
    }
    let more = if left > 0 { " · v show all" } else { "" };
    text.push_str(&format!(
        "  y yes · n no · a always in this session: {}{more} · Ctrl+C stop the turn",
        scope.words
    ));
    text
}

fn choice_of(key: &KeyEvent) -> Option<Choice> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c') if is_control => Some(Choice::Stop),
        KeyCode::Char('d') if is_control => Some(Choice::No),
        KeyCode::Char(_) if is_control => None,
        KeyCode::Char('y' | 'Y') => Some(Choice::Yes),
        KeyCode::Char('n' | 'N') | KeyCode::Esc => Some(Choice::No),
        KeyCode::Char('a' | 'A') => Some(Choice::Always),
        KeyCode::Char('v' | 'V') => Some(Choice::ShowAll),
        _ => None,
    }
}

/// Waits for a key. Dropped, it gives the keyboard back.
async fn choose() -> Choice {
    let withdrawn = Withdrawn(Arc::new(AtomicBool::new(false)));
    let flag = Arc::clone(&withdrawn.0);
    // A thread, because the terminal can only be waited for by blocking.
    let keys = tokio::task::spawn_blocking(move || read_key(&flag));
    keys.await.unwrap_or(Choice::No)
}

struct Withdrawn(Arc<AtomicBool>);

impl Drop for Withdrawn {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        let _ = disable_raw_mode();
    }
}

fn read_key(withdrawn: &AtomicBool) -> Choice {
    // Without keys nobody can agree.
    if enable_raw_mode().is_err() {
        return Choice::No;
    }
    // What was typed ahead was not typed at this question.
    while matches!(event::poll(Duration::ZERO), Ok(true)) && event::read().is_ok() {}
    let choice = loop {
        if withdrawn.load(Ordering::Relaxed) {
            break Choice::No;
        }
        match event::poll(LOOK) {
            Ok(false) => {}
            Ok(true) => match event::read() {
                Ok(event::Event::Key(key)) => {
                    if let Some(choice) = choice_of(&key) {
                        break choice;
                    }
                }
                Ok(_) => {}
                Err(_) => break Choice::No,
            },
            Err(_) => break Choice::No,
        }
    };
    let _ = disable_raw_mode();
    choice
}

#[cfg(test)]
mod tests {
    use yaoki::core::ids::OpId;
    use yaoki::core::json::RawJson;

    use super::*;

    fn question(tool: &str, title: &str, input: &str) -> Question {
        Question {
            op: OpId(1),
            tool: tool.into(),
            title: title.into(),
            input: RawJson::parse(input).unwrap(),
        }
    }

    fn asked(question: &Question, lines_max: usize) -> String {
        text(question, &Scope::of(question), lines_max)
    }

    #[test]
    fn the_question_shows_title_and_input_cleaned() {
        let bash = question(
            "Bash",
            "Bash(rm -r build\u{1b}[8m)",
            r#"{"command":"rm -r build\u001b[8m\n● fake","timeout_ms":5}"#,
        );
        insta::assert_snapshot!(asked(&bash, 30), @r"
        Bash(rm -r build^[[8m) needs your permission
            command: rm -r build^[[8m
              ● fake
            timeout_ms: 5
          y yes · n no · a always in this session: this command · Ctrl+C stop the turn
        ");
    }

    #[test]
    fn what_is_left_out_is_counted_and_can_be_shown() {
        let write =
            question("Write", "Write(a.txt)", r#"{"file_path":"/p/a.txt","content":"1\n2\n3\n4\n5"}"#);
        insta::assert_snapshot!(asked(&write, 3), @r"
        Write(a.txt) needs your permission
            file_path: /p/a.txt
            content: 1
              2
            … 3 more lines
          y yes · n no · a always in this session: Write of /p/a.txt · v show all · Ctrl+C stop the turn
        ");
        assert!(asked(&write, usize::MAX).contains("      5\n"));
    }

    #[test]
    fn always_covers_the_same_command_or_file_and_nothing_more() {
        let of = |tool: &str, input: &str| Scope::of(&question(tool, "t", input));
        assert_eq!(of("Bash", r#"{"command":"ls"}"#), of("Bash", r#"{"command":"ls","description":"x"}"#));
        assert_ne!(of("Bash", r#"{"command":"ls"}"#), of("Bash", r#"{"command":"ls; rm x"}"#));
        assert_ne!(of("Edit", r#"{"file_path":"/a"}"#), of("Edit", r#"{"file_path":"/b"}"#));
        assert_ne!(of("Edit", r#"{"file_path":"/a"}"#), of("Write", r#"{"file_path":"/a"}"#));
        assert_ne!(of("KillShell", r#"{"shell_id":"bash_1"}"#), of("KillShell", r#"{"shell_id":"bash_2"}"#));
    }

    #[test]
    fn only_a_key_that_says_yes_means_yes() {
        let key = |code, modifiers| choice_of(&KeyEvent::new(code, modifiers));
        let plain = KeyModifiers::NONE;
        for (code, modifiers, want) in [
            (KeyCode::Char('y'), plain, Some(Choice::Yes)),
            (KeyCode::Char('Y'), KeyModifiers::SHIFT, Some(Choice::Yes)),
            (KeyCode::Char('y'), KeyModifiers::CONTROL, None),
            (KeyCode::Enter, plain, None),
            (KeyCode::Char(' '), plain, None),
            (KeyCode::Esc, plain, Some(Choice::No)),
            (KeyCode::Char('a'), plain, Some(Choice::Always)),
            (KeyCode::Char('c'), KeyModifiers::CONTROL, Some(Choice::Stop)),
        ] {
            assert_eq!(key(code, modifiers), want, "{code:?} {modifiers:?}");
        }
    }
}
