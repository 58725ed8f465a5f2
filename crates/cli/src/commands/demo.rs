//! `yaoki demo`: faults and recoveries, offline, with checks. 0 if all of them hold.

use std::io::{self, ErrorKind, Write};

use crate::args::{Cli, Command};
use crate::demo;
use crate::exit::{CliError, ENDED_BADLY, GOOD};
use crate::out;
use crate::settings::env::Env;

pub fn run(cli: Cli) -> Result<u8, CliError> {
    let Some(Command::Demo(args)) = cli.command else { unreachable!("the row is chosen by the command") };
    let look = out::stdout_look(&Env::process());
    let holds = demo::play(&mut Patient(io::stdout()), look, args.keep)?;
    Ok(if holds { GOOD } else { ENDED_BADLY })
}

/// A reader who leaves misses the rest; what is checked at the end is still the exit code.
struct Patient<W>(W);

impl<W: Write> Write for Patient<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(bytes.len()),
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0.flush() {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            flushed => flushed,
        }
    }
}
