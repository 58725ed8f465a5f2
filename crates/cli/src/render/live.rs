//! The lowest lines of a terminal: what may still change, and what is going on.
//!
//! Promises: never higher than a part of the screen, so that taking it back always works; elsewhere a sign of
//! life for long work. Deliberately not here: what is final (`screen`).

use std::io::{self, Write};

use super::screen::Detail;
use super::style::{Look, Style, fit};
use super::text::Text;
use super::words::duration;

/// Lines of a running command's output that are shown.
const OUTPUT_LINES_MAX: usize = 5;
const OUTPUT_BYTES_MAX: usize = 8 << 10;
/// The first sign of life where there is no terminal; the next ones come ever later.
const BEAT_MS_FIRST: u64 = 30_000;

#[derive(Debug, Default)]
pub struct Live {
    /// Rows on the screen now.
    rows: usize,
    /// The lines that were drawn, to draw nothing twice.
    drawn: Vec<String>,
    pub doing: Option<Doing>,
}

/// What is going on.
#[derive(Debug)]
pub struct Doing {
    what: What,
    since_ms: u64,
    beat_ms: u64,
    /// The end of a command's output.
    output: String,
}

#[derive(Debug)]
enum What {
    Asking { model: String, note: String },
    Running { title: String },
    Waiting { until_ms: u64, retry: u32, retries_max: u32 },
}

impl Doing {
    pub fn asking(model: &str, now_ms: u64) -> Self {
        Self::new(What::Asking { model: super::plain::one_line(model), note: "asking".to_owned() }, now_ms)
    }

    pub fn running(title: &str, now_ms: u64) -> Self {
        Self::new(What::Running { title: title.to_owned() }, now_ms)
    }

    pub fn waiting(until_ms: u64, retry: u32, retries_max: u32) -> Self {
        Self::new(What::Waiting { until_ms, retry, retries_max }, until_ms)
    }

    fn new(what: What, since_ms: u64) -> Self {
        Self { what, since_ms, beat_ms: BEAT_MS_FIRST, output: String::new() }
    }

    fn line(&self, now_ms: u64) -> String {
        let since = duration(now_ms.saturating_sub(self.since_ms) / 1000 * 1000);
        match &self.what {
            What::Asking { model, note } => format!("… {note} {model} · {since}"),
            What::Running { title } => format!("… {title} · {since}"),
            What::Waiting { until_ms, retry, retries_max } => {
                let left = duration(until_ms.saturating_sub(now_ms).div_ceil(1000) * 1000);
                format!("… retrying in {left} · attempt {retry}/{retries_max} · Ctrl+C stops")
            }
        }
    }
}

impl Live {
    /// Says what a model does at the moment.
    pub fn note(&mut self, words: &str) {
        if let Some(Doing { what: What::Asking { note, .. }, .. }) = &mut self.doing {
            words.clone_into(note);
        }
    }

    pub fn output(&mut self, piece: &str) {
        let Some(doing) = &mut self.doing else { return };
        doing.output.push_str(piece);
        if doing.output.len() > OUTPUT_BYTES_MAX {
            let mut cut = doing.output.len() - OUTPUT_BYTES_MAX / 2;
            while !doing.output.is_char_boundary(cut) {
                cut += 1;
            }
            doing.output.drain(..cut);
        }
    }

    pub fn call_ended(&mut self) {
        self.doing.take_if(|doing| matches!(doing.what, What::Running { .. }));
    }

    /// What should stand there now.
    pub fn lines(&self, text: &Text, look: &Look, detail: Detail, now_ms: u64) -> Vec<String> {
        let room = (look.height / 2).max(3);
        let mut lines = text.open_lines(look);
        if let Some(doing) = &self.doing {
            if detail >= Detail::Calls {
                let output: Vec<&str> = doing.output.trim_end().lines().collect();
                let tail = &output[output.len().saturating_sub(OUTPUT_LINES_MAX)..];
                lines.extend(tail.iter().map(|line| {
                    look.paint(Style::DIM, &fit(&format!("  {}", line.replace('\t', "    ")), look.width))
                }));
            }
            lines.push(look.paint(Style::DIM, &fit(&doing.line(now_ms), look.width)));
        }
        if lines.len() > room {
            lines.drain(..lines.len() - room);
        }
        lines
    }

    /// Draws the lines in place of those that stand there.
    pub fn draw(&mut self, out: &mut impl Write, lines: Vec<String>) -> io::Result<()> {
        if lines == self.drawn {
            return Ok(());
        }
        self.erase(out)?;
        for line in &lines {
            out.write_all(line.as_bytes())?;
            out.write_all(b"\n")?;
        }
        self.rows = lines.len();
        self.drawn = lines;
        out.flush()
    }

    pub fn erase(&mut self, out: &mut impl Write) -> io::Result<()> {
        if self.rows > 0 {
            write!(out, "\u{1b}[{}A\r\u{1b}[J", self.rows)?;
            self.rows = 0;
            self.drawn.clear();
        }
        Ok(())
    }

    /// A sign of life, where one is due and there is no terminal.
    pub fn beat(&mut self, now_ms: u64) -> Option<String> {
        let doing = self.doing.as_mut()?;
        if now_ms.saturating_sub(doing.since_ms) < doing.beat_ms {
            return None;
        }
        doing.beat_ms *= 2;
        Some(doing.line(now_ms))
    }
}
