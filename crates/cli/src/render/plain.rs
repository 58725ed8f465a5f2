//! Text from outside, made safe to show: models, tools, servers and files must not drive the terminal.
//!
//! Promises: what comes out holds no control character but newline and tab, and nothing that reorders text
//! on screen; every character taken out is shown as a visible name, so that nothing is hidden.
//! Deliberately not here: colours and layout.

use std::fmt::Write as _;

/// Returns the text with newlines and tabs kept, a lone carriage return as a newline, and every other control,
/// bidi override and line separator as a visible name.
pub fn clean(text: &str) -> String {
    if text.chars().all(is_plain) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' if chars.peek() == Some(&'\n') => {}
            // Alone it would let later text overwrite what was already read.
            '\r' => out.push('\n'),
            c if is_plain(c) => out.push(c),
            c => name(c, &mut out),
        }
    }
    out
}

/// Returns the text as one line: runs of white space are one space.
pub fn one_line(text: &str) -> String {
    let cleaned = clean(text);
    let mut out = String::with_capacity(cleaned.len());
    for word in cleaned.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

/// Returns at most `chars_max` characters of a text, and says with `…` that it was longer.
pub fn clip(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some(_) => {
            let mut out: String = text.chars().take(chars_max.saturating_sub(1)).collect();
            out.push('…');
            out
        }
    }
}

fn is_plain(c: char) -> bool {
    match c {
        '\n' | '\t' => true,
        c if c.is_control() => false,
        // Line and paragraph separators, bidi embeddings, overrides and isolates; the invisible tag block.
        '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => false,
        '\u{e0000}'..='\u{e007f}' => false,
        _ => true,
    }
}

fn name(c: char, out: &mut String) {
    match c {
        '\0'..='\u{1f}' => {
            out.push('^');
            out.push((c as u8 + b'@') as char);
        }
        '\u{7f}' => out.push_str("^?"),
        c => {
            let _ = write!(out, "\\u{{{:x}}}", c as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_drives_the_terminal() {
        for (text, want) in [
            ("plain ünï 漢字\n\tx", "plain ünï 漢字\n\tx"),
            ("\u{1b}[2J\u{1b}]0;title\u{7}", "^[[2J^[]0;title^G"),
            ("a\r\nb\rc", "a\nb\nc"),
            ("rm \u{202e}fdp.x", "rm \\u{202e}fdp.x"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("a\u{2028}b\u{7f}\0", "a\\u{2028}b^?^@"),
            ("\u{e0041}", "\\u{e0041}"),
        ] {
            assert_eq!(clean(text), want);
        }
    }

    #[test]
    fn one_line_is_one_line_and_a_clip_says_so() {
        assert_eq!(one_line("  a\n\n b\t\u{1b}c "), "a b ^[c");
        assert_eq!(clip("abc", 3), "abc");
        assert_eq!(clip("äbcd", 3), "äb…");
    }
}
