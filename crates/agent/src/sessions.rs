//! Where sessions live: `HOME/sessions/<slug>/<id>/<id>.jsonl`.

use std::path::{Path, PathBuf};

use yaoki_store::disk::{Disk, Kind};

/// The folder of a session.
pub(crate) fn folder(home: &Path, cwd: &Path, session: &str) -> PathBuf {
    home.join("sessions").join(slug(cwd)).join(session)
}

/// Finds a session by its id, whatever folder it was begun in.
pub(crate) fn find(disk: &dyn Disk, home: &Path, session: &str) -> Option<PathBuf> {
    let is_plain = session.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if session.is_empty() || !is_plain {
        return None;
    }
    let all = home.join("sessions");
    let slugs = disk.list(&all).ok()?;
    slugs
        .into_iter()
        .filter(|entry| entry.kind == Kind::Folder)
        .map(|entry| all.join(entry.name).join(session))
        .find(|folder| disk.look(&folder.join(format!("{session}.jsonl"))).ok().flatten().is_some())
}

fn slug(cwd: &Path) -> String {
    cwd.to_string_lossy().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(200).collect()
}
