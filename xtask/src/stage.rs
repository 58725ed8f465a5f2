//! One stage of the tests: what it does, how long it may take, how to repeat it alone.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::house::House;
use crate::process::{self, End};
use crate::tally::Tally;

/// A row of the plan.
pub struct Stage {
    pub name: &'static str,
    /// What it shows when it passes, in a few words.
    pub what: &'static str,
    pub limit: Duration,
    pub work: Work,
}

/// What a stage does.
pub enum Work {
    /// Programs, in order; the first that fails ends the stage.
    Run(fn(&House, Pace) -> Vec<Command>),
    /// Something in this program; an empty list is a pass.
    Look(fn(&House) -> Result<Vec<String>, String>),
}

/// How much of the long stages to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    Full,
    /// For people between two edits.
    Quick,
}

/// What came of a stage.
pub struct Outcome {
    pub name: &'static str,
    pub took: Duration,
    pub tally: Tally,
    /// Why it failed; `None` when it passed.
    pub failure: Option<String>,
}

impl Stage {
    pub fn play(&self, house: &House, pace: Pace) -> Outcome {
        println!("\n== {}: {}", self.name, self.what);
        let started = Instant::now();
        let (tally, failure) = match &self.work {
            Work::Run(commands) => self.run(commands(house, pace), started),
            Work::Look(look) => (Tally::default(), told(look(house))),
        };
        let took = started.elapsed();
        let word = if failure.is_some() { "FAILED" } else { "ok" };
        println!("== {}: {word} in {}", self.name, seconds(took));
        if let Some(why) = &failure {
            println!("   {why}\n   again: cargo xtask test {}", self.name);
        }
        Outcome { name: self.name, took, tally, failure }
    }

    fn run(&self, commands: Vec<Command>, started: Instant) -> (Tally, Option<String>) {
        let mut tally = Tally::default();
        for mut command in commands {
            let line = in_words(&command);
            println!("   $ {line}");
            let left = self.limit.saturating_sub(started.elapsed());
            let failure = match process::run(&mut command, left) {
                Ok((end, seen)) => {
                    tally += seen;
                    match end {
                        End::Passed => None,
                        End::Failed(Some(status)) => Some(format!("`{line}` ended with {status}")),
                        End::Failed(None) => Some(format!("`{line}` was ended by a signal")),
                        End::TimedOut => Some(format!("`{line}` took longer than {}", seconds(self.limit))),
                    }
                }
                Err(why) => Some(format!("`{line}` could not be run: {why}")),
            };
            if failure.is_some() {
                return (tally, failure);
            }
        }
        (tally, None)
    }
}

/// Prints what was found and returns its count as a failure.
fn told(found: Result<Vec<String>, String>) -> Option<String> {
    let wrong = match found {
        Ok(wrong) => wrong,
        Err(why) => return Some(why),
    };
    for line in &wrong {
        println!("   {line}");
    }
    (!wrong.is_empty()).then(|| format!("{} found", wrong.len()))
}

/// Returns the command as a person would type it, with the variables that matter.
fn in_words(command: &Command) -> String {
    let mut words: Vec<String> = Vec::new();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            words.push(format!("{}='{}'", name.to_string_lossy(), value.to_string_lossy()));
        }
    }
    let program = std::path::Path::new(command.get_program());
    words.push(program.file_name().unwrap_or_default().to_string_lossy().into_owned());
    words.extend(command.get_args().map(|arg| arg.to_string_lossy().into_owned()));
    words.join(" ")
}

/// Returns a time as people read it: `8.3 s`, `12 min 5 s`.
pub fn seconds(time: Duration) -> String {
    match time.as_secs() {
        0..60 => format!("{:.1} s", time.as_secs_f64()),
        all => format!("{} min {} s", all / 60, all % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_program_ends_its_stage_and_is_named() {
        fn commands(_: &House, _: Pace) -> Vec<Command> {
            vec![Command::new("true"), Command::new("false"), Command::new("no-such-program")]
        }
        let stage = Stage {
            name: "probe",
            what: "a probe",
            limit: Duration::from_secs(60),
            work: Work::Run(commands),
        };
        let outcome = stage.play(&House::find(), Pace::Quick);
        assert_eq!(outcome.failure.as_deref(), Some("`false` ended with 1"));
    }

    #[test]
    fn what_a_look_finds_is_a_failure() {
        assert_eq!(told(Ok(Vec::new())), None);
        assert_eq!(told(Ok(vec!["a".to_owned()])).as_deref(), Some("1 found"));
        assert_eq!(told(Err("no git".to_owned())).as_deref(), Some("no git"));
    }

    #[test]
    fn times_are_read_by_people() {
        assert_eq!(seconds(Duration::from_millis(8_300)), "8.3 s");
        assert_eq!(seconds(Duration::from_secs(725)), "12 min 5 s");
    }
}
