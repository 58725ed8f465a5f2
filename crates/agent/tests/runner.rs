//! The command runner against real processes: one binary that is the runner, an agent that gets killed, and
//! the tests themselves.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<std::ffi::OsString> = std::env::args_os().collect();
    if args.get(1).is_some_and(|arg| arg == yaoki::runner::RUNNER_ARG) {
        return yaoki::runner::main_from_args(&args[2]);
    }
    ExitCode::SUCCESS
}
