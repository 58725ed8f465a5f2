//! Paths as models write them, made absolute without asking the disk.

use std::path::{Component, Path, PathBuf};

/// Makes a path absolute against `cwd` and takes out `.` and `..`.
pub(super) fn absolute(path: &str, cwd: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in cwd.join(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(clean.pop()),
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => clean.push(part),
        }
    }
    clean
}

/// Follows symbolic links as far as the path exists; what does not exist yet stays as written.
///
/// A loop of links stays as written too: opening it gives the plain error.
pub(super) fn resolved(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    // A link to a file that is not there yet: follow it by hand.
    if let Ok(target) = std::fs::read_link(path)
        && let Some(folder) = path.parent()
        && path.metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    {
        return resolved(&absolute_of(&folder.join(target)));
    }
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => resolved(folder).join(name),
        _ => path.to_owned(),
    }
}

fn absolute_of(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(clean.pop()),
            other => clean.push(other),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_absolute_without_a_look_at_the_disk() {
        let cwd = Path::new("/srv/here");
        for (written, want) in [
            ("a.rs", "/srv/here/a.rs"),
            ("./x/../a.rs", "/srv/here/a.rs"),
            ("/etc/hosts", "/etc/hosts"),
            ("../../../..", "/"),
        ] {
            assert_eq!(absolute(written, cwd), Path::new(want), "{written}");
        }
    }

    #[test]
    fn links_are_followed_also_to_what_is_not_there_yet() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        std::os::unix::fs::symlink("not-yet.txt", real.join("link")).unwrap();
        std::os::unix::fs::symlink("loop", real.join("loop")).unwrap();
        assert_eq!(resolved(&real.join("link")), real.join("not-yet.txt"));
        assert_eq!(resolved(&real.join("new/file")), real.join("new/file"));
        assert_eq!(resolved(&real.join("loop")), real.join("loop"));
    }
}
