//! Crates that must not be linked, on any system or with any feature.
//!
//! They bring a second TLS library or a C toolchain beyond a plain compiler. `deny.toml` says the same
//! to those who have cargo-deny.

use std::collections::BTreeSet;

use crate::house::House;

const BANNED: [&str; 4] = ["aws-lc-rs", "aws-lc-sys", "native-tls", "openssl-sys"];

/// Returns the banned crates that the workspace would link.
pub fn check(house: &House) -> Result<Vec<String>, String> {
    let metadata = said(house, &["metadata", "--locked", "--all-features", "--format-version", "1"])?;
    let linked = names_in_metadata(&metadata);
    // Were cargo to write its answer another way, nothing would ever be found; so look for ourselves.
    if !linked.contains("xtask") {
        return Err("cargo metadata does not name this package: its shape must have changed".to_owned());
    }
    Ok(BANNED
        .iter()
        .filter(|name| linked.contains(**name))
        .map(|name| {
            format!("{name} is banned: `cargo tree --workspace --target all -i {name}` tells who brings it")
        })
        .collect())
}

/// Returns the names of the packages that one package links in its normal build.
pub fn linked_by(house: &House, package: &str) -> Result<BTreeSet<String>, String> {
    let tree = said(
        house,
        &[
            "tree",
            "--locked",
            "--package",
            package,
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--format",
            "{p}",
        ],
    )?;
    let names = names_in_tree(&tree);
    if !names.contains(package) {
        return Err(format!("cargo tree does not name {package}: its shape must have changed"));
    }
    Ok(names)
}

fn said(house: &House, args: &[&str]) -> Result<String, String> {
    let answer = house.cargo(args).output().map_err(|why| format!("cannot run cargo {}: {why}", args[0]))?;
    if !answer.status.success() {
        return Err(format!("cargo {} failed: {}", args[0], String::from_utf8_lossy(&answer.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&answer.stdout).into_owned())
}

/// Packages are the objects that open with a name and a version; dependencies go on with a source.
fn names_in_metadata(metadata: &str) -> BTreeSet<String> {
    let names = metadata.split("{\"name\":\"").skip(1).filter_map(|rest| rest.split_once('"'));
    names.filter(|(_, rest)| rest.starts_with(",\"version\":\"")).map(|(name, _)| name.to_owned()).collect()
}

fn names_in_tree(tree: &str) -> BTreeSet<String> {
    tree.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_banned_package_is_found_and_a_mere_mention_is_not() {
        let metadata = r#"{"packages":[{"name":"xtask","version":"0.1.0","dependencies":[{"name":"native-tls","source":null}]},{"name":"openssl-sys","version":"0.9.1"}]}"#;
        assert_eq!(names_in_metadata(metadata).into_iter().collect::<Vec<_>>(), ["openssl-sys", "xtask"]);
    }

    #[test]
    fn the_names_of_a_tree_are_its_first_words() {
        let tree = "yaoki v0.1.0 (here)\nserde v1.0.0\nserde v1.0.0 (*)\n\nring v0.17.0\n";
        assert_eq!(names_in_tree(tree).into_iter().collect::<Vec<_>>(), ["ring", "serde", "yaoki"]);
    }
}
