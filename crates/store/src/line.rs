//! One line of the session log: how it is sealed and how it is read.
//!
//! `{"seq":17,"epoch":2,"durable":14,"at":"…","ms":81234,"agent":"main","type":"intent","data":{…},"prev":"51c0a7be","crc":"9f3c2a11"}`
//!
//! `crc` is CRC-32C over the raw bytes before `,"crc":`, `prev` the `crc` of the line before. Both ends of a line
//! have a known shape, so `data` is found without being read. Members we do not know are allowed anywhere but
//! at the end: then serde reads the envelope. What the body means is not known here.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::chain::gap_of;

/// The format that is written: `format` in the header's body. Lower ones are read too, higher ones only read.
pub const FORMAT: u64 = 1;

/// A record to be written. The store adds `seq`, `epoch`, `durable` and the checksums.
#[derive(Debug, Clone, Copy)]
pub struct NewLine<'a> {
    /// Who it belongs to: `main` or a sub-agent. No quotes, backslashes or control characters.
    pub agent: &'a str,
    /// The record's type, snake_case. As `agent`.
    pub kind: &'a str,
    /// The body, one JSON value. Line breaks between its tokens become spaces.
    pub data: &'a str,
    /// When, for people: RFC 3339. As `agent`.
    pub at: &'a str,
    /// Monotonic milliseconds since this epoch opened.
    pub ms: u64,
}

/// A record that was read and whose checksum holds.
///
/// The texts are slices of one buffer which all lines of a log share: it lives as long as any of them.
#[derive(Clone)]
pub struct Line {
    pub seq: u64,
    pub epoch: u64,
    /// The highest seq that was known to be on disk when this line was written.
    pub durable: u64,
    pub ms: u64,
    /// The byte offset of the line in the log.
    pub place: u64,
    pub(crate) crc: u32,
    text: Arc<Vec<u8>>,
    start: usize,
    len: u32,
    at: Span,
    agent: Span,
    kind: Span,
    data: Span,
}

impl Line {
    /// When, for people.
    pub fn at(&self) -> &str {
        self.slice(self.at)
    }

    pub fn agent(&self) -> &str {
        self.slice(self.agent)
    }

    /// The record's type.
    pub fn kind(&self) -> &str {
        self.slice(self.kind)
    }

    /// The body: JSON text, as it was given.
    pub fn data(&self) -> &str {
        self.slice(self.data)
    }

    /// The last seq this line stands for: its own, except for a `gap` line.
    pub fn seq_to(&self) -> u64 {
        let gap = gap_of(self.kind().as_bytes(), self.seq, self.data().as_bytes());
        gap.map_or(self.seq, |gap| gap.seq_to)
    }

    /// Reads the body as `T`. Errors: serde's, where the body is of another shape.
    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> serde_json::Result<T> {
        serde_json::from_str(self.data())
    }

    /// The whole line without its line break.
    pub fn raw(&self) -> &str {
        self.slice(Span { start: 0, end: self.len })
    }

    /// Places a parsed line of `text` that starts at `start`.
    pub(crate) fn place(text: &Arc<Vec<u8>>, start: usize, len: usize, envelope: &Envelope) -> Line {
        Line {
            seq: envelope.seq,
            epoch: envelope.epoch,
            durable: envelope.durable,
            ms: envelope.ms,
            place: start as u64,
            crc: envelope.crc,
            text: Arc::clone(text),
            start,
            len: len as u32,
            at: envelope.at,
            agent: envelope.agent,
            kind: envelope.kind,
            data: envelope.data,
        }
    }

    fn slice(&self, span: Span) -> &str {
        let bytes = &self.text[self.start + span.start as usize..self.start + span.end as usize];
        std::str::from_utf8(bytes).expect("a line is checked for UTF-8 when it is parsed")
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Line({} @{})", self.raw(), self.place)
    }
}

/// Lines are equal when their bytes and their place are.
impl PartialEq for Line {
    fn eq(&self, other: &Line) -> bool {
        self.place == other.place && self.raw() == other.raw()
    }
}

/// What the store adds to a [`NewLine`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seal {
    pub seq: u64,
    pub epoch: u64,
    pub durable: u64,
    pub prev: u32,
}

/// Appends the sealed line and its line break to `out` and returns its checksum.
pub(crate) fn seal(out: &mut Vec<u8>, line: &NewLine, seal: Seal) -> u32 {
    use std::io::Write;
    let start = out.len();
    let Seal { seq, epoch, durable, prev } = seal;
    let NewLine { agent, kind, data, at, ms } = *line;
    let written = write!(
        out,
        r#"{{"seq":{seq},"epoch":{epoch},"durable":{durable},"at":"{at}","ms":{ms},"agent":"{agent}","type":"{kind}","data":"#
    );
    written.expect("a vector takes every write");
    // A valid JSON string holds no raw line break, so these stand between tokens.
    out.extend(data.bytes().map(|byte| if byte == b'\n' || byte == b'\r' { b' ' } else { byte }));
    write!(out, r#","prev":"{prev:08x}""#).expect("a vector takes every write");
    let crc = crc32c::crc32c(&out[start..]);
    writeln!(out, ",\"crc\":\"{crc:08x}\"}}").expect("a vector takes every write");
    crc
}

/// Reads `format` in a header's body.
pub(crate) fn format_of(data: &str) -> Option<u64> {
    #[derive(Deserialize)]
    struct Header {
        format: u64,
    }
    serde_json::from_str(data).ok().map(|header: Header| header.format)
}

/// Returns whether a text can stand in the envelope as it is.
pub(crate) fn is_plain(text: &str) -> bool {
    !text.bytes().any(|byte| byte < b' ' || byte == b'"' || byte == b'\\' || byte == 0x7f)
}

/// A line's members, texts as spans from its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Envelope {
    pub seq: u64,
    pub epoch: u64,
    pub durable: u64,
    pub ms: u64,
    pub prev: u32,
    pub crc: u32,
    at: Span,
    agent: Span,
    kind: Span,
    data: Span,
}

impl Envelope {
    /// Before the first line.
    pub const NONE: Envelope = {
        let none = Span { start: 0, end: 0 };
        Envelope {
            seq: 0,
            epoch: 1,
            durable: 0,
            ms: 0,
            prev: 0,
            crc: 0,
            at: none,
            agent: none,
            kind: none,
            data: none,
        }
    };

    pub fn at<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        &line[self.at.start as usize..self.at.end as usize]
    }

    pub fn kind<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        &line[self.kind.start as usize..self.kind.end as usize]
    }

    pub fn data<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        &line[self.data.start as usize..self.data.end as usize]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    start: u32,
    end: u32,
}

/// `,"crc":"9f3c2a11"}`
const CRC_BYTES: usize = 18;
/// `,"prev":"51c0a7be"`
const PREV_BYTES: usize = 18;
/// Longer lines are refused when written and taken for damage when read: bodies above 16 KiB are blobs.
pub const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Reads a line without its line break. `None`: the checksum or the shape is wrong.
pub(crate) fn parse(line: &[u8]) -> Option<Envelope> {
    if line.len() > LINE_BYTES_MAX {
        return None;
    }
    let sealed = line.len().checked_sub(CRC_BYTES)?;
    let crc = hex(&line[sealed..], br#","crc":""#, b"\"}")?;
    if crc32c::crc32c(&line[..sealed]) != crc || std::str::from_utf8(line).is_err() {
        return None;
    }
    parse_plain(line, sealed, crc).or_else(|| parse_by_serde(line, crc))
}

/// Reads the envelope of format 1 exactly as [`seal`] writes it.
fn parse_plain(line: &[u8], sealed: usize, crc: u32) -> Option<Envelope> {
    let body = sealed.checked_sub(PREV_BYTES)?;
    let prev = hex(&line[body..sealed], br#","prev":""#, b"\"")?;
    let mut cursor = Cursor { line: &line[..body], at: 0 };
    let seq = cursor.number(br#"{"seq":"#)?;
    let epoch = cursor.number(br#","epoch":"#)?;
    let durable = cursor.number(br#","durable":"#)?;
    let at = cursor.text(br#","at":""#)?;
    let ms = cursor.number(br#","ms":"#)?;
    let agent = cursor.text(br#","agent":""#)?;
    let kind = cursor.text(br#","type":""#)?;
    cursor.skip(br#","data":"#)?;
    let data = Span { start: cursor.at as u32, end: body as u32 };
    (data.start < data.end).then_some(Envelope { seq, epoch, durable, ms, prev, crc, at, agent, kind, data })
}

struct Cursor<'a> {
    line: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn skip(&mut self, word: &[u8]) -> Option<()> {
        let found = self.line.get(self.at..)?.starts_with(word);
        self.at += word.len();
        found.then_some(())
    }

    fn number(&mut self, name: &[u8]) -> Option<u64> {
        self.skip(name)?;
        let start = self.at;
        let mut number = 0u64;
        while let Some(digit) = self.line.get(self.at).filter(|byte| byte.is_ascii_digit()) {
            number = number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
            self.at += 1;
        }
        (start < self.at).then_some(number)
    }

    fn text(&mut self, name: &[u8]) -> Option<Span> {
        self.skip(name)?;
        let start = self.at;
        let len = memchr::memchr2(b'"', b'\\', self.line.get(start..)?)?;
        let end = start + len;
        self.at = end + 1;
        (self.line[end] == b'"').then_some(Span { start: start as u32, end: end as u32 })
    }
}

/// Reads eight hex digits between two words that fill the slice.
fn hex(bytes: &[u8], before: &[u8], after: &[u8]) -> Option<u32> {
    let digits = bytes.strip_prefix(before)?.strip_suffix(after)?;
    if digits.len() != 8 {
        return None;
    }
    digits.iter().try_fold(0u32, |sum, byte| {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => return None,
        };
        Some(sum << 4 | u32::from(digit))
    })
}

/// Reads an envelope that a later version gave members of its own.
fn parse_by_serde(line: &[u8], crc: u32) -> Option<Envelope> {
    #[derive(Deserialize)]
    struct Wide<'a> {
        seq: u64,
        epoch: u64,
        durable: u64,
        at: &'a str,
        ms: u64,
        agent: &'a str,
        #[serde(rename = "type")]
        kind: &'a str,
        #[serde(borrow)]
        data: &'a RawValue,
        prev: &'a str,
    }
    let wide: Wide = serde_json::from_slice(line).ok()?;
    // The texts are borrowed from the line, so their addresses tell where they stand.
    let span = |text: &str| {
        let start = text.as_ptr() as usize - line.as_ptr() as usize;
        Span { start: start as u32, end: (start + text.len()) as u32 }
    };
    Some(Envelope {
        seq: wide.seq,
        epoch: wide.epoch,
        durable: wide.durable,
        ms: wide.ms,
        prev: hex(wide.prev.as_bytes(), b"", b"")?,
        crc,
        at: span(wide.at),
        agent: span(wide.agent),
        kind: span(wide.kind),
        data: span(wide.data.get()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: NewLine =
        NewLine {
            agent: "main", kind: "input", data: r#"{"text":"hé"}"#, at: "2026-01-02T03:04:05Z", ms: 7
        };

    fn sealed(line: &NewLine) -> Vec<u8> {
        let mut out = Vec::new();
        seal(&mut out, line, Seal { seq: 2, epoch: 1, durable: 1, prev: 0xabc });
        assert_eq!(out.pop(), Some(b'\n'));
        out
    }

    fn read(bytes: Vec<u8>) -> Option<Line> {
        let envelope = parse(&bytes)?;
        let len = bytes.len();
        Some(Line::place(&Arc::new(bytes), 0, len, &envelope))
    }

    #[test]
    fn a_sealed_line_looks_as_the_format_says_and_reads_back() {
        let bytes = sealed(&LINE);
        let text = r#"{"seq":2,"epoch":1,"durable":1,"at":"2026-01-02T03:04:05Z","ms":7,"agent":"main","type":"input","data":{"text":"hé"},"prev":"00000abc","crc":"#;
        assert!(String::from_utf8(bytes.clone()).unwrap().starts_with(text));
        let line = read(bytes).unwrap();
        assert_eq!((line.seq, line.epoch, line.durable, line.ms), (2, 1, 1, 7));
        assert_eq!(
            (line.at(), line.agent(), line.kind(), line.data()),
            (LINE.at, "main", "input", LINE.data)
        );
    }

    #[test]
    fn line_breaks_in_a_body_become_spaces() {
        let line = read(sealed(&NewLine { data: "{\n \"a\":\r\n1}", ..LINE })).unwrap();
        assert_eq!(line.data(), "{  \"a\":  1}");
    }

    #[test]
    fn no_flipped_bit_goes_unseen() {
        let bytes = sealed(&LINE);
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(parse(&bytes), None, "bit {bit}");
        }
    }

    #[test]
    fn members_of_a_later_version_are_allowed_before_the_end() {
        let mut bytes = br#"{"host":"a","seq":2,"epoch":1,"durable":1,"at":"x","ms":7,"agent":"main","type":"input","data":{"crc":"b"},"more":[1],"prev":"00000abc""#.to_vec();
        let crc = crc32c::crc32c(&bytes);
        bytes.extend(format!(",\"crc\":\"{crc:08x}\"}}").bytes());
        let line = read(bytes).unwrap();
        assert_eq!((line.seq, line.kind(), line.data()), (2, "input", r#"{"crc":"b"}"#));
    }

    #[test]
    fn only_texts_without_escapes_are_plain() {
        for (text, want) in [("main", true), ("ünï", true), ("a\"b", false), ("a\\b", false), ("a\nb", false)]
        {
            assert_eq!(is_plain(text), want, "{text:?}");
        }
    }
}
