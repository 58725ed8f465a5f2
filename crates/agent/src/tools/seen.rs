//! What the model has seen of files: the hash of the bytes it was last shown or last wrote.
//!
//! An edit of a file that was never read, or that someone else changed since, is refused: the model would
//! be working on a text that is not there.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

#[derive(Debug, Default)]
pub(super) struct Seen {
    hashes: Mutex<HashMap<PathBuf, String>>,
}

impl Seen {
    /// `path` with links followed; `hash` as [`hash_of`] gives it.
    pub(super) fn note(&self, path: &Path, hash: &str) {
        self.lock().insert(path.to_owned(), hash.to_owned());
    }

    pub(super) fn last(&self, path: &Path) -> Option<String> {
        self.lock().get(path).cloned()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, String>> {
        self.hashes.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// BLAKE3 of a file's bytes, 64 hex digits.
pub(super) fn hash_of(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}
