//! When we were wrong: one line for the person instead of a trace.
//!
//! Promises: no absolute path is printed, the terminal is usable afterwards. A panic of a tool is caught where tools run
//! and becomes its result; its line here is what makes the bug visible.
//! Deliberately not here: the exit code (`main` returns 1).

use std::panic::PanicHookInfo;

use crate::render::plain::{clip, one_line};

const MESSAGE_CHARS_MAX: usize = 300;

/// Takes over from the default hook.
pub fn install() {
    std::panic::set_hook(Box::new(|info| {
        // A raw terminal would swallow the line, and stay raw.
        let _ = crossterm::terminal::disable_raw_mode();
        crate::out::stderr(&line(info));
    }));
}

fn line(info: &PanicHookInfo<'_>) -> String {
    let message = info.payload_as_str().unwrap_or("no message");
    let place = info.location().map(|at| format!("{}:{}", short(at.file()), at.line())).unwrap_or_default();
    told(message, &place)
}

fn told(message: &str, place: &str) -> String {
    let words: Vec<&str> = message.split_whitespace().map(without_folders).collect();
    let message = clip(&one_line(&words.join(" ")), MESSAGE_CHARS_MAX);
    format!(
        "yaoki: internal error at {place}: {message}; the session is safe. Please report this line as an issue of the \
         yaoki project, with yaoki --version"
    )
}

/// Leaves of a source path what means the same on every machine.
fn short(file: &str) -> &str {
    file.find("crates/").map_or_else(|| without_folders(file), |at| &file[at..])
}

/// Leaves of an absolute path its last name.
fn without_folders(word: &str) -> &str {
    if word.trim_start_matches(['"', '\'', '(']).starts_with('/') {
        word.rsplit('/').next().unwrap_or(word)
    } else {
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_names_the_place_in_our_source_and_no_folder_of_this_machine() {
        assert_eq!(short("/home/me/yaoki/crates/cli/src/x.rs"), "crates/cli/src/x.rs");
        assert_eq!(short("/home/me/.cargo/registry/src/serde/lib.rs"), "lib.rs");
        let line = told("cannot open \"/home/me/secret.txt\":\n\u{1b}no", "crates/cli/src/x.rs:7");
        assert!(!line.contains("/home") && !line.contains('\n') && !line.contains('\u{1b}'), "{line}");
        assert!(
            line.starts_with(
                "yaoki: internal error at crates/cli/src/x.rs:7: cannot open secret.txt\": ^[no; "
            )
        );
    }
}
