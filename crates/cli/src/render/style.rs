//! Colours and widths: how a text looks on this screen.
//!
//! Promises: without colour nothing but the text itself is printed. Deliberately not here: what to print.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Looks that add up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style(u8);

impl Style {
    pub const PLAIN: Style = Style(0);
    pub const BOLD: Style = Style(1);
    pub const ITALIC: Style = Style(2);
    pub const CODE: Style = Style(4);
    pub const DIM: Style = Style(8);
    pub const STRIKE: Style = Style(16);
    pub const GOOD: Style = Style(32);
    pub const WARN: Style = Style(64);
    pub const BAD: Style = Style(128);

    const CODES: [(Style, &'static str); 8] = [
        (Style::BOLD, "1"),
        (Style::ITALIC, "3"),
        (Style::CODE, "36"),
        (Style::DIM, "2"),
        (Style::STRIKE, "9"),
        (Style::GOOD, "32"),
        (Style::WARN, "33"),
        (Style::BAD, "31"),
    ];

    pub fn with(self, other: Style) -> Style {
        Style(self.0 | other.0)
    }

    /// The escape sequence that switches to exactly this look.
    pub fn escape(self) -> String {
        let mut text = "\u{1b}[0".to_owned();
        for (style, code) in Style::CODES {
            if self.0 & style.0 != 0 {
                text.push(';');
                text.push_str(code);
            }
        }
        text.push('m');
        text
    }
}

/// Where text goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// It is a terminal: lines can be taken back.
    pub tty: bool,
    pub color: bool,
    /// Columns; no wrapping where it is not a terminal.
    pub width: usize,
    pub height: usize,
}

impl Look {
    /// A file or a pipe: text as it is.
    pub const PLAIN: Look = Look { tty: false, color: false, width: usize::MAX, height: usize::MAX };

    pub fn paint(&self, style: Style, text: &str) -> String {
        if self.color && style != Style::PLAIN && !text.is_empty() {
            format!("{}{text}\u{1b}[0m", style.escape())
        } else {
            text.to_owned()
        }
    }
}

/// Columns that a clean text takes.
pub fn width(text: &str) -> usize {
    text.width()
}

pub fn char_width(c: char) -> usize {
    if c == '\t' { 4 } else { c.width().unwrap_or(0) }
}

/// Cuts a clean text to so many columns, and says so with `…`.
pub fn fit(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        used += char_width(c);
        if used >= columns {
            break;
        }
        out.push(c);
    }
    out.push('…');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_is_all_or_nothing() {
        let color = Look { color: true, ..Look::PLAIN };
        assert_eq!(color.paint(Style::BAD.with(Style::BOLD), "x"), "\u{1b}[0;1;31mx\u{1b}[0m");
        assert_eq!(Look::PLAIN.paint(Style::BAD, "x"), "x");
    }

    #[test]
    fn cutting_counts_columns_not_letters() {
        assert_eq!(fit("漢字漢字", 8), "漢字漢字");
        assert_eq!(fit("漢字漢字", 7), "漢字漢…");
        assert_eq!(fit("abc", 2), "a…");
    }
}
