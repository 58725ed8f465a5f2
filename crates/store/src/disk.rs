//! The disk, as the store sees it: a small set of synchronous calls.
//!
//! Everything durable goes through [`Disk`], so that the simulator can put a disk below that tears,
//! forgets and fails. [`RealDisk`](crate::RealDisk) stands on the operating system,
//! [`MemDisk`](crate::mem::MemDisk) on nothing.
//! It deliberately offers no buffering, no retries and no paths relative to anything but the caller's.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Bits of a file only its owner may read: sessions hold what people typed.
pub const FILE_MODE: u32 = 0o600;
/// Bits of a folder only its owner may enter.
pub const FOLDER_MODE: u32 = 0o700;

/// A file system. Paths are absolute, or relative to the process as in `std::fs`.
///
/// Looking: [`read`](Self::read), [`read_range`](Self::read_range), [`list`](Self::list), [`look`](Self::look),
/// [`read_link`](Self::read_link), [`is_writable`](Self::is_writable).
/// Changing: the others. A change of names is durable after [`sync_dir`](Self::sync_dir) of the folder, a change
/// of bytes after [`DiskFile::sync_data`]; a crash before that may leave the old state, the new one, or for bytes
/// anything between.
pub trait Disk: Send + Sync + fmt::Debug {
    /// Opens an existing file; each write goes to its end.
    fn open_append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Creates a file that must not exist, with these permission bits.
    fn create_new(&self, path: &Path, mode: u32) -> io::Result<Box<dyn DiskFile>>;
    /// Returns all bytes of a file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
    /// Returns up to `len` bytes from `from`; fewer at the end of the file.
    fn read_range(&self, path: &Path, from: u64, len: usize) -> io::Result<Vec<u8>>;
    /// Gives a file a new name in the same file system, replacing what had it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file or link.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty folder.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a folder durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// Creates a folder and those above it, each with [`FOLDER_MODE`]. Existing ones are left alone.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Returns the entries of a folder, sorted by name.
    fn list(&self, path: &Path) -> io::Result<Vec<Entry>>;
    /// Returns what is at a path without following a final link, `None` where nothing is.
    fn look(&self, path: &Path) -> io::Result<Option<Meta>>;
    /// Returns where a symbolic link points.
    fn read_link(&self, path: &Path) -> io::Result<PathBuf>;
    /// Returns whether this process may write to a file or into a folder.
    fn is_writable(&self, path: &Path) -> io::Result<bool>;
    /// Takes an exclusive advisory lock on a file, created if missing. `None`: someone else holds it.
    /// The lock ends with the guard or with the process, whichever comes first.
    fn try_lock(&self, path: &Path) -> io::Result<Option<Box<dyn Lock>>>;
}

/// An open file.
pub trait DiskFile: Send + fmt::Debug {
    /// Writes at the end of the file. Returns how many bytes were taken, which may be fewer than given.
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// Makes the bytes and the length durable (fdatasync; `F_FULLFSYNC` on macOS).
    fn sync_data(&mut self) -> io::Result<()>;
    /// Returns up to `len` bytes from `from`, whatever has become of the file's name; fewer at its end.
    fn read_range(&self, from: u64, len: usize) -> io::Result<Vec<u8>>;
    /// Returns what others may have done to the file since it was opened.
    fn state(&self) -> io::Result<FileState>;
    /// Cuts or extends (with NULs) the file.
    fn set_len(&mut self, len: u64) -> io::Result<()>;
    /// Makes the file `len` bytes long and reserves real space for all of them.
    fn allocate(&mut self, len: u64) -> io::Result<()>;
    /// Sets the permission bits.
    fn set_mode(&mut self, mode: u32) -> io::Result<()>;
    /// Sets owner and group.
    fn set_owner(&mut self, uid: u32, gid: u32) -> io::Result<()>;
}

/// An open file, as it is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileState {
    /// Bytes.
    pub len: u64,
    /// It has a name: when it is closed it is still there. Some file systems do not count names and always deny it.
    pub is_linked: bool,
}

/// A held lock; dropping it lets go.
pub trait Lock: Send + fmt::Debug {}

/// One name in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    pub kind: Kind,
}

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    pub kind: Kind,
    /// Bytes.
    pub len: u64,
    /// Permission bits, the lower twelve.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    /// Nanoseconds since 1970, 0 where unknown. For people and for sorting, never for decisions.
    pub modified_ns: i128,
}

/// The kinds of things at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    File,
    Folder,
    Link,
    Other,
}

/// Writes all bytes, finishing short writes. Returns how many were taken and the error that stopped it, if any.
///
/// After an error it is not known what the disk took, so nothing is tried again here: the caller cuts first.
pub(crate) fn append_all(file: &mut dyn DiskFile, bytes: &[u8]) -> (usize, Option<io::Error>) {
    let mut taken = 0;
    while taken < bytes.len() {
        match file.append(&bytes[taken..]) {
            Ok(0) => return (taken, Some(io::ErrorKind::WriteZero.into())),
            Ok(count) => taken += count,
            Err(error) => return (taken, Some(error)),
        }
    }
    (taken, None)
}

/// Writes a whole new file and makes its bytes durable. On error the file is removed again, as far as that works.
pub(crate) fn write_new(
    disk: &dyn Disk,
    path: &Path,
    bytes: &[u8],
    mode: u32,
) -> io::Result<Box<dyn DiskFile>> {
    let mut file = disk.create_new(path, mode)?;
    let result = match append_all(file.as_mut(), bytes) {
        (_, Some(error)) => Err(error),
        (_, None) => file.sync_data(),
    };
    match result {
        Ok(()) => Ok(file),
        Err(error) => {
            drop(file);
            let _ = disk.remove(path);
            Err(error)
        }
    }
}

/// Returns whether an error says that there is no room: full disk or quota.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Creates a folder and those above it. Returns the ones that were missing, deepest last: each lasts once its parent
/// is synced. On error they are removed again, as far as that works.
pub(crate) fn create_folder(disk: &dyn Disk, path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut made = Vec::new();
    let mut at = path.to_path_buf();
    while disk.look(&at)?.is_none() {
        let parent = folder_of(&at);
        let is_top = parent == at || parent == Path::new(".");
        made.push(at);
        if is_top {
            break;
        }
        at = parent;
    }
    made.reverse();
    disk.create_dir_all(path).inspect_err(|_| remove_folders(disk, &made))?;
    Ok(made)
}

/// Removes folders, the last first, as far as they are there and empty.
pub(crate) fn remove_folders(disk: &dyn Disk, folders: &[PathBuf]) {
    for folder in folders.iter().rev() {
        let _ = disk.remove_dir(folder);
    }
}

/// Returns the folder that a path is in.
pub(crate) fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}
