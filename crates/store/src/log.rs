//! A session's log, open for writing.
//!
//! Lines are appended by one write and made durable by one sync. Promises: a line that [`SessionLog::sync`] covered
//! is found by every later open; an append that failed leaves nothing for the next one to be glued to; after a
//! sync that failed, or one that found the file removed or cut short by others, nothing is acknowledged on that file
//! again.
//! It does not know what the lines mean, and when to sync is the caller's to say.

use std::fmt;
use std::io;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use serde::de::IgnoredAny;
use yaoki_core::mutant;

use crate::ballast::Ballast;
use crate::disk::{self, Disk, DiskFile, FILE_MODE, Lock};
use crate::errors::{AppendError, CreateError, SyncError};
use crate::files::Files;
use crate::folders::Folders;
use crate::line::{FORMAT, LINE_BYTES_MAX, Line, NewLine, Seal, format_of, is_plain, seal};

/// How far a sync goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// To the disk: survives a power cut.
    #[default]
    Disk,
    /// Nowhere: survives a kill, not a power cut. For throw-away runs.
    Process,
}

/// The log of one session, held by one writer.
pub struct SessionLog {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) files: Files,
    pub(crate) file: Box<dyn DiskFile>,
    pub(crate) durability: Durability,
    pub(crate) epoch: u64,
    pub(crate) last_seq: u64,
    pub(crate) last_crc: u32,
    /// Bytes of all lines.
    pub(crate) end: u64,
    pub(crate) synced: Synced,
    /// What `sync` has promised, and what the next lines say. More than `synced` only with [`Durability::Process`]:
    /// there too, damage behind which something was acknowledged is a gap and no torn tail.
    pub(crate) acknowledged_seq: u64,
    /// The bytes behind `synced`, so that a file that failed can be replaced. Empty with [`Durability::Process`].
    pub(crate) pending: Vec<u8>,
    pub(crate) folders: Folders,
    pub(crate) sync_count: u64,
    pub(crate) trust: Trust,
    pub(crate) ballast: Ballast,
    /// Held as long as the log: one writer.
    pub(crate) _lock: Box<dyn Lock>,
}

/// What is known to be on disk.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Synced {
    pub seq: u64,
    pub crc: u32,
    pub bytes: u64,
}

/// What the file's end can be relied on for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// It ends with the last line.
    Whole,
    /// Part of a failed append may stand behind the last line.
    Torn,
    /// A sync failed and the file could not be replaced. For good.
    Lost,
}

/// Without a sync for this many bytes, an append syncs first: what is pending is held in memory.
const PENDING_BYTES_MAX: usize = 16 * 1024 * 1024;

impl SessionLog {
    /// Begins a session: folder, lock, file and the header as line 1 of epoch 1.
    ///
    /// Shape of the header's body: an object with `format` 1 ([`FORMAT`]).
    /// Errors: [`CreateError`]; what was made is removed again, as far as that works.
    /// Crash: before the first [`SessionLog::sync`], which also makes the folders durable, there may be no session,
    /// an empty file or part of a header; [`SessionLog::open`] then says that nothing was begun.
    pub fn create(
        disk: Arc<dyn Disk>,
        folder: &Path,
        session: &str,
        durability: Durability,
        header: NewLine,
    ) -> Result<SessionLog, CreateError> {
        let mut log = SessionLog::begin(disk, folder, session, durability, header, 1)?;
        log.refill_ballast();
        Ok(log)
    }

    /// Begins a session without a ballast: that must not take the room of the first lines.
    pub(crate) fn begin(
        disk: Arc<dyn Disk>,
        folder: &Path,
        session: &str,
        durability: Durability,
        header: NewLine,
        epoch: u64,
    ) -> Result<SessionLog, CreateError> {
        let files = Files::new(folder, session);
        let storage = |source| CreateError::Storage { folder: folder.to_path_buf(), source };
        assert!(header.kind == "header" && format_of(header.data) == Some(FORMAT), "line 1 says its format");
        let folders = Folders::create(disk.as_ref(), folder).map_err(storage)?;
        let lock = match disk.try_lock(&files.lock()) {
            Ok(Some(lock)) => lock,
            Ok(None) => return Err(CreateError::Locked { session: session.to_owned() }),
            Err(error) => {
                unmake(disk.as_ref(), &files, &folders);
                return Err(storage(error));
            }
        };
        let file = match disk.create_new(&files.log, FILE_MODE) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(CreateError::Exists {
                    session: session.to_owned(),
                    folder: folder.to_path_buf(),
                });
            }
            Err(error) => {
                unmake(disk.as_ref(), &files, &folders);
                return Err(storage(error));
            }
        };
        let mut log = SessionLog {
            ballast: Ballast::of(folder),
            disk,
            files,
            file,
            durability,
            epoch,
            last_seq: 0,
            last_crc: 0,
            end: 0,
            synced: Synced::default(),
            acknowledged_seq: 0,
            pending: Vec::new(),
            folders,
            sync_count: 0,
            trust: Trust::Whole,
            _lock: lock,
        };
        match log.append(&[header]) {
            Ok(_) => Ok(log),
            Err(error) => {
                log.discard();
                Err(error.into())
            }
        }
    }

    /// Removes a session of which nothing was acknowledged, as far as that works.
    pub(crate) fn discard(mut self) {
        let disk = self.disk.as_ref();
        let _ = disk.remove(&self.files.log);
        self.ballast.remove(disk);
        unmake(disk, &self.files, &self.folders);
    }

    /// Appends lines by one write, without a sync. Returns their seqs.
    ///
    /// Errors: [`AppendError::Full`] and [`AppendError::Write`] leave the log as it was.
    /// Crash: before the next sync any of the lines may be lost, and after the first lost one all are.
    pub fn append(&mut self, lines: &[NewLine]) -> Result<RangeInclusive<u64>, AppendError> {
        if self.trust == Trust::Lost {
            return Err(self.lost(io::Error::other("a sync failed earlier")).into());
        }
        for line in lines {
            check(line)?;
        }
        if PENDING_BYTES_MAX < self.pending.len() {
            self.sync()?;
        }
        let mut bytes = Vec::with_capacity(lines.iter().map(|line| line.data.len() + 256).sum());
        let first_seq = self.last_seq + 1;
        let mut seq = self.last_seq;
        let mut prev = self.last_crc;
        for line in lines {
            seq += 1;
            prev =
                seal(&mut bytes, line, Seal { seq, epoch: self.epoch, durable: self.acknowledged_seq, prev });
        }
        self.write(&bytes)?;
        self.end += bytes.len() as u64;
        (self.last_seq, self.last_crc) = (seq, prev);
        if self.durability == Durability::Disk {
            self.pending.append(&mut bytes);
        }
        Ok(first_seq..=seq)
    }

    /// Appends lines that must land, the outcome of an effect above all: if the disk is full the ballast is released.
    ///
    /// [`SessionLog::has_ballast`] is false from then on: no new effect should start until
    /// [`SessionLog::refill_ballast`] finds room again.
    pub fn append_reserved(&mut self, lines: &[NewLine]) -> Result<RangeInclusive<u64>, AppendError> {
        match self.append(lines) {
            Err(AppendError::Full { .. }) if self.ballast.release(self.disk.as_ref()) => self.append(lines),
            result => result,
        }
    }

    /// Makes all lines durable by one fdatasync, the first time also the names of the new folders.
    ///
    /// Nothing is done when nothing is pending.
    /// Errors: the first failure moves the log to a new file; [`SyncError`] says that this failed too, for good.
    /// A file that others have removed or cut short is a failure, also with [`Durability::Process`].
    pub fn sync(&mut self) -> Result<(), SyncError> {
        if self.trust == Trust::Lost {
            return Err(self.lost(io::Error::other("a sync failed earlier")));
        }
        if self.acknowledged_seq == self.last_seq {
            return Ok(());
        }
        if self.durability == Durability::Disk {
            self.sync_count += 1;
            let mut result = if mutant!("store-sync-left-out") { Ok(()) } else { self.file.sync_data() };
            if mutant!("store-second-sync-trusted") && result.is_err() {
                result = self.file.sync_data();
            }
            match result.and_then(|()| self.check_file()) {
                Ok(()) => self.settle(),
                Err(error) => self.reseal(error)?,
            }
            self.sync_folders()?;
        } else if let Err(error) = self.check_file() {
            self.reseal(error)?;
        }
        self.acknowledged_seq = self.last_seq;
        Ok(())
    }

    /// Syncs, gives the ballast back and lets go of the session.
    pub fn close(mut self) -> Result<(), SyncError> {
        let result = self.sync();
        self.ballast.release(self.disk.as_ref());
        result
    }

    /// The highest seq that a sync has covered.
    pub fn durable(&self) -> u64 {
        self.acknowledged_seq
    }

    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Syncs of the log's file since it was opened.
    pub fn syncs(&self) -> u64 {
        self.sync_count
    }

    /// Bytes of all lines.
    pub fn bytes(&self) -> u64 {
        self.end
    }

    pub fn session(&self) -> &str {
        &self.files.session
    }

    pub fn folder(&self) -> &Path {
        &self.files.folder
    }

    pub fn path(&self) -> &Path {
        &self.files.log
    }

    /// Returns whether space is held back for outcomes.
    pub fn has_ballast(&self) -> bool {
        self.ballast.is_there()
    }

    /// Takes the space again if there is room. Returns whether it is taken.
    pub fn refill_ballast(&mut self) -> bool {
        self.ballast.fill(self.disk.as_ref())
    }

    /// Appends lines of another log under their own seqs and epochs.
    pub(crate) fn copy(&mut self, lines: &[Line]) -> Result<(), AppendError> {
        let mut bytes = Vec::with_capacity(lines.iter().map(|line| line.raw().len() + 16).sum());
        let (mut seq, mut prev) = (self.last_seq, self.last_crc);
        for line in lines {
            assert_eq!(line.seq, seq + 1, "a fork leaves no line out");
            let new = NewLine {
                agent: line.agent(),
                kind: line.kind(),
                data: line.data(),
                at: line.at(),
                ms: line.ms,
            };
            prev = seal(&mut bytes, &new, Seal { seq: line.seq, epoch: line.epoch, durable: 0, prev });
            seq = line.seq_to();
        }
        self.write(&bytes)?;
        self.end += bytes.len() as u64;
        (self.last_seq, self.last_crc) = (seq, prev);
        self.pending.append(&mut bytes);
        Ok(())
    }

    /// Everything written so far is on disk.
    pub(crate) fn settle(&mut self) {
        self.synced = Synced { seq: self.last_seq, crc: self.last_crc, bytes: self.end };
        self.pending.clear();
    }

    pub(crate) fn sync_folders(&mut self) -> Result<(), SyncError> {
        if mutant!("store-folders-not-synced") {
            return Ok(());
        }
        self.folders.sync(self.disk.as_ref()).map_err(|error| {
            // The names may be lost with all that is behind them, and a second sync proves nothing.
            self.trust = Trust::Lost;
            self.lost(error)
        })
    }

    /// Looks whether the open file is still the log and still holds all lines: a command may have removed or cut it.
    fn check_file(&self) -> io::Result<()> {
        let state = self.file.state()?;
        if state.len < self.end {
            return Err(io::Error::other(format!("{} of {} bytes of the log are left", state.len, self.end)));
        }
        if state.is_linked {
            return Ok(());
        }
        // Where names are not counted the log has its own, and is as long as the open file.
        match self.disk.look(&self.files.log)? {
            Some(there) if there.len == state.len => Ok(()),
            _ => Err(io::Error::new(io::ErrorKind::NotFound, "the log was removed")),
        }
    }

    pub(crate) fn lost(&self, source: io::Error) -> SyncError {
        SyncError { path: self.files.log.clone(), seq_from: self.acknowledged_seq + 1, source }
    }

    /// Writes at the end of the last line, or leaves nothing there.
    fn write(&mut self, bytes: &[u8]) -> Result<(), AppendError> {
        if self.trust == Trust::Torn {
            let cut = self.file.set_len(self.end);
            cut.map_err(|source| self.write_error(0, bytes.len(), source))?;
            self.trust = Trust::Whole;
        }
        let (wrote, error) = disk::append_all(self.file.as_mut(), bytes);
        let Some(error) = error else { return Ok(()) };
        // Even where nothing is said to be taken: an error may come after the fact.
        if !mutant!("store-append-not-cut-back") && self.file.set_len(self.end).is_err() {
            self.trust = Trust::Torn;
        }
        Err(self.write_error(wrote, bytes.len(), error))
    }

    fn write_error(&self, wrote: usize, want: usize, source: io::Error) -> AppendError {
        let path = self.files.log.clone();
        if disk::is_full(&source) {
            AppendError::Full { path, source }
        } else {
            AppendError::Write { path, wrote, want, source }
        }
    }
}

impl fmt::Debug for SessionLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SessionLog { epoch, last_seq, .. } = self;
        write!(f, "SessionLog({} epoch {epoch} seq {last_seq})", self.files.log.display())
    }
}

/// Removes the folders that a begin made, and what it may have put into them.
fn unmake(disk: &dyn Disk, files: &Files, folders: &Folders) {
    if folders.is_new() {
        // Held or not: whoever waits for a lock looks whether it still has its name.
        let _ = disk.remove(&files.lock());
        let _ = disk.remove(&files.log);
        folders.remove(disk);
    }
}

/// Checks at this end what the reader relies on at the other.
fn check(line: &NewLine) -> Result<(), AppendError> {
    for (member, text) in [("agent", line.agent), ("type", line.kind), ("at", line.at)] {
        if !is_plain(text) {
            return Err(AppendError::NotPlain { member, text: text.to_owned() });
        }
    }
    let kind = || line.kind.to_owned();
    if LINE_BYTES_MAX / 2 < line.data.len() {
        return Err(AppendError::TooLong { kind: kind(), bytes: line.data.len() });
    }
    let json = serde_json::from_str::<IgnoredAny>(line.data);
    json.map(drop).map_err(|source| AppendError::NotJson { kind: kind(), source })
}
