//! `yaoki-sim`: the simulation as a command, for the test stage and for people with a seed.

mod commands;

use std::process::ExitCode;

use commands::{determinism, mutants, replay, run};

const USAGE: &str = "\
yaoki-sim run [--seconds N] [--schedules N] [--workers N] [--from SEED] [--gate]
yaoki-sim replay SEED
yaoki-sim check-determinism SEEDS
yaoki-sim mutants [--seconds N] [NAME]      (in a build with --cfg mutants)";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str, default: u64| {
        let at = args.iter().position(|arg| arg == name);
        at.and_then(|at| args.get(at + 1)).and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let first: Option<u64> = args.get(1).and_then(|text| text.parse().ok());
    match (args.first().map(String::as_str), first) {
        (Some("run"), _) => run::run(&run::Run {
            seconds: number("--seconds", 20),
            schedules: number("--schedules", u64::MAX),
            workers: number("--workers", 2),
            from: number("--from", 1),
            is_gate: args.iter().any(|arg| arg == "--gate"),
        }),
        (Some("replay"), Some(seed)) => replay::replay(seed),
        (Some("check-determinism"), Some(seeds)) => match determinism::check(seeds) {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        },
        // For the process that compares.
        (Some("traces"), Some(seeds)) => {
            determinism::print(seeds);
            ExitCode::SUCCESS
        }
        (Some("mutants"), _) => {
            let only = args.last().filter(|name| name.contains('-') && !name.starts_with("--"));
            mutants::mutants(number("--seconds", 60), only.map(String::as_str))
        }
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}
