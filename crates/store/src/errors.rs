//! Why a log could not be begun, opened, read, written or made durable.

use std::io;
use std::path::PathBuf;

use crate::line::FORMAT;

/// A session could not be begun.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    #[error("session {session} exists already in {folder}")]
    Exists { session: String, folder: PathBuf },
    #[error("session {session} is open in another process")]
    Locked { session: String },
    #[error("cannot create session files in {folder}")]
    Storage {
        folder: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot write the session's header")]
    Header(#[from] AppendError),
}

/// Lines could not be appended. None of them is in the log, unless the process ends before the next append.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// A bug of the caller.
    #[error("a record's {member} can't be {text:?}")]
    NotPlain { member: &'static str, text: String },
    /// A bug of the caller.
    #[error("the body of a record of type {kind} is not JSON")]
    NotJson {
        kind: String,
        #[source]
        source: serde_json::Error,
    },
    #[error("a record of type {kind} is {bytes} bytes long, more than a log line may be")]
    TooLong { kind: String, bytes: usize },
    /// The disk or a quota is full. Works again when there is room; [`append_reserved`](crate::SessionLog::append_reserved) may still.
    #[error("no space left for {path}")]
    Full {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("wrote {wrote} of {want} bytes to {path}")]
    Write {
        path: PathBuf,
        wrote: usize,
        want: usize,
        #[source]
        source: io::Error,
    },
    /// A sync failed earlier, or just now to keep memory bounded.
    #[error(transparent)]
    Storage(#[from] SyncError),
}

/// The disk failed and the log could not be saved elsewhere. Nothing is written to it any more.
#[derive(Debug, thiserror::Error)]
#[error("cannot make {path} durable: the records from {seq_from} on may be lost")]
pub struct SyncError {
    pub path: PathBuf,
    pub seq_from: u64,
    #[source]
    pub source: io::Error,
}

/// A session could not be opened for writing.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("no session {session} in {folder}")]
    NotFound { session: String, folder: PathBuf },
    /// Its process died before anything was acknowledged.
    #[error("session {session} was never begun: {folder} holds nothing that was saved")]
    Empty { session: String, folder: PathBuf },
    #[error("session {session} is open in another process; wait until that ends")]
    Locked { session: String },
    #[error(
        "session {session} is of format {format}; this yaoki writes format {FORMAT}, so it can only read it"
    )]
    Newer { session: String, format: u64 },
    /// Its key and folder are unknown, so nothing can follow. [`read_only`](crate::read_only) shows the rest.
    #[error("the header of session {session} is damaged; nothing can follow, the session can only be read")]
    NoHeader { session: String },
    #[error("cannot {doing} of session {session}")]
    Storage {
        session: String,
        doing: &'static str,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Sync(#[from] SyncError),
}

/// A session could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("no session {session} in {folder}")]
    NotFound { session: String, folder: PathBuf },
    #[error("cannot read {path}")]
    Storage {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}
