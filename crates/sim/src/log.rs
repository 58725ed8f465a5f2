//! The session log as the checks read it: past the agent, and only what has changed since they last did.

use std::ops::Range;
use std::sync::Arc;

use yaoki::Seat;
use yaoki::core::ids::OpId;
use yaoki::core::record::Record;
use yaoki::core::state::{Place, State};
use yaoki::store::mem::MemDisk;
use yaoki::store::{Blobs, Findings, Line};

use crate::broken::Verdicts;

/// All records of a log.
#[derive(Default)]
pub struct Log {
    entries: Vec<Entry>,
    findings: Findings,
}

/// A line that may go bad.
pub struct Victim {
    pub place: Range<usize>,
    pub is_outcome: bool,
}

struct Entry {
    line: Line,
    place: Place,
    /// None for a type that every reader skips.
    record: Option<Record>,
}

impl Log {
    /// Reads the log anew; lines that are as they were are not parsed again.
    pub fn read(&mut self, disk: &MemDisk, seat: &Seat) -> Result<(), String> {
        let (lines, findings) = yaoki::store::read_only(disk, &seat.folder, seat.session.as_str())
            .map_err(|error| yaoki::error_chain(&error))?;
        self.findings = findings;
        let same = self.entries.iter().zip(&lines).take_while(|(entry, line)| entry.line.raw() == line.raw());
        let same = same.count();
        self.entries.truncate(same);
        let blobs = Blobs::of(Arc::new(disk.clone()), &seat.folder);
        for line in lines.into_iter().skip(same) {
            let read = yaoki::to_record(&line, &blobs).map_err(|error| yaoki::error_chain(&error))?;
            let place = Place { seq: line.seq, epoch: line.epoch as u32, ms: line.ms };
            self.entries.push(Entry { line, place, record: read.map(|(_, record)| record) });
        }
        Ok(())
    }

    pub fn records(&self) -> impl DoubleEndedIterator<Item = (Place, &Record)> {
        self.entries.iter().filter_map(|entry| Some((entry.place, entry.record.as_ref()?)))
    }

    pub fn count(&self, is: fn(&Record) -> bool) -> u64 {
        self.records().filter(|(_, record)| is(record)).count() as u64
    }

    /// For someone who replays a seed.
    pub fn print(&self) {
        const WIDTH: usize = 160;
        for Entry { line, .. } in &self.entries {
            let data: String = line.data().chars().take(WIDTH).collect();
            println!("{:>4} {:>2} {:<20} {data}", line.seq, line.epoch, line.kind());
        }
    }

    /// Where the lines are that may go bad: good ones behind them say that they are durable, and none of them is a part
    /// of the conversation.
    pub fn victims(&self) -> Vec<Victim> {
        let durable = self.entries.last().map_or(0, |entry| entry.line.durable);
        let is_victim = |entry: &&Entry| {
            let is_talk = matches!(entry.line.kind(), "header" | "input" | "assistant_committed" | "gap");
            entry.line.seq <= durable && !is_talk
        };
        let place = |entry: &Entry| {
            let start = entry.line.place as usize;
            Victim {
                place: start..start + entry.line.raw().len(),
                is_outcome: matches!(entry.record, Some(Record::Outcome(_))),
            }
        };
        self.entries.iter().filter(is_victim).map(place).collect()
    }

    /// Whether lines are missing, told or not.
    pub fn has_gaps(&self) -> bool {
        self.records().any(|(_, record)| matches!(record, Record::Gap(_)))
    }

    /// Rebuilds the state from all records.
    pub fn fold(&self) -> State {
        let mut state = State::default();
        for entry in &self.entries {
            match &entry.record {
                Some(record) => state.apply(entry.place, record),
                None => state.skip(entry.place),
            }
        }
        state
    }

    /// Whoever ends by itself leaves no half lines and no lines that are not its own (I2).
    pub fn hold_whole(&self, verdicts: &Verdicts) {
        let is_whole = self.findings.torn.is_none() && self.findings.foreign.is_empty();
        verdicts.hold("I2", is_whole, || format!("the log was left with {}", self.findings));
    }

    /// What runs is what the log says (I5).
    pub fn hold_fold(&self, live: &State, verdicts: &Verdicts) {
        let folded = self.fold();
        if folded != *live {
            verdicts.broken(
                "I5",
                "live and log: ".to_owned() + &difference(&format!("{live:?}"), &format!("{folded:?}")),
            );
        }
    }
}

/// Shows where two long texts part.
pub fn difference(one: &str, other: &str) -> String {
    let at = one.bytes().zip(other.bytes()).position(|(a, b)| a != b).unwrap_or(one.len().min(other.len()));
    let around = |text: &str| {
        let bytes = &text.as_bytes()[at.saturating_sub(80).min(text.len())..];
        String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned()
    };
    format!("…{}… and …{}…", around(one), around(other))
}

/// The part of a log that is on disk for good.
pub struct Kept(String);

impl Kept {
    pub fn of(bytes: Option<Vec<u8>>) -> Self {
        let mut bytes = bytes.unwrap_or_default();
        // A line that is there in part is not there.
        bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1));
        Kept(
            String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into()),
        )
    }

    /// Whether it holds a record of this kind about an operation.
    pub fn has(&self, kind: &str, op: OpId) -> bool {
        self.contains(&format!(r#""type":"{kind}","data":{{"op":"{op}","#))
    }

    pub fn count(&self, kind: &str) -> u64 {
        self.0.matches(&format!(r#""type":"{kind}","#)).count() as u64
    }

    pub fn contains(&self, text: &str) -> bool {
        self.0.rfind(text).is_some()
    }
}
