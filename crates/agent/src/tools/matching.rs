//! Finds the text that an edit means, in the bytes that are there.
//!
//! Exactly first. Then in forms in which models and files differ without meaning to: line ends and spaces
//! before them, typographic quotes, `\uXXXX` escapes. Works on bytes through maps of places, so that what is
//! not touched stays as it is, whatever its encoding. Indentation is never guessed: in some languages it
//! means something.

use std::ops::Range;

/// A way of looking at text under which two spellings are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Exact,
    LineEnds,
    Quotes,
    Escapes,
    All,
}

impl Form {
    /// In the order they are tried.
    pub(super) const ALL: [Form; 5] = [Form::Exact, Form::LineEnds, Form::Quotes, Form::Escapes, Form::All];

    pub(super) fn words(self) -> &'static str {
        match self {
            Form::Exact => "exact text",
            Form::LineEnds => "ignoring line ends and trailing spaces",
            Form::Quotes => "with straight for typographic quotes",
            Form::Escapes => "with \\uXXXX escapes decoded",
            Form::All => "all of these at once",
        }
    }

    fn ignores_line_ends(self) -> bool {
        matches!(self, Form::LineEnds | Form::All)
    }

    fn ignores_quotes(self) -> bool {
        matches!(self, Form::Quotes | Form::All)
    }

    fn decodes(self) -> bool {
        matches!(self, Form::Escapes | Form::All)
    }
}

/// Only the exact text is looked for in a larger file: the maps of places take seventeen times its size.
const FORGIVING_BYTES_MAX: usize = 8 << 20;

/// The forms that are tried on a file.
pub(super) fn forms_for(bytes: &[u8]) -> &'static [Form] {
    if bytes.len() > FORGIVING_BYTES_MAX { &Form::ALL[..1] } else { &Form::ALL }
}

/// Where `wanted` stands in `bytes`, in the first form in which it stands anywhere; never overlapping.
pub(super) fn find(bytes: &[u8], wanted: &[u8]) -> Option<(Form, Vec<Range<usize>>)> {
    forms_for(bytes).iter().find_map(|&form| {
        let places = find_in(form, bytes, wanted);
        (!places.is_empty()).then_some((form, places))
    })
}

fn find_in(form: Form, bytes: &[u8], wanted: &[u8]) -> Vec<Range<usize>> {
    if form == Form::Exact {
        return memchr::memmem::find_iter(bytes, wanted).map(|at| at..at + wanted.len()).collect();
    }
    let needle = Normal::of(form, wanted);
    if needle.bytes.is_empty() {
        return Vec::new();
    }
    let hay = Normal::of(form, bytes);
    memchr::memmem::find_iter(&hay.bytes, &needle.bytes)
        .map(|at| hay.origins[at].start..hay.origins[at + needle.bytes.len() - 1].end)
        .collect()
}

/// A text in one form, and for each of its bytes the place it came from.
#[derive(Default)]
struct Normal {
    bytes: Vec<u8>,
    origins: Vec<Range<usize>>,
}

impl Normal {
    fn of(form: Form, text: &[u8]) -> Self {
        let mut normal = Self::default();
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            let (length, plain) = Self::next(form, rest);
            let origin = at..at + length;
            match plain {
                Plain::Nothing => {}
                Plain::Same => normal.push(&rest[..length], &origin),
                Plain::As(other) => normal.push(other.as_bytes(), &origin),
                Plain::Char(letter) => {
                    normal.push(letter.encode_utf8(&mut [0; 4]).as_bytes(), &origin);
                }
            }
            at += length;
        }
        normal
    }

    fn push(&mut self, bytes: &[u8], origin: &Range<usize>) {
        for byte in bytes {
            self.bytes.push(*byte);
            self.origins.push(origin.clone());
        }
    }

    /// How many bytes belong together at the beginning of `rest`, and how they read in this form.
    fn next(form: Form, rest: &[u8]) -> (usize, Plain) {
        if form.ignores_line_ends() && matches!(rest[0], b' ' | b'\t' | b'\r') {
            let spaces = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r')).count();
            if rest.get(spaces).is_none_or(|byte| *byte == b'\n') {
                return (spaces, Plain::Nothing);
            }
            // All at once, or a long run of spaces would be looked through once for each.
            return (spaces, Plain::Same);
        }
        if form.ignores_quotes() {
            for (fancy, plain) in QUOTES {
                if rest.starts_with(fancy.as_bytes()) {
                    return (fancy.len(), Plain::As(plain));
                }
            }
        }
        if form.decodes()
            && let Some((length, letter)) = decode_escape(rest)
        {
            return (length, Plain::Char(letter));
        }
        (1, Plain::Same)
    }
}

enum Plain {
    Nothing,
    Same,
    As(&'static str),
    Char(char),
}

const QUOTES: [(&str, &str); 8] = [
    ("\u{201c}", "\""),
    ("\u{201d}", "\""),
    ("\u{201e}", "\""),
    ("\u{201f}", "\""),
    ("\u{2018}", "'"),
    ("\u{2019}", "'"),
    ("\u{201a}", "'"),
    ("\u{201b}", "'"),
];

/// Reads `\uXXXX`, or a surrogate pair of them, at the beginning of `rest`.
fn decode_escape(rest: &[u8]) -> Option<(usize, char)> {
    let first = escape_unit(rest)?;
    if let Some(letter) = char::from_u32(first) {
        return Some((6, letter));
    }
    let second = escape_unit(rest.get(6..)?)?;
    let units = [u16::try_from(first).ok()?, u16::try_from(second).ok()?];
    let letter = char::decode_utf16(units).next()?.ok()?;
    Some((12, letter))
}

fn escape_unit(rest: &[u8]) -> Option<u32> {
    let digits = rest.strip_prefix(b"\\u")?.get(..4)?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// `new` with its `\uXXXX` escapes decoded, for an edit whose `old` only fits decoded.
pub(super) fn decoded(text: &str) -> String {
    String::from_utf8(Normal::of(Form::Escapes, text.as_bytes()).bytes)
        .expect("whole characters in, whole characters out")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(file: &[u8], wanted: &str, want: Option<(Form, &[&[u8]])>) {
        let got = find(file, wanted.as_bytes());
        let got = got.map(|(form, places)| {
            (form, places.into_iter().map(|place| file[place].to_vec()).collect::<Vec<_>>())
        });
        let want = want.map(|(form, found)| (form, found.iter().map(|found| found.to_vec()).collect()));
        assert_eq!(got, want, "{wanted:?} in {:?}", String::from_utf8_lossy(file));
    }

    #[test]
    fn the_first_form_that_fits_is_taken() {
        check(b"let a = 1;", "a = 1", Some((Form::Exact, &[b"a = 1"])));
        check(b"a b a", "a", Some((Form::Exact, &[b"a", b"a"])));
        check(b"one\r\ntwo\r\n", "one\ntwo", Some((Form::LineEnds, &[b"one\r\ntwo"])));
        check(b"one  \ntwo\t\nx", "one\ntwo\n", Some((Form::LineEnds, &[b"one  \ntwo\t\n"])));
        check("say “hi”".as_bytes(), "say \"hi\"", Some((Form::Quotes, &["say “hi”".as_bytes()])));
        check(b"it's", "it’s", Some((Form::Quotes, &[b"it's"])));
        check("grün".as_bytes(), "gr\\u00fcn", Some((Form::Escapes, &["grün".as_bytes()])));
        check(b"\"gr\\u00fcn\"", "grün", Some((Form::Escapes, &[b"gr\\u00fcn"])));
        check("😀!".as_bytes(), "\\ud83d\\ude00!", Some((Form::Escapes, &["😀!".as_bytes()])));
        check(
            "“grün”  \r\nx".as_bytes(),
            "\"gr\\u00fcn\"\nx",
            Some((Form::All, &["“grün”  \r\nx".as_bytes()])),
        );
        check(b"  a", "\ta", None);
        check(b"abc", "abd", None);
    }

    #[test]
    fn bytes_of_any_encoding_around_a_match_do_not_matter() {
        check(b"\xe9 one \xd6\xd0", "one", Some((Form::Exact, &[b"one"])));
        check(b"\xe9\none \n\xd6\xd0", "one\n", Some((Form::LineEnds, &[b"one \n"])));
    }

    #[test]
    fn broken_escapes_are_text() {
        for text in ["\\u12", "\\uzzzz", "\\ud83d", "\\ud83d\\ud83d", "\\u+123"] {
            assert_eq!(decoded(text), text);
        }
        assert_eq!(decoded("a\\u00e9\\n"), "aé\\n");
    }

    #[test]
    fn a_long_run_of_spaces_costs_its_length() {
        let mut file = vec![b' '; 1 << 20];
        file.push(b'x');
        assert_eq!(find(&file, b"y"), None);
    }
}
