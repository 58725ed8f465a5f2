//! Commands that still run when print mode ends: its person must hear of them, for nobody else watches.
//!
//! Promises: what is named is alive now, by the lock that its runner holds. Deliberately not here: ending them.

use std::path::Path;

use yaoki::runner::{self, RunFolder, State};

use crate::render::plain::{clip, one_line};

const WHAT_CHARS_MAX: usize = 80;

/// One command of which something still runs.
#[derive(Debug, PartialEq, Eq)]
pub struct Alive {
    /// The model's name for it, `bash_12`.
    pub task: String,
    /// Its processes, such as `sleep (4711)`, where they are known.
    pub what: Option<String>,
}

/// Lists what still runs of a session, the oldest first. A folder that cannot be read holds nothing.
pub fn alive(session_folder: &Path) -> Vec<Alive> {
    let Ok(entries) = std::fs::read_dir(session_folder.join("run")) else { return Vec::new() };
    let mut found: Vec<(u64, Alive)> = entries.flatten().filter_map(|entry| of(&entry.path())).collect();
    found.sort_by_key(|(op, _)| *op);
    found.into_iter().map(|(_, alive)| alive).collect()
}

/// A run folder is called `op12-51c0a7be9f3c`.
fn of(path: &Path) -> Option<(u64, Alive)> {
    let name = path.file_name()?.to_str()?;
    let op: u64 = name.strip_prefix("op")?.split('-').next()?.parse().ok()?;
    let folder = RunFolder::new(path);
    if !runner::is_alive(&folder) {
        return None;
    }
    let what = match runner::state(&folder, true) {
        State::Running => None,
        // The runner is about to let go: nothing was left behind.
        State::Ended(report) if report.left.is_empty() => return None,
        State::Ended(report) => Some(clip(&one_line(&report.left.join(", ")), WHAT_CHARS_MAX)),
        State::NeverRan | State::Died { .. } => return None,
    };
    Some((op, Alive { task: format!("bash_{op}"), what }))
}

/// `bash_9 (sleep (33)) still runs; …`: one line for all.
pub fn told(alive: &[Alive], session: &str) -> String {
    let name = |alive: &Alive| match &alive.what {
        Some(what) => format!("{} ({what})", alive.task),
        None => alive.task.clone(),
    };
    let names: Vec<String> = alive.iter().map(name).collect();
    let verb = if alive.len() == 1 { "runs" } else { "run" };
    format!(
        "{} still {verb} in the background; yaoki resume {session} goes on here and can look or stop",
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_told_in_one_line() {
        let sleep = Alive { task: "bash_9".into(), what: Some("sleep (33)".into()) };
        let server = Alive { task: "bash_12".into(), what: None };
        assert_eq!(
            told(std::slice::from_ref(&sleep), "S"),
            "bash_9 (sleep (33)) still runs in the background; yaoki resume S goes on here and can look or stop"
        );
        assert!(told(&[sleep, server], "S").starts_with("bash_9 (sleep (33)), bash_12 still run in"));
    }

    #[test]
    fn a_folder_that_nobody_holds_is_not_alive() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(alive(dir.path()), []);
        std::fs::create_dir_all(dir.path().join("run/op3-abc")).unwrap();
        std::fs::write(dir.path().join("run/op3-abc/started"), "").unwrap();
        assert_eq!(alive(dir.path()), []);
    }
}
