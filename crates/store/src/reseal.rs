//! A sync failed, or the log was removed or cut short by others: it moves to a new file.
//!
//! After a failed sync the kernel may drop what it could not write and still show it, and the next sync succeeds
//! (seen on Linux). So the old file is not synced again and nothing of it is believed but what an earlier
//! sync covered, checked down to the last checksum; the rest is still in memory. The new file takes the name after
//! it is on disk. Until it has, and its folder is synced, a file `suspect` tells the next process, whose view of the
//! file may be as wrong. If the move fails too the log is lost: nothing is acknowledged any more.
//!
//! Not closed: a process killed between the failed sync and its next call leaves no word, nor does one whose disk does not
//! take the mark. To close it, every open after a crash would have to write the log anew.
//!
//! A removed log is still had through its open handle, and its folder and lock are made again. Bodies that were
//! removed with it are not; the next open tells of each.

use std::io;
use std::path::Path;

use yaoki_core::mutant;

use crate::chain::{Repair, read_text};
use crate::disk::{self, Disk, DiskFile, FILE_MODE};
use crate::errors::SyncError;
use crate::files::Files;
use crate::folders::Folders;
use crate::log::{Durability, SessionLog, Synced, Trust};

impl SessionLog {
    /// Writes the log to a new file that replaces the one whose sync failed with `cause`.
    pub(crate) fn reseal(&mut self, cause: io::Error) -> Result<(), SyncError> {
        // First of all: a process that dies from here on must not leave a file that looks whole.
        // A move without a mark is still better than none.
        let marked = mark_suspect(self.disk.as_ref(), &self.files);
        if marked.is_err_and(|error| disk::is_full(&error)) && self.ballast.release(self.disk.as_ref()) {
            let _ = mark_suspect(self.disk.as_ref(), &self.files);
        }
        let mut result = self.move_to_new_file();
        if result.as_ref().is_err_and(disk::is_full) && self.ballast.release(self.disk.as_ref()) {
            result = self.move_to_new_file();
        }
        match result {
            Ok(()) => {
                // Left behind, it costs the next open one more new file.
                let _ = unmark_suspect(self.disk.as_ref(), &self.files);
                Ok(())
            }
            Err(error) => {
                if mutant!("store-lost-log-goes-on") {
                    self.settle();
                    return Ok(());
                }
                self.trust = Trust::Lost;
                // If it could not be left before, it may be now.
                let _ = mark_suspect(self.disk.as_ref(), &self.files);
                Err(self.lost(io::Error::new(
                    error.kind(),
                    format!("{cause}; then, moving to a new file: {error}"),
                )))
            }
        }
    }

    fn move_to_new_file(&mut self) -> io::Result<()> {
        let known = match self.durability {
            Durability::Disk => self.synced,
            // Nothing is pending, and no sync can have dropped what is seen.
            Durability::Process => Synced { seq: self.last_seq, crc: self.last_crc, bytes: self.end },
        };
        let text = self.file.read_range(0, known.bytes as usize)?;
        let reading = read_text(text);
        let (next_seq, crc) = reading.next();
        let is_known = (next_seq, crc) == (known.seq + 1, known.crc) && reading.repair == Repair::None;
        if !is_known || reading.text.len() as u64 != known.bytes {
            return Err(io::Error::other("the log does not hold what was synced"));
        }
        self.restore_folder()?;
        self.sync_count += 1;
        self.file = replace(self.disk.as_ref(), &self.files, &[&reading.text, &self.pending])?;
        self.settle();
        self.trust = Trust::Whole;
        Ok(())
    }

    /// Makes the session's folder and its lock again, if they were removed.
    fn restore_folder(&mut self) -> io::Result<()> {
        let disk = self.disk.as_ref();
        if disk.look(&self.files.lock())?.is_some() {
            return Ok(());
        }
        self.folders = Folders::create(disk, &self.files.folder)?;
        // The lock we hold has no name any more, so it keeps nobody out.
        let lock = disk.try_lock(&self.files.lock())?;
        self._lock = lock.ok_or_else(|| io::Error::other("another process has taken the session"))?;
        self.ballast.restore(disk);
        Ok(())
    }
}

/// Makes a new file the session's log, durably. Returns it open at its end.
///
/// Crash: the old file or the new one has the name; a left-over `<session>.new` is removed by the next open.
pub(crate) fn replace(disk: &dyn Disk, files: &Files, pieces: &[&[u8]]) -> io::Result<Box<dyn DiskFile>> {
    let new = files.beside("new");
    remove_if_there(disk, &new)?;
    let mut file = disk.create_new(&new, FILE_MODE)?;
    for piece in pieces {
        if let (_, Some(error)) = disk::append_all(file.as_mut(), piece) {
            let _ = disk.remove(&new);
            return Err(error);
        }
    }
    if let Err(error) = file.sync_data().and_then(|()| disk.rename(&new, &files.log)) {
        let _ = disk.remove(&new);
        return Err(error);
    }
    disk.sync_dir(&files.folder)?;
    Ok(file)
}

pub(crate) fn remove_if_there(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    match disk.remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Leaves word for the next process. What fails once is tried once more: without it that process believes what it sees.
pub(crate) fn mark_suspect(disk: &dyn Disk, files: &Files) -> io::Result<()> {
    let mark = || match disk.create_new(&files.suspect(), FILE_MODE) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        // Not synced: a power cut shows what is on disk, and nobody is misled any more.
        _ => Ok(()),
    };
    mark().or_else(|_| mark())
}

/// Takes the word back, so that no power cut brings it up again.
pub(crate) fn unmark_suspect(disk: &dyn Disk, files: &Files) -> io::Result<()> {
    remove_if_there(disk, &files.suspect())?;
    disk.sync_dir(&files.folder)
}
