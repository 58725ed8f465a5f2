//! One change of one file: the facts before, the atomic write, the check after, the look after a crash.
//!
//! The facts stand in the intent before anything is touched: the hash, mode and old bytes of what was there
//! and the hash of what is to be there. A crash in between is settled by comparing hashes.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use yaoki_core::json::RawJson;
use yaoki_core::message::CallResult;
use yaoki_core::record::OutcomeStatus;
use yaoki_core::step::{Finding, RunReport, RunStep};
use yaoki_store::replace::{Expect, ReplaceError, ReplaceOptions, replace_file};
use yaoki_store::{Hash, RealDisk};

use super::seen::hash_of;
use super::text::call_error;
use super::{Done, Shared};

/// Old bytes up to here travel inside the intent; larger ones are a blob.
const INLINE_BYTES_MAX: usize = 16 << 10;
/// A file larger than this is not edited: all of it has to be in memory.
pub(super) const FILE_BYTES_MAX: u64 = 64 << 20;

/// A file as it was found.
#[derive(Debug, Clone)]
pub(super) struct Found {
    /// With links followed: what will be replaced.
    pub real: PathBuf,
    /// None where there is no file.
    pub bytes: Option<Vec<u8>>,
    /// None where there is no file.
    pub mode: Option<u32>,
}

/// What was true before, and what the change is to make true. In the intent as `pre`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Before {
    pub path: String,
    /// None where there was no file.
    pub hash: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
    pub bytes: u64,
    /// The old bytes, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<OldBytes>,
    pub expect_post: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OldBytes {
    Text(String),
    B64(String),
    Blob(String),
}

/// What is true after. In the outcome as `post`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct After {
    pub path: String,
    pub hash: String,
}

impl Found {
    /// Looks at the file behind `path`. Errors: in the words of the system, ready for a model.
    pub(super) fn at(path: &Path) -> Result<Self, String> {
        let real = super::paths::resolved(path);
        let complain = |error: &io::Error| system_error(error, &real);
        match fs::metadata(&real) {
            Ok(facts) if facts.is_dir() => {
                Err(format!("Error: EISDIR: illegal operation on a directory, open '{}'", real.display()))
            }
            Ok(facts) if !facts.is_file() => Err(format!("Error: {} is not a regular file", real.display())),
            Ok(facts) if facts.len() > FILE_BYTES_MAX => Err(format!(
                "Error: {} has {} bytes, more than the {FILE_BYTES_MAX} that can be edited at once; use Bash for it",
                real.display(),
                facts.len()
            )),
            Ok(facts) => {
                let bytes = fs::read(&real).map_err(|error| complain(&error))?;
                Ok(Self { bytes: Some(bytes), mode: Some(facts.permissions().mode() & 0o7777), real })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(Self { real, bytes: None, mode: None })
            }
            Err(error) => Err(complain(&error)),
        }
    }

    pub(super) fn hash(&self) -> Option<String> {
        self.bytes.as_deref().map(hash_of)
    }

    /// The facts for the intent of a change to `new`. Errors: the old bytes could not be saved.
    pub(super) fn before(&self, shared: &Shared, new: &[u8]) -> Result<Before, String> {
        let old =
            self.bytes.as_deref().map(|bytes| old_bytes(shared, bytes)).transpose().map_err(|error| {
                format!("Error: the old content of {} could not be saved: {error}", self.real.display())
            })?;
        Ok(Before {
            path: self.real.to_string_lossy().into_owned(),
            hash: self.hash(),
            mode: self.mode,
            bytes: self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64),
            old: old.flatten(),
            expect_post: hash_of(new),
        })
    }
}

fn old_bytes(shared: &Shared, bytes: &[u8]) -> io::Result<Option<OldBytes>> {
    if bytes.len() <= INLINE_BYTES_MAX {
        return Ok(Some(match std::str::from_utf8(bytes) {
            Ok(text) => OldBytes::Text(text.to_owned()),
            Err(_) => OldBytes::B64(BASE64.encode(bytes)),
        }));
    }
    shared.env.save_blob.as_ref().map(|save| save(bytes).map(OldBytes::Blob)).transpose()
}

/// Refuses a change of a file that the model has not seen as it is now.
pub(super) fn check_seen(shared: &Shared, found: &Found, verb: &str) -> Result<(), String> {
    let Some(now) = found.hash() else { return Ok(()) };
    match shared.seen.last(&found.real) {
        None => Err(format!("File has not been read yet. Read it first before {verb} it.")),
        Some(seen) if seen != now => Err(format!(
            "File has been modified since it was read, by someone else or by a command. Read it again before {verb} it."
        )),
        Some(_) => Ok(()),
    }
}

/// Refuses texts in which a secret's label stands for it: written, the label would take the secret's place.
pub(super) fn check_labels(shared: &Shared, found: &Found, texts: &[&str]) -> Result<(), String> {
    let Some(label) = texts.iter().find_map(|text| shared.redactor.label_in(text)) else { return Ok(()) };
    let is_in_file = |bytes: &Vec<u8>| memchr::memmem::find(bytes, label.as_bytes()).is_some();
    if found.bytes.as_ref().is_some_and(is_in_file) {
        return Ok(());
    }
    Err(format!(
        "{label} is not in the file: it is shown in place of a secret, and writing it would lose the secret. \
         Leave the text around it alone, or change it with a command that does not name the secret."
    ))
}

/// Writes `new` in place of what was found, checks it, and tells what is true now with `text`.
///
/// Errors: nothing was changed.
pub(super) fn apply(shared: &Shared, found: &Found, new: &[u8], text: String) -> Result<Done, String> {
    let expect = match &found.bytes {
        Some(bytes) => Expect::Hash(Hash::of(bytes)),
        None => Expect::Missing,
    };
    if let (None, Some(folder)) = (&found.bytes, found.real.parent()) {
        create_folders(folder).map_err(|error| system_error(&error, folder))?;
    }
    let options = ReplaceOptions { expect, mode: None, create_folders: false };
    let mut trouble = match replace_file(&RealDisk, &found.real, new, options) {
        Ok(_) => None,
        Err(error @ ReplaceError::NotDurable { .. }) => {
            Some(format!("Error: {}", crate::error_chain(&error)))
        }
        Err(error) => return Err(replace_error(&error)),
    };
    let wanted = hash_of(new);
    let real = found.real.display();
    let hash = match fs::read(&found.real) {
        Ok(bytes) => hash_of(&bytes),
        Err(error) => {
            trouble = Some(format!("Error: {real} was written, but cannot be read back: {error}"));
            wanted.clone()
        }
    };
    if hash != wanted {
        trouble = Some(format!(
            "Error: {real} was written, but reading it back gives other bytes: someone else writes to it too"
        ));
    }
    shared.seen.note(&found.real, &hash);
    let post = Some(RawJson::of(&After { path: found.real.to_string_lossy().into_owned(), hash }));
    Ok(match trouble {
        None => Done { status: OutcomeStatus::Success, result: CallResult::ok(text), post },
        Some(error) => Done { status: OutcomeStatus::FailedPartial, result: call_error(error), post },
    })
}

/// Creates a folder with those above it, as durable as the file that is to stand in it.
fn create_folders(folder: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = folder.ancestors().take_while(|above| !above.exists()).collect();
    fs::create_dir_all(folder)?;
    for made in missing {
        if let Some(above) = made.parent() {
            fs::File::open(above)?.sync_all()?;
        }
    }
    Ok(())
}

fn replace_error(error: &ReplaceError) -> String {
    match error {
        ReplaceError::Changed { .. } => {
            "File has been modified just now, by someone else or by a command. Read it again.".to_owned()
        }
        ReplaceError::Folder { path, source, .. } | ReplaceError::Storage { path, source } => {
            system_error(source, path)
        }
        ReplaceError::ReadOnly { path } => system_error(&io::ErrorKind::PermissionDenied.into(), path),
        ReplaceError::LinkLoop { .. } | ReplaceError::NotAFile { .. } | ReplaceError::NotDurable { .. } => {
            format!("Error: {}", crate::error_chain(error))
        }
    }
}

/// Settles a change that an earlier process started.
pub(super) fn look(shared: &Shared, run: &RunStep) -> Finding {
    let before: Option<Before> = run.pre.as_ref().and_then(|pre| serde_json::from_str(pre.get()).ok());
    let Some(before) = before else {
        return Finding::Nothing { why: "what was there before is not recorded".to_owned() };
    };
    let path = PathBuf::from(&before.path);
    // As when it was made: what is no file by now, or too large, is neither and is not read.
    let now = match Found::at(&path) {
        Ok(found) if found.real == path => found.hash(),
        Ok(found) => {
            return Finding::Nothing {
                why: format!("{} leads to {} now", path.display(), found.real.display()),
            };
        }
        Err(why) => return Finding::Nothing { why },
    };
    if now.as_ref() == Some(&before.expect_post) {
        shared.seen.note(&path, &before.expect_post);
        let text = format!("The file {} has the new content, as intended.", path.display());
        return Finding::Ended(RunReport::Ended {
            status: OutcomeStatus::Success,
            result: CallResult::ok(text),
            post: Some(RawJson::of(&After { path: before.path, hash: before.expect_post })),
            took_ms: 0,
        });
    }
    if now == before.hash {
        return Finding::NeverRan;
    }
    Finding::Nothing { why: format!("{} is neither as it was before nor as it was to be", path.display()) }
}

/// The system's error as tools everywhere print it: `ENOENT: no such file or directory, open '…'`.
pub(super) fn system_error(error: &io::Error, path: &Path) -> String {
    let path = path.display();
    let (code, words) = match error.kind() {
        io::ErrorKind::NotFound => ("ENOENT", "no such file or directory"),
        io::ErrorKind::PermissionDenied => ("EACCES", "permission denied"),
        io::ErrorKind::StorageFull => ("ENOSPC", "no space left on device"),
        io::ErrorKind::ReadOnlyFilesystem => ("EROFS", "read-only file system"),
        io::ErrorKind::NotADirectory => ("ENOTDIR", "not a directory"),
        io::ErrorKind::IsADirectory => ("EISDIR", "illegal operation on a directory"),
        _ if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            ("ELOOP", "too many symbolic links encountered")
        }
        _ => return format!("Error: {error}, open '{path}'"),
    };
    format!("Error: {code}: {words}, open '{path}'")
}
