//! The stages, in the order they are played, and the table that closes a run.
//!
//! Promises: every stage asked for is played, also after a failure, so that one run tells all; the last
//! line is `N passed, N failed`.

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use crate::house::House;
use crate::stage::{Outcome, Pace, Stage, Work, seconds};
use crate::tally::Tally;
use crate::{arrows, banned, docs, purity, tidy};

/// The stages of `cargo xtask check`.
pub const CHECK: [&str; 5] = ["fmt", "clippy", "banned", "walls", "tidy"];

/// A row a stage. The limits are several times what a slow machine with two cores needs.
const STAGES: [Stage; 9] = [
    Stage { name: "fmt", what: "the code is formatted", limit: minutes(2), work: Work::Run(fmt) },
    Stage { name: "clippy", what: "no lint speaks", limit: minutes(20), work: Work::Run(clippy) },
    Stage {
        name: "banned",
        what: "no banned crate is linked",
        limit: minutes(2),
        work: Work::Look(banned::check),
    },
    Stage {
        name: "walls",
        what: "arrows point at core, and core is pure",
        limit: minutes(2),
        work: Work::Look(walls),
    },
    Stage { name: "tidy", what: "no leftovers", limit: minutes(2), work: Work::Look(tidy) },
    Stage {
        name: "docs",
        what: "generated tables are fresh",
        limit: minutes(15),
        work: Work::Look(docs::stale),
    },
    Stage {
        name: "tests",
        what: "unit, integration and process tests",
        limit: minutes(25),
        work: Work::Run(tests),
    },
    Stage {
        name: "sim",
        what: "the whole agent by seed, with crashes",
        limit: minutes(20),
        work: Work::Run(sim),
    },
    Stage { name: "mutants", what: "seeded bugs are caught", limit: minutes(20), work: Work::Run(mutants) },
];

const fn minutes(count: u64) -> Duration {
    Duration::from_secs(count * 60)
}

fn fmt(house: &House, _: Pace) -> Vec<Command> {
    vec![house.cargo(&["fmt", "--all", "--", "--check"])]
}

fn clippy(house: &House, _: Pace) -> Vec<Command> {
    vec![house.cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])]
}

fn walls(house: &House) -> Result<Vec<String>, String> {
    let mut wrong = arrows::check(house)?;
    wrong.extend(arrows::check_sim(house)?);
    wrong.extend(purity::check(house)?);
    Ok(wrong)
}

fn tidy(house: &House) -> Result<Vec<String>, String> {
    let found = tidy::check(house)?;
    for warning in &found.warnings {
        println!("   note: {warning}");
    }
    Ok(found.wrong)
}

fn tests(house: &House, _: Pace) -> Vec<Command> {
    vec![house.cargo(&["test", "--workspace", "--locked", "--no-fail-fast"])]
}

/// Schedules by seed for a fixed time; the full time is held against the figures of a landing.
fn sim(house: &House, pace: Pace) -> Vec<Command> {
    let much: &[&str] = match pace {
        Pace::Full => &["--seconds", "300", "--gate"],
        Pace::Quick => &["--seconds", "20"],
    };
    let mut run = Command::new(house.program("yaoki-sim"));
    run.args(["run", "--workers", "2"]).args(much).current_dir(&house.root);
    vec![house.build(), run]
}

/// One build with the bugs in it; which of them bites is chosen at run time. What no schedule can show, core's own
/// courses do.
fn mutants(house: &House, _: Pace) -> Vec<Command> {
    let run = ["run", "--quiet", "--locked", "--package", "yaoki-sim", "--", "mutants"];
    let teeth = ["test", "--locked", "--package", "yaoki-core", "--test", "turn", "teeth"];
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default() + " --cfg mutants";
    [run.as_slice(), teeth.as_slice()]
        .map(|args| {
            let mut cargo = house.cargo(args);
            // A folder of its own: other flags would make cargo build everything again, twice.
            cargo.env("RUSTFLAGS", flags.trim()).env("CARGO_TARGET_DIR", house.target.join("mutants"));
            cargo
        })
        .into()
}

/// Which stages to play, and how long.
#[derive(Debug, PartialEq, Eq)]
pub struct Plan {
    names: Vec<String>,
    pace: Pace,
}

impl Plan {
    /// Returns a plan of the stages with these names, in full.
    pub fn named(names: &[&str]) -> Plan {
        Plan { names: names.iter().map(|name| (*name).to_owned()).collect(), pace: Pace::Full }
    }

    /// Reads `[STAGE…] [--quick]`; no stage means all.
    pub fn read(words: &[&str]) -> Result<Plan, String> {
        let mut plan = Plan { names: Vec::new(), pace: Pace::Full };
        for word in words {
            match *word {
                "--quick" => plan.pace = Pace::Quick,
                "check" => plan.names.extend(CHECK.iter().map(|name| (*name).to_owned())),
                name if STAGES.iter().any(|stage| stage.name == name) => plan.names.push(name.to_owned()),
                other => {
                    let known: Vec<&str> = STAGES.iter().map(|stage| stage.name).collect();
                    return Err(format!("no such stage: {other}; there are check, {}", known.join(", ")));
                }
            }
        }
        if plan.names.is_empty() {
            plan.names = STAGES.iter().map(|stage| stage.name.to_owned()).collect();
        }
        Ok(plan)
    }
}

/// Plays the stages of the plan and prints the closing table; nothing is printed after it.
pub fn play(house: &House, plan: &Plan) -> ExitCode {
    let started = Instant::now();
    let chosen = STAGES.iter().filter(|stage| plan.names.iter().any(|name| name == stage.name));
    let outcomes: Vec<Outcome> = chosen
        .map(|stage| {
            install(house, stage.name);
            stage.play(house, plan.pace)
        })
        .collect();
    println!("\n{}", closing(&outcomes, started.elapsed()));
    let is_good = outcomes.iter().all(|outcome| outcome.failure.is_none());
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Gets the toolchain part that a stage needs, where it is missing and rustup is there to ask.
///
/// A refusal is not told here: the stage itself fails next and says what it could not run.
fn install(house: &House, stage: &str) {
    let (tool, component) = match stage {
        "fmt" => ("fmt", "rustfmt"),
        "clippy" => ("clippy", "clippy"),
        _ => return,
    };
    let answer = house.cargo(&[tool, "--version"]).output();
    if !answer.is_ok_and(|answer| answer.status.success()) {
        println!("   $ rustup component add {component}");
        let _ =
            Command::new("rustup").args(["component", "add", component]).current_dir(&house.root).status();
    }
}

/// Returns the table that closes a run; its last line is the sum.
fn closing(outcomes: &[Outcome], took: Duration) -> String {
    let mut table = format!("{:<10}{:<9}{:>12}{:>9}{:>9}\n", "stage", "", "time", "passed", "failed");
    let mut sum = Tally::default();
    for outcome in outcomes {
        let mut tally = outcome.tally;
        // A stage may fail without a failing test, and must not hide behind "0 failed".
        if outcome.failure.is_some() && tally.failed == 0 {
            tally.failed = 1;
        }
        sum += tally;
        let word = if outcome.failure.is_some() { "FAILED" } else { "ok" };
        let count = |count: u64| if tally == Tally::default() { String::new() } else { count.to_string() };
        table += &format!(
            "{:<10}{word:<9}{:>12}{:>9}{:>9}\n",
            outcome.name,
            seconds(outcome.took),
            count(tally.passed),
            count(tally.failed)
        );
    }
    for outcome in outcomes {
        if let Some(why) = &outcome.failure {
            table += &format!("{}: {why}; again: cargo xtask test {}\n", outcome.name, outcome.name);
        }
    }
    table
        + &format!(
            "{:<10}{:<9}{:>12}\n\n{} passed, {} failed",
            "all",
            "",
            seconds(took),
            sum.passed,
            sum.failed
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_names_stages_that_exist() {
        let all = Plan::read(&[]).unwrap();
        assert_eq!(all.names.len(), STAGES.len());
        assert_eq!(
            Plan::read(&["sim", "--quick"]),
            Ok(Plan { names: vec!["sim".to_owned()], pace: Pace::Quick })
        );
        assert_eq!(Plan::read(&["check"]), Ok(Plan::named(&CHECK)));
        assert!(Plan::read(&["sym"]).is_err());
        assert!(CHECK.iter().all(|name| STAGES.iter().any(|stage| stage.name == *name)));
    }

    #[test]
    fn a_stage_that_fails_without_a_test_counts_as_one() {
        let outcome = |name, passed, failed, failure: Option<&str>| Outcome {
            name,
            took: Duration::from_secs(1),
            tally: Tally { passed, failed },
            failure: failure.map(str::to_owned),
        };
        let outcomes = [outcome("fmt", 0, 0, Some("unformatted")), outcome("tests", 7, 2, Some("two"))];
        let table = closing(&outcomes, Duration::from_secs(2));
        assert!(table.ends_with("\n7 passed, 3 failed"), "{table}");
        assert!(table.contains("fmt: unformatted; again: cargo xtask test fmt"), "{table}");
        assert!(closing(&[], Duration::ZERO).ends_with("\n0 passed, 0 failed"));
    }
}
