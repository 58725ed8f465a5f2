//! The generated tables inside the docs.
//!
//! A block stands between `<!-- generated: NAME -->` and `<!-- end -->`; what it holds is what
//! `yaoki __docs NAME` prints. Promises: text outside the blocks is never touched; a file is written only
//! when it changes. Not here: the tables themselves; they come from the code they describe.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::house::House;

const OPEN: &str = "<!-- generated: ";
const CLOSE: &str = "<!-- end -->";

/// Files outside `docs/` that may hold a block.
const AT_THE_ROOT: [&str; 3] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];

/// Writes every block afresh.
pub fn write(house: &House) -> Result<(), String> {
    for (path, text) in changed(house)? {
        let full = house.root.join(&path);
        fs::write(&full, text).map_err(|why| format!("cannot write {}: {why}", path.display()))?;
        println!("wrote {}", path.display());
    }
    Ok(())
}

/// Fails with the names of stale files.
pub fn check(house: &House) -> Result<(), String> {
    let stale = stale(house)?;
    if stale.is_empty() { Ok(()) } else { Err(stale.join("\n")) }
}

/// Returns a line for every file whose blocks are not what the code says now.
pub fn stale(house: &House) -> Result<Vec<String>, String> {
    let names = changed(house)?.into_keys();
    Ok(names.map(|path| format!("{} is stale: run `cargo xtask docs`", path.display())).collect())
}

/// Returns the files whose text would change, with that text.
fn changed(house: &House) -> Result<BTreeMap<PathBuf, String>, String> {
    let mut changed = BTreeMap::new();
    let mut told = BTreeMap::new();
    let files = house.files().map_err(|why| format!("cannot list the files: {why}"))?;
    let is_doc = |path: &PathBuf| {
        let is_markdown = path.extension().is_some_and(|e| e == "md");
        is_markdown && (path.starts_with("docs") || AT_THE_ROOT.iter().any(|name| path.as_os_str() == *name))
    };
    for path in files.into_iter().filter(is_doc) {
        let old = house.read(&path)?;
        let mut ask = |name: &str| ask_once(house, &mut told, name);
        let new = refreshed(&old, &mut ask).map_err(|why| format!("{}: {why}", path.display()))?;
        if new != old {
            changed.insert(path, new);
        }
    }
    Ok(changed)
}

fn ask_once(house: &House, told: &mut BTreeMap<String, String>, name: &str) -> Result<String, String> {
    if let Some(text) = told.get(name) {
        return Ok(text.clone());
    }
    if told.is_empty() {
        let built = house.build().status().map_err(|why| format!("cannot run cargo: {why}"))?;
        if !built.success() {
            return Err("the workspace does not build".to_owned());
        }
    }
    let mut yaoki = Command::new(house.program("yaoki"));
    let answer = yaoki.args(["__docs", name]).output().map_err(|why| format!("cannot run yaoki: {why}"))?;
    if !answer.status.success() {
        return Err(format!(
            "`yaoki __docs {name}` failed: {}",
            String::from_utf8_lossy(&answer.stderr).trim()
        ));
    }
    let text = String::from_utf8_lossy(&answer.stdout).into_owned();
    if text.trim().is_empty() {
        return Err(format!("`yaoki __docs {name}` printed nothing"));
    }
    told.insert(name.to_owned(), text.clone());
    Ok(text)
}

/// Returns the text with the inside of every block replaced by what `ask` answers to its name.
fn refreshed(text: &str, ask: &mut dyn FnMut(&str) -> Result<String, String>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut lines = text.split_inclusive('\n');
    while let Some(line) = lines.next() {
        out += line;
        let Some(name) = line.trim().strip_prefix(OPEN).and_then(|rest| rest.strip_suffix("-->")) else {
            continue;
        };
        let name = name.trim();
        out += ask(name)?.trim_matches('\n');
        out.push('\n');
        match lines.find(|line| line.trim() == CLOSE || line.trim().starts_with(OPEN)) {
            Some(line) if line.trim() == CLOSE => out += line,
            _ => return Err(format!("the block `{name}` has no `{CLOSE}`")),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refresh(text: &str) -> Result<String, String> {
        refreshed(text, &mut |name| match name {
            "exits" => Ok("| 0 |\n| 1 |\n".to_owned()),
            other => Err(format!("no {other}")),
        })
    }

    #[test]
    fn a_block_is_replaced_and_nothing_else_is() {
        let text = "a\n<!-- generated: exits -->\nold\n\nold\n<!-- end -->\nb";
        let want = "a\n<!-- generated: exits -->\n| 0 |\n| 1 |\n<!-- end -->\nb";
        assert_eq!(refresh(text).as_deref(), Ok(want));
        assert_eq!(refresh(want).as_deref(), Ok(want), "a fresh file stays as it is");
    }

    #[test]
    fn a_block_without_an_end_or_with_an_unknown_name_is_told() {
        assert!(refresh("<!-- generated: exits -->\nold\n").is_err());
        assert!(refresh("<!-- generated: exits -->\n<!-- generated: exits -->\n<!-- end -->\n").is_err());
        assert_eq!(refresh("<!-- generated: nope -->\n<!-- end -->\n"), Err("no nope".to_owned()));
    }
}
