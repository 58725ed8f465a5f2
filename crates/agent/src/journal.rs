//! The session log as the loop sees it: records in, a barrier when asked.
//!
//! Promises: what `write` returned for with a barrier is durable; a failure is final, and said once.
//! Not here: which records need a barrier (the turn machine says) and how bytes are sealed (the store does).

use std::sync::Arc;

use yaoki_core::ids::AgentName;
use yaoki_core::record::{Record, RecordError};
use yaoki_core::stamp::rfc3339;
use yaoki_core::state::Place;
use yaoki_store::blobs::{BLOB_BYTES_MIN, GetError};
use yaoki_store::{AppendError, BlobRef, Blobs, Line, NewLine, SessionLog, SyncError};

use crate::world::World;

/// The log could not take records, or not make them durable.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("the session log cannot be written")]
    Append(#[from] AppendError),
    #[error("the session log cannot be made durable")]
    Sync(#[from] SyncError),
}

/// One open session log.
pub(crate) struct Journal {
    log: SessionLog,
    blobs: Blobs,
    world: Arc<dyn World>,
    agent: AgentName,
}

impl Journal {
    pub fn new(log: SessionLog, blobs: Blobs, world: Arc<dyn World>) -> Self {
        Self { log, blobs, world, agent: AgentName::main() }
    }

    /// Appends records in one write, and makes the log durable if asked.
    ///
    /// Errors: [`JournalError`]; the records may then be on disk in part, and the session is not to be continued
    /// by this process. A full disk still takes them once, from the space held back for that.
    pub fn write(&mut self, records: &[Record], ms: u64, barrier: bool) -> Result<(), JournalError> {
        if !records.is_empty() {
            let at = rfc3339(self.world.wall_ms());
            let bodies: Vec<String> = records.iter().map(|record| self.body(record.data())).collect();
            let lines: Vec<NewLine<'_>> = records
                .iter()
                .zip(&bodies)
                .map(|(record, data)| NewLine {
                    agent: self.agent.as_str(),
                    kind: record.kind(),
                    data,
                    at: &at,
                    ms,
                })
                .collect();
            if let Err(error) = self.log.append(&lines) {
                // What an effect came to must not be lost for want of space.
                let is_owed = records.iter().any(is_outcome);
                if is_owed
                    && matches!(error, AppendError::Full { .. })
                    && self.log.append_reserved(&lines).is_ok()
                {
                    self.log.sync()?;
                }
                return Err(error.into());
            }
        }
        if barrier {
            self.log.sync()?;
        }
        Ok(())
    }

    /// A large body goes into a blob, which is on disk before the line that names it. If there is no room for one,
    /// the line holds the body after all.
    fn body(&mut self, data: String) -> String {
        if data.len() <= BLOB_BYTES_MIN {
            return data;
        }
        match self.blobs.put(data.as_bytes()) {
            Ok(blob) => serde_json::to_string(&blob).expect("plain data"),
            Err(_) => data,
        }
    }

    pub fn last_seq(&self) -> u64 {
        self.log.last_seq()
    }

    pub fn durable(&self) -> u64 {
        self.log.durable()
    }

    pub fn epoch(&self) -> u32 {
        self.log.epoch() as u32
    }

    pub fn syncs(&self) -> u64 {
        self.log.syncs()
    }

    pub fn close(self) -> Result<(), JournalError> {
        Ok(self.log.close()?)
    }
}

/// Whether a record says what an operation came to.
fn is_outcome(record: &Record) -> bool {
    matches!(record, Record::Outcome(_) | Record::Unknown(_) | Record::Detached(_) | Record::Resolved(_))
}

/// A line could not be read as a record.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Its body is gone or damaged; the rest of the session is not.
    #[error("the body of record {seq} ({kind}) cannot be read")]
    Body {
        seq: u64,
        kind: String,
        #[source]
        source: GetError,
    },
}

/// Reads a line as a record with its place. `None` for types every reader skips.
pub fn to_record(line: &Line, blobs: &Blobs) -> Result<Option<(Place, Record)>, LineError> {
    let place = place_of(line);
    let record = match blob_of(line) {
        None => Record::parse(line.kind(), line.data())?,
        Some(blob) => {
            let lost = |source| LineError::Body { seq: line.seq, kind: line.kind().to_owned(), source };
            let body = blobs.get(&blob).map_err(lost)?;
            Record::parse(line.kind(), &String::from_utf8_lossy(&body))?
        }
    };
    Ok(record.map(|record| (place, record)))
}

/// Where a line stands.
pub(crate) fn place_of(line: &Line) -> Place {
    Place { seq: line.seq, epoch: line.epoch as u32, ms: line.ms }
}

/// A body that only names a blob. No record of ours has such members.
fn blob_of(line: &Line) -> Option<BlobRef> {
    line.data().starts_with(r#"{"blob":""#).then(|| line.parse().ok()).flatten()
}
