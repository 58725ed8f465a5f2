//! Space held back for the day the disk is full.
//!
//! The outcome of an effect must be written even then, or it counts as unknown. So each open session keeps a file of
//! 1 MiB that is of no use but to be removed.

use std::path::{Path, PathBuf};

use crate::disk::{Disk, FILE_MODE};

/// Room for hundreds of outcomes of at most 16 KiB each and for a few notices.
const BALLAST_BYTES: u64 = 1024 * 1024;

/// A session's ballast file, `run/ballast`.
#[derive(Debug)]
pub(crate) struct Ballast {
    path: PathBuf,
    is_there: bool,
}

impl Ballast {
    /// The ballast that an earlier process may have left.
    pub fn of(folder: &Path) -> Ballast {
        Ballast { path: folder.join("run").join("ballast"), is_there: false }
    }

    /// Fills it anew where somebody removed it.
    pub fn restore(&mut self, disk: &dyn Disk) {
        self.is_there = false;
        self.fill(disk);
    }

    pub fn is_there(&self) -> bool {
        self.is_there
    }

    /// Takes the space, if it is not taken and as much again is free: the last room is for what is written now.
    /// Returns whether it is taken; a full disk is no error here.
    pub fn fill(&mut self, disk: &dyn Disk) -> bool {
        if !self.is_there {
            self.is_there = self.allocate(disk).is_ok();
        }
        self.is_there
    }

    /// Gives the space back. Returns whether there was any.
    pub fn release(&mut self, disk: &dyn Disk) -> bool {
        self.is_there = false;
        disk.remove(&self.path).is_ok()
    }

    /// Gives the space back, and the folder if nothing else is in it.
    pub fn remove(&mut self, disk: &dyn Disk) {
        self.release(disk);
        if let Some(folder) = self.path.parent() {
            let _ = disk.remove_dir(folder);
        }
    }

    fn allocate(&self, disk: &dyn Disk) -> std::io::Result<()> {
        if disk.look(&self.path)?.is_some_and(|meta| BALLAST_BYTES <= meta.len) {
            return Ok(());
        }
        if let Some(folder) = self.path.parent() {
            disk.create_dir_all(folder)?;
        }
        let _ = disk.remove(&self.path);
        let mut file = disk.create_new(&self.path, FILE_MODE)?;
        let result = file.allocate(2 * BALLAST_BYTES).and_then(|()| file.set_len(BALLAST_BYTES));
        if result.is_err() {
            let _ = disk.remove(&self.path);
        }
        result
    }
}
