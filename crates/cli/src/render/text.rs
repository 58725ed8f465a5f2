//! The text that a model is writing: what of it is final, what may still change, and what was taken back.
//!
//! Promises: on a terminal a block is printed once, when the next one begins; elsewhere the text goes out as it
//! comes, indented. Deliberately not here: writing to the screen (`screen`).

use super::markdown;
use super::plain::clean;
use super::style::Look;

/// Text of ours begins in the first column; the model's does not.
pub const INDENT: &str = "  ";

#[derive(Debug, Default)]
pub struct Text {
    /// Not printed yet, on a terminal.
    open: String,
    shown: bool,
    blocks_printed: bool,
    /// Elsewhere: whether the last line is begun.
    in_line: bool,
}

impl Text {
    /// Whether anything of the present text was shown.
    pub fn was_shown(&self) -> bool {
        self.shown
    }

    /// Takes a piece. Returns what can be printed: whole lines on a terminal, else pieces to print as they are.
    pub fn hear(&mut self, piece: &str, look: &Look) -> Vec<String> {
        self.shown = true;
        if !look.tty {
            return vec![self.indent(piece)];
        }
        self.open.push_str(piece);
        let settled = markdown::settled(&self.open);
        if settled == 0 {
            return Vec::new();
        }
        let rest = self.open.split_off(settled);
        let done = std::mem::replace(&mut self.open, rest);
        self.draw(&done, look)
    }

    /// The lines that may still change.
    pub fn open_lines(&self, look: &Look) -> Vec<String> {
        let mut lines = render(&self.open, look);
        if self.blocks_printed && !lines.is_empty() {
            lines.insert(0, String::new());
        }
        lines
    }

    /// Ends the text. Returns what was not printed yet.
    pub fn end(&mut self, look: &Look) -> Vec<String> {
        let rest = if look.tty {
            let open = std::mem::take(&mut self.open);
            self.draw(&open, look)
        } else if self.in_line {
            vec!["\n".to_owned()]
        } else {
            Vec::new()
        };
        *self = Text::default();
        rest
    }

    fn draw(&mut self, text: &str, look: &Look) -> Vec<String> {
        let mut lines = render(text, look);
        if lines.is_empty() {
            return lines;
        }
        if self.blocks_printed {
            lines.insert(0, String::new());
        }
        self.blocks_printed = true;
        lines
    }

    fn indent(&mut self, piece: &str) -> String {
        let mut out = String::with_capacity(piece.len() + 8);
        for c in clean(piece).chars() {
            if c == '\n' {
                self.in_line = false;
            } else if !self.in_line {
                out.push_str(INDENT);
                self.in_line = true;
            }
            out.push(c);
        }
        out
    }
}

fn render(text: &str, look: &Look) -> Vec<String> {
    let narrow = Look { width: look.width.saturating_sub(INDENT.len()), ..*look };
    let lines = markdown::render(text, &narrow).into_iter();
    lines.map(|line| if line.is_empty() { line } else { format!("{INDENT}{line}") }).collect()
}
