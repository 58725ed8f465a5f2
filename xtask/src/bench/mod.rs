//! Measures what Yaoki itself costs: start, memory, processor, syncs.
//!
//! Promises: medians of several runs of the release build against a model that answers at once, so that
//! what is left is ours; the run before the first is thrown away. Linux only: it reads `/proc`.
//! Deliberately not here: how good the answers are, and any real model.

mod agent;
mod bare;
mod canned;
mod sample;
mod server;
mod table;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use self::agent::{Job, Measured};
use self::table::{Bound, Row};
use crate::house::House;

/// Odd, so that the median is a run that took place.
const RUNS: usize = 11;

/// Rounds of the long job, and what the log must sync for them: once for the prompt, twice for each
/// command, once for the end.
const ROUNDS: usize = 50;
const SYNCS: f64 = 102.0;

/// What to measure and how to tell it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Wish {
    is_json: bool,
    /// A program to measure in place of a fresh release build.
    binary: Option<PathBuf>,
}

impl Wish {
    /// Reads `[--json] [--binary PATH]`.
    pub fn read(words: &[&str]) -> Result<Wish, String> {
        let mut wish = Wish::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--json" => wish.is_json = true,
                "--binary" => {
                    let path = words.next().ok_or("--binary needs a path")?;
                    wish.binary = Some(PathBuf::from(path));
                }
                other => return Err(format!("bench knows --json and --binary PATH, not {other}")),
            }
        }
        Ok(wish)
    }
}

/// Measures and prints; a limit that is not met is a failure.
pub fn run(house: &House, wish: &Wish) -> Result<ExitCode, String> {
    let binary = match &wish.binary {
        Some(path) => std::path::absolute(path).map_err(|why| format!("{}: {why}", path.display()))?,
        None => build(house)?,
    };
    let folder = house.target.join("bench");
    let rows = measure(&binary, &folder)?;
    let text = if wish.is_json { table::to_json(RUNS, &rows) } else { table::to_text(RUNS, &rows) };
    println!("{text}");
    let is_met = rows.iter().all(|row| row.is_met() != Some(false));
    Ok(if is_met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn build(house: &House) -> Result<PathBuf, String> {
    let mut cargo = house.cargo(&["build", "--release", "--locked", "--package", "yaoki-cli"]);
    let built = cargo.status().map_err(|why| format!("cannot run cargo: {why}"))?;
    let binary = house.target.join("release/yaoki");
    if built.success() { Ok(binary) } else { Err("the release build failed".to_owned()) }
}

fn measure(binary: &Path, folder: &Path) -> Result<Vec<Row>, String> {
    let once = series(binary, folder, Job { rounds: 0 })?;
    let long = series(binary, folder, Job { rounds: ROUNDS })?;
    let syncs_ms = several(|| bare::syncs_ms(folder, SYNCS as usize))?;
    let shells_ms = several(|| bare::shells_ms(ROUNDS))?;
    let version_ms = several(|| bare::program_ms(Command::new(binary).arg("--version")))?;
    let at_most = |limit: f64, target: f64| Bound::AtMost { limit, target };
    let of = |runs: &[Measured], what: fn(&Measured) -> f64| runs.iter().map(what).collect::<Vec<f64>>();
    Ok(vec![
        Row::new("yaoki --version", "ms", version_ms, at_most(5.0, 5.0)),
        Row::new(
            "one answer: start to first request",
            "ms",
            of(&once, |m| m.first_request_ms),
            at_most(30.0, 15.0),
        ),
        Row::new("one answer: processor", "ms", of(&once, |m| m.own_cpu_ms), at_most(15.0, 15.0)),
        Row::new("one answer: peak memory", "MB", of(&once, |m| m.peak_mb), at_most(30.0, 25.0)),
        Row::new("one answer: wall", "ms", of(&once, |m| m.wall_ms), Bound::Told),
        Row::new(
            "50 rounds: processor, children too",
            "s",
            of(&long, |m| m.all_cpu_ms / 1e3),
            at_most(0.6, 0.3),
        ),
        Row::new("50 rounds: processor, own", "s", of(&long, |m| m.own_cpu_ms / 1e3), at_most(0.1, 0.1)),
        Row::new(
            "50 rounds: syncs of the log",
            "",
            of(&long, |m| m.log_syncs),
            Bound::Near { want: SYNCS, slack: 2.0 },
        ),
        Row::new("50 rounds: peak memory", "MB", of(&long, |m| m.peak_mb), Bound::Told),
        Row::new("50 rounds: wall", "ms", of(&long, |m| m.wall_ms), Bound::Told),
        Row::new("for scale: 102 bare fdatasync", "ms", syncs_ms, Bound::Told),
        Row::new("for scale: 50 bare sh -c true", "ms", shells_ms, Bound::Told),
    ])
}

/// Plays a job once to warm the caches, then as often as the median needs.
fn series(binary: &Path, folder: &Path, job: Job) -> Result<Vec<Measured>, String> {
    agent::play(binary, folder, job)?;
    several(|| agent::play(binary, folder, job))
}

fn several<T>(mut once: impl FnMut() -> Result<T, String>) -> Result<Vec<T>, String> {
    (0..RUNS).map(|_| once()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_is_read_and_an_unknown_word_is_told() {
        assert_eq!(Wish::read(&[]), Ok(Wish::default()));
        let wish = Wish { is_json: true, binary: Some(PathBuf::from("a")) };
        assert_eq!(Wish::read(&["--binary", "a", "--json"]), Ok(wish));
        assert!(Wish::read(&["--binary"]).is_err());
        assert!(Wish::read(&["--fast"]).is_err());
    }
}
