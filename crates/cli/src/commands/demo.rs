//! `yaoki demo`: faults and recoveries, offline, with checks. 0 if all of them hold.

use crate::args::{Cli, Command};
use crate::demo;
use crate::exit::{CliError, ENDED_BADLY, GOOD};
use crate::out;
use crate::settings::env::Env;

pub fn run(cli: Cli) -> Result<u8, CliError> {
    let Some(Command::Demo(args)) = cli.command else { unreachable!("the row is chosen by the command") };
    let look = out::stdout_look(&Env::process());
    let holds = demo::play(&mut std::io::stdout(), look, args.keep)?;
    Ok(if holds { GOOD } else { ENDED_BADLY })
}
