//! The names of a session's files.

use std::path::{Path, PathBuf};

/// Where a session's files are.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    pub folder: PathBuf,
    pub session: String,
    pub log: PathBuf,
}

impl Files {
    pub fn new(folder: &Path, session: &str) -> Files {
        let files = Files { folder: folder.to_path_buf(), session: session.to_owned(), log: PathBuf::new() };
        Files { log: files.beside("jsonl"), ..files }
    }

    /// `<session>.<extension>` in the session's folder.
    pub fn beside(&self, extension: &str) -> PathBuf {
        self.folder.join(format!("{}.{extension}", self.session))
    }

    pub fn lock(&self) -> PathBuf {
        self.folder.join("lock")
    }

    /// There while a failed sync has left bytes in the log that may be nowhere but in memory.
    pub fn suspect(&self) -> PathBuf {
        self.folder.join("suspect")
    }
}
