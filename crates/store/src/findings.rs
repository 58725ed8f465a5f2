//! What was found wrong with a session's file when it was read.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

/// All that was not as it should be. Nothing of it is fatal; none of it may stay unsaid.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// The end of the file was cut: nothing in it was ever acknowledged, as far as the file tells.
    pub torn: Option<Torn>,
    /// Bytes and lines that are not the session's, though nothing is missing there. Skipped.
    pub foreign: Vec<Foreign>,
    /// Lines that were acknowledged and are gone, oldest first. A `gap` line stands for each.
    pub gaps: Vec<Gap>,
    /// Where the damaged original was put, if it was replaced.
    pub kept: Option<PathBuf>,
    /// The last line was whole and had no line break.
    pub is_last_line_ended_late: bool,
    /// An earlier process could not trust the file after a failed sync; it was written anew.
    pub is_resealed: bool,
    /// The file is of a later format, which this version only reads.
    pub format_needed: Option<u64>,
}

/// A tail that was cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Torn {
    /// The seq that the next line gets, and that the first lost line had.
    pub seq_from: u64,
    /// Byte offset in the file as it was.
    pub place: u64,
    pub bytes: u64,
    /// The file its bytes were appended to. `None` for readers, which cut nothing.
    pub kept: Option<PathBuf>,
}

/// A stretch of the file that is not the session's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Foreign {
    /// Byte offset in the file as it was.
    pub place: u64,
    pub bytes: u64,
    pub why: Why,
}

/// Why a stretch was skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// No line's checksum holds there.
    NoLine,
    /// A line that the session has already.
    Duplicate,
    /// A line of a writer that had lost the session to a later one.
    StaleEpoch,
    /// A whole line that does not follow from any line of this session.
    Stranger,
}

/// Lines that are gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gap {
    pub seq_from: u64,
    pub seq_to: u64,
    /// Byte offset in the file as it was.
    pub place: u64,
    /// Damaged bytes there; 0 if the lines are simply missing.
    pub bytes: u64,
}

impl Findings {
    /// Returns whether the file was as its last writer left it.
    pub fn is_clean(&self) -> bool {
        *self == Findings::default()
    }

    /// Returns whether this is more than a crash leaves behind: somebody should look at the disk.
    pub fn is_alarm(&self) -> bool {
        !self.foreign.is_empty() || !self.gaps.is_empty() || self.is_resealed
    }

    /// Returns one sentence for each finding, without a full stop.
    pub fn notices(&self) -> Vec<String> {
        self.to_string().lines().map(str::to_owned).collect()
    }
}

/// One finding a line.
impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Gap { seq_from, seq_to, place, bytes } in &self.gaps {
            writeln!(f, "records {seq_from} to {seq_to} are damaged ({bytes} bytes at byte {place})")?;
        }
        for Foreign { place, bytes, why } in &self.foreign {
            let why = match why {
                Why::NoLine => "they are no record",
                Why::Duplicate => "the record is there already",
                Why::StaleEpoch => "the writer had lost the session",
                Why::Stranger => "the record is not of this session",
            };
            writeln!(f, "skipped {bytes} bytes at byte {place}: {why}")?;
        }
        if let Some(kept) = &self.kept {
            writeln!(f, "the damaged file is kept as {}", kept.display())?;
        }
        if let Some(Torn { place, bytes, kept, .. }) = &self.torn {
            write!(f, "the last write was cut short: {bytes} bytes at byte {place} set aside")?;
            match kept {
                Some(kept) => writeln!(f, " in {}", kept.display())?,
                None => writeln!(f)?,
            }
        }
        if self.is_last_line_ended_late {
            writeln!(f, "the last record had no line break")?;
        }
        if self.is_resealed {
            writeln!(f, "a sync had failed earlier: the file was written anew")?;
        }
        if let Some(format) = self.format_needed {
            writeln!(f, "the session needs a yaoki that writes format {format}; it can only be read")?;
        }
        Ok(())
    }
}
