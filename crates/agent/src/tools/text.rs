//! How results read: wrapped errors, one-line titles, cuts between characters.

use std::path::Path;

use yaoki_core::message::CallResult;

/// Characters of one result; beyond that the beginning and the end are kept.
pub(super) const RESULT_CHARS_MAX: usize = 30_000;
const TITLE_CHARS_MAX: usize = 80;

/// A failure of the call itself, marked so that it can't be confused with output that says "error".
pub(super) fn call_error(text: impl AsRef<str>) -> CallResult {
    CallResult::error(format!("<tool_use_error>{}</tool_use_error>", text.as_ref()))
}

/// `Bash(cargo test)`: one line, however long the subject is.
pub(super) fn title(tool: &str, subject: &str) -> String {
    let line = subject.trim().lines().next().unwrap_or_default();
    let is_cut = line.chars().count() > TITLE_CHARS_MAX || line.len() < subject.trim().len();
    let mut short = String::new();
    for letter in line.chars().take(TITLE_CHARS_MAX) {
        match letter {
            // Shown, as a question shows the whole input: what vanishes can hide something.
            '\0'..='\u{1f}' | '\u{7f}' => short.extend(['^', char::from(letter as u8 ^ 0x40)]),
            letter if letter.is_control() => {}
            letter => short.push(letter),
        }
    }
    if short.is_empty() {
        return tool.to_owned();
    }
    format!("{tool}({}{})", short, if is_cut { "…" } else { "" })
}

/// A path for people: relative where it lies below the working folder.
pub(super) fn shown(path: &Path, cwd: &Path) -> String {
    let short = path.strip_prefix(cwd).ok().filter(|rest| !rest.as_os_str().is_empty()).unwrap_or(path);
    short.display().to_string()
}

/// Keeps two thirds of the room for the beginning and one third for the end, where errors usually are.
/// `left_out` says what stands between.
pub(super) fn cut_middle(text: &str, chars_max: usize, left_out: impl FnOnce(usize) -> String) -> String {
    let count = text.chars().count();
    if count <= chars_max {
        return text.to_owned();
    }
    let head = chars_max * 2 / 3;
    let tail = chars_max - head;
    format!("{}\n\n{}\n\n{}", first_chars(text, head), left_out(count - head - tail), last_chars(text, tail))
}

pub(super) fn first_chars(text: &str, count: usize) -> &str {
    text.char_indices().nth(count).map_or(text, |(end, _)| &text[..end])
}

pub(super) fn last_chars(text: &str, count: usize) -> &str {
    match count.checked_sub(1) {
        Some(before) => text.char_indices().nth_back(before).map_or(text, |(begin, _)| &text[begin..]),
        None => "",
    }
}

/// Lines with their numbers, as every tool shows them: right-aligned, an arrow, the text.
pub(super) fn numbered<'a>(lines: impl IntoIterator<Item = &'a str>, first: usize) -> String {
    let lines = lines.into_iter().enumerate();
    let lines: Vec<String> = lines.map(|(i, line)| format!("{:>6}→{line}", first + i)).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_one_short_line() {
        assert_eq!(title("Bash", "cargo test"), "Bash(cargo test)");
        assert_eq!(title("Bash", "a\nb"), "Bash(a…)");
        assert_eq!(title("TodoWrite", ""), "TodoWrite");
        assert_eq!(title("Bash", &"ü".repeat(200)), format!("Bash({}…)", "ü".repeat(80)));
        assert_eq!(title("Bash", "echo \u{1b}[31m"), "Bash(echo ^[[31m)");
    }

    #[test]
    fn cuts_fall_between_characters_and_tell_what_is_missing() {
        let text = "😀".repeat(10);
        let cut = cut_middle(&text, 6, |count| format!("[{count}]"));
        assert_eq!(cut, format!("{}\n\n[4]\n\n{}", "😀".repeat(4), "😀".repeat(2)));
        assert_eq!(cut_middle("abc", 3, |_| unreachable!()), "abc");
    }
}
