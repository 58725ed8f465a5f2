//! The commands: one row, one file each.
//!
//! Promises: help and documentation name exactly these. Deliberately not here: reading the command line (`args`).

pub mod chat;
pub mod demo;
pub mod docs;
pub mod lab;
pub mod resume;
pub mod sessions;

use std::future::Future;

use crate::args::Cli;
use crate::exit::CliError;

/// One command.
pub struct CommandRow {
    /// As it is typed; empty for what happens without one.
    pub name: &'static str,
    pub usage: &'static str,
    pub doc: &'static str,
    pub run: fn(Cli) -> Result<u8, CliError>,
}

pub const COMMANDS: &[CommandRow] = &[
    CommandRow {
        name: "",
        usage: "yaoki [-p] [PROMPT]",
        doc: "Hold a conversation; with `-p` answer one prompt, print, and exit.",
        run: chat::run,
    },
    CommandRow {
        name: "resume",
        usage: "yaoki resume [ID] [PROMPT] [--continue]",
        doc: "Open an earlier session, say what was found, and go on where it stopped.",
        run: resume::run,
    },
    CommandRow {
        name: "sessions",
        usage: "yaoki sessions [--all] [--json]",
        doc: "List the sessions there are.",
        run: sessions::run,
    },
    CommandRow {
        name: "demo",
        usage: "yaoki demo [--keep]",
        doc: "Play a story of faults and recoveries, offline.",
        run: demo::run,
    },
    CommandRow {
        name: "lab",
        usage: "yaoki lab serve SCRIPT | schema",
        doc: "Serve a scripted model on loopback, or print what a script may hold.",
        run: lab::run,
    },
    CommandRow {
        name: "__docs",
        usage: "yaoki __docs NAME",
        doc: "Print a table of the documentation.",
        run: docs::run,
    },
];

/// Runs what the command line asks for. Returns the exit code.
pub fn run(cli: Cli) -> Result<u8, CliError> {
    let name = cli.command.as_ref().map_or("", |command| command.name());
    let row = COMMANDS.iter().find(|row| row.name == name).expect("every command has a row");
    (row.run)(cli)
}

/// Runs a future on a runtime of this thread, and does not wait for threads that wait for a person.
fn block_on<T>(future: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::environment(format_args!("cannot start the runtime: {error}"), ""))?;
    let result = runtime.block_on(future);
    runtime.shutdown_background();
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_of_the_command_line_has_one_row() {
        let mut named: Vec<String> = crate::args::definition()
            .get_subcommands()
            .map(|command| command.get_name().to_owned())
            .collect();
        named.push(String::new());
        named.sort();
        let mut rows: Vec<&str> = COMMANDS.iter().map(|row| row.name).collect();
        rows.sort_unstable();
        assert_eq!(named, rows);
    }
}
