//! Opening a session's log: lock, verify, repair; and reading one without touching it.
//!
//! Every repair is made so that a crash in it leaves a file that the next open repairs again: what is set aside is on
//! disk before anything is cut or replaced. Only the holder of the lock repairs.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use yaoki_core::mutant;

use crate::ballast::Ballast;
use crate::chain::{Reading, Repair, read_text};
use crate::disk::{self, Disk, DiskFile, FILE_MODE};
use crate::errors::{CreateError, OpenError, ReadError};
use crate::files::Files;
use crate::findings::Findings;
use crate::folders::Folders;
use crate::line::{Line, NewLine};
use crate::log::{Durability, SessionLog, Synced, Trust};
use crate::reseal;

/// A session that was opened.
#[derive(Debug)]
pub struct Opened {
    pub log: SessionLog,
    /// All lines, oldest first, the header as the first. A line of type `gap` stands for damaged ones.
    pub lines: Vec<Line>,
    pub found: Findings,
}

impl SessionLog {
    /// Opens a session for writing under the next epoch: takes the lock, verifies all lines and repairs the file.
    ///
    /// All lines returned are durable (with [`Durability::Disk`]). What was repaired is in `found`.
    /// Crash: see the module; nothing that was acknowledged is lost by a repair.
    pub fn open(
        disk: Arc<dyn Disk>,
        folder: &Path,
        session: &str,
        durability: Durability,
    ) -> Result<Opened, OpenError> {
        let files = Files::new(folder, session);
        let at = |doing| move |source| OpenError::Storage { session: session.to_owned(), doing, source };
        let not_found = || OpenError::NotFound { session: session.to_owned(), folder: folder.to_path_buf() };
        if disk.look(&files.log).map_err(at("look for the log"))?.is_none() {
            return Err(not_found());
        }
        let lock = disk.try_lock(&files.lock()).map_err(at("take the lock"))?;
        let lock = lock.ok_or_else(|| OpenError::Locked { session: session.to_owned() })?;
        let text = match disk.read(&files.log) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(not_found()),
            Err(error) => return Err(at("read the log")(error)),
        };
        let mut reading = read_text(text);
        if let Some(format) = reading.findings.format_needed {
            return Err(OpenError::Newer { session: session.to_owned(), format });
        }
        if reading.lines.is_empty() {
            return Err(OpenError::Empty { session: session.to_owned(), folder: folder.to_path_buf() });
        }
        if !reading.has_header {
            return Err(OpenError::NoHeader { session: session.to_owned() });
        }
        let mut repairer =
            Repairer { disk: disk.as_ref(), files: &files, ballast: Ballast::of(folder), syncs: 0 };
        let file = repairer.repair(&mut reading, durability).map_err(at("repair the log"))?;
        let Repairer { ballast, syncs, .. } = repairer;
        let folders = Folders::create(disk.as_ref(), folder).map_err(at("look at the folders"))?;
        let mut log = SessionLog {
            durability,
            epoch: reading.lines.iter().map(|line| line.epoch).max().unwrap_or(0) + 1,
            last_seq: reading.next().0 - 1,
            last_crc: reading.next().1,
            end: end(&reading),
            synced: Synced::default(),
            acknowledged_seq: 0,
            pending: Vec::new(),
            folders,
            sync_count: syncs,
            trust: Trust::Whole,
            ballast,
            _lock: lock,
            file,
            files,
            disk,
        };
        if durability == Durability::Disk {
            log.settle();
            log.sync_folders()?;
        }
        log.acknowledged_seq = log.last_seq;
        log.ballast.fill(log.disk.as_ref());
        Ok(Opened { log, lines: reading.lines, found: reading.findings })
    }

    /// Begins a session that continues `lines` of another: they are sealed anew under the same seqs and epochs,
    /// and the fork writes under the next epoch.
    ///
    /// Shape: `lines` without the header, from seq 2, none left out.
    /// Crash: as [`SessionLog::create`]; nothing is synced yet.
    pub fn fork(
        disk: Arc<dyn Disk>,
        folder: &Path,
        session: &str,
        durability: Durability,
        header: NewLine,
        lines: &[Line],
    ) -> Result<SessionLog, CreateError> {
        let mut log = SessionLog::begin(disk, folder, session, durability, header, 1)?;
        if let Err(error) = log.copy(lines) {
            log.discard();
            return Err(error.into());
        }
        log.refill_ballast();
        log.epoch = lines.last().map_or(1, |line| line.epoch) + 1;
        Ok(log)
    }
}

/// Reads a session without its lock and without writing, also while another process writes to it.
///
/// The lines are those an open would give; a `gap` line may not be in the file. A tail that is being written
/// just now looks torn. Of a damaged header the first line is a `gap`.
pub fn read_only(disk: &dyn Disk, folder: &Path, session: &str) -> Result<(Vec<Line>, Findings), ReadError> {
    let path = Files::new(folder, session).log;
    match disk.read(&path) {
        Ok(text) => {
            let Reading { lines, findings, .. } = read_text(text);
            Ok((lines, findings))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(ReadError::NotFound { session: session.to_owned(), folder: folder.to_path_buf() })
        }
        Err(source) => Err(ReadError::Storage { path, source }),
    }
}

/// Bytes up to the end of the last line, which is ended after the repair.
fn end(reading: &Reading) -> u64 {
    reading.lines.last().map_or(0, |line| line.place + line.raw().len() as u64 + 1)
}

struct Repairer<'a> {
    disk: &'a dyn Disk,
    files: &'a Files,
    ballast: Ballast,
    syncs: u64,
}

impl Repairer<'_> {
    /// Makes the file equal to its lines, and durable. Returns it open at its end.
    fn repair(&mut self, reading: &mut Reading, durability: Durability) -> io::Result<Box<dyn DiskFile>> {
        reseal::remove_if_there(self.disk, &self.files.beside("new"))?;
        let end = end(reading) as usize;
        let mut is_whole = false;
        match reading.repair {
            Repair::None => {}
            Repair::Whole => {
                let kept = self.with_ballast(|repairer| repairer.keep_original())?;
                reading.findings.kept = Some(kept);
                is_whole = true;
            }
            Repair::Tail { end, .. } => {
                if let Some(torn) = &mut reading.findings.torn {
                    let tail = &reading.text[end as usize..];
                    torn.kept = Some(self.with_ballast(|repairer| repairer.set_aside(tail))?);
                }
            }
        }
        if self.disk.look(&self.files.suspect())?.is_some() {
            reading.findings.is_resealed = true;
            is_whole = true;
        }
        if !is_whole {
            let mut file = self.disk.open_append(&self.files.log)?;
            match self.trim(file.as_mut(), reading.repair, durability) {
                Ok(()) => return Ok(file),
                // The first failed sync: as in `reseal`, but all that is known is in memory.
                Err(None) => {}
                Err(Some(error)) => return Err(error),
            }
        }
        let ended: &[u8] = if end <= reading.text.len() { b"" } else { b"\n" };
        let text = &reading.text[..end.min(reading.text.len())];
        self.syncs += 1;
        // Until the new file has the name for good: a process that dies here may leave one that a power cut takes back.
        self.with_ballast(|repairer| reseal::mark_suspect(repairer.disk, repairer.files))?;
        let file =
            self.with_ballast(|repairer| reseal::replace(repairer.disk, repairer.files, &[text, ended]))?;
        reseal::unmark_suspect(self.disk, self.files)?;
        Ok(file)
    }

    /// Cuts and ends the file as needed and syncs it. `Err(None)`: the sync failed.
    fn trim(
        &mut self,
        file: &mut dyn DiskFile,
        repair: Repair,
        durability: Durability,
    ) -> Result<(), Option<io::Error>> {
        if let Repair::Tail { end, is_ended } = repair {
            if !mutant!("store-tail-not-cut") {
                file.set_len(end).map_err(Some)?;
            }
            if !is_ended && let (_, Some(error)) = disk::append_all(file, b"\n") {
                return Err(Some(error));
            }
        }
        if durability == Durability::Process && repair == Repair::None {
            return Ok(());
        }
        self.syncs += 1;
        file.sync_data().map_err(|_| None)
    }

    /// Copies the log to `<session>.damaged`, or with a number if another damage is kept there.
    fn keep_original(&self) -> io::Result<PathBuf> {
        let bytes = self.disk.read(&self.files.log)?;
        for number in 1..=DAMAGED_MAX {
            let name = if number == 1 { "damaged".to_owned() } else { format!("damaged-{number}") };
            let path = self.files.beside(&name);
            match disk::write_new(self.disk, &path, &bytes, FILE_MODE) {
                Ok(_) => {
                    self.disk.sync_dir(&self.files.folder)?;
                    return Ok(path);
                }
                // An earlier repair may have come just so far; a copy that it did not finish is not equal.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if self.disk.read(&path)? == bytes {
                        // It may not be on disk yet.
                        self.disk.open_append(&path)?.sync_data()?;
                        self.disk.sync_dir(&self.files.folder)?;
                        return Ok(path);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("too many damaged copies are kept; move them away"))
    }

    /// Appends a tail to `<session>.torn`, one piece a line.
    fn set_aside(&self, tail: &[u8]) -> io::Result<PathBuf> {
        let path = self.files.beside("torn");
        let mut file = match self.disk.open_append(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.disk.create_new(&path, FILE_MODE)?
            }
            Err(error) => return Err(error),
        };
        let ended: &[u8] = if tail.ends_with(b"\n") { b"" } else { b"\n" };
        for piece in [tail, ended] {
            if let (_, Some(error)) = disk::append_all(file.as_mut(), piece) {
                return Err(error);
            }
        }
        file.sync_data()?;
        self.disk.sync_dir(&self.files.folder)?;
        Ok(path)
    }

    /// Tries again with the space of the ballast if the disk is full.
    fn with_ballast<T>(&mut self, act: impl Fn(&Self) -> io::Result<T>) -> io::Result<T> {
        match act(self) {
            Err(error) if disk::is_full(&error) && self.ballast.release(self.disk) => act(self),
            result => result,
        }
    }
}

/// More damaged copies than any repair could explain.
const DAMAGED_MAX: usize = 100;
