//! Yaoki shows here: the `yaoki` command, its print mode, its conversation, its exit codes.
//!
//! Promises: `--version` and the runner start nothing else; whatever goes wrong is one line and an exit code.
//! Deliberately not here: the loop, tools, recovery; the library does that, and this crate sees it from outside.

mod args;
mod background;
mod commands;
mod demo;
mod exit;
mod launch;
mod out;
mod panic;
mod print;
mod prompt;
mod render;
mod repl;
mod settings;
mod signals;
mod stream_json;
mod turn;

use std::ffi::OsString;
use std::process::ExitCode;

use crate::args::{Cli, Parsed};
use crate::exit::{CliError, ENDED_BADLY};

fn main() -> ExitCode {
    let argv: Vec<OsString> = std::env::args_os().collect();
    // Commands run under this; it must not depend on anything that could be configured.
    if let [_, runner, folder] = argv.as_slice()
        && runner == yaoki::runner::RUNNER_ARG
    {
        return yaoki::runner_main(folder);
    }
    panic::install();
    let code = std::panic::catch_unwind(|| run(argv)).unwrap_or(ENDED_BADLY);
    ExitCode::from(code)
}

fn run(argv: Vec<OsString>) -> u8 {
    match started(argv) {
        Ok(code) => code,
        Err(error) => {
            out::stderr(&format!("yaoki: {error}"));
            error.kind.code()
        }
    }
}

fn started(argv: Vec<OsString>) -> Result<u8, CliError> {
    if let [_, only] = argv.as_slice()
        && let Some(version) = version(only)
    {
        out::print(version)?;
        return Ok(exit::GOOD);
    }
    let wants_json = args::wants_json(&argv);
    match args::parse(argv) {
        Ok(Cli { version: true, .. }) => out::print(VERSION).map(|()| exit::GOOD),
        Ok(cli) => commands::run(cli),
        Err(Parsed::Text(help)) => out::print(&help).map(|()| exit::GOOD),
        Err(Parsed::Wrong(error)) => {
            if wants_json {
                print::tell_in_json(None, &error);
            }
            Err(error)
        }
    }
}

const VERSION: &str = concat!("yaoki ", env!("CARGO_PKG_VERSION"), "\n");

/// Claude's clients look for a number at the start of what `-v` prints.
fn version(argument: &OsString) -> Option<&'static str> {
    match argument.to_str()? {
        "--version" | "-V" => Some(VERSION),
        "-v" => Some(concat!("2.1.300 (yaoki ", env!("CARGO_PKG_VERSION"), ")\n")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_name_us_and_the_number_that_clients_look_for() {
        assert_eq!(version(&"--version".into()), Some("yaoki 0.1.0\n"));
        assert_eq!(version(&"-V".into()), Some("yaoki 0.1.0\n"));
        let claude = version(&"-v".into()).unwrap();
        assert_eq!(claude, "2.1.300 (yaoki 0.1.0)\n");
        assert!(claude.starts_with(stream_json::CLAUDE_VERSION));
        assert_eq!(version(&"-p".into()), None);
    }
}
