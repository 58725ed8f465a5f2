//! Events as a person sees them, on a terminal or in a file.
//!
//! Promises: the first column is ours; text of the model is indented, so it can't pass for a notice. On a
//! terminal the lowest lines are live (text that may still change, what is going on) and everything above is
//! final; elsewhere lines are only appended. Time is handed in. A closed output is remembered, not an error.
//! Deliberately not here: what the sentences are (`words`), reading keys (`repl`).

use std::collections::HashMap;
use std::io::{self, Write};

use yaoki::core::event::{Event, Level, TurnSummary};
use yaoki::core::ids::OpId;
use yaoki::core::message::CallResult;

use super::live::{Doing, Live};
use super::plain::{clean, clip, one_line};
use super::style::{Look, Style};
use super::text::Text;
use super::words;

/// How much is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Retries, warnings, errors.
    Notices,
    /// And calls.
    Calls,
    /// And what the model says.
    All,
}

/// Lines of a command's output that are shown under its call.
const PREVIEW_LINES_MAX: usize = 4;
const PREVIEW_CHARS_MAX: usize = 400;

/// Shows events. `W` is where they go.
pub struct Screen<W: Write> {
    out: W,
    pub look: Look,
    detail: Detail,
    live: Live,
    text: Text,
    /// Calls that run: their titles.
    running: HashMap<OpId, String>,
    /// The call whose line was printed last.
    last_call: Option<OpId>,
    /// The output was closed by its reader.
    gone: bool,
    /// Somebody else uses the lowest lines.
    held: bool,
}

impl<W: Write> Screen<W> {
    pub fn new(out: W, look: Look, detail: Detail) -> Self {
        Self {
            out,
            look,
            detail,
            live: Live::default(),
            text: Text::default(),
            running: HashMap::new(),
            last_call: None,
            gone: false,
            held: false,
        }
    }

    /// Whether nobody reads any more.
    pub fn is_gone(&self) -> bool {
        self.gone
    }

    /// Shows one event.
    pub fn show(&mut self, event: &Event, now_ms: u64) {
        match event {
            Event::Accepted { .. } => {}
            Event::Asking { model, .. } => {
                self.live.doing = Some(Doing::asking(model, now_ms));
            }
            Event::Text { piece, .. } => self.hear(piece),
            Event::Thinking { .. } => self.live.note("thinking"),
            Event::CallForming { tool, .. } => self.live.note(&format!("writing {}", one_line(tool))),
            Event::Withdrawn { .. } => self.withdraw(),
            Event::Committed { reply, .. } => {
                self.live.doing = None;
                if !self.text.was_shown() {
                    self.hear(&reply.text());
                }
                self.end_text();
            }
            Event::Retrying { retry, retries_max, after_ms, failure, .. } => {
                let line = words::retrying(*after_ms, *retry, *retries_max, failure);
                self.notice(Style::WARN, "", &line);
                self.live.doing =
                    (*after_ms > 0).then(|| Doing::waiting(now_ms + after_ms, *retry, *retries_max));
            }
            Event::Recovering { text, .. } => self.notice(Style::WARN, "", &one_line(text)),
            // The turn's end tells it.
            Event::RequestFailed { .. } => self.live.doing = None,
            Event::CallStarted { op, title, .. } => {
                let title = one_line(title);
                self.call(&title);
                self.live.doing = Some(Doing::running(&title, now_ms));
                self.running.insert(*op, title);
                self.last_call = Some(*op);
            }
            Event::CallOutput { piece, .. } => self.live.output(&clean(piece)),
            Event::CallEnded { op, tool, result, .. } => self.call_ended(*op, tool, result),
            Event::CallRefused { tool, title, result, .. } => {
                self.call(&one_line(title));
                self.failed(&one_line(tool), &result.text());
                self.last_call = None;
            }
            Event::OutcomeUnknown { title, op, result, .. } => {
                self.running.remove(op);
                self.failed_as(Style::WARN, "?", &one_line(title), &result.text());
            }
            Event::Detached { op, task, .. } => {
                let title = self.running.remove(op).unwrap_or_else(|| "the command".to_owned());
                let line = format!("{title} goes on in the background as {}", one_line(task));
                self.live.doing = None;
                self.line_at(Detail::Calls, &self.look.paint(Style::DIM, &line));
            }
            Event::Notice { level, text } => self.notice_of(*level, text),
            Event::TurnEnded(summary) => self.turn_ended(summary),
        }
        self.settle();
    }

    /// Redraws what is live. To be called some times a second.
    pub fn tick(&mut self, now_ms: u64) {
        if self.held {
            return;
        }
        if self.look.tty {
            let lines = self.live.lines(&self.text, &self.look, self.detail, now_ms);
            self.put(|live, out| live.draw(out, lines));
        } else if self.detail >= Detail::Calls
            && let Some(beat) = self.live.beat(now_ms)
        {
            self.line(&beat);
        }
    }

    /// Prints lines of ours, above what is live.
    pub fn say(&mut self, text: &str) {
        self.end_text();
        for line in text.lines() {
            self.line(line);
        }
        self.settle();
    }

    pub fn notice_of(&mut self, level: Level, text: &str) {
        let text = clean(text);
        match level {
            Level::Info => self.notice(Style::DIM, "◇ ", &text),
            Level::Warn => self.notice(Style::WARN, "! ", &text),
            Level::Error => self.notice(Style::BAD, "✗ ", &text),
        }
        self.settle();
    }

    /// Draws nothing live until it is let go again.
    pub fn hold(&mut self, held: bool) {
        self.held = held;
        self.clear_live();
    }

    /// Takes the live lines off the screen, for whoever writes there next.
    pub fn clear_live(&mut self) {
        self.put(|live, out| live.erase(out));
        self.settle();
    }

    fn hear(&mut self, piece: &str) {
        if self.detail < Detail::All || piece.is_empty() {
            return;
        }
        let lines = self.text.hear(piece, &self.look);
        if self.look.tty {
            self.live.note("writing");
            for line in lines {
                self.line(&line);
            }
        } else {
            self.put(|_, out| out.write_all(lines.concat().as_bytes()));
        }
    }

    /// Prints what was still live of the model's text.
    fn end_text(&mut self) {
        let lines = self.text.end(&self.look);
        if self.look.tty {
            for line in lines {
                self.line(&line);
            }
        } else {
            self.put(|_, out| out.write_all(lines.concat().as_bytes()));
        }
    }

    fn withdraw(&mut self) {
        let was_shown = self.text.was_shown();
        self.end_text();
        if was_shown {
            self.line(&self.look.paint(Style::WARN, "(the text above is incomplete and withdrawn)"));
        }
        self.live.doing = None;
    }

    fn call(&mut self, title: &str) {
        self.end_text();
        let line = format!("{} {title}", self.look.paint(Style::GOOD, "●"));
        self.line_at(Detail::Calls, &line);
    }

    fn call_ended(&mut self, op: OpId, tool: &str, result: &CallResult) {
        let title = self.running.remove(&op);
        let is_beside = self.last_call == Some(op);
        self.live.call_ended();
        if result.is_error {
            let tool = one_line(tool);
            // With other lines between, the tool's name alone does not say which call it was.
            let name = if is_beside { tool } else { title.unwrap_or(tool) };
            self.failed(&name, &result.text());
        } else if tool == "Bash" && is_beside {
            self.preview(&result.text());
        }
        self.last_call = None;
    }

    fn failed(&mut self, name: &str, text: &str) {
        self.failed_as(Style::BAD, "✘", name, text);
    }

    fn failed_as(&mut self, style: Style, mark: &str, name: &str, text: &str) {
        let start = words::error_start(text);
        let line = format!("{} {name} → {start}", self.look.paint(style, mark));
        self.line_at(Detail::Calls, &line);
    }

    /// Shows the first lines of what a command printed.
    fn preview(&mut self, text: &str) {
        let text = clean(text);
        let shown = clip(text.trim_end(), PREVIEW_CHARS_MAX);
        let all = text.trim_end().lines().count();
        let lines: Vec<&str> = shown.lines().take(PREVIEW_LINES_MAX).collect();
        for line in &lines {
            let line = if line.trim().is_empty() { String::new() } else { format!("  {line}") };
            self.line_at(Detail::Calls, &self.look.paint(Style::DIM, &line));
        }
        if all > lines.len() {
            let more = format!("  … {} more lines", all - lines.len());
            self.line_at(Detail::Calls, &self.look.paint(Style::DIM, &more));
        }
    }

    fn turn_ended(&mut self, summary: &TurnSummary) {
        self.end_text();
        self.live.doing = None;
        self.running.clear();
        if !summary.reason.is_good() {
            let (message, hint) = words::ended(summary);
            let hint = if hint.is_empty() { hint } else { format!("; {hint}") };
            self.notice(Style::BAD, "✗ ", &format!("{message}{hint}"));
        }
    }

    fn notice(&mut self, style: Style, mark: &str, text: &str) {
        self.end_text();
        let text = text.trim_end().replace('\n', "\n  ");
        for line in format!("{mark}{text}").lines() {
            self.line(&self.look.paint(style, line));
        }
    }

    fn line_at(&mut self, detail: Detail, text: &str) {
        if self.detail >= detail {
            for line in text.lines() {
                self.line(line);
            }
        }
    }

    fn line(&mut self, line: &str) {
        self.put(|live, out| {
            live.erase(out)?;
            out.write_all(line.as_bytes())?;
            out.write_all(b"\n")
        });
    }

    fn settle(&mut self) {
        self.put(|_, out| out.flush());
    }

    fn put(&mut self, write: impl FnOnce(&mut Live, &mut W) -> io::Result<()>) {
        if !self.gone && write(&mut self.live, &mut self.out).is_err() {
            self.gone = true;
        }
    }
}
