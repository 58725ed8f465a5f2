//! Decides which lines are the session, what is damage, and what the file should look like.
//!
//! The session is the chain that starts at the header: each line has the next seq and names the checksum of
//! the one before. Where it breaks:
//! - nothing after the break says that it was known to be on disk: a *torn tail*. It is cut;
//! - the chain goes on elsewhere in the file: what stands between is *foreign*. It is skipped;
//! - else *middle damage*: a `gap` line takes the place of what is missing and the chain goes on behind it.
//!
//! An epoch never goes back along the chain, so the lines of a writer that lost its lock are foreign.
//! Nothing is written here: readers and the repair share this view.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::findings::{Findings, Foreign, Gap, Torn, Why};
use crate::line::{self, Envelope, FORMAT, Line, NewLine, Seal, format_of, seal};
use crate::scan::{Found, scan};

/// The type of the line that stands for missing ones.
pub const GAP: &str = "gap";

/// A file's lines, and what must be done to it.
#[derive(Debug)]
pub(crate) struct Reading {
    /// The file as it should be, or the file as it is with more at its end.
    pub text: Arc<Vec<u8>>,
    pub lines: Vec<Line>,
    pub findings: Findings,
    pub repair: Repair,
    pub has_header: bool,
}

/// What makes the file equal to its lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repair {
    None,
    /// Cut to `end`, set aside what stood there, and end the last line if it is not.
    Tail {
        end: u64,
        is_ended: bool,
    },
    /// Replace by `text`, keep the original.
    Whole,
}

impl Reading {
    /// The seq and the `prev` that the next line must have.
    pub fn next(&self) -> (u64, u32) {
        self.lines.last().map_or((1, 0), |line| (line.seq_to() + 1, line.crc))
    }
}

/// Body of a `gap` line, which has the first missing seq as its own.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct GapBody {
    seq_from: u64,
    pub seq_to: u64,
    /// `prev` of the line behind the gap: it names a line that is gone.
    next_prev: String,
    /// Where in the damaged file, and how much of it.
    place: u64,
    bytes: u64,
}

/// Reads a whole file.
pub(crate) fn read_text(text: Vec<u8>) -> Reading {
    let found = scan(&text);
    let walk = walk(&text, &found);
    if walk.is_in_place { in_place(text, &found, walk) } else { anew(text, &found, walk) }
}

/// One link of the chain.
#[derive(Debug, Clone, Copy)]
enum Link {
    Line(usize),
    /// Missing seqs, `from..=to`.
    Gap {
        from: u64,
        to: u64,
    },
}

struct Walk {
    links: Vec<Link>,
    has_header: bool,
    /// The links are lines, follow one another in the file from its first byte, and each but the last is ended.
    is_in_place: bool,
}

/// Follows the chain as far as it goes.
fn walk(text: &[u8], found: &[Found]) -> Walk {
    let mut pool = Pool { found, sorted: Vec::new() };
    let mut walk = Walk { links: Vec::with_capacity(found.len()), has_header: false, is_in_place: true };
    let mut last = Last { next_seq: 1, prevs: [0, 0], epoch: 0, durable: 0 };
    let (mut near, mut place) = (0, 0);
    loop {
        let index = match pool.link(near, &last) {
            Some(index) => index,
            None => {
                let Some(index) = pool.beyond(&last) else { break };
                walk.links.push(Link::Gap { from: last.next_seq, to: found[index].envelope.seq - 1 });
                walk.is_in_place = false;
                index
            }
        };
        let line = &found[index];
        let envelope = &line.envelope;
        walk.has_header |= envelope.seq == 1 && envelope.kind(line.bytes(text)) == b"header";
        walk.is_in_place &= line.start == place;
        walk.links.push(Link::Line(index));
        // Behind a line that is not ended nothing is in its place.
        (near, place) = (index + 1, if line.is_ended { line.end() } else { usize::MAX });
        last = Last {
            next_seq: envelope.seq + 1,
            prevs: [envelope.crc; 2],
            epoch: envelope.epoch,
            durable: envelope.durable,
        };
        if let Some(gap) =
            gap_of(envelope.kind(line.bytes(text)), envelope.seq, envelope.data(line.bytes(text)))
        {
            // The line behind a gap was repaired around, or a fork sealed it anew.
            last.next_seq = gap.seq_to + 1;
            last.prevs[1] = u32::from_str_radix(&gap.next_prev, 16).unwrap_or(envelope.crc);
        }
    }
    walk
}

/// What the next line is compared with.
struct Last {
    next_seq: u64,
    prevs: [u32; 2],
    epoch: u64,
    durable: u64,
}

impl Last {
    fn is_followed_by(&self, found: &Found) -> bool {
        let envelope = &found.envelope;
        envelope.seq == self.next_seq && self.prevs.contains(&envelope.prev) && self.epoch <= envelope.epoch
    }
}

/// The lines to choose from.
struct Pool<'a> {
    found: &'a [Found],
    /// Indexes of lines by seq, each with the highest `durable` from there on. Made at the first break.
    sorted: Vec<(usize, u64)>,
}

impl Pool<'_> {
    /// Returns the line that follows in the chain: usually the one `near`, else wherever it stands.
    fn link(&mut self, near: usize, last: &Last) -> Option<usize> {
        if self.found.get(near).is_some_and(|found| last.is_followed_by(found)) {
            return Some(near);
        }
        if near == self.found.len() && self.sorted.is_empty() {
            // No break so far: all are linked.
            return None;
        }
        self.sort();
        let same = self.from(last.next_seq).iter().take_while(|(index, _)| self.seq(*index) == last.next_seq);
        same.map(|(index, _)| *index).find(|index| last.is_followed_by(&self.found[*index]))
    }

    /// Returns the first line behind missing ones, if one of the missing was known to be on disk.
    fn beyond(&self, last: &Last) -> Option<usize> {
        let later = self.from(last.next_seq.saturating_add(1));
        let (_, durable) = *later.first()?;
        if durable < last.next_seq {
            return None;
        }
        let is_likely = |index: &usize| {
            let envelope = &self.found[*index].envelope;
            last.epoch <= envelope.epoch
                && last.durable <= envelope.durable
                && envelope.durable < envelope.seq
        };
        later.iter().map(|(index, _)| *index).find(is_likely)
    }

    fn from(&self, seq: u64) -> &[(usize, u64)] {
        &self.sorted[self.sorted.partition_point(|(index, _)| self.seq(*index) < seq)..]
    }

    fn seq(&self, index: usize) -> u64 {
        self.found[index].envelope.seq
    }

    fn sort(&mut self) {
        if !self.sorted.is_empty() {
            return;
        }
        self.sorted =
            (0..self.found.len()).map(|index| (index, self.found[index].envelope.durable)).collect();
        self.sorted.sort_by_key(|(index, _)| (self.found[*index].envelope.seq, *index));
        let mut highest = 0;
        for (_, durable) in self.sorted.iter_mut().rev() {
            highest = highest.max(*durable);
            *durable = highest;
        }
    }
}

/// Reads a gap line that this crate wrote: one whose own seq is the first missing.
pub(crate) fn gap_of(kind: &[u8], seq: u64, data: &[u8]) -> Option<GapBody> {
    if kind != GAP.as_bytes() {
        return None;
    }
    serde_json::from_slice(data).ok().filter(|gap: &GapBody| gap.seq_from == seq && seq <= gap.seq_to)
}

/// The usual case: the file is right, except perhaps for its tail.
fn in_place(text: Vec<u8>, found: &[Found], walk: Walk) -> Reading {
    let last = walk.links.len().checked_sub(1).map(|index| &found[index]);
    let (end, is_ended) = last.map_or((0, true), |last| (last.end(), last.is_ended));
    let mut findings = left_over(&text, found, &walk);
    findings.is_last_line_ended_late = !is_ended;
    let is_right = end == text.len() && is_ended;
    let repair = if is_right { Repair::None } else { Repair::Tail { end: end as u64, is_ended } };
    let text = Arc::new(text);
    let lines = found[..walk.links.len()].iter();
    let lines = lines.map(|found| Line::place(&text, found.start, found.len, &found.envelope)).collect();
    finish(Reading { text, lines, findings, repair, has_header: walk.has_header })
}

/// The file as it should be: only the lines of the chain, with gap lines where some are missing.
fn anew(old: Vec<u8>, found: &[Found], walk: Walk) -> Reading {
    let mut findings = left_over(&old, found, &walk);
    let mut text = Vec::with_capacity(old.len() + 512);
    let mut places: Vec<(usize, Envelope)> = Vec::with_capacity(walk.links.len());
    let mut gaps = findings.gaps.iter_mut();
    for (at, link) in walk.links.iter().enumerate() {
        let start = text.len();
        let envelope = match *link {
            Link::Line(index) => {
                text.extend_from_slice(found[index].bytes(&old));
                text.push(b'\n');
                found[index].envelope
            }
            Link::Gap { .. } => {
                let gap = gaps.next().expect("left_over lists each gap");
                let Some(Link::Line(next)) = walk.links.get(at + 1) else {
                    unreachable!("a line is behind a gap")
                };
                let model = match places.last() {
                    Some((start, before)) => (*before, text[*start..].to_vec()),
                    // The header itself is gone.
                    None => (Envelope::NONE, Vec::new()),
                };
                seal_gap(&mut text, gap, &model, found[*next].envelope.prev)
            }
        };
        places.push((start, envelope));
    }
    let text = Arc::new(text);
    let ends = places.iter().skip(1).map(|(start, _)| *start).chain([text.len()]);
    let line = |((start, envelope), end): (&(usize, Envelope), usize)| {
        Line::place(&text, *start, end - 1 - *start, envelope)
    };
    let lines = places.iter().zip(ends).map(line).collect();
    finish(Reading { text, lines, findings, repair: Repair::Whole, has_header: walk.has_header })
}

/// Appends the line that stands for missing ones. It carries the stamps of the line before.
fn seal_gap(
    text: &mut Vec<u8>,
    gap: &Gap,
    (before, bytes): &(Envelope, Vec<u8>),
    next_prev: u32,
) -> Envelope {
    let body = GapBody {
        seq_from: gap.seq_from,
        seq_to: gap.seq_to,
        next_prev: format!("{next_prev:08x}"),
        place: gap.place,
        bytes: gap.bytes,
    };
    let data = serde_json::to_string(&body).expect("numbers and a text are JSON");
    let at = std::str::from_utf8(before.at(bytes)).expect("a line is checked for UTF-8 when it is parsed");
    let line = NewLine { agent: "main", kind: GAP, data: &data, at, ms: before.ms };
    let Envelope { epoch, durable, crc: prev, .. } = *before;
    let start = text.len();
    seal(text, &line, Seal { seq: gap.seq_from, epoch, durable, prev });
    line::parse(&text[start..text.len() - 1]).expect("what is sealed can be read")
}

/// Lists what of the file is not in the chain, and the gaps in the chain.
fn left_over(text: &[u8], found: &[Found], walk: &Walk) -> Findings {
    let mut findings = Findings::default();
    let mut used = vec![false; found.len()];
    let mut chain = Vec::with_capacity(walk.links.len());
    let mut end = 0;
    for (at, link) in walk.links.iter().enumerate() {
        match *link {
            Link::Line(index) => {
                used[index] = true;
                chain.push((found[index].envelope.seq, found[index].envelope.crc));
                end = end.max(found[index].end());
            }
            Link::Gap { from, to } => {
                let before = at.checked_sub(1).map(|before| &walk.links[before]);
                let place = if let Some(Link::Line(index)) = before { found[*index].end() } else { 0 };
                let Some(Link::Line(next)) = walk.links.get(at + 1) else {
                    unreachable!("a line is behind a gap")
                };
                let bytes = found[*next].start.saturating_sub(place) as u64;
                findings.gaps.push(Gap { seq_from: from, seq_to: to, place: place as u64, bytes });
            }
        }
    }
    if end < text.len() {
        // `finish` knows the seq.
        findings.torn =
            Some(Torn { seq_from: 0, place: end as u64, bytes: (text.len() - end) as u64, kept: None });
    }
    let mut place = 0;
    let mut epoch = 0;
    for (index, line) in found.iter().enumerate() {
        if place < line.start && line.start < end {
            note(&mut findings, place, line.start, Why::NoLine);
        }
        if used[index] {
            epoch = line.envelope.epoch;
        } else if let Some(why) = why_unused(line, line.start < end, epoch, &chain) {
            note(&mut findings, line.start, line.end(), why);
        }
        place = line.end();
    }
    findings
}

/// Says why a whole line is not in the chain. `None`: it is one of a torn tail, which was never acknowledged.
///
/// `chain` are seq and checksum of the lines in the chain, `epoch` that of the last of them before this one.
fn why_unused(line: &Found, is_inside: bool, epoch: u64, chain: &[(u64, u32)]) -> Option<Why> {
    let Envelope { seq, crc, .. } = line.envelope;
    match chain.binary_search_by_key(&seq, |(seq, _)| *seq) {
        Ok(index) if chain[index].1 == crc => Some(Why::Duplicate),
        _ if line.envelope.epoch < epoch => Some(Why::StaleEpoch),
        Ok(_) => Some(Why::Stranger),
        Err(_) => {
            let last_seq = chain.last().map_or(0, |(seq, _)| *seq);
            (is_inside || seq <= last_seq + 1).then_some(Why::Stranger)
        }
    }
}

/// Adds a stretch, joined to the one before if they touch and are alike. What a gap covers is told by the gap.
fn note(findings: &mut Findings, start: usize, end: usize, why: Why) {
    let (place, bytes) = (start as u64, (end - start) as u64);
    let is_told = |gap: &Gap| gap.place <= place && place + bytes <= gap.place + gap.bytes;
    if why == Why::NoLine && findings.gaps.iter().any(is_told) {
        return;
    }
    match findings.foreign.last_mut() {
        Some(last) if last.why == why && last.place + last.bytes == place => last.bytes += bytes,
        _ => findings.foreign.push(Foreign { place, bytes, why }),
    }
}

/// Fills in what is known only now.
fn finish(mut reading: Reading) -> Reading {
    let (seq, _) = reading.next();
    if let Some(torn) = &mut reading.findings.torn {
        torn.seq_from = seq;
    }
    let header = reading.lines.first().filter(|_| reading.has_header);
    reading.findings.format_needed =
        header.and_then(|line| format_of(line.data())).filter(|format| FORMAT < *format);
    reading
}
