//! Leftovers that should not be committed, found in the files git knows.
//!
//! Promises: unfinished code, tests that are off or that sleep, and traces of somebody's machine fail the
//! check; a very long file is only told. Words below are put together from halves, or this file would
//! find itself.

use std::path::Path;

use crate::house::House;
use crate::source::{code_only, has_word, lines_before_tests};

/// A longer file usually holds two ideas; a long table may be fine.
const LINES_MAX: usize = 700;

/// Unfinished or switched-off code, in Rust files, outside comments and strings.
const LEFTOVERS: [(&str, &str); 4] = [
    (concat!("todo", "!("), "finish it or leave it out"),
    (concat!("unimplemented", "!("), "finish it or leave it out"),
    (concat!("dbg", "!("), "a debugging aid"),
    (concat!("#[", "ignore"), "a test that does not run proves nothing"),
];

/// In tests only: they wait for something to happen, not for time to pass.
const SLEEP: &str = concat!("thread::", "sleep");

/// Folders of one machine; a path into them works on no other.
const MACHINE: [&str; 2] = [concat!("/wo", "rk/"), concat!("/ro", "ot/")];

/// The one place packages come from; a mirror belongs into the settings of its user.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";
const REDIRECTS: [&str; 3] =
    [concat!("replace", "-with"), concat!("[sou", "rce."), concat!("[regis", "tries")];

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// These fail the check.
    pub wrong: Vec<String>,
    /// These are told.
    pub warnings: Vec<String>,
}

/// Reads every file of the repository.
pub fn check(house: &House) -> Result<Found, String> {
    let mut found = Found::default();
    for path in house.files().map_err(|why| format!("cannot list the files: {why}"))? {
        look(&path, &house.read(&path)?, &mut found);
    }
    Ok(found)
}

fn look(path: &Path, text: &str, found: &mut Found) {
    let mut tell = |line: usize, what: &str, why: &str| {
        found.wrong.push(format!("{}:{line}: {what}: {why}", path.display()));
    };
    for (index, line) in text.lines().enumerate() {
        for machine in MACHINE.iter().filter(|machine| names_a_machine(line, machine)) {
            tell(index + 1, machine, "a path of one machine");
        }
    }
    if path.ends_with("Cargo.lock") {
        for (index, line) in text.lines().enumerate() {
            let source = line.strip_prefix("source = ").map(|source| source.trim_matches('"'));
            if let Some(other) = source.filter(|source| *source != REGISTRY) {
                tell(index + 1, other, "packages come from crates.io");
            }
        }
    }
    if path.extension().is_some_and(|e| e == "toml") {
        for (index, line) in text.lines().enumerate() {
            for redirect in REDIRECTS.iter().filter(|redirect| line.trim_start().starts_with(**redirect)) {
                tell(index + 1, redirect, "a mirror is its user's own setting");
            }
        }
    }
    if path.extension().is_some_and(|e| e == "rs") {
        let code = code_only(text);
        let tests_from = if is_test_file(path) { 0 } else { lines_before_tests(&code) };
        for (index, line) in code.lines().enumerate() {
            for (leftover, why) in LEFTOVERS.iter().filter(|(leftover, _)| line.contains(leftover)) {
                tell(index + 1, leftover, why);
            }
            if index >= tests_from && has_word(line, SLEEP) {
                tell(index + 1, SLEEP, "wait for what should happen instead");
            }
        }
        let lines = text.lines().count();
        if lines > LINES_MAX {
            found.warnings.push(format!("{}: {lines} lines; does it hold two ideas?", path.display()));
        }
    }
}

fn is_test_file(path: &Path) -> bool {
    path.ends_with("tests.rs") || path.components().any(|part| part.as_os_str() == "tests")
}

/// Tells whether the line has a path that starts there.
fn names_a_machine(line: &str, machine: &str) -> bool {
    line.match_indices(machine).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-~}*".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(path: &str, text: &str) -> Vec<String> {
        let mut found = Found::default();
        look(Path::new(path), text, &mut found);
        found.wrong
    }

    #[test]
    fn what_is_planted_is_found_where_it_stands() {
        let in_tests = |line: &str| format!("fn a() {{}}\n#[cfg(test)]\nmod tests {{\n{line}\n}}\n");
        let sleep = format!("std::{SLEEP}(x);");
        let home = format!("cd {}src", MACHINE[1]);
        for (path, text, want) in [
            ("a/src/a.rs", format!("{})", LEFTOVERS[0].0), Some(1)),
            ("a/src/a.rs", format!("// {})", LEFTOVERS[0].0), None),
            ("a/src/a.rs", format!("\n{})", LEFTOVERS[1].0), Some(2)),
            ("a/src/a.rs", format!("{}x)", LEFTOVERS[2].0), Some(1)),
            ("a/tests/a.rs", format!("#[test]\n{}]", LEFTOVERS[3].0), Some(2)),
            ("a/src/a.rs", sleep.clone(), None),
            ("a/tests/a.rs", sleep.clone(), Some(1)),
            ("a/src/a.rs", in_tests(&sleep), Some(4)),
            ("a.md", home.clone(), Some(1)),
            ("a.md", format!("net{}x", MACHINE[0]), None),
            ("Cargo.lock", "source = \"registry+https://mirror.example/index\"".to_owned(), Some(1)),
            ("Cargo.lock", format!("source = \"{REGISTRY}\""), None),
            (".cargo/config.toml", format!("[a]\n{} = \"b\"", REDIRECTS[0]), Some(2)),
        ] {
            let got = wrong(path, &text);
            let line = got.first().map(|told| told.split(':').nth(1).map(str::to_owned).unwrap_or_default());
            assert_eq!(line, want.map(|line: usize| line.to_string()), "{path}: {text}");
        }
    }

    #[test]
    fn a_long_file_is_told_and_does_not_fail() {
        let mut found = Found::default();
        look(Path::new("a/src/a.rs"), &"x();\n".repeat(LINES_MAX + 1), &mut found);
        assert_eq!((found.wrong.len(), found.warnings.len()), (0, 1));
    }
}
