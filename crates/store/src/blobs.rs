//! Bodies too large for a line: plain files named by their BLAKE3, in the session's `blobs/`.
//!
//! A blob is on disk before [`Blobs::put`] returns, so a record that names it may be written at once. Equal bytes are
//! one blob. It is never changed; which blobs are still needed is not known here.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::disk::{self, Disk, FILE_MODE};

/// Bodies of more bytes than this belong in a blob.
pub const BLOB_BYTES_MIN: usize = 16 * 1024;

/// BLAKE3 of some bytes; as text 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash([u8; 32]);

impl Hash {
    pub fn of(bytes: &[u8]) -> Hash {
        Hash(*blake3::hash(bytes).as_bytes())
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads 64 lower-case hex digits. `None`: it is something else.
    pub fn from_hex(text: &str) -> Option<Hash> {
        let is_ours = text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if !is_ours {
            return None;
        }
        blake3::Hash::from_hex(text).ok().map(|hash| Hash(*hash.as_bytes()))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from(self.0).to_hex())
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash({self})")
    }
}

/// How a record names a blob: `{"blob":"<64 hex digits>","bytes":20000}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobRef {
    pub blob: String,
    /// Its length.
    pub bytes: u64,
}

/// A blob could not be stored. None of it is left, or a part that nothing names.
#[derive(Debug, thiserror::Error)]
#[error("cannot store a blob of {bytes} bytes in {folder}")]
pub struct PutError {
    pub folder: PathBuf,
    pub bytes: u64,
    #[source]
    pub source: io::Error,
}

/// A blob could not be had.
#[derive(Debug, thiserror::Error)]
pub enum GetError {
    #[error("{name:?} is no blob's name")]
    BadName { name: String },
    #[error("blob {name} is gone")]
    NotFound { name: String },
    /// The file is there and does not hold what was stored.
    #[error("blob {name} is damaged")]
    Damaged { name: String },
    #[error("cannot read blob {name}")]
    Storage {
        name: String,
        #[source]
        source: io::Error,
    },
}

/// The blobs of one session.
#[derive(Debug)]
pub struct Blobs {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    /// The folder has a durable name. An earlier process may have made it and died, so its being there is no proof.
    is_folder_kept: bool,
    sync_count: u64,
}

impl Blobs {
    /// The blobs in `<session folder>/blobs`, which is created when the first comes.
    pub fn of(disk: Arc<dyn Disk>, session_folder: &Path) -> Blobs {
        Blobs { disk, folder: session_folder.join("blobs"), is_folder_kept: false, sync_count: 0 }
    }

    /// Stores bytes durably and returns their name.
    ///
    /// Two syncs; the first time one more, which makes the name of the folder durable.
    /// Crash: nothing, the whole blob, or a `.part` file that the next put of the same bytes replaces.
    pub fn put(&mut self, bytes: &[u8]) -> Result<BlobRef, PutError> {
        let hash = Hash::of(bytes);
        let result = self.put_as(&hash.to_string(), bytes);
        let len = bytes.len() as u64;
        result.map_err(|source| PutError { folder: self.folder.clone(), bytes: len, source })?;
        Ok(BlobRef { blob: hash.to_string(), bytes: len })
    }

    /// Returns a blob's bytes, checked against their name.
    pub fn get(&self, blob: &BlobRef) -> Result<Vec<u8>, GetError> {
        let name = || blob.blob.clone();
        // The name comes from a file; it must not lead anywhere else.
        let hash = Hash::from_hex(&blob.blob).ok_or_else(|| GetError::BadName { name: name() })?;
        match self.disk.read(&self.folder.join(&blob.blob)) {
            Ok(bytes) if Hash::of(&bytes) == hash => Ok(bytes),
            Ok(_) => Err(GetError::Damaged { name: name() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(GetError::NotFound { name: name() }),
            Err(source) => Err(GetError::Storage { name: name(), source }),
        }
    }

    /// Removes a blob that nothing needs any more. It is no error if it is gone.
    pub fn remove(&mut self, blob: &BlobRef) -> io::Result<()> {
        if Hash::from_hex(&blob.blob).is_none() {
            return Ok(());
        }
        match self.disk.remove(&self.folder.join(&blob.blob)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Syncs of blobs and of their folder.
    pub fn syncs(&self) -> u64 {
        self.sync_count
    }

    fn put_as(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.folder.join(name);
        let disk = self.disk.as_ref();
        disk.create_dir_all(&self.folder)?;
        match disk.read(&path) {
            Ok(there) if there == bytes => {
                // Whole as it is seen; an earlier process may have died before its syncs.
                disk.open_append(&path)?.sync_data()?;
            }
            _ => {
                let part = self.folder.join(format!("{name}.part"));
                let _ = disk.remove(&part);
                disk::write_new(disk, &part, bytes, FILE_MODE)?;
                if let Err(error) = disk.rename(&part, &path) {
                    let _ = disk.remove(&part);
                    return Err(error);
                }
            }
        }
        disk.sync_dir(&self.folder)?;
        self.sync_count += 2;
        if !self.is_folder_kept {
            disk.sync_dir(&disk::folder_of(&self.folder))?;
            self.sync_count += 1;
            self.is_folder_kept = true;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::mem::{Errno, MemDisk, Op, Verdict};

    fn dice(mut state: u64) -> impl FnMut() -> u64 {
        move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state >> 33
        }
    }

    fn blobs(disk: &MemDisk) -> Blobs {
        Blobs::of(Arc::new(disk.clone()), Path::new("/s"))
    }

    #[test]
    fn a_blob_is_named_by_its_hash_and_stored_once() {
        let disk = MemDisk::new();
        let mut blobs = blobs(&disk);
        let blob = blobs.put(b"body").unwrap();
        assert_eq!(blob.blob, blake3::hash(b"body").to_hex().as_str());
        assert_eq!(serde_json::to_string(&blob).unwrap(), format!(r#"{{"blob":"{}","bytes":4}}"#, blob.blob));
        assert_eq!(blobs.put(b"body").unwrap(), blob);
        assert_eq!(disk.paths(), [Path::new("/s/blobs").join(&blob.blob)]);
        assert_eq!(blobs.get(&blob).unwrap(), b"body");
        blobs.remove(&blob).unwrap();
        blobs.remove(&blob).unwrap();
        assert!(matches!(blobs.get(&blob), Err(GetError::NotFound { .. })));
    }

    #[test]
    fn a_blob_survives_every_power_cut_after_its_put() {
        for seed in 0..50 {
            let disk = MemDisk::new();
            disk.poke(Path::new("/s/s.jsonl"), b"");
            let blob = blobs(&disk).put(&[b'x'; 5_000]).unwrap();
            disk.crash(&mut dice(seed));
            assert_eq!(blobs(&disk).get(&blob).unwrap().len(), 5_000);
        }
    }

    #[test]
    fn a_put_that_fails_anywhere_leaves_no_wrong_blob() {
        let count = {
            let disk = MemDisk::new();
            blobs(&disk).put(b"body").unwrap();
            disk.call_count()
        };
        for index in 0..count {
            for verdict in [Verdict::Fail(Errno::NoSpace), Verdict::Fail(Errno::Io), Verdict::Short(1)] {
                let disk = MemDisk::new();
                disk.set_faults(move |call| if call.index == index { verdict } else { Verdict::Go });
                let result = blobs(&disk).put(b"body");
                disk.clear_faults();
                let blob = BlobRef { blob: Hash::of(b"body").to_string(), bytes: 4 };
                match blobs(&disk).get(&blob) {
                    Ok(bytes) => assert_eq!(bytes, b"body"),
                    Err(GetError::NotFound { .. }) => assert!(result.is_err()),
                    Err(error) => panic!("{verdict:?} at {index}: {error}"),
                }
                assert_eq!(blobs(&disk).put(b"body").unwrap(), blob);
                assert_eq!(disk.paths().len(), 1, "{verdict:?} at {index}");
            }
        }
    }

    #[test]
    fn a_damaged_blob_is_told_and_put_anew() {
        let disk = MemDisk::new();
        let blob = blobs(&disk).put(b"body").unwrap();
        disk.poke(&Path::new("/s/blobs").join(&blob.blob), b"bodi");
        assert!(matches!(blobs(&disk).get(&blob), Err(GetError::Damaged { .. })));
        blobs(&disk).put(b"body").unwrap();
        assert_eq!(blobs(&disk).get(&blob).unwrap(), b"body");
    }

    #[test]
    fn a_name_that_is_no_hash_leads_nowhere() {
        let disk = MemDisk::new();
        disk.poke(Path::new("/s/secret"), b"x");
        for name in ["../secret", "", &"A".repeat(64), &"a".repeat(63)] {
            let blob = BlobRef { blob: name.to_owned(), bytes: 1 };
            assert!(matches!(blobs(&disk).get(&blob), Err(GetError::BadName { .. })), "{name}");
        }
    }

    #[test]
    fn a_blob_costs_two_syncs_and_the_first_one_more() {
        let disk = MemDisk::new();
        let count = Arc::new(AtomicU64::new(0));
        let counted = count.clone();
        disk.set_faults(move |call| {
            counted.fetch_add(u64::from(matches!(call.op, Op::SyncData | Op::SyncDir)), Ordering::Relaxed);
            Verdict::Go
        });
        let mut blobs = blobs(&disk);
        for want in [3, 5, 7] {
            blobs.put(format!("body {want}").as_bytes()).unwrap();
            assert_eq!((blobs.syncs(), count.load(Ordering::Relaxed)), (want, want));
        }
    }

    #[test]
    fn a_blob_lasts_in_a_folder_that_another_process_made_and_never_synced() {
        for seed in 0..20 {
            let disk = MemDisk::new();
            disk.poke(Path::new("/s/s.jsonl"), b"");
            disk.create_dir_all(Path::new("/s/blobs")).unwrap();
            let blob = blobs(&disk).put(b"body").unwrap();
            disk.crash(&mut dice(seed));
            assert_eq!(blobs(&disk).get(&blob).unwrap(), b"body");
        }
    }
}
