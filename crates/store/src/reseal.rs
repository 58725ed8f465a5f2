//! A sync failed: the log moves to a new file.
//!
//! After a failed sync the kernel may drop what it could not write and still show it, and the next sync succeeds
//! (seen on Linux). So the old file is not synced again and nothing of it is believed but what an earlier
//! sync covered, checked down to the last checksum; the rest is still in memory. The new file takes the name after
//! it is on disk. If that fails too the log is lost: nothing is acknowledged any more, and a file
//! `suspect` tells the next process, whose view of the file may be as wrong.

use std::io;
use std::path::Path;

use yaoki_core::mutant;

use crate::chain::{Repair, read_text};
use crate::disk::{self, Disk, DiskFile, FILE_MODE};
use crate::errors::SyncError;
use crate::files::Files;
use crate::log::{SessionLog, Trust};

impl SessionLog {
    /// Writes the log to a new file that replaces the one whose sync failed with `cause`.
    pub(crate) fn reseal(&mut self, cause: io::Error) -> Result<(), SyncError> {
        let mut result = self.move_to_new_file();
        if result.as_ref().is_err_and(disk::is_full) && self.ballast.release(self.disk.as_ref()) {
            result = self.move_to_new_file();
        }
        match result {
            Ok(()) => Ok(()),
            Err(error) => {
                if mutant!("store-lost-log-goes-on") {
                    self.settle();
                    return Ok(());
                }
                self.trust = Trust::Lost;
                mark_suspect(self.disk.as_ref(), &self.files);
                Err(self.lost(io::Error::new(
                    error.kind(),
                    format!("{cause}; then, moving to a new file: {error}"),
                )))
            }
        }
    }

    fn move_to_new_file(&mut self) -> io::Result<()> {
        let text = self.disk.read_range(&self.files.log, 0, self.synced.bytes as usize)?;
        let reading = read_text(text);
        let (next_seq, crc) = reading.next();
        let is_known =
            (next_seq, crc) == (self.synced.seq + 1, self.synced.crc) && reading.repair == Repair::None;
        if !is_known || reading.text.len() as u64 != self.synced.bytes {
            return Err(io::Error::other("the log does not hold what was synced"));
        }
        self.sync_count += 1;
        self.file = replace(self.disk.as_ref(), &self.files, &[&reading.text, &self.pending])?;
        self.settle();
        self.trust = Trust::Whole;
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

/// Leaves word for the next process, as well as a failing disk allows.
pub(crate) fn mark_suspect(disk: &dyn Disk, files: &Files) {
    if disk.create_new(&files.suspect(), FILE_MODE).is_ok() {
        let _ = disk.sync_dir(&files.folder);
    }
}
