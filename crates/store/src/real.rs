//! The operating system's disk.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::disk::{Disk, DiskFile, Entry, FILE_MODE, FOLDER_MODE, FileState, Kind, Lock, Meta};

/// The disk of this machine, by `std::fs`.
///
/// Files are closed on exec, so a child never holds a lock of ours. `std` syncs with `F_FULLFSYNC` on macOS.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn open_append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(RealFile(OpenOptions::new().read(true).append(true).open(path)?)))
    }

    fn create_new(&self, path: &Path, mode: u32) -> io::Result<Box<dyn DiskFile>> {
        // `append` and `create_new` together: O_APPEND | O_CREAT | O_EXCL, which also refuses a dangling link.
        let file = OpenOptions::new().read(true).append(true).create_new(true).mode(mode).open(path)?;
        Ok(Box::new(RealFile(file)))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    fn read_range(&self, path: &Path, from: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::with_capacity(len);
        file.take(len as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            // Names of ours are ASCII; what is not UTF-8 is not ours.
            if let Ok(name) = entry.file_name().into_string() {
                entries.push(Entry { name, kind: kind(entry.file_type()?) });
            }
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn look(&self, path: &Path) -> io::Result<Option<Meta>> {
        match fs::symlink_metadata(path) {
            Ok(meta) => Ok(Some(Meta {
                kind: kind(meta.file_type()),
                len: meta.len(),
                mode: meta.mode() & 0o7777,
                uid: meta.uid(),
                gid: meta.gid(),
                modified_ns: i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec()),
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        fs::read_link(path)
    }

    fn is_writable(&self, path: &Path) -> io::Result<bool> {
        match rustix::fs::access(path, rustix::fs::Access::WRITE_OK) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::ACCESS | rustix::io::Errno::PERM | rustix::io::Errno::ROFS) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn try_lock(&self, path: &Path) -> io::Result<Option<Box<dyn Lock>>> {
        for _ in 0..LOCK_TRIES_MAX {
            let file =
                OpenOptions::new().write(true).create(true).truncate(false).mode(FILE_MODE).open(path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            // The file may have been removed between our open and our lock; a lock on it would guard nothing.
            let ours = file.metadata()?;
            match fs::symlink_metadata(path) {
                Ok(there) if (there.dev(), there.ino()) == (ours.dev(), ours.ino()) => {
                    return Ok(Some(Box::new(RealLock { _file: file })));
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

/// Somebody who removes the lock file this often in a row holds it, in effect.
const LOCK_TRIES_MAX: usize = 8;

#[derive(Debug)]
struct RealFile(File);

impl DiskFile for RealFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.0.write(bytes) {
                // The kernel says so only where nothing was taken.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    fn sync_data(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn read_range(&self, from: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        let mut count = 0;
        while count < len {
            match self.0.read_at(&mut bytes[count..], from + count as u64) {
                Ok(0) => break,
                Ok(more) => count += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(count);
        Ok(bytes)
    }

    fn state(&self) -> io::Result<FileState> {
        let meta = self.0.metadata()?;
        Ok(FileState { len: meta.len(), is_linked: 0 < meta.nlink() })
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn allocate(&mut self, len: u64) -> io::Result<()> {
        reserve(&mut self.0, len)
    }

    fn set_mode(&mut self, mode: u32) -> io::Result<()> {
        self.0.set_permissions(fs::Permissions::from_mode(mode))
    }

    fn set_owner(&mut self, uid: u32, gid: u32) -> io::Result<()> {
        std::os::unix::fs::fchown(&self.0, Some(uid), Some(gid))
    }
}

#[cfg(target_os = "linux")]
fn reserve(file: &mut File, len: u64) -> io::Result<()> {
    use rustix::io::Errno;
    match rustix::fs::fallocate(&*file, rustix::fs::FallocateFlags::empty(), 0, len) {
        Ok(()) => Ok(()),
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => write_nuls(file, len),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn reserve(file: &mut File, len: u64) -> io::Result<()> {
    write_nuls(file, len)
}

/// File systems that can't reserve space still have it taken by what was written.
fn write_nuls(file: &mut File, len: u64) -> io::Result<()> {
    let piece = [0u8; 64 * 1024];
    let mut left = len.saturating_sub(file.metadata()?.len());
    while left > 0 {
        let count = left.min(piece.len() as u64) as usize;
        file.write_all(&piece[..count])?;
        left -= count as u64;
    }
    Ok(())
}

#[derive(Debug)]
struct RealLock {
    /// Closing the file lets go of the lock.
    _file: File,
}

impl Lock for RealLock {}

fn kind(kind: fs::FileType) -> Kind {
    if kind.is_file() {
        Kind::File
    } else if kind.is_dir() {
        Kind::Folder
    } else if kind.is_symlink() {
        Kind::Link
    } else {
        debug_assert!(kind.is_fifo() || kind.is_socket() || kind.is_char_device() || kind.is_block_device());
        Kind::Other
    }
}
