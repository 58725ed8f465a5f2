//! Which package may depend on which: the walls between the rooms, read from the `Cargo.toml`s.
//!
//! Promises: a package without a row, or a dependency not in its row, is reported.
//! Not here: what the code inside a package does; see `purity`.

use std::collections::BTreeSet;

use crate::banned;
use crate::house::House;
use crate::manifest::{self, Kind, Manifest};

/// What one package may see.
struct Wall {
    package: &'static str,
    /// Packages of this workspace, in every build.
    inside: &'static [&'static str],
    /// Packages of this workspace, for its tests only.
    inside_dev: &'static [&'static str],
    /// Packages from elsewhere, in every build; `None` where any may be used.
    outside: Option<&'static [&'static str]>,
}

/// Arrows point at core; nobody depends on sim.
const WALLS: [Wall; 8] = [
    Wall {
        package: "yaoki-core",
        inside: &[],
        inside_dev: &[],
        outside: Some(&["serde", "serde_json", "blake3", "thiserror"]),
    },
    Wall { package: "yaoki-store", inside: &["yaoki-core"], inside_dev: &[], outside: None },
    // Its tests read the streams that the lab's encoder writes.
    Wall { package: "yaoki-wire", inside: &["yaoki-core"], inside_dev: &["yaoki-lab"], outside: None },
    Wall {
        package: "yaoki",
        inside: &["yaoki-core", "yaoki-store", "yaoki-wire"],
        inside_dev: &["yaoki-lab"],
        outside: None,
    },
    Wall { package: "yaoki-lab", inside: &[], inside_dev: &[], outside: None },
    Wall { package: "yaoki-cli", inside: &["yaoki", "yaoki-lab"], inside_dev: &[], outside: None },
    Wall {
        package: "yaoki-sim",
        inside: &["yaoki-core", "yaoki-store", "yaoki-wire", "yaoki", "yaoki-lab"],
        inside_dev: &[],
        outside: None,
    },
    // It must build before anything else does, on a machine that has only cargo.
    Wall { package: "xtask", inside: &[], inside_dev: &[], outside: Some(&[]) },
];

/// Packages that the simulation must not link: it brings its own network, and leaves out the heavy leaves.
const NOT_IN_SIM: [&str; 3] = ["reqwest", "rmcp", "opentelemetry"];

/// Returns what is wrong with the arrows between the packages of the house.
pub fn check(house: &House) -> Result<Vec<String>, String> {
    let mut manifests = Vec::new();
    let files = house.files().map_err(|why| format!("cannot list the files: {why}"))?;
    for path in files.iter().filter(|path| path.ends_with("Cargo.toml")) {
        let text = house.read(path)?;
        let read = manifest::read(&text).map_err(|why| format!("{}: {why}", path.display()))?;
        manifests.extend(read);
    }
    Ok(wrong_arrows(&manifests))
}

/// Returns what the simulation links and should not.
pub fn check_sim(house: &House) -> Result<Vec<String>, String> {
    Ok(too_heavy_for_sim(&banned::linked_by(house, "yaoki-sim")?))
}

fn too_heavy_for_sim(linked: &BTreeSet<String>) -> Vec<String> {
    let is_heavy = |name: &&String| NOT_IN_SIM.iter().any(|heavy| name.starts_with(heavy));
    linked
        .iter()
        .filter(is_heavy)
        .map(|name| {
            format!("yaoki-sim links {name}: `cargo tree -p yaoki-sim -e normal -i {name}` tells why")
        })
        .collect()
}

fn wrong_arrows(manifests: &[Manifest]) -> Vec<String> {
    let mut wrong = Vec::new();
    for Manifest { package, dependencies } in manifests {
        let Some(wall) = WALLS.iter().find(|wall| wall.package == package) else {
            wrong.push(format!("{package} has no wall: give it a row in xtask/src/arrows.rs"));
            continue;
        };
        for dependency in dependencies {
            let to = dependency.package.as_str();
            let is_inside = WALLS.iter().any(|wall| wall.package == to);
            let is_dev = dependency.kind == Kind::Dev;
            let is_allowed = match (is_inside, is_dev) {
                (true, true) => wall.inside.contains(&to) || wall.inside_dev.contains(&to),
                (true, false) => wall.inside.contains(&to),
                // Tests may use what helps them, except where nothing at all may be used.
                (false, true) => wall.outside.is_none_or(|allowed| !allowed.is_empty()),
                (false, false) => wall.outside.is_none_or(|allowed| allowed.contains(&to)),
            };
            if !is_allowed {
                let when = if is_dev { " (for its tests)" } else { "" };
                wrong.push(format!("{package} depends on {to}{when}, which its wall does not allow"));
            }
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Dependency;

    fn wrong(package: &str, kind: Kind, to: &str) -> bool {
        let dependencies = vec![Dependency { package: to.to_owned(), kind }];
        !wrong_arrows(&[Manifest { package: package.to_owned(), dependencies }]).is_empty()
    }

    #[test]
    fn a_planted_arrow_is_found() {
        for (package, kind, to, is_wrong) in [
            ("yaoki-core", Kind::Normal, "serde", false),
            ("yaoki-core", Kind::Normal, "tokio", true),
            ("yaoki-core", Kind::Build, "tokio", true),
            ("yaoki-core", Kind::Dev, "proptest", false),
            ("yaoki-core", Kind::Dev, "yaoki-store", true),
            ("yaoki-store", Kind::Normal, "yaoki-core", false),
            ("yaoki-store", Kind::Normal, "yaoki-wire", true),
            ("yaoki-wire", Kind::Normal, "yaoki-store", true),
            ("yaoki-wire", Kind::Normal, "yaoki-lab", true),
            ("yaoki-wire", Kind::Dev, "yaoki-lab", false),
            ("yaoki-lab", Kind::Normal, "yaoki-core", true),
            ("yaoki", Kind::Normal, "yaoki-lab", true),
            ("yaoki", Kind::Dev, "yaoki-lab", false),
            ("yaoki", Kind::Dev, "yaoki-sim", true),
            ("yaoki-cli", Kind::Normal, "yaoki-core", true),
            ("yaoki-cli", Kind::Normal, "yaoki-sim", true),
            ("xtask", Kind::Dev, "serde", true),
            ("somebody-new", Kind::Normal, "serde", true),
        ] {
            assert_eq!(wrong(package, kind, to), is_wrong, "{package} -> {to} ({kind:?})");
        }
    }

    #[test]
    fn a_simulation_with_a_real_network_is_found() {
        let linked = ["opentelemetry_sdk", "reqwest", "serde"].map(str::to_owned).into();
        let told: Vec<String> = too_heavy_for_sim(&linked);
        assert_eq!(told.len(), 2, "{told:?}");
    }

    #[test]
    fn the_walls_of_this_workspace_stand() {
        assert_eq!(check(&House::find()), Ok(Vec::new()));
    }
}
