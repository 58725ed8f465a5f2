//! `yaoki resume`: an earlier session, with what was found in it.
//!
//! Without a terminal it is print mode. The permission mode is not taken over: it belonged to another run.

use super::block_on;
use super::chat::{is_attended, newest, prompt_of};
use crate::args::{Cli, Command, ResumeArgs};
use crate::exit::CliError;
use crate::launch::Launch;
use crate::print::{self, Job};
use crate::repl::{self, Begin};

pub fn run(cli: Cli) -> Result<u8, CliError> {
    let Some(Command::Resume(args)) = cli.command else { unreachable!("the row is chosen by the command") };
    let flags = &args.run;
    let is_print = flags.print.is_some() || !is_attended();
    let ready = || {
        let prompt = prompt(&args, is_print)?;
        prepared(&args).map(|(launch, session)| (prompt, launch, session))
    };
    let (prompt, launch, session) = ready().inspect_err(|error| {
        if is_print {
            print::fail_in_json(flags, args.id.as_deref(), error);
        }
    })?;
    if is_print {
        block_on(print::run(&launch, flags, Job { session: Some(session), prompt }))
    } else {
        block_on(repl::run(launch, Begin { session: Some(session), prompt, finish: args.finish }))
    }
}

fn prompt(args: &ResumeArgs, is_print: bool) -> Result<Option<String>, CliError> {
    if is_print {
        print::check(&args.run)?;
    }
    let given = prompt_of(args.run.print.as_deref().unwrap_or_default(), args.prompt.as_deref())?;
    if args.finish && given.is_some() {
        return Err(CliError::usage(
            "--continue finishes the open turn and takes no prompt",
            "finish it first, then resume again with the prompt",
        ));
    }
    match given {
        _ if args.finish => Ok(None),
        given if is_print => crate::prompt::read(given).map(Some).map_err(|error| CliError {
            hint: "give a prompt, or --continue to finish the turn that was left open".to_owned(),
            ..error
        }),
        given => Ok(given.map(str::to_owned)),
    }
}

fn prepared(args: &ResumeArgs) -> Result<(Launch, String), CliError> {
    let launch = Launch::prepare(&args.run, true)?;
    let session = match &args.id {
        Some(id) => id.clone(),
        None => newest(&launch)?,
    };
    Ok((launch, session))
}
