//! Core decides and does nothing else: no I/O, clock, environment, dice, threads or runtime in its code.
//!
//! Promises: a planted use is found with file and line. Tests inside core may do as they like.

use std::path::Path;

use crate::house::House;
use crate::source::{code_only, has_word, lines_before_tests};

const CORE: &str = "crates/core/src";

/// Modules of the standard library that reach the world.
const STD: [&str; 7] = ["env", "fs", "io", "net", "os", "process", "thread"];

/// Words that have no place in core, and what to do instead.
const WORDS: [(&str, &str); 15] = [
    ("Instant", "time is an argument"),
    ("SystemTime", "time is an argument"),
    ("rand", "dice are handed in"),
    ("fastrand", "dice are handed in"),
    ("getrandom", "dice are handed in"),
    ("RandomState", "the order would change from run to run"),
    ("HashMap", "its order changes from run to run; take a BTreeMap"),
    ("HashSet", "its order changes from run to run; take a BTreeSet"),
    ("tokio", "core has no runtime"),
    ("async", "core has no runtime"),
    ("println!", "core prints nothing"),
    ("print!", "core prints nothing"),
    ("eprintln!", "core prints nothing"),
    ("eprint!", "core prints nothing"),
    ("static mut", "state is a fold over records"),
];

/// Returns what core does besides deciding.
pub fn check(house: &House) -> Result<Vec<String>, String> {
    let mut wrong = Vec::new();
    let mut files_seen = 0;
    let files = house.files().map_err(|why| format!("cannot list the files: {why}"))?;
    for path in
        files.iter().filter(|path| path.starts_with(CORE) && path.extension().is_some_and(|e| e == "rs"))
    {
        files_seen += 1;
        if !is_test_file(path) {
            wrong
                .extend(impure(&house.read(path)?).iter().map(|found| format!("{}:{found}", path.display())));
        }
    }
    if files_seen == 0 {
        return Err(format!("no source under {CORE}"));
    }
    Ok(wrong)
}

fn is_test_file(path: &Path) -> bool {
    path.ends_with("tests.rs") || path.components().any(|part| part.as_os_str() == "tests")
}

/// Returns `LINE: word: advice` for every use of the world.
fn impure(text: &str) -> Vec<String> {
    let code = code_only(text);
    let mut found = Vec::new();
    for (index, line) in code.lines().take(lines_before_tests(&code)).enumerate() {
        for (word, advice) in WORDS {
            if has_word(line, word) {
                found.push(format!("{}: {word}: {advice}", index + 1));
            }
        }
        for module in STD {
            if has_word(line, &format!("std::{module}")) || names_in_std_group(line).contains(&module) {
                found.push(format!("{}: std::{module}: core reaches nothing outside", index + 1));
            }
        }
    }
    found
}

/// Returns the first names inside `std::{…}` on this line.
fn names_in_std_group(line: &str) -> Vec<&str> {
    let Some((_, group)) = line.split_once("std::{") else { return Vec::new() };
    let mut names = Vec::new();
    let mut depth = 0;
    let mut start = 0;
    for (index, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                names.push(&group[start..index]);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                names.push(&group[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    names.into_iter().map(|name| name.trim().split("::").next().unwrap_or_default()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_planted_use_of_the_world_is_found() {
        for (text, is_wrong) in [
            ("use std::fs;", true),
            ("let x = std::env::var(y);", true),
            ("use std::{fmt, net::TcpStream};", true),
            ("use std::{collections::{BTreeMap, BTreeSet}, thread};", true),
            ("use std::{collections::BTreeMap, fmt};", false),
            ("let t = Instant::now();", true),
            ("let t = std::time::Duration::ZERO;", false),
            ("let n = fastrand::u64(..);", true),
            ("let m: HashMap<u8, u8>;", true),
            ("println!();", true),
            ("// std::fs is not used here", false),
            ("let told = \"std::fs\";", false),
            ("let operand = strand;", false),
            ("struct InstantNoodles;", false),
        ] {
            assert_eq!(!impure(text).is_empty(), is_wrong, "{text}");
        }
    }

    #[test]
    fn the_line_is_told_and_tests_are_free() {
        let text = "//! x\nuse std::process;\n#[cfg(test)]\nmod tests {\n use std::fs;\n}\n";
        assert_eq!(impure(text), ["2: std::process: core reaches nothing outside"]);
    }

    #[test]
    fn core_is_pure() {
        assert_eq!(check(&House::find()), Ok(Vec::new()));
    }
}
