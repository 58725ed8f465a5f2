//! Without a command: a conversation, or with `-p` one prompt.

use std::io::IsTerminal;

use super::block_on;
use crate::args::{Cli, RunFlags};
use crate::exit::CliError;
use crate::launch::{self, Launch};
use crate::print::{self, Job};
use crate::repl::{self, Begin};

pub fn run(cli: Cli) -> Result<u8, CliError> {
    let flags = &cli.run;
    match &flags.print {
        Some(beside) => {
            let ready = || {
                print::check(flags)?;
                let given = prompt_of(beside, cli.prompt.as_deref())?;
                let prompt = crate::prompt::read(given)?;
                prepared(&cli).map(|(launch, session)| (prompt, launch, session))
            };
            let (prompt, launch, session) = ready().inspect_err(|error| {
                print::fail_in_json(flags, cli.resume.as_deref(), error);
            })?;
            block_on(print::run(&launch, flags, Job { session, prompt: Some(prompt) }))
        }
        None => {
            refuse_print_flags(flags).inspect_err(|error| print::fail_in_json(flags, None, error))?;
            let (launch, session) = prepared(&cli)?;
            block_on(repl::run(launch, Begin { session, prompt: cli.prompt, finish: false }))
        }
    }
}

/// Decides how to start and in which session.
fn prepared(cli: &Cli) -> Result<(Launch, Option<String>), CliError> {
    let launch = Launch::prepare(&cli.run, cli.resume.is_some() || cli.continue_newest)?;
    let session = match (&cli.resume, cli.continue_newest) {
        (Some(id), _) => Some(id.clone()),
        (None, true) => Some(newest(&launch)?),
        (None, false) => None,
    };
    Ok((launch, session))
}

/// Returns the newest session of the working folder.
pub fn newest(launch: &Launch) -> Result<String, CliError> {
    let (home, cwd) = (&launch.config.home, &launch.config.cwd);
    let listed = super::sessions::listed(home, Some(cwd))?;
    listed.into_iter().next().map(|session| session.id).ok_or_else(|| {
        CliError::environment(
            "No conversation found in this folder",
            "yaoki sessions --all lists those of others",
        )
    })
}

/// The prompt beside `-p`, or the one that stands apart; both would be one too many.
pub fn prompt_of<'a>(beside: &'a str, apart: Option<&'a str>) -> Result<Option<&'a str>, CliError> {
    match (beside, apart) {
        ("", apart) => Ok(apart),
        (beside, None) => Ok(Some(beside)),
        (_, Some(apart)) => Err(CliError::usage(
            format_args!("two prompts were given, the second is {apart:?}"),
            "put one prompt into quotes",
        )),
    }
}

/// Flags that mean nothing in a conversation.
fn refuse_print_flags(flags: &RunFlags) -> Result<(), CliError> {
    let wrong = if flags.output_format.is_some() {
        "--output-format"
    } else if flags.typed_exit_codes {
        "--typed-exit-codes"
    } else {
        return Ok(());
    };
    Err(CliError::usage(format_args!("{wrong} is for -p"), "add -p and a prompt"))
}

/// Whether there is a person at a terminal.
pub fn is_attended() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Where sessions are, for commands that need nothing else.
pub fn home() -> Result<std::path::PathBuf, CliError> {
    launch::home(&crate::settings::env::Env::process())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_prompt_is_taken_and_two_are_refused() {
        assert_eq!(prompt_of("a", None).unwrap(), Some("a"));
        assert_eq!(prompt_of("", Some("b")).unwrap(), Some("b"));
        assert_eq!(prompt_of("", None).unwrap(), None);
        assert_eq!(prompt_of("a", Some("b")).unwrap_err().kind.code(), 2);
    }
}
