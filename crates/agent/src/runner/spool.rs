//! What a command printed: on disk, bounded, with beginning and end kept; and an excerpt in memory.
//!
//! The first half of the bound goes into one file. What follows goes into numbered parts of a quarter each,
//! of which the newest two stay. A part's place in the stream follows from its number, so a reader needs no
//! index. When the disk is full the excerpt is still there.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::files::{Excerpt, create_private};

/// Enough for 20,000 characters of any length.
const HEAD_BYTES: usize = 80_000;
/// Enough for 10,000 characters of any length.
const TAIL_BYTES: usize = 40_000;
const CHUNK_BYTES: usize = 64 << 10;

#[derive(Debug, Clone, Copy)]
struct Layout {
    head: u64,
    part: u64,
}

impl Layout {
    fn of(bytes_max: u64) -> Self {
        Self { head: (bytes_max / 2).max(1), part: (bytes_max / 4).max(1) }
    }

    /// The part that holds the byte at `offset`; none is the first file.
    fn part_at(self, offset: u64) -> Option<u64> {
        offset.checked_sub(self.head).map(|beyond| beyond / self.part)
    }

    /// Where the file that holds `offset` begins and ends in the stream.
    fn span(self, part: Option<u64>) -> (u64, u64) {
        match part {
            None => (0, self.head),
            Some(n) => (self.head + n * self.part, self.head + (n + 1) * self.part),
        }
    }
}

fn file_of(base: &Path, part: Option<u64>) -> PathBuf {
    match part {
        None => base.to_owned(),
        Some(n) => {
            let mut name = base.as_os_str().to_owned();
            name.push(format!(".{n}"));
            PathBuf::from(name)
        }
    }
}

/// The writing end.
#[derive(Debug)]
pub(super) struct Spool {
    base: PathBuf,
    layout: Layout,
    file: Option<File>,
    part: Option<u64>,
    at: u64,
    /// The first thing that went wrong; nothing is written after it.
    pub error: Option<String>,
}

impl Spool {
    pub(super) fn new(base: PathBuf, bytes_max: u64) -> Self {
        let mut spool =
            Self { base, layout: Layout::of(bytes_max), file: None, part: None, at: 0, error: None };
        // Made at once: an empty output is an empty file, not a missing one.
        if let Err(error) = spool.open(None) {
            spool.error = Some(format!("{}: {error}", spool.base.display()));
        }
        spool
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        if self.error.is_none()
            && let Err(error) = self.try_write(bytes)
        {
            self.error = Some(format!("{}: {error}", self.base.display()));
        }
    }

    fn try_write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let part = self.layout.part_at(self.at);
            if part != self.part {
                self.open(part)?;
            }
            let room = self.layout.span(part).1 - self.at;
            let now = bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX));
            self.file.as_mut().expect("opened above or in new").write_all(&bytes[..now])?;
            self.at += now as u64;
            bytes = &bytes[now..];
        }
        Ok(())
    }

    fn open(&mut self, part: Option<u64>) -> io::Result<()> {
        if let Some(stale) = part.and_then(|n| n.checked_sub(2)) {
            std::fs::remove_file(file_of(&self.base, Some(stale)))?;
        }
        self.file = Some(create_private(&file_of(&self.base, part))?);
        self.part = part;
        Ok(())
    }
}

/// A piece of what was spooled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Piece {
    pub bytes: Vec<u8>,
    /// Bytes between the wanted place and this piece that are no longer kept.
    pub skipped: u64,
    /// Where to read on.
    pub next: u64,
}

/// Reads on from `offset` of the stream spooled at `base` under `bytes_max`, at most `want` bytes.
///
/// Shape: an empty piece at the end of what there is so far.
pub fn read_from(base: &Path, bytes_max: u64, offset: u64, want: usize) -> io::Result<Piece> {
    let layout = Layout::of(bytes_max);
    let wanted = layout.part_at(offset);
    if let Some(bytes) = read_file(&file_of(base, wanted), offset - layout.span(wanted).0, want)? {
        let next = offset + bytes.len() as u64;
        return Ok(Piece { bytes, skipped: 0, next });
    }
    // That part is gone, or not there yet. The oldest one that is kept lies further on.
    let Some(first_kept) = oldest_part_after(base, wanted)? else {
        return Ok(Piece { next: offset, ..Piece::default() });
    };
    let begin = layout.span(Some(first_kept)).0;
    let bytes = read_file(&file_of(base, Some(first_kept)), 0, want)?.unwrap_or_default();
    Ok(Piece { next: begin + bytes.len() as u64, skipped: begin - offset, bytes })
}

fn read_file(path: &Path, from: u64, want: usize) -> io::Result<Option<Vec<u8>>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(want as u64).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

fn oldest_part_after(base: &Path, wanted: Option<u64>) -> io::Result<Option<u64>> {
    let (Some(folder), Some(name)) = (base.parent(), base.file_name()) else { return Ok(None) };
    let prefix = format!("{}.", name.to_string_lossy());
    let mut oldest = None;
    for entry in std::fs::read_dir(folder)? {
        let file = entry?.file_name();
        let number = file.to_str().and_then(|file| file.strip_prefix(&prefix)?.parse::<u64>().ok());
        if let Some(n) = number
            && wanted.is_none_or(|wanted| n > wanted)
            && oldest.is_none_or(|best| n < best)
        {
            oldest = Some(n);
        }
    }
    Ok(oldest)
}

/// What a stream carried since a reader last looked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct News {
    pub excerpt: Excerpt,
    /// Where to read on.
    pub next: u64,
}

/// Reads everything from `offset` to the end of what there is so far, as an excerpt. With `goes_on`, a
/// character of which only the beginning is there waits for the next look.
pub fn read_new(base: &Path, bytes_max: u64, offset: u64, goes_on: bool) -> io::Result<News> {
    let mut capture = Capture::default();
    let mut at = offset;
    loop {
        let mut piece = read_from(base, bytes_max, at, CHUNK_BYTES)?;
        let count = piece.bytes.len();
        if goes_on && count < CHUNK_BYTES {
            piece.bytes.truncate(whole_chars_end(&piece.bytes));
        }
        if piece.bytes.is_empty() {
            return Ok(News { excerpt: capture.excerpt(), next: at });
        }
        // What is no longer kept counts, so that the gap is told.
        capture.skip(piece.skipped);
        capture.push(&piece.bytes);
        at = piece.next - (count - piece.bytes.len()) as u64;
    }
}

/// Copies everything that is kept of the stream at `base` to the file `to`.
pub fn keep_whole(base: &Path, bytes_max: u64, to: &Path) -> io::Result<()> {
    let _ = std::fs::remove_file(to);
    let is_one_file = oldest_part_after(base, None)?.is_none();
    if is_one_file && std::fs::hard_link(base, to).is_ok() {
        return Ok(());
    }
    let mut file = File::create(to)?;
    let mut at = 0;
    loop {
        let piece = read_from(base, bytes_max, at, CHUNK_BYTES)?;
        if piece.bytes.is_empty() {
            return Ok(());
        }
        if piece.skipped > 0 {
            writeln!(file, "\n\n[{} bytes were not kept]\n", piece.skipped)?;
        }
        file.write_all(&piece.bytes)?;
        at = piece.next;
    }
}

/// Beginning and end of a stream, in memory.
#[derive(Debug, Default)]
pub(super) struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    bytes: u64,
    chars: u64,
    is_closed: bool,
}

impl Capture {
    pub(super) fn push(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        self.chars += piece.iter().filter(|&&byte| byte & 0xc0 != 0x80).count() as u64;
        let room = if self.is_closed { 0 } else { HEAD_BYTES - self.head.len() };
        let (head, rest) = piece.split_at(room.min(piece.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(TAIL_BYTES)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(TAIL_BYTES);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// Counts bytes that nobody can show any more.
    fn skip(&mut self, bytes: u64) {
        if bytes > 0 {
            self.bytes += bytes;
            self.chars += bytes;
            // Nothing after the gap may join what is before it.
            self.is_closed = true;
        }
    }

    /// Text of what was kept; cut only between characters, odd bytes shown as the replacement character.
    pub(super) fn excerpt(&self) -> Excerpt {
        let (bytes, chars) = (self.bytes, self.chars);
        let (front, back) = self.tail.as_slices();
        let tail = [front, back].concat();
        if self.bytes == (self.head.len() + tail.len()) as u64 {
            let head = [self.head.as_slice(), &tail].concat();
            return Excerpt { bytes, chars, head: readable(&head), tail: String::new() };
        }
        let head = readable(&self.head[..whole_chars_end(&self.head)]);
        let begin = tail.iter().take(3).take_while(|&&byte| byte & 0xc0 == 0x80).count();
        Excerpt { bytes, chars, head, tail: readable(&tail[begin..]) }
    }
}

fn readable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\0', "\u{fffd}")
}

/// Where the last character ends that is whole.
pub(super) fn whole_chars_end(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        // Whole, or bad in the middle: then the last few bytes decide.
        Ok(_) => bytes.len(),
        Err(_) => {
            let last = bytes.len() - bytes.iter().rev().take(3).take_while(|&&b| b & 0xc0 == 0x80).count();
            match last.checked_sub(1).map(|start| (start, std::str::from_utf8(&bytes[start..]))) {
                Some((start, Err(error))) if error.error_len().is_none() => start,
                _ => bytes.len(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spooled(bound: u64, pieces: &[&[u8]]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("out");
        let mut spool = Spool::new(base.clone(), bound);
        for piece in pieces {
            spool.write(piece);
        }
        assert_eq!(spool.error, None);
        (dir, base)
    }

    #[test]
    fn beginning_and_end_stay_and_the_bound_holds() {
        let text: Vec<u8> = (0..1000u32).map(|n| b'a' + (n % 26) as u8).collect();
        for size in [1, 7, 33, 1000] {
            let pieces: Vec<&[u8]> = text.chunks(size).collect();
            let (dir, base) = spooled(64, &pieces);
            let on_disk: u64 =
                std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().metadata().unwrap().len()).sum();
            assert!(on_disk <= 64, "{on_disk} bytes kept");
            let head = read_from(&base, 64, 0, 1000).unwrap();
            assert_eq!(head.bytes, &text[..32]);
            let mut at = head.next;
            let mut rest = Vec::new();
            let mut skipped = 0;
            loop {
                let piece = read_from(&base, 64, at, 5).unwrap();
                if piece.bytes.is_empty() {
                    break;
                }
                skipped += piece.skipped;
                at = piece.next;
                rest.extend(piece.bytes);
            }
            assert_eq!(at, 1000);
            assert_eq!(skipped + 32 + rest.len() as u64, 1000);
            assert_eq!(rest, &text[1000 - rest.len()..]);
            assert!(rest.len() >= 16, "a whole part at least");
        }
    }

    #[test]
    fn reading_on_at_the_end_gives_nothing_and_stays_there() {
        let (_dir, base) = spooled(1 << 20, &[b"abc"]);
        let piece = read_from(&base, 1 << 20, 3, 10).unwrap();
        assert_eq!(piece, Piece { bytes: vec![], skipped: 0, next: 3 });
    }

    #[test]
    fn an_excerpt_is_whole_up_to_its_bound_and_cut_between_characters_beyond() {
        let mut small = Capture::default();
        small.push("grün\n".as_bytes());
        assert_eq!(
            small.excerpt(),
            Excerpt { bytes: 6, chars: 5, head: "grün\n".to_owned(), tail: String::new() }
        );

        let smile = "😀".repeat(100_000);
        let mut large = Capture::default();
        large.push(b"x");
        for piece in smile.as_bytes().chunks(4093) {
            large.push(piece);
        }
        let excerpt = large.excerpt();
        assert_eq!((excerpt.bytes, excerpt.chars), (400_001, 100_001));
        assert!(!excerpt.head.contains('\u{fffd}') && !excerpt.tail.contains('\u{fffd}'));
        assert!(excerpt.head.chars().count() >= 19_999 && excerpt.tail.chars().count() >= 9_999);
    }

    #[test]
    fn bytes_that_are_not_text_are_shown_as_replacement_characters() {
        let mut capture = Capture::default();
        capture.push(b"a\xe9\0b");
        assert_eq!(capture.excerpt().head, "a\u{fffd}\u{fffd}b");
    }
}
