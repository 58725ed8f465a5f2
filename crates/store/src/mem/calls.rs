//! The calls of a simulated disk.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::inode::Inode;
use super::names::Name;
use super::{Errno, MemDisk, Op, State, Verdict};
use crate::disk::{Disk, DiskFile, Entry, FileState, Kind, Lock, Meta};

impl Disk for MemDisk {
    fn open_append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.call(Op::OpenAppend, path, 0, |state, _| Ok(state.handle(self, path, state.file(path)?)))
    }

    fn create_new(&self, path: &Path, mode: u32) -> io::Result<Box<dyn DiskFile>> {
        self.call(Op::CreateNew, path, 0, |state, _| {
            let index = state.inodes.len();
            state.names.create(path, Name::File(index))?;
            state.inodes.push(Inode::new(mode));
            Ok(state.handle(self, path, index))
        })
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.call(Op::Read, path, 0, |state, _| Ok(state.inodes[state.file(path)?].live.clone()))
    }

    fn read_range(&self, path: &Path, from: u64, len: usize) -> io::Result<Vec<u8>> {
        self.call(Op::Read, path, len, |state, _| Ok(state.inodes[state.file(path)?].range(from, len)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call(Op::Rename, to, 0, |state, _| state.names.rename(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.call(Op::Remove, path, 0, |state, _| state.names.remove(path))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.call(Op::Remove, path, 0, |state, _| state.names.remove_folder(path))
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.call(Op::SyncDir, path, 0, |state, verdict| match verdict {
            Verdict::FailDropping(errno) => Err(errno.into()),
            _ => state.names.sync(path),
        })
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.call(Op::CreateDir, path, 0, |state, _| state.names.create_folders(path))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        self.call(Op::List, path, 0, |state, _| state.names.list(path))
    }

    fn look(&self, path: &Path) -> io::Result<Option<Meta>> {
        self.call(Op::Look, path, 0, |state, _| {
            let blank = Meta { kind: Kind::Folder, len: 0, mode: 0o700, uid: 0, gid: 0, modified_ns: 0 };
            Ok(state.names.get(path).map(|name| match name {
                Name::Folder => blank,
                Name::Link(_) => Meta { kind: Kind::Link, mode: 0o777, ..blank },
                Name::File(index) => {
                    let inode = &state.inodes[*index];
                    let Inode { mode, uid, gid, modified, .. } = *inode;
                    Meta { kind: Kind::File, len: inode.len(), mode, uid, gid, modified_ns: modified.into() }
                }
            }))
        })
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        self.call(Op::Look, path, 0, |state, _| match state.names.get(path) {
            Some(Name::Link(target)) => Ok(target.clone()),
            Some(_) => Err(io::ErrorKind::InvalidInput.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        })
    }

    fn is_writable(&self, path: &Path) -> io::Result<bool> {
        self.call(Op::Look, path, 0, |state, _| match state.names.file(path) {
            Some(index) => Ok(state.inodes[index].mode & 0o200 != 0),
            None if state.names.get(path).is_some() => Ok(true),
            None => Err(io::ErrorKind::NotFound.into()),
        })
    }

    fn try_lock(&self, path: &Path) -> io::Result<Option<Box<dyn Lock>>> {
        self.call(Op::TryLock, path, 0, |state, _| {
            if state.names.get(path).is_none() {
                let index = state.inodes.len();
                state.names.create(path, Name::File(index))?;
                state.inodes.push(Inode::new(0o600));
            }
            let index = state.file(path)?;
            if !state.locks.insert(index) {
                return Ok(None);
            }
            let lock = MemLock { disk: self.clone(), index, boot: state.boot };
            Ok(Some(Box::new(lock) as Box<dyn Lock>))
        })
    }
}

impl State {
    fn handle(&self, disk: &MemDisk, path: &Path, index: usize) -> Box<dyn DiskFile> {
        Box::new(MemFile { disk: disk.clone(), path: path.to_path_buf(), index, boot: self.boot })
    }
}

struct MemFile {
    disk: MemDisk,
    path: PathBuf,
    index: usize,
    boot: u64,
}

impl MemFile {
    fn call<T>(
        &self,
        op: Op,
        bytes: usize,
        act: impl FnOnce(&mut State, Verdict) -> io::Result<T>,
    ) -> io::Result<T> {
        self.disk.call(op, &self.path, bytes, |state, verdict| {
            if self.boot != state.boot {
                return Err(Errno::Io.into());
            }
            if !matches!(op, Op::SyncData | Op::Read | Op::Look) {
                state.change_count += 1;
                state.inodes[self.index].modified = state.change_count;
            }
            act(state, verdict)
        })
    }
}

impl DiskFile for MemFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.call(Op::Append, bytes.len(), |state, verdict| {
            let told = if let Verdict::Short(count) = verdict { count.max(1) } else { usize::MAX };
            let count = bytes.len().min(told).min(usize::try_from(state.space_left()).unwrap_or(usize::MAX));
            if count == 0 && !bytes.is_empty() {
                return Err(Errno::NoSpace.into());
            }
            state.inodes[self.index].append(&bytes[..count]);
            Ok(count)
        })
    }

    fn sync_data(&mut self) -> io::Result<()> {
        self.call(Op::SyncData, 0, |state, verdict| {
            let inode = &mut state.inodes[self.index];
            if let Verdict::FailDropping(errno) = verdict {
                inode.sync_dropping();
                return Err(errno.into());
            }
            inode.sync();
            Ok(())
        })
    }

    fn read_range(&self, from: u64, len: usize) -> io::Result<Vec<u8>> {
        self.call(Op::Read, len, |state, _| Ok(state.inodes[self.index].range(from, len)))
    }

    fn state(&self) -> io::Result<FileState> {
        self.call(Op::Look, 0, |state, _| {
            let is_linked = state.names.get(&self.path) == Some(&Name::File(self.index))
                || state.names.files().any(|index| index == self.index);
            Ok(FileState { len: state.inodes[self.index].len(), is_linked })
        })
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        self.call(Op::SetLen, 0, |state, _| {
            state.inodes[self.index].set_len(len as usize);
            Ok(())
        })
    }

    fn allocate(&mut self, len: u64) -> io::Result<()> {
        self.call(Op::Allocate, len as usize, |state, _| {
            let more = len.saturating_sub(state.inodes[self.index].len());
            if state.space_left() < more {
                return Err(Errno::NoSpace.into());
            }
            state.inodes[self.index].reserved += more;
            Ok(())
        })
    }

    fn set_mode(&mut self, mode: u32) -> io::Result<()> {
        self.call(Op::SetMeta, 0, |state, _| {
            state.inodes[self.index].mode = mode;
            Ok(())
        })
    }

    fn set_owner(&mut self, uid: u32, gid: u32) -> io::Result<()> {
        self.call(Op::SetMeta, 0, |state, _| {
            (state.inodes[self.index].uid, state.inodes[self.index].gid) = (uid, gid);
            Ok(())
        })
    }
}

impl fmt::Debug for MemFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemFile({})", self.path.display())
    }
}

#[derive(Debug)]
struct MemLock {
    disk: MemDisk,
    index: usize,
    boot: u64,
}

impl Lock for MemLock {}

impl Drop for MemLock {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        if self.boot == state.boot {
            state.locks.remove(&self.index);
        }
    }
}
