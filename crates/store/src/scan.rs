//! Finds the lines in a file whose checksum holds, whatever stands between them.
//!
//! A line may have been glued to the rest of another, or filled up with NULs: where a piece between two line
//! breaks is no line, lines are looked for inside it. Which of them belong to the session is decided in `chain`.

use memchr::memmem;

use crate::line::{self, Envelope};

/// A line whose checksum holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    pub start: usize,
    /// Bytes without the line break.
    pub len: usize,
    /// Whether a line break follows.
    pub is_ended: bool,
    pub envelope: Envelope,
}

impl Found {
    /// Where the next line should start.
    pub fn end(&self) -> usize {
        self.start + self.len + usize::from(self.is_ended)
    }

    pub fn bytes<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        &text[self.start..self.start + self.len]
    }
}

/// A piece is searched by this many checksums at most, so that no file can hold us up.
const TRIES_MAX: usize = 1_000;

/// Returns all lines whose checksum holds, in the order of the file.
pub(crate) fn scan(text: &[u8]) -> Vec<Found> {
    let mut found = Vec::with_capacity(text.len() / 400 + 1);
    let mut start = 0;
    while start < text.len() {
        let end = memchr::memchr(b'\n', &text[start..]).map_or(text.len(), |len| start + len);
        match line::parse(&text[start..end]) {
            Some(envelope) => {
                found.push(Found { start, len: end - start, is_ended: end < text.len(), envelope });
            }
            None => search(text, start, end, &mut found),
        }
        start = end + 1;
    }
    found
}

/// Looks for lines inside a piece without line breaks that is none itself.
fn search(text: &[u8], start: usize, end: usize, found: &mut Vec<Found>) {
    let mut from = start;
    let mut tries = 0;
    for begin in memmem::find_iter(&text[start..end], br#"{"seq":"#).map(|at| start + at) {
        // Part of a line that was found already.
        if begin < from {
            continue;
        }
        for stop in memmem::find_iter(&text[begin..end], br#","crc":""#).map(|at| begin + at + CRC_BYTES) {
            if end < stop || TRIES_MAX <= tries {
                break;
            }
            tries += 1;
            if let Some(envelope) = line::parse(&text[begin..stop]) {
                let is_ended = stop == end && end < text.len();
                found.push(Found { start: begin, len: stop - begin, is_ended, envelope });
                from = stop;
                break;
            }
        }
    }
}

/// `,"crc":"9f3c2a11"}`
const CRC_BYTES: usize = 18;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::{NewLine, Seal, seal};

    fn line(seq: u64) -> Vec<u8> {
        let mut out = Vec::new();
        let data = r#"{"seq":1,"crc":"x","deep":{"seq":2,"epoch":1}}"#;
        let new = NewLine { agent: "main", kind: "input", data, at: "then", ms: 0 };
        seal(&mut out, &new, Seal { seq, epoch: 1, durable: 0, prev: 0 });
        out
    }

    fn seqs(text: &[u8]) -> Vec<(u64, bool)> {
        scan(text).iter().map(|found| (found.envelope.seq, found.is_ended)).collect()
    }

    #[test]
    fn lines_are_found_between_halves_nuls_and_each_other() {
        let [one, two, three] = [line(1), line(2), line(3)];
        let bare = |line: &[u8]| line[..line.len() - 1].to_vec();
        let half = &one[..one.len() / 2];
        for (name, text, want) in [
            ("clean", [one.clone(), two.clone()].concat(), vec![(1, true), (2, true)]),
            ("no last line break", [one.clone(), bare(&two)].concat(), vec![(1, true), (2, false)]),
            (
                "glued",
                [bare(&one), bare(&two), three.clone()].concat(),
                vec![(1, false), (2, false), (3, true)],
            ),
            ("after a half", [half, &two, &three].concat(), vec![(2, true), (3, true)]),
            ("after NULs", [&[0; 600][..], &two].concat(), vec![(2, true)]),
            ("before NULs", [&bare(&two)[..], &[0; 600]].concat(), vec![(2, false)]),
            ("only NULs", vec![0; 5000], vec![]),
            ("nothing", vec![], vec![]),
        ] {
            assert_eq!(seqs(&text), want, "{name}");
        }
    }

    #[test]
    fn a_piece_full_of_beginnings_ends_the_search() {
        let text = [br#"{"seq":"#.repeat(3_000), br#","crc":"00000000"}"#.repeat(3_000)].concat();
        assert_eq!(seqs(&text), []);
    }
}
