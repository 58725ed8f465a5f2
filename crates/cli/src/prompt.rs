//! Where the prompt of `-p` comes from: the command line, standard input, or both.
//!
//! Promises: a pipe that nobody writes to delays a prompt that is there, but does not hold it up for ever.
//! Deliberately not here: the prompts of a conversation (`repl`).

use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::exit::CliError;

/// A prompt is at most this long; more is a file to read with tools.
const STDIN_BYTES_MAX: u64 = 10 << 20;
/// How long a pipe may stay silent beside a prompt on the command line.
const SILENCE_S_MAX: i64 = 3;

/// Returns the prompt. `given` is that of the command line; empty counts as none.
///
/// Errors: there is none, or standard input cannot be read.
pub fn read(given: Option<&str>) -> Result<String, CliError> {
    let given = given.map(str::trim).filter(|prompt| !prompt.is_empty());
    let piped = match (given, io::stdin().is_terminal()) {
        (_, true) => String::new(),
        (None, false) => read_stdin()?,
        (Some(_), false) if stdin_says_something() => read_stdin()?,
        (Some(_), false) => String::new(),
    };
    join(given, &piped)
}

fn join(given: Option<&str>, piped: &str) -> Result<String, CliError> {
    let piped = piped.trim();
    match given {
        Some(given) if piped.is_empty() => Ok(given.to_owned()),
        Some(given) => Ok(format!("{given}\n\n{piped}")),
        None if piped.is_empty() => Err(CliError::usage(
            "there is no prompt",
            "write it behind -p, as in yaoki -p \"make the tests pass\", or pipe it in",
        )),
        None => Ok(piped.to_owned()),
    }
}

fn read_stdin() -> Result<String, CliError> {
    let failed = |error: io::Error| {
        CliError::usage(
            format_args!("standard input cannot be read as a prompt: {error}"),
            "pipe in UTF-8 text",
        )
    };
    let mut text = String::new();
    io::stdin().lock().take(STDIN_BYTES_MAX + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > STDIN_BYTES_MAX {
        return Err(CliError::usage(
            "standard input is longer than 10 MiB",
            "put it into a file and name the file in the prompt",
        ));
    }
    Ok(text)
}

/// Waits a moment for the first byte, or the end, of standard input.
fn stdin_says_something() -> bool {
    let stdin = io::stdin();
    let mut fds = [PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN)];
    let wait = Timespec { tv_sec: SILENCE_S_MAX, tv_nsec: 0 };
    match poll(&mut fds, Some(&wait)) {
        Ok(0) => {
            crate::out::stderr(
                "! standard input is open but silent: going on without it (use < /dev/null to say so)",
            );
            false
        }
        // A closed standard input cannot be read, and has nothing to say.
        Ok(_) => !fds[0].revents().contains(PollFlags::NVAL),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prompt_is_what_is_given_what_is_piped_or_both() {
        assert_eq!(join(Some("a"), "").unwrap(), "a");
        assert_eq!(join(None, " b\n").unwrap(), "b");
        assert_eq!(join(Some("explain"), "log\n").unwrap(), "explain\n\nlog");
        let error = join(None, "\n").unwrap_err();
        assert_eq!(error.kind.code(), 2);
        assert!(error.to_string().starts_with("there is no prompt; "));
    }
}
