//! Making the folders above a session durable, and knowing when they are.
//!
//! A name is durable when the folder it is in was synced. That a folder is there proves nothing: an earlier process may
//! have made it and died. But syncing all of them at each open is dear. So when all are synced, a file `.synced` is put
//! into the session's folder and into the one above: whoever sees it knows that the syncs came before it.

use std::io;
use std::path::{Path, PathBuf};

use crate::disk::{self, Disk, FILE_MODE, folder_of};

/// Folders with a name of ours in them, above a session's own: the slug's, `sessions`, home, and the one home is in.
const ABOVE: usize = 4;
const MARK: &str = ".synced";

/// Folders of one session that are still to be synced.
#[derive(Debug, Default)]
pub(crate) struct Folders {
    /// From the top.
    unsynced: Vec<PathBuf>,
    /// Made when all are synced.
    marks: Vec<PathBuf>,
    /// Those that were missing, deepest last.
    made: Vec<PathBuf>,
}

impl Folders {
    /// Creates a session's folder, if it is missing, and lists what must be synced for its files to last.
    pub fn create(disk: &dyn Disk, folder: &Path) -> io::Result<Folders> {
        let made = disk::create_folder(disk, folder)?;
        let [mine, above] = [folder.to_path_buf(), folder_of(folder)].map(|folder| folder.join(MARK));
        let look = |mark| disk.look(mark).inspect_err(|_| disk::remove_folders(disk, &made));
        if look(&mine)?.is_some() {
            return Ok(Folders::default());
        }
        let (count, marks) =
            if look(&above)?.is_some() { (1, vec![mine]) } else { (ABOVE, vec![mine, above]) };
        let parents = folder.ancestors().skip(1).filter(|path| !path.as_os_str().is_empty());
        let mut unsynced: Vec<PathBuf> = parents.take(count).map(Path::to_path_buf).collect();
        unsynced.reverse();
        let higher =
            made.iter().map(|path| folder_of(path)).filter(|path| !unsynced.contains(path)).collect();
        let unsynced = [higher, unsynced, vec![folder.to_path_buf()]].concat();
        Ok(Folders { unsynced, marks, made })
    }

    /// Whether the session's own folder was missing, so that all in it is ours.
    pub fn is_new(&self) -> bool {
        !self.made.is_empty()
    }

    /// Removes the folders that were missing, as far as they are empty.
    pub fn remove(&self, disk: &dyn Disk) {
        disk::remove_folders(disk, &self.made);
    }

    /// Syncs what is left. Errors: a folder that we can write to could not be synced; those are lost for good.
    pub fn sync(&mut self, disk: &dyn Disk) -> io::Result<()> {
        while let Some(folder) = self.unsynced.first() {
            match disk.sync_dir(folder) {
                Ok(()) => {}
                // Where we may not write we made no name.
                Err(error)
                    if error.kind() == io::ErrorKind::PermissionDenied
                        && !disk.is_writable(folder).unwrap_or(true) => {}
                Err(error) => return Err(error),
            }
            self.unsynced.remove(0);
        }
        for mark in self.marks.drain(..) {
            // Without it the next one syncs once more.
            let _ = disk.create_new(&mark, FILE_MODE);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mem::{Errno, MemDisk, Op, Verdict};

    fn synced(disk: &MemDisk, folder: &str) -> Vec<String> {
        let mut folders = Folders::create(disk, Path::new(folder)).unwrap();
        let names = folders.unsynced.iter().map(|path| path.to_str().unwrap().to_owned()).collect();
        folders.sync(disk).unwrap();
        names
    }

    #[test]
    fn the_first_session_syncs_all_above_it_the_next_its_own_and_an_open_none() {
        let disk = MemDisk::new();
        let all = ["/", "/a", "/a/home", "/a/home/sessions", "/a/home/sessions/-w", "/a/home/sessions/-w/1"];
        assert_eq!(synced(&disk, "/a/home/sessions/-w/1"), all);
        assert_eq!(synced(&disk, "/a/home/sessions/-w/2"), ["/a/home/sessions/-w", "/a/home/sessions/-w/2"]);
        assert!(synced(&disk, "/a/home/sessions/-w/2").is_empty(), "opened again");
        // Another directory's first.
        assert_eq!(
            synced(&disk, "/a/home/sessions/-x/1")[2..],
            ["/a/home/sessions", "/a/home/sessions/-x", "/a/home/sessions/-x/1"]
        );
    }

    #[test]
    fn a_mark_that_survives_a_power_cut_tells_the_truth() {
        for seed in 0..200u64 {
            let disk = MemDisk::new();
            // One that dies before its syncs, one that makes them.
            Folders::create(&disk, Path::new("/a/home/sessions/-w/1")).unwrap();
            if seed % 2 == 0 {
                synced(&disk, "/a/home/sessions/-w/2");
            }
            let mut state = seed;
            let mut dice = || {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                state >> 33
            };
            disk.crash(&mut dice);
            synced(&disk, "/a/home/sessions/-w/3");
            disk.crash(&mut dice);
            assert!(disk.look(Path::new("/a/home/sessions/-w/3")).unwrap().is_some(), "seed {seed}");
        }
    }

    #[test]
    fn a_failed_sync_leaves_no_mark() {
        let disk = MemDisk::new();
        disk.set_faults(|call| match call.op {
            Op::SyncDir if call.path == Path::new("/a") => Verdict::Fail(Errno::Io),
            _ => Verdict::Go,
        });
        let mut folders = Folders::create(&disk, Path::new("/a/home/sessions/-w/1")).unwrap();
        assert!(folders.sync(&disk).is_err());
        assert!(disk.paths().is_empty());
    }
}
