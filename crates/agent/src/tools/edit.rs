//! Edit: one text for another, in a file that was read. Bytes outside the edit never change.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use yaoki_core::effects::EffectClass;
use yaoki_core::step::RunStep;

use super::change::{self, Before, Found};
use super::matching::{self, Form};
use super::permission::Subject;
use super::write::{uses_crlf, with_line_ends_of};
use super::{Done, Shaped, Shared, nearest, paths, text};

/// Lines shown around a change.
const AROUND: usize = 4;
/// Lines of a change that are shown.
const SNIPPET_LINES_MAX: usize = 60;
const SNIPPET_LINE_CHARS_MAX: usize = 300;
/// Line numbers named when a text stands in too many places.
const PLACES_NAMED_MAX: usize = 10;

pub(super) const DESCRIPTION: &str = "Replaces a text in a file by another.

- The file must have been read first with Read, and not changed since.
- `old_string` has to stand in the file exactly, indentation included, without the line numbers that Read shows.
- It has to stand there once; give more lines around it if it does not, or set `replace_all`.
- Line endings, encoding, mode and everything outside the replaced text stay as they are.
- An empty `old_string` makes a new file.";

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// The file to change; absolute, or relative to the working folder.
    #[schemars(length(min = 1))]
    file_path: String,
    /// The text to replace.
    old_string: String,
    /// The text to put in its place.
    new_string: String,
    /// Replace every occurrence.
    #[serde(default)]
    replace_all: bool,
}

/// A file with the edit made.
struct Edited {
    bytes: Vec<u8>,
    /// The new text in `bytes`, first occurrence.
    first: Range<usize>,
    count: usize,
    form: Form,
}

pub(super) fn shape(shared: &Shared, mut input: Input) -> Shaped {
    let path = paths::absolute(&input.file_path, &shared.env.cwd);
    let title = text::title("Edit", &text::shown(&path, &shared.env.cwd));
    input.file_path = path.to_string_lossy().into_owned();
    Shaped::new(EffectClass::Reversible, title, &input, Subject::Edits(path))
}

/// Checks that the edit can be made, and takes the facts.
pub(super) fn save(shared: &Shared, input: &Input) -> Result<Before, String> {
    let found = Found::at(input.file_path.as_ref())?;
    change::check_seen(shared, &found, "editing")?;
    change::check_labels(shared, &found, &[&input.old_string, &input.new_string])?;
    let edited = edit(&found, input)?;
    found.before(shared, &edited.bytes)
}

pub(super) fn run(shared: &Shared, step: &RunStep, _stop: &CancellationToken) -> Result<Done, String> {
    let input: Input = shared.input(step)?;
    let found = Found::at(input.file_path.as_ref())?;
    let before: Option<Before> = shared.pre(step);
    // Judged a while ago; another edit of ours may be in between, anyone else's may not.
    if before.is_some_and(|before| before.hash != found.hash()) {
        change::check_seen(shared, &found, "editing")?;
    }
    let edited = edit(&found, &input)?;
    let name = found.real.display();
    let mut text = match edited.count {
        0 => format!("The file {name} has been created."),
        1 => format!("The file {name} has been edited."),
        count => format!("The file {name} has been edited in {count} places."),
    };
    if edited.form != Form::Exact {
        text.push_str(&format!(" old_string was found only {}.", edited.form.words()));
    }
    text.push_str(" The lines around the change:\n");
    text.push_str(&snippet(&edited));
    change::apply(shared, &found, &edited.bytes, text)
}

/// Makes the edit in memory. Errors: in words that help a model to mend its call.
fn edit(found: &Found, input: &Input) -> Result<Edited, String> {
    if input.old_string == input.new_string {
        return Err("No changes to make: old_string and new_string are exactly the same.".to_owned());
    }
    let name = found.real.display();
    let bytes = match (&found.bytes, input.old_string.is_empty()) {
        (None, false) => return Err(missing(found)),
        (Some(bytes), true) if !bytes.is_empty() => {
            return Err(format!(
                "Cannot create {name}: the file exists already. To change it, give the text to replace in old_string."
            ));
        }
        (_, true) => {
            let bytes = input.new_string.as_bytes().to_vec();
            let first = 0..bytes.len();
            return Ok(Edited { bytes, first, count: 0, form: Form::Exact });
        }
        (Some(bytes), false) => bytes,
    };
    if looks_binary(bytes) {
        return Err(format!("Cannot edit {name}: it is not a text file."));
    }
    let Some((form, places)) = matching::find(bytes, input.old_string.as_bytes()) else {
        return Err(not_found(bytes, &input.old_string));
    };
    if places.len() > 1 && !input.replace_all {
        return Err(ambiguous(bytes, &places, form, &input.old_string));
    }
    Ok(replace_at(bytes, &places, form, input))
}

fn replace_at(bytes: &[u8], places: &[Range<usize>], form: Form, input: &Input) -> Edited {
    let new = match form {
        Form::Escapes | Form::All if input.old_string.contains("\\u") => matching::decoded(&input.new_string),
        _ => input.new_string.clone(),
    };
    let mut edited = Vec::with_capacity(bytes.len() + new.len());
    let mut first = 0..0;
    let mut at = 0;
    let whole_is_crlf = uses_crlf(bytes);
    for place in places {
        edited.extend_from_slice(&bytes[at..place.start]);
        let model = if whole_is_crlf { bytes } else { &bytes[place.clone()] };
        let new = with_line_ends_of(model, &new);
        if at == 0 {
            first = edited.len()..edited.len() + new.len();
        }
        edited.extend_from_slice(&new);
        at = place.end;
    }
    edited.extend_from_slice(&bytes[at..]);
    Edited { bytes: edited, first, count: places.len(), form }
}

/// NUL bytes near the beginning, as git decides it.
fn looks_binary(bytes: &[u8]) -> bool {
    memchr::memchr(0, &bytes[..bytes.len().min(8000)]).is_some()
}

fn missing(found: &Found) -> String {
    let name = found.real.display();
    format!("Error: ENOENT: no such file or directory, open '{name}'{}", super::read::hint(&found.real))
}

fn not_found(bytes: &[u8], wanted: &str) -> String {
    let tried: Vec<&str> = matching::forms_for(bytes).iter().map(|form| form.words()).collect();
    let mut text = format!(
        "String to replace not found in file (0 matches). Tried: {}.\nString: {}",
        tried.join("; "),
        text::first_chars(wanted, 500)
    );
    match nearest::describe(&String::from_utf8_lossy(bytes), wanted) {
        Some(nearest) => {
            text.push('\n');
            text.push_str(&nearest);
            if has_line_numbers(wanted) {
                text.push_str("\nold_string seems to hold the line numbers that Read shows; leave them out.");
            }
        }
        None => text.push_str("\nNothing in the file is near it; read the file again."),
    }
    text
}

fn has_line_numbers(wanted: &str) -> bool {
    wanted.lines().any(|line| {
        let digits = line.trim_start().split_once('→').map(|(number, _)| number);
        digits.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

fn ambiguous(bytes: &[u8], places: &[Range<usize>], form: Form, wanted: &str) -> String {
    let (mut lines, mut line, mut counted) = (Vec::new(), 1, 0);
    for place in places {
        line += memchr::memchr_iter(b'\n', &bytes[counted..place.start]).count();
        counted = place.start;
        // Several on one line are told once.
        if lines.last() != Some(&line) {
            lines.push(line);
        }
    }
    let is_one = lines.len() == 1;
    let more = if lines.len() > PLACES_NAMED_MAX { ", …" } else { "" };
    let named: Vec<String> = lines.iter().take(PLACES_NAMED_MAX).map(usize::to_string).collect();
    let at = if is_one { "all on line" } else { "at lines" };
    let how = if form == Form::Exact { String::new() } else { format!(" ({})", form.words()) };
    format!(
        "Found {} matches of the string to replace{how}, {at} {}{more}, but replace_all is false. \
         To replace one of them, give more of the lines around it; to replace all, set replace_all.\nString: {}",
        places.len(),
        named.join(", "),
        text::first_chars(wanted, 500)
    )
}

/// The number of the line that holds the byte at `at`, from 1.
fn line_of(bytes: &[u8], at: usize) -> usize {
    memchr::memchr_iter(b'\n', &bytes[..at]).count() + 1
}

fn snippet(edited: &Edited) -> String {
    let text = String::from_utf8_lossy(&edited.bytes);
    let from = line_of(&edited.bytes, edited.first.start).saturating_sub(AROUND).max(1);
    let to = line_of(&edited.bytes, edited.first.end) + AROUND;
    let count = (to + 1 - from).min(SNIPPET_LINES_MAX);
    let lines = text.lines().skip(from - 1).take(count);
    let shown =
        lines.map(|line| text::first_chars(line.trim_start_matches('\u{feff}'), SNIPPET_LINE_CHARS_MAX));
    let mut numbered = text::numbered(shown, from);
    if to + 1 - from > SNIPPET_LINES_MAX {
        numbered.push_str("\n     … (more lines were changed)");
    }
    numbered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(file: &[u8], old: &str, new: &str, all: bool) -> Result<Vec<u8>, String> {
        let found = Found { real: "/w/f".into(), bytes: Some(file.to_vec()), mode: Some(0o644) };
        let input = Input {
            file_path: "/w/f".to_owned(),
            old_string: old.to_owned(),
            new_string: new.to_owned(),
            replace_all: all,
        };
        edit(&found, &input).map(|edited| edited.bytes)
    }

    #[test]
    fn bytes_outside_the_edit_stay_whatever_they_are() {
        let file = b"caf\xe9\nalpha\n\x99 \xd6\xd0\xce\xc4\n";
        let want = b"caf\xe9\nbeta\n\x99 \xd6\xd0\xce\xc4\n";
        assert_eq!(check(file, "alpha", "beta", false).unwrap(), want);
    }

    #[test]
    fn line_ends_of_the_file_are_kept() {
        assert_eq!(check(b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", false).unwrap(), b"x\r\ny\r\nz\r\nc\r\n");
        assert_eq!(check(b"a\r\nb\r\n", "b", "x\ny", false).unwrap(), b"a\r\nx\r\ny\r\n");
        assert_eq!(check(b"a\nb\r\n", "a", "x\ny", false).unwrap(), b"x\ny\nb\r\n");
        assert_eq!(check(b"\xef\xbb\xbfa\nb\n", "a", "x", false).unwrap(), b"\xef\xbb\xbfx\nb\n");
    }

    #[test]
    fn what_fits_only_decoded_is_written_decoded() {
        let file = "é = 1".as_bytes();
        assert_eq!(check(file, "\\u00e9 = 1", "\\u00e9 = 2", false).unwrap(), "é = 2".as_bytes());
    }

    #[test]
    fn all_occurrences_are_replaced_when_asked() {
        assert_eq!(check(b"a b a", "a", "aa", true).unwrap(), b"aa b aa");
    }

    #[test]
    fn errors_say_what_was_tried_and_what_is_there() {
        assert_eq!(
            check(b"let a = 1;\nlet b = 2;\n", "let a = 11;", "x", false).unwrap_err(),
            "String to replace not found in file (0 matches). Tried: exact text; ignoring line ends and trailing \
             spaces; with straight for typographic quotes; with \\uXXXX escapes decoded; all of these at once.\n\
             String: let a = 11;\nNearest match, line 1:\n     1→let a = 1;"
        );
        assert_eq!(
            check(b"a\nb\na\n", "a", "x", false).unwrap_err(),
            "Found 2 matches of the string to replace, at lines 1, 3, but replace_all is false. To replace one of \
             them, give more of the lines around it; to replace all, set replace_all.\nString: a"
        );
        assert!(
            check(b"b\na a\n", "a", "x", false)
                .unwrap_err()
                .starts_with("Found 2 matches of the string to replace, all on line 2, but")
        );
        assert_eq!(
            check(b"a", "a", "a", false).unwrap_err(),
            "No changes to make: old_string and new_string are exactly the same."
        );
        assert!(
            check(b"let a = 1;\n", "     1→let a = 1;", "x", false)
                .unwrap_err()
                .ends_with("old_string seems to hold the line numbers that Read shows; leave them out.")
        );
        assert!(check(b"a\0b", "a", "x", false).unwrap_err().ends_with("it is not a text file."));
        assert!(
            check(b"qqq", "let it be so", "x", false).unwrap_err().contains("Nothing in the file is near")
        );
    }

    #[test]
    fn a_very_large_file_is_only_looked_through_for_the_exact_text() {
        let mut file = vec![b'\n'; 9 << 20];
        file.extend_from_slice("a “b” c".as_bytes());
        let error = check(&file, "a \"b\" c", "x", false).unwrap_err();
        assert!(error.contains("Tried: exact text.\n"), "{error}");
        assert!(check(&file, "a “b” c", "x", false).unwrap().ends_with(b"\nx"));
    }

    #[test]
    fn a_new_file_is_made_by_an_empty_old_string() {
        assert_eq!(check(b"", "", "new\n", false).unwrap(), b"new\n");
        assert!(check(b"x", "", "new", false).unwrap_err().contains("exists already"));
    }

    #[test]
    fn a_snippet_shows_the_lines_around_the_change() {
        let bytes = (1..=20).map(|n| format!("line {n}\n")).collect::<String>().into_bytes();
        let at = memchr::memmem::find(&bytes, b"line 10").unwrap();
        let edited = Edited { bytes, first: at..at + 7, count: 1, form: Form::Exact };
        let shown = snippet(&edited);
        assert!(shown.starts_with("     6→line 6\n"), "{shown}");
        assert!(shown.ends_with("    14→line 14"), "{shown}");
    }
}
