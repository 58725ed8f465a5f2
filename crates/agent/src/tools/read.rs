//! Read: a window of a text file, numbered; or an image.
//!
//! The whole file is hashed while it goes by, so that a later edit knows whether it is still the same. Memory
//! is bounded by the window, not by the file.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use yaoki_core::effects::EffectClass;
use yaoki_core::json::RawJson;
use yaoki_core::message::{CallResult, Media, Part};
use yaoki_core::record::OutcomeStatus;
use yaoki_core::step::RunStep;

use super::change::{After, system_error};
use super::image::{self, Image};
use super::permission::Subject;
use super::{Done, Shaped, Shared, paths, text};

const LINES_DEFAULT: u64 = 2_000;
const LINE_CHARS_MAX: usize = 2_000;
/// A window ends before this many characters, at a whole line.
const WINDOW_CHARS_MAX: usize = 100_000;
/// Hashing more takes longer than anyone waits for a look.
const FILE_BYTES_MAX: u64 = 512 << 20;
/// The API's limit, counted on the base64 text.
const IMAGE_BASE64_MAX: usize = 5 << 20;
const IMAGE_PIXELS_MAX: u32 = 8_000;
const SNIFF_BYTES: usize = 8_000;
const CHUNK_BYTES: usize = 64 << 10;
const HINTS_MAX: usize = 3;
/// Names looked at for a hint.
const HINT_NAMES_MAX: usize = 2_000;

pub(super) const DESCRIPTION: &str = "Reads a file and shows it with line numbers.

- `file_path` is absolute, or relative to the working folder.
- Shows up to 2,000 lines from the beginning; use `offset` and `limit` for other parts of a long file.
- Lines longer than 2,000 characters are cut.
- Reads images (PNG, JPEG, GIF, WebP) too.
- For folders use Glob, or ls in Bash.";

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The file to read.
    #[schemars(length(min = 1))]
    pub(super) file_path: String,
    /// The line to begin with, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    /// How many lines to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    limit: Option<u64>,
}

pub(super) fn shape(shared: &Shared, mut input: Input) -> Shaped {
    let path = paths::absolute(&input.file_path, &shared.env.cwd);
    let title = text::title("Read", &text::shown(&path, &shared.env.cwd));
    input.file_path = path.to_string_lossy().into_owned();
    Shaped::new(EffectClass::Pure, title, &input, Subject::Reads(path))
}

pub(super) fn run(shared: &Shared, step: &RunStep, stop: &CancellationToken) -> Result<Done, String> {
    let input: Input = shared.input(step)?;
    let path = Path::new(&input.file_path);
    let complain = |error: io::Error| system_error(&error, path);
    let facts = fs::metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("{}{}", system_error(&error, path), hint(path)),
        _ => complain(error),
    })?;
    if facts.is_dir() {
        return Err(format!(
            "Error: EISDIR: illegal operation on a directory, read '{}'. Use Glob, or ls in Bash, for folders.",
            path.display()
        ));
    }
    if !facts.is_file() {
        return Err(format!("Error: {} is not a regular file; it cannot be read.", path.display()));
    }
    if facts.len() > FILE_BYTES_MAX {
        return Err(format!(
            "Error: {} has {} bytes, too many to read; use Grep, or head and tail in Bash.",
            path.display(),
            facts.len()
        ));
    }
    let mut file = File::open(path).map_err(complain)?;
    let head = read_up_to(&mut file, SNIFF_BYTES).map_err(complain)?;
    if let Some(image) = Image::of(&head) {
        return read_image(shared, path, image, head, file);
    }
    if memchr::memchr(0, &head).is_some() {
        return Err(format!(
            "Error: {} is not a text file but {} ({} bytes). Use a suitable program in Bash to look into it.",
            path.display(),
            image::kind(&head),
            facts.len()
        ));
    }
    let mut window = Window::new(input.offset.unwrap_or(1).max(1), input.limit.unwrap_or(LINES_DEFAULT));
    let mut hasher = blake3::Hasher::new();
    let mut chunk = head;
    while !chunk.is_empty() {
        if stop.is_cancelled() {
            return Err("Error: interrupted while reading.".to_owned());
        }
        hasher.update(&chunk);
        window.push(&chunk);
        chunk = read_up_to(&mut file, CHUNK_BYTES).map_err(complain)?;
    }
    Ok(done(shared, path, &hasher, CallResult::ok(window.finish())))
}

fn done(shared: &Shared, path: &Path, hasher: &blake3::Hasher, result: CallResult) -> Done {
    let real = paths::resolved(path);
    let hash = hasher.finalize().to_hex().to_string();
    shared.seen.note(&real, &hash);
    let post = After { path: real.to_string_lossy().into_owned(), hash };
    Done { status: OutcomeStatus::Success, result, post: Some(RawJson::of(&post)) }
}

fn read_image(
    shared: &Shared,
    path: &Path,
    image: Image,
    mut bytes: Vec<u8>,
    file: File,
) -> Result<Done, String> {
    let room = (IMAGE_BASE64_MAX + 1).saturating_sub(bytes.len()) as u64;
    file.take(room).read_to_end(&mut bytes).map_err(|error| system_error(&error, path))?;
    let name = path.display();
    if bytes.len().div_ceil(3) * 4 > IMAGE_BASE64_MAX {
        return Err(format!(
            "Error: the image {name} is too large to be shown: at most 5 MB in base64. Scale it down in Bash first."
        ));
    }
    let Some((width, height)) = image.size(&bytes) else {
        return Err(format!("Error: the image {name} is broken: its header cannot be read."));
    };
    if width.max(height) > IMAGE_PIXELS_MAX {
        return Err(format!(
            "Error: the image {name} has {width}×{height} pixels, at most {IMAGE_PIXELS_MAX} a side can be shown. \
             Scale it down in Bash first."
        ));
    }
    let media_type = image.media_type();
    let data = BASE64.encode(&bytes).into();
    let note = Part::text(format!("{name}: {media_type}, {width}×{height} pixels"));
    let media = Part::Media(Media { media_type: media_type.to_owned(), data });
    let result = CallResult { parts: vec![note, media], is_error: false };
    let mut hasher = blake3::Hasher::new();
    hasher.update(&bytes);
    Ok(done(shared, path, &hasher, result))
}

fn read_up_to(file: &mut File, count: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(count);
    file.take(count as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The wanted lines, picked out of a stream of bytes.
struct Window {
    first: u64,
    lines_max: u64,
    shown: String,
    chars: usize,
    lines_shown: u64,
    is_full: bool,
    has_odd_bytes: bool,
    /// The line being read: its number from 1, its beginning, its length in bytes.
    number: u64,
    line: Vec<u8>,
    line_bytes: usize,
}

impl Window {
    fn new(first: u64, lines_max: u64) -> Self {
        Self {
            first,
            lines_max,
            shown: String::new(),
            chars: 0,
            lines_shown: 0,
            is_full: false,
            has_odd_bytes: false,
            number: 1,
            line: Vec::new(),
            line_bytes: 0,
        }
    }

    fn push(&mut self, mut bytes: &[u8]) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            self.extend(&bytes[..end]);
            self.end_line();
            bytes = &bytes[end + 1..];
        }
        self.extend(bytes);
    }

    fn extend(&mut self, bytes: &[u8]) {
        self.line_bytes += bytes.len();
        if self.is_wanted() {
            // Enough for one character more than is shown.
            let room = (LINE_CHARS_MAX * 4 + 4).saturating_sub(self.line.len());
            self.line.extend_from_slice(&bytes[..room.min(bytes.len())]);
        }
    }

    fn is_wanted(&self) -> bool {
        !self.is_full && self.number >= self.first && self.lines_shown < self.lines_max
    }

    fn end_line(&mut self) {
        if self.is_wanted() {
            self.show_line();
        }
        self.number += 1;
        self.line.clear();
        self.line_bytes = 0;
    }

    fn show_line(&mut self) {
        let mut line = self.line.as_slice();
        if self.number == 1 {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        let is_whole = self.line_bytes == self.line.len();
        if is_whole {
            line = line.strip_suffix(b"\r").unwrap_or(line);
        }
        // Of a line that is cut, the last character may be.
        self.has_odd_bytes |=
            std::str::from_utf8(line).is_err_and(|error| is_whole || error.error_len().is_some());
        let whole = String::from_utf8_lossy(line);
        let cut = text::first_chars(&whole, LINE_CHARS_MAX);
        let mark = if cut.len() < whole.len() { "… (line cut)" } else { "" };
        let chars = cut.chars().count() + 8;
        if self.chars + chars > WINDOW_CHARS_MAX {
            self.is_full = true;
            return;
        }
        if self.lines_shown > 0 {
            self.shown.push('\n');
        }
        self.shown.push_str(&format!("{:>6}→{cut}{mark}", self.number));
        self.chars += chars;
        self.lines_shown += 1;
    }

    fn finish(mut self) -> String {
        if self.line_bytes > 0 {
            self.end_line();
        }
        let total = self.number - 1;
        if total == 0 {
            return "(The file exists, but it is empty.)".to_owned();
        }
        if self.first > total {
            return format!("(The file has {total} lines, fewer than the offset {}.)", self.first);
        }
        let last = self.first + self.lines_shown - 1;
        if last < total {
            let next = last + 1;
            let (first, shown) = (self.first, &mut self.shown);
            shown.push_str(&format!(
                "\n\n(Lines {first}-{last} of {total} are shown; read on with offset {next}.)"
            ));
        }
        if self.has_odd_bytes {
            self.shown.push_str(
                "\n\n(The file is not valid UTF-8: bytes that are not text are shown as \u{fffd}. Edit leaves them as they are.)",
            );
        }
        self.shown
    }
}

/// Names near a missing one: ` Did you mean a.rs?`, or nothing.
pub(super) fn hint(path: &Path) -> String {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return String::new();
    };
    let Ok(entries) = fs::read_dir(folder) else {
        return format!(". There is no folder {} either.", folder.display());
    };
    let names: Vec<String> = entries
        .flatten()
        .take(HINT_NAMES_MAX)
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    let wanted = name.to_lowercase();
    let stem = wanted.split('.').next().unwrap_or_default();
    // Same name in another case or with another ending first, then likeness.
    let mut near: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|other| {
            let other = other.to_lowercase();
            other == wanted || (!stem.is_empty() && other.split('.').next() == Some(stem))
        })
        .collect();
    near.sort_unstable();
    let others: Vec<&str> = names.iter().map(String::as_str).collect();
    near.extend(similar::get_close_matches(name, &others, HINTS_MAX, 0.7));
    let mut seen = std::collections::HashSet::new();
    near.retain(|other| seen.insert(*other));
    near.truncate(HINTS_MAX);
    if near.is_empty() { String::new() } else { format!(". Did you mean {}?", near.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], first: u64, lines: u64, want: &str) {
        for size in [1, 3, 7, bytes.len().max(1)] {
            let mut window = Window::new(first, lines);
            for piece in bytes.chunks(size) {
                window.push(piece);
            }
            assert_eq!(window.finish(), want, "pieces of {size}");
        }
    }

    #[test]
    fn lines_are_numbered_and_dressed_down_to_their_text() {
        check(b"a\nb\n", 1, 10, "     1→a\n     2→b");
        check(b"\xef\xbb\xbfa\r\n\r\nb", 1, 10, "     1→a\n     2→\n     3→b");
        check(b"", 1, 10, "(The file exists, but it is empty.)");
        check(b"\n", 1, 10, "     1→");
    }

    #[test]
    fn a_window_says_where_to_read_on() {
        check(
            b"a\nb\nc\nd\n",
            2,
            2,
            "     2→b\n     3→c\n\n(Lines 2-3 of 4 are shown; read on with offset 4.)",
        );
        check(b"a\nb\n", 7, 2, "(The file has 2 lines, fewer than the offset 7.)");
        check(b"a\nb\n", 2, 5, "     2→b");
    }

    #[test]
    fn long_lines_are_cut_between_characters() {
        let line = "😀".repeat(3_000);
        check(line.as_bytes(), 1, 1, &format!("     1→{}… (line cut)", "😀".repeat(2_000)));
        let exact = "ü".repeat(2_000);
        check(format!("{exact}\n").as_bytes(), 1, 1, &format!("     1→{exact}"));
    }

    #[test]
    fn a_window_is_bounded_at_a_whole_line() {
        let text = format!("{}\n", "x".repeat(1_000)).repeat(500);
        let mut window = Window::new(1, 2_000);
        window.push(text.as_bytes());
        let shown = window.finish();
        assert!(shown.chars().count() < WINDOW_CHARS_MAX + 200);
        assert!(
            shown.ends_with("(Lines 1-99 of 500 are shown; read on with offset 100.)"),
            "{}",
            &shown[shown.len() - 80..]
        );
    }

    #[test]
    fn bytes_that_are_not_text_are_shown_and_named() {
        check(
            b"caf\xe9",
            1,
            1,
            "     1→caf\u{fffd}\n\n(The file is not valid UTF-8: bytes that are not text are shown as \u{fffd}. Edit leaves them as they are.)",
        );
    }

    #[test]
    fn a_missing_file_is_answered_with_names_that_are_there() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["README.txt", "main.rs", "mian.rs"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        for (wanted, want) in [
            ("readme.md", ". Did you mean README.txt?"),
            ("man.rs", ". Did you mean main.rs, mian.rs?"),
            ("qqqqqq", ""),
        ] {
            assert_eq!(hint(&dir.path().join(wanted)), want, "{wanted}");
        }
        assert!(hint(&dir.path().join("no/x")).contains("no folder"));
    }
}
