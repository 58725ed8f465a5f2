//! The sessions there are: listed, and found by id.

use std::path::{Path, PathBuf};

use yaoki_core::record::Record;
use yaoki_store::disk::Disk;
use yaoki_store::sessions::{self, Summary};

/// What a list shows of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    pub id: String,
    pub folder: PathBuf,
    pub cwd: Option<String>,
    /// RFC 3339.
    pub created: String,
    /// Nanoseconds since 1970.
    pub modified_ns: i128,
    /// The beginning of the first prompt.
    pub title: String,
    /// How the last turn ended; none while one is open, or where it cannot be told.
    pub last_end: Option<String>,
    /// Its header cannot be read: nothing can follow.
    pub is_damaged: bool,
    pub bytes: u64,
}

const TITLE_CHARS_MAX: usize = 80;

/// Lists all sessions, the last written first. Errors: the disk's.
pub fn list(disk: &dyn Disk, home: &Path) -> std::io::Result<Vec<SessionInfo>> {
    Ok(sessions::list(disk, home)?.into_iter().map(to_info).collect())
}

/// The session of this working folder that was written last.
pub fn newest(disk: &dyn Disk, home: &Path, cwd: &Path) -> std::io::Result<Option<SessionInfo>> {
    Ok(sessions::newest(disk, home, &cwd.to_string_lossy())?.map(to_info))
}

/// The folder of a session.
pub(crate) fn folder(home: &Path, cwd: &Path, session: &str) -> PathBuf {
    sessions::folder(home, &cwd.to_string_lossy(), session)
}

/// Finds a session by its id, whatever folder it was begun in. Errors: the disk's; it may be there all the same.
pub(crate) fn find(disk: &dyn Disk, home: &Path, session: &str) -> std::io::Result<Option<PathBuf>> {
    sessions::find(disk, home, session)
}

fn to_info(summary: Summary) -> SessionInfo {
    let records = |lines: &[yaoki_store::Line]| -> Vec<Record> {
        lines.iter().filter_map(|line| Record::parse(line.kind(), line.data()).ok().flatten()).collect()
    };
    let title = records(&summary.head).into_iter().find_map(|record| match record {
        Record::InputGiven(input) => Some(input.parts),
        _ => None,
    });
    let title = title.into_iter().flatten().find_map(|part| match part {
        yaoki_core::message::Part::Text { text } => text.lines().next().map(str::to_owned),
        yaoki_core::message::Part::Media(_) => None,
    });
    let last = records(&summary.tail).into_iter().rev().find_map(|record| match record {
        Record::TurnEnd(end) => Some(Some(end.reason.name().to_owned())),
        Record::InputGiven(_) => Some(None),
        _ => None,
    });
    SessionInfo {
        cwd: summary.cwd(),
        created: summary.head.first().map(|line| line.at().to_owned()).unwrap_or_default(),
        modified_ns: summary.modified_ns,
        title: title.unwrap_or_default().chars().take(TITLE_CHARS_MAX).collect(),
        last_end: last.flatten(),
        is_damaged: summary.head.first().is_none_or(|line| line.kind() != "header"),
        bytes: summary.bytes,
        id: summary.session,
        folder: summary.folder,
    }
}
