//! Replacing a file of the user's, all or nothing.
//!
//! The new bytes go to a file beside the old one, to the disk, and then take its name: whatever happens, the path holds
//! all old or all new bytes. Permission bits stay, owner and group as far as we may set them; a symbolic link
//! stays and the file it leads to is replaced. Not kept: hard links (the other names keep the old bytes), extended
//! attributes, access control lists.

use std::io;
use std::path::{Path, PathBuf};

use crate::blobs::Hash;
use crate::disk::{self, Disk, Kind, Meta, folder_of};

/// Links are followed this often, as by Linux.
const LINKS_MAX: usize = 40;
/// Names tried for the file beside: others may be replacing too, and crashes may have left some.
const NAMES_MAX: usize = 100;

/// What the caller asks of a replacement.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReplaceOptions {
    /// What the file must hold now.
    pub expect: Expect,
    /// Permission bits, set exactly. `None`: the old file's; for a new one 0666 without the umask's.
    pub mode: Option<u32>,
    /// Folders above that are missing are created.
    pub create_folders: bool,
}

/// What must be at the path before it is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Expect {
    /// Anything or nothing.
    #[default]
    Any,
    /// A file with these bytes.
    Hash(Hash),
    /// Nothing.
    Missing,
}

/// What a replacement did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// The file itself, behind all links.
    pub path: PathBuf,
    /// There was no file before.
    pub is_new: bool,
    pub mode: u32,
    /// Hash of the new bytes.
    pub hash: Hash,
    /// Syncs of the file and of folders.
    pub syncs: u64,
}

/// A file was not replaced. The path holds what it held, except for [`ReplaceError::NotDurable`].
#[derive(Debug, thiserror::Error)]
pub enum ReplaceError {
    /// Somebody else wrote it, or it came or went.
    #[error("{path} has changed since it was read")]
    Changed { path: PathBuf },
    #[error("{path} is a chain of links without an end")]
    LinkLoop { path: PathBuf },
    #[error("{path} is a folder or no regular file")]
    NotAFile { path: PathBuf },
    #[error("{path} is write-protected")]
    ReadOnly { path: PathBuf },
    /// The new bytes need a place beside the old ones.
    #[error("cannot write in {folder}, where {path} is: a file is replaced by a new one beside it")]
    Folder {
        folder: PathBuf,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot replace {path}")]
    Storage {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The new bytes are there; a power cut may bring the old ones back.
    #[error("{path} is replaced, but may not survive a power cut")]
    NotDurable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// Replaces the bytes of a file, or creates it, durably.
///
/// Crash: the path holds all old or all new bytes; a file `.yaoki-…` may be left beside it.
pub fn replace_file(
    disk: &dyn Disk,
    path: &Path,
    bytes: &[u8],
    options: ReplaceOptions,
) -> Result<Replaced, ReplaceError> {
    let path = follow(disk, path)?;
    let storage = |source| ReplaceError::Storage { path: path.clone(), source };
    let old = disk.look(&path).map_err(storage)?;
    if old.is_some_and(|meta| meta.kind != Kind::File) {
        return Err(ReplaceError::NotAFile { path });
    }
    // Renaming over it would succeed where writing to it would not.
    if old.is_some() && !disk.is_writable(&path).map_err(storage)? {
        return Err(ReplaceError::ReadOnly { path });
    }
    check_expected(disk, &path, old, options.expect)?;
    let folder = folder_of(&path);
    let mut folders = Vec::new();
    if options.create_folders {
        let made = disk::create_folder(disk, &folder).map_err(storage)?;
        folders = made.iter().map(|path| folder_of(path)).collect();
    }
    let mode = options.mode.or(old.map(|meta| meta.mode));
    let beside = write_beside(disk, &path, &folder, bytes, mode, old)?;
    let take_place = || {
        // Once more, as late as can be: the writing took time.
        check_expected(disk, &path, disk.look(&path).map_err(storage)?, options.expect)?;
        let mode = disk.look(&beside).map_err(storage)?.map_or(0, |meta| meta.mode);
        disk.rename(&beside, &path).map_err(storage)?;
        Ok(mode)
    };
    let mode = take_place().inspect_err(|_| drop(disk.remove(&beside)))?;
    folders.push(folder);
    let syncs = 1 + folders.len() as u64;
    for folder in folders {
        disk.sync_dir(&folder).map_err(|source| ReplaceError::NotDurable { path: path.clone(), source })?;
    }
    Ok(Replaced { path, is_new: old.is_none(), mode, hash: Hash::of(bytes), syncs })
}

/// Returns the path behind all links; it need not exist.
fn follow(disk: &dyn Disk, path: &Path) -> Result<PathBuf, ReplaceError> {
    let mut at = path.to_path_buf();
    for _ in 0..LINKS_MAX {
        let look = disk.look(&at).map_err(|source| ReplaceError::Storage { path: at.clone(), source })?;
        if look.is_none_or(|meta| meta.kind != Kind::Link) {
            return Ok(at);
        }
        let target =
            disk.read_link(&at).map_err(|source| ReplaceError::Storage { path: at.clone(), source })?;
        // Relative to the link's folder; an absolute target replaces it.
        at = folder_of(&at).join(target);
    }
    Err(ReplaceError::LinkLoop { path: path.to_path_buf() })
}

fn check_expected(
    disk: &dyn Disk,
    path: &Path,
    now: Option<Meta>,
    expect: Expect,
) -> Result<(), ReplaceError> {
    let is_as_expected = match expect {
        Expect::Any => true,
        Expect::Missing => now.is_none(),
        Expect::Hash(hash) => match now {
            None => false,
            Some(_) => {
                let bytes = disk.read(path);
                let bytes =
                    bytes.map_err(|source| ReplaceError::Storage { path: path.to_path_buf(), source })?;
                Hash::of(&bytes) == hash
            }
        },
    };
    if is_as_expected { Ok(()) } else { Err(ReplaceError::Changed { path: path.to_path_buf() }) }
}

/// Writes the new file under a name of its own. On error nothing is left.
fn write_beside(
    disk: &dyn Disk,
    path: &Path,
    folder: &Path,
    bytes: &[u8],
    mode: Option<u32>,
    old: Option<Meta>,
) -> Result<PathBuf, ReplaceError> {
    let storage = |source| ReplaceError::Storage { path: path.to_path_buf(), source };
    // Short, so that it fits where the name itself only just does.
    let name = Hash::of(path.as_os_str().as_encoded_bytes()).to_string();
    for number in 0..NAMES_MAX {
        let beside = folder.join(format!(".yaoki-{}-{number}", &name[..12]));
        // What has bits of its own may be read by nobody else before it has its owner.
        let mut file = match disk.create_new(&beside, if mode.is_some() { 0o600 } else { 0o666 }) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) if is_refused(&error) => {
                let (folder, path) = (folder.to_path_buf(), path.to_path_buf());
                return Err(ReplaceError::Folder { folder, path, source: error });
            }
            Err(error) => return Err(storage(error)),
        };
        let result = fill(file.as_mut(), bytes, mode, old);
        drop(file);
        return match result {
            Ok(()) => Ok(beside),
            Err(error) => {
                let _ = disk.remove(&beside);
                Err(storage(error))
            }
        };
    }
    Err(storage(io::Error::other("too many unfinished replacements are beside it")))
}

fn fill(file: &mut dyn disk::DiskFile, bytes: &[u8], mode: Option<u32>, old: Option<Meta>) -> io::Result<()> {
    if let (_, Some(error)) = disk::append_all(file, bytes) {
        return Err(error);
    }
    // Only the superuser may give a file away; others keep what they may, without bits that would lend their rights.
    let is_given = old.is_none_or(|meta| file.set_owner(meta.uid, meta.gid).is_ok());
    if let Some(mode) = mode {
        file.set_mode(if is_given { mode } else { mode & 0o777 })?;
    }
    file.sync_data()
}

fn is_refused(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}
