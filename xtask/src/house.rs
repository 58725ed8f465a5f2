//! Where the workspace is, what belongs to it, and how cargo is called in it.
//!
//! Promises: children get a clean cargo environment, so that a build through xtask and a build by
//! hand share their results.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The workspace on disk.
pub struct House {
    pub root: PathBuf,
    /// Where cargo puts what it builds; `CARGO_TARGET_DIR` when that is set.
    pub target: PathBuf,
}

impl House {
    /// Returns the workspace that this program was built from.
    pub fn find() -> House {
        let here = std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = here.parent().expect("the manifest folder of xtask is inside the workspace").to_owned();
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
            || root.join("target"),
            |set| std::path::absolute(&set).unwrap_or_else(|_| set.into()),
        );
        House { root, target }
    }

    /// Returns a cargo command in the workspace root, without what cargo set for xtask itself.
    ///
    /// Build scripts that watch `CARGO_PKG_*` (ring's does) would run again at each change of hands.
    pub fn cargo(&self, args: &[&str]) -> Command {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(args).current_dir(&self.root);
        for (name, _) in std::env::vars_os() {
            let is_ours = name.to_str().is_some_and(|name| {
                name.starts_with("CARGO_PKG_")
                    || name.starts_with("CARGO_MANIFEST_")
                    || name == "CARGO_BIN_NAME"
            });
            if is_ours {
                cargo.env_remove(name);
            }
        }
        cargo
    }

    /// Returns the command that builds every program of the workspace.
    ///
    /// Always the whole of it: one package alone would have dependencies with fewer features, built a second time.
    pub fn build(&self) -> Command {
        self.cargo(&["build", "--quiet", "--workspace", "--locked"])
    }

    /// Returns where [`House::build`] puts a program.
    pub fn program(&self, name: &str) -> PathBuf {
        self.target.join("debug").join(name)
    }

    /// Returns the files of the repository: those git tracks or would add, else every file found.
    ///
    /// Shape: paths relative to the root, sorted; files that are gone from disk are left out.
    pub fn files(&self) -> io::Result<Vec<PathBuf>> {
        let asked = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(&self.root)
            .output();
        let found: BTreeSet<PathBuf> = match asked {
            Ok(answer) if answer.status.success() => {
                let names = String::from_utf8_lossy(&answer.stdout).into_owned();
                names.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from).collect()
            }
            // A copy without its history is still worth checking.
            _ => self.walk()?,
        };
        Ok(found.into_iter().filter(|path| self.root.join(path).is_file()).collect())
    }

    fn walk(&self) -> io::Result<BTreeSet<PathBuf>> {
        let mut found = BTreeSet::new();
        let mut open = vec![self.root.clone()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(&folder)? {
                let path = entry?.path();
                let is_skipped = path == self.target || path.ends_with("target") || path.ends_with(".git");
                if is_skipped {
                    continue;
                }
                if path.is_dir() {
                    open.push(path);
                } else if let Ok(inside) = path.strip_prefix(&self.root) {
                    found.insert(inside.to_owned());
                }
            }
        }
        Ok(found)
    }

    /// Reads a file of the workspace as text; bytes that are not UTF-8 are replaced.
    pub fn read(&self, path: &Path) -> Result<String, String> {
        match fs::read(self.root.join(path)) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(why) => Err(format!("cannot read {}: {why}", path.display())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_holds_this_file() {
        let house = House::find();
        let files = house.files().unwrap();
        assert!(files.contains(&PathBuf::from("xtask/src/house.rs")));
        assert!(house.walk().unwrap().contains(&PathBuf::from("xtask/src/house.rs")));
    }
}
