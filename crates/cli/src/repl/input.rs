//! Lines from a person: an editor on a terminal, plain lines from a pipe.
//!
//! Promises: waiting for a line never holds up the runtime; the terminal is in its normal mode between two lines; the
//! history file is readable by its owner only. Deliberately not here: what a line means (`slash`).

use std::borrow::Cow;
use std::io::{self, BufRead, IsTerminal};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;

use reedline::{
    ColumnarMenu, Completer, CompletionResult, Emacs, FileBackedHistory, KeyCode, KeyModifiers, MenuBuilder,
    Prompt, PromptEditMode, PromptHistorySearch, Reedline, ReedlineEvent, ReedlineMenu, Signal, Span,
    Suggestion, ValidationResult, Validator, default_emacs_keybindings,
};
use tokio::sync::mpsc;

use super::slash::SLASH;
use crate::exit::CliError;

pub const MARK: &str = "❯ ";
const HISTORY_LINES_MAX: usize = 1000;
const MENU: &str = "slash";

/// What came instead of the next line, or it.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    Text(String),
    /// Ctrl+C at the prompt.
    Interrupt,
    End,
}

/// The source of lines, read by a thread of its own, one line for each wish.
pub struct Input {
    wishes: mpsc::Sender<()>,
    lines: mpsc::Receiver<Line>,
    pub is_terminal: bool,
}

impl Input {
    /// Opens standard input. `history` is where a terminal's lines are kept.
    ///
    /// Errors: no thread can be had.
    pub fn open(history: &Path, color: bool) -> Result<Self, CliError> {
        let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
        let (wishes, wished) = mpsc::channel(1);
        let (say, lines) = mpsc::channel(1);
        let history = history.to_owned();
        let read = move || if is_terminal { edit(&history, color, wished, &say) } else { pipe(wished, &say) };
        thread::Builder::new()
            .name("yaoki-input".into())
            .spawn(read)
            .map_err(|error| CliError::environment(format_args!("cannot start a thread: {error}"), ""))?;
        Ok(Self { wishes, lines, is_terminal })
    }

    /// Waits for the next line.
    pub async fn next(&mut self) -> Line {
        if self.wishes.send(()).await.is_err() {
            return Line::End;
        }
        self.lines.recv().await.unwrap_or(Line::End)
    }
}

/// Reads lines from a pipe; one that ends in a backslash goes on in the next.
fn pipe(mut wished: mpsc::Receiver<()>, say: &mpsc::Sender<Line>) {
    let mut lines = io::stdin().lock().lines();
    while wished.blocking_recv().is_some() {
        let mut text = String::new();
        let line = loop {
            match lines.next() {
                Some(Ok(line)) => match line.strip_suffix('\\') {
                    Some(begun) => {
                        text.push_str(begun);
                        text.push('\n');
                    }
                    None => break Line::Text(text + &line),
                },
                // What cannot be read is no prompt.
                Some(Err(_)) | None if text.is_empty() => break Line::End,
                Some(Err(_)) | None => break Line::Text(text),
            }
        };
        if say.blocking_send(line).is_err() {
            return;
        }
    }
}

fn edit(history: &Path, color: bool, mut wished: mpsc::Receiver<()>, say: &mpsc::Sender<Line>) {
    let mut editor = editor(history, color);
    while wished.blocking_recv().is_some() {
        let line = match editor.read_line(&Mark) {
            Ok(Signal::Success(text)) => {
                // This thread ends with the process, so nothing is written later. Without a history there is no harm.
                let _ = editor.sync_history();
                Line::Text(text.replace("\\\n", "\n"))
            }
            Ok(Signal::CtrlC) => Line::Interrupt,
            // A terminal that cannot be read is gone.
            Ok(_) | Err(_) => Line::End,
        };
        if say.blocking_send(line).is_err() {
            return;
        }
    }
}

fn editor(history: &Path, color: bool) -> Reedline {
    let mut keys = default_emacs_keybindings();
    let complete =
        ReedlineEvent::UntilFound(vec![ReedlineEvent::Menu(MENU.to_owned()), ReedlineEvent::MenuNext]);
    keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, complete);
    let menu = ColumnarMenu::default().with_name(MENU).with_columns(1);
    let editor = Reedline::create()
        .with_edit_mode(Box::new(Emacs::new(keys)))
        .with_completer(Box::new(Slashes))
        .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
        .with_validator(Box::new(Backslash))
        .with_ansi_colors(color)
        .use_bracketed_paste(true);
    match history_file(history).and_then(|path| {
        FileBackedHistory::with_file(HISTORY_LINES_MAX, path)
            .map_err(|error| io::Error::other(error.to_string()))
    }) {
        Ok(history) => editor.with_history(Box::new(history)),
        // A conversation without memory of old lines is better than none.
        Err(_) => editor,
    }
}

/// Makes the history file for its owner only, before anything else creates it otherwise.
fn history_file(path: &Path) -> io::Result<PathBuf> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    if let Some(folder) = path.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let file = std::fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    let mut permissions = file.metadata()?.permissions();
    if permissions.mode() & 0o077 != 0 {
        permissions.set_mode(0o600);
        file.set_permissions(permissions)?;
    }
    Ok(path.to_owned())
}

struct Mark;

impl Prompt for Mark {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        "".into()
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        "".into()
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        MARK.into()
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        "· ".into()
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        format!("search {}: ", search.term).into()
    }
}

struct Backslash;

impl Validator for Backslash {
    fn validate(&self, line: &str) -> ValidationResult {
        if line.ends_with('\\') { ValidationResult::Incomplete } else { ValidationResult::Complete }
    }
}

struct Slashes;

impl Completer for Slashes {
    fn complete(&mut self, line: &str, pos: usize) -> CompletionResult {
        CompletionResult::fresh(suggestions(line, pos))
    }
}

fn suggestions(line: &str, pos: usize) -> Vec<Suggestion> {
    let Some(begun) = line.get(..pos).and_then(|line| line.strip_prefix('/')) else { return Vec::new() };
    let rows = SLASH.iter().filter(|row| row.name.starts_with(begun));
    rows.map(|row| Suggestion {
        value: format!("/{}", row.name),
        description: Some(row.doc.to_owned()),
        span: Span::new(0, pos),
        append_whitespace: !row.argument.is_empty(),
        ..Suggestion::default()
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_history_is_for_its_owner_only_even_if_it_was_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/history");
        let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        history_file(&path).unwrap();
        assert_eq!(mode(), 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        history_file(&path).unwrap();
        assert_eq!(mode(), 0o600);
    }

    #[test]
    fn a_slash_completes_to_commands_and_a_word_to_nothing() {
        let values = |line: &str| -> Vec<String> {
            suggestions(line, line.len()).into_iter().map(|suggestion| suggestion.value).collect()
        };
        assert_eq!(values("/c"), ["/clear", "/compact", "/cost"]);
        assert_eq!(values("c"), Vec::<String>::new());
        assert_eq!(values("/help x"), Vec::<String>::new());
    }

    #[test]
    fn a_backslash_at_the_end_asks_for_more() {
        assert!(matches!(Backslash.validate("a \\"), ValidationResult::Incomplete));
        assert!(matches!(Backslash.validate("a"), ValidationResult::Complete));
    }
}
