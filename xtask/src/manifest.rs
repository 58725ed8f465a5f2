//! Reads the parts of a `Cargo.toml` that the walls need: the name and the dependencies.
//!
//! Not a TOML reader: it knows the shapes in use here (`x = "1"`, `x = { … }`, `x.workspace = true`,
//! `[dependencies.x]`, `[target.'…'.dependencies]`) and says so when it meets another.

/// One dependency line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// The package, also where it is renamed.
    pub package: String,
    pub kind: Kind,
}

/// When a dependency is linked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Normal,
    Build,
    Dev,
}

/// A package and what it depends on, in file order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    pub package: String,
    pub dependencies: Vec<Dependency>,
}

/// Where the lines below a heading go.
enum Section {
    Package,
    /// `[dependencies]`: a dependency a line.
    List(Kind),
    /// `[dependencies.x]`: one dependency, a member a line.
    One(Kind, String),
    Other,
}

/// Reads a manifest; `None` for one without a package, such as the workspace root.
pub fn read(text: &str) -> Result<Option<Manifest>, String> {
    let mut package = None;
    let mut dependencies: Vec<Dependency> = Vec::new();
    let mut section = Section::Other;
    for line in logical_lines(text) {
        if let Some(heading) = line.strip_prefix('[') {
            section = to_section(heading.trim_end_matches(']'));
            if let Section::One(kind, name) = &section {
                dependencies.push(Dependency { package: name.clone(), kind: *kind });
            }
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { return Err(format!("cannot read `{line}`")) };
        let (key, value) = (key.trim(), value.trim());
        match &section {
            Section::Package if key == "name" => package = Some(unquoted(value).to_owned()),
            Section::List(kind) => {
                let name = key.split_once('.').map_or(key, |(name, _)| name);
                let package = renamed(value).unwrap_or_else(|| unquoted(name)).to_owned();
                dependencies.push(Dependency { package, kind: *kind });
            }
            Section::One(..) if key == "package" => {
                let last = dependencies.last_mut().expect("the heading pushed one");
                last.package = unquoted(value).to_owned();
            }
            Section::Package | Section::One(..) | Section::Other => {}
        }
    }
    Ok(package.map(|package| Manifest { package, dependencies }))
}

/// Returns the package a `{ package = "…" }` value names.
fn renamed(value: &str) -> Option<&str> {
    let (before, after) = value.split_once("package")?;
    let starts_a_member = before.trim_end().ends_with(['{', ',']);
    let after = after.trim_start().strip_prefix('=')?.trim_start().strip_prefix('"')?;
    starts_a_member.then(|| after.split('"').next()).flatten()
}

fn to_section(heading: &str) -> Section {
    if heading == "package" {
        return Section::Package;
    }
    for (word, kind) in [
        ("dev-dependencies", Kind::Dev),
        ("build-dependencies", Kind::Build),
        // Last: the other two end in the same word.
        ("dependencies", Kind::Normal),
    ] {
        let is_list =
            heading == word || (heading.starts_with("target.") && heading.ends_with(&format!(".{word}")));
        if is_list {
            return Section::List(kind);
        }
        let one = match heading.strip_prefix(word) {
            Some(rest) => rest.strip_prefix('.'),
            None if heading.starts_with("target.") => {
                heading.split_once(&format!(".{word}.")).map(|(_, name)| name)
            }
            None => None,
        };
        if let Some(name) = one {
            return Section::One(kind, unquoted(name).to_owned());
        }
    }
    Section::Other
}

fn unquoted(word: &str) -> &str {
    word.trim().trim_matches(['"', '\''])
}

/// Returns lines without comments and blanks; an array or table over several lines is one line.
fn logical_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut depth = 0;
    for line in text.lines() {
        let line = without_comment(line).trim();
        if line.is_empty() {
            continue;
        }
        match lines.last_mut() {
            Some(last) if depth > 0 => last.push_str(line),
            _ => lines.push(line.to_owned()),
        }
        depth += line.matches(['[', '{']).count();
        depth -= line.matches([']', '}']).count().min(depth);
    }
    lines
}

fn without_comment(line: &str) -> &str {
    let mut is_quoted = false;
    for (index, byte) in line.bytes().enumerate() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b'#' if !is_quoted => return &line[..index],
            _ => {}
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_a_dependency_is_read() {
        let text = r#"
            [package]
            name = "box" # not "crate"
            [features]
            default = ["dep:a",
                "dep:b"]
            [dependencies]
            a.workspace = true
            b = { version = "1", features = [
                "x", # why
            ] }
            c = { package = "real-c", version = "2" }
            d = "1"
            [dev-dependencies]
            e.workspace = true
            [build-dependencies]
            f = "1"
            [target.'cfg(unix)'.dependencies]
            g = "1"
            [dependencies.h]
            package = "real-h"
            version = "1"
            [target.'cfg(unix)'.dev-dependencies.i]
            version = "1"
        "#;
        let read = read(text).unwrap().unwrap();
        let got: Vec<(&str, Kind)> = read.dependencies.iter().map(|d| (d.package.as_str(), d.kind)).collect();
        assert_eq!(read.package, "box");
        assert_eq!(
            got,
            [
                ("a", Kind::Normal),
                ("b", Kind::Normal),
                ("real-c", Kind::Normal),
                ("d", Kind::Normal),
                ("e", Kind::Dev),
                ("f", Kind::Build),
                ("g", Kind::Normal),
                ("real-h", Kind::Normal),
                ("i", Kind::Dev),
            ]
        );
    }

    #[test]
    fn a_workspace_root_has_no_package_and_nonsense_is_told() {
        assert_eq!(read("[workspace]\nmembers = [\"a\"]\n"), Ok(None));
        assert_eq!(read("[package]\nname\n"), Err("cannot read `name`".to_owned()));
    }
}
