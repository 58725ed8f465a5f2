//! The chores of this repository, as one command: `cargo xtask help` lists them.
//!
//! Promises: nothing but the standard library, so a clean clone builds this at once; every child
//! process has a time limit; a failure names its stage and the command that repeats it.
//! Deliberately not here: anything a user of Yaoki needs; that is the `yaoki` command.

mod arrows;
mod banned;
mod bench;
mod docs;
mod house;
mod manifest;
mod process;
mod purity;
mod source;
mod stage;
mod stages;
mod tally;
mod tidy;

use std::process::ExitCode;

use house::House;
use stages::Plan;

const HELP: &str = "\
Usage: cargo xtask COMMAND

  check               formatting, lints, banned crates, walls, tidiness
  walls               which crate may see which, and that core stays pure
  tidy                leftovers that should not be committed
  test [STAGE…]       everything, in stages; --quick shortens the simulation
  docs [--check]      write the generated tables of the docs, or tell which are stale
  bench [--json]      what Yaoki itself costs, beside its limits; --binary PATH measures another build
  help                this text
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let house = House::find();
    let done = match words.as_slice() {
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(ExitCode::SUCCESS)
        }
        ["check"] => Ok(stages::play(&house, &Plan::named(&stages::CHECK))),
        ["walls"] => Ok(stages::play(&house, &Plan::named(&["walls"]))),
        ["tidy"] => Ok(stages::play(&house, &Plan::named(&["tidy"]))),
        ["test", rest @ ..] => Plan::read(rest).map(|plan| stages::play(&house, &plan)),
        ["docs"] => docs::write(&house).map(|()| ExitCode::SUCCESS),
        ["docs", "--check"] => docs::check(&house).map(|()| ExitCode::SUCCESS),
        ["bench", rest @ ..] => bench::Wish::read(rest).and_then(|wish| bench::run(&house, &wish)),
        other => Err(format!("no such chore: {}\n\n{HELP}", other.join(" "))),
    };
    done.unwrap_or_else(|why| {
        eprintln!("xtask: {why}");
        ExitCode::FAILURE
    })
}
