//! Standard output and standard error, for a process whose reader may leave.
//!
//! Promises: a closed pipe is an answer, never a panic and never a busy loop; writing stops with the first failure.
//! Deliberately not here: what is written.

use std::io::{self, IsTerminal, Write};

use crate::exit::CliError;
use crate::render::style::Look;
use crate::settings::env::Env;

/// Nobody reads standard output any more, or it cannot be written.
#[derive(Debug)]
pub enum Gone {
    /// The reader left: we end too, without a word.
    Closed,
    Failed(io::Error),
}

/// Writes to standard output and flushes.
pub fn stdout(text: &str) -> Result<(), Gone> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Gone::Closed,
        _ => Gone::Failed(error),
    })
}

/// Prints the whole output of a command that only prints.
///
/// Errors: it cannot be written; a reader who left early has read enough.
pub fn print(text: &str) -> Result<(), CliError> {
    match stdout(text) {
        Ok(()) | Err(Gone::Closed) => Ok(()),
        Err(Gone::Failed(error)) => Err(CliError::environment(
            format_args!("cannot write to standard output: {error}"),
            "check the disk that it goes to",
        )),
    }
}

/// Writes a line to standard error; there is nowhere to complain if that fails.
pub fn stderr(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// How text looks on standard output.
pub fn stdout_look(env: &Env) -> Look {
    look(io::stdout().is_terminal(), env)
}

/// How text looks on standard error.
pub fn stderr_look(env: &Env) -> Look {
    look(io::stderr().is_terminal(), env)
}

fn look(is_terminal: bool, env: &Env) -> Look {
    let term = env.get("TERM").ok().flatten().unwrap_or_default();
    if !is_terminal || term == "dumb" {
        return Look::PLAIN;
    }
    let (columns, rows) = crossterm::terminal::size().unwrap_or((80, 24));
    let no_color = env.get("NO_COLOR").ok().flatten().is_some();
    // A line as wide as the screen would wrap on some terminals, and then be two rows.
    Look {
        tty: true,
        color: !no_color,
        width: usize::from(columns.max(21)) - 1,
        height: usize::from(rows.max(8)),
    }
}
