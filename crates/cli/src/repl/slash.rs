//! The commands of a conversation: what begins with a slash.
//!
//! Promises: one row each; help and completion read the same table.
//! Deliberately not here: what they do (`repl`).

use crate::settings::table::nearest;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slash {
    Help,
    Status,
    Model,
    Resume,
    Clear,
    Compact,
    Cost,
    Exit,
}

pub struct Row {
    pub name: &'static str,
    pub slash: Slash,
    /// What may follow.
    pub argument: &'static str,
    pub doc: &'static str,
}

const fn row(name: &'static str, slash: Slash, argument: &'static str, doc: &'static str) -> Row {
    Row { name, slash, argument, doc }
}

pub const SLASH: &[Row] = &[
    row("help", Slash::Help, "", "this list"),
    row("status", Slash::Status, "", "model, folder, session, permissions, tokens"),
    row("model", Slash::Model, "[NAME]", "show the model, or ask another one from now on"),
    row("resume", Slash::Resume, "[ID]", "list the sessions of this folder, or go on with one"),
    row("clear", Slash::Clear, "", "begin a new session; this one is kept"),
    row("compact", Slash::Compact, "", "shorten the conversation"),
    row("cost", Slash::Cost, "", "what this session has cost"),
    row("exit", Slash::Exit, "", "leave, as Ctrl+D does"),
    row("quit", Slash::Exit, "", "leave"),
];

/// What a line is.
#[derive(Debug, PartialEq)]
pub enum Line<'a> {
    Prompt(&'a str),
    Slash(Slash, &'a str),
    /// A command that is none, and its nearest neighbour.
    Unknown(&'a str, Option<&'static str>),
    Empty,
}

/// Reads a line. A path such as `/usr/bin` is a prompt, not a command.
pub fn read(line: &str) -> Line<'_> {
    let line = line.trim();
    if line.is_empty() {
        return Line::Empty;
    }
    let Some(command) = line.strip_prefix('/') else { return Line::Prompt(line) };
    let (name, argument) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    match SLASH.iter().find(|row| row.name == name) {
        Some(row) => Line::Slash(row.slash, argument.trim()),
        None if name.contains('/') || name.is_empty() => Line::Prompt(line),
        None => Line::Unknown(name, nearest(name, SLASH.iter().map(|row| row.name))),
    }
}

/// The list for `/help`.
pub fn help() -> String {
    let mut text = String::new();
    for row in SLASH {
        let usage = format!("/{} {}", row.name, row.argument);
        text.push_str(&format!("{:<15} {}\n", usage.trim_end(), row.doc));
    }
    text.push_str("Alt+Enter or a \\ at the end of a line: go on in the next line. Ctrl+C stops a turn, Ctrl+D leaves.\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_prompt_a_command_or_a_near_miss() {
        for (line, want) in [
            ("  ", Line::Empty),
            ("do it", Line::Prompt("do it")),
            ("/status", Line::Slash(Slash::Status, "")),
            ("/model  m1 ", Line::Slash(Slash::Model, "m1")),
            ("/quit", Line::Slash(Slash::Exit, "")),
            ("/stat", Line::Unknown("stat", Some("status"))),
            ("/xyzzy", Line::Unknown("xyzzy", None)),
            ("/usr/bin/env is what?", Line::Prompt("/usr/bin/env is what?")),
        ] {
            assert_eq!(read(line), want, "{line:?}");
        }
    }

    #[test]
    fn help_lists_every_command_once() {
        let help = help();
        for row in SLASH {
            assert_eq!(help.lines().filter(|line| line.starts_with(&format!("/{} ", row.name))).count(), 1);
        }
    }
}
