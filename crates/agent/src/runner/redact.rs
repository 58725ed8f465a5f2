//! Takes registered secrets out of a byte stream: `[secret:NAME]` stands in their place.
//!
//! Works over any split of the stream: the end of a piece that could begin a secret is held back until the
//! next piece or the end decides. Only exact occurrences are found, not encoded ones.

use memchr::memmem::Finder;

/// Shorter values would hit ordinary text.
pub const SECRET_BYTES_MIN: usize = 12;

#[derive(Debug)]
struct Secret {
    value: Finder<'static>,
    label: Vec<u8>,
}

/// One stream's redaction.
#[derive(Debug, Default)]
pub struct Redactor {
    /// Longest first, so that of two that begin at one place the longer wins.
    secrets: Vec<Secret>,
    held: Vec<u8>,
}

impl Redactor {
    /// Registers secrets by name and value. Those below [`SECRET_BYTES_MIN`] are left out.
    pub fn new<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut secrets: Vec<Secret> = secrets
            .into_iter()
            .filter(|(_, value)| value.len() >= SECRET_BYTES_MIN)
            .map(|(name, value)| Secret {
                value: Finder::new(value.as_bytes()).into_owned(),
                label: format!("[secret:{name}]").into_bytes(),
            })
            .collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.value.needle().len()));
        Self { secrets, held: Vec::new() }
    }

    /// Takes the next piece and gives what is certain so far.
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        if self.secrets.is_empty() {
            return piece.to_vec();
        }
        let mut text = std::mem::take(&mut self.held);
        text.extend_from_slice(piece);
        let open = self.first_open_suffix(&text);
        let (mut clean, rest_at) = self.replace_until(&text, open);
        clean.extend_from_slice(text.get(rest_at..open).unwrap_or_default());
        self.held = text[open.max(rest_at)..].to_vec();
        clean
    }

    /// The stream ended: gives what was held back.
    pub fn finish(&mut self) -> Vec<u8> {
        let text = std::mem::take(&mut self.held);
        let (mut clean, rest_at) = self.replace_until(&text, text.len());
        clean.extend_from_slice(&text[rest_at..]);
        clean
    }

    /// Redacts a text that is complete.
    pub fn whole(&self, text: &str) -> String {
        let (mut clean, rest_at) = self.replace_until(text.as_bytes(), text.len());
        clean.extend_from_slice(&text.as_bytes()[rest_at..]);
        String::from_utf8_lossy(&clean).into_owned()
    }

    /// The first of the labels that stands in `text`, if any does.
    pub fn label_in(&self, text: &str) -> Option<&str> {
        let labels = self.secrets.iter().filter_map(|secret| std::str::from_utf8(&secret.label).ok());
        labels.into_iter().find(|label| text.contains(label))
    }

    /// Replaces every secret that begins before `end`. Returns the text up to the end of the last one, and
    /// where that is.
    fn replace_until(&self, text: &[u8], end: usize) -> (Vec<u8>, usize) {
        let mut clean = Vec::with_capacity(text.len());
        let mut at = 0;
        while let Some((found, secret)) = self.earliest(&text[at..]) {
            if at + found >= end {
                break;
            }
            clean.extend_from_slice(&text[at..at + found]);
            clean.extend_from_slice(&secret.label);
            at += found + secret.value.needle().len();
        }
        (clean, at)
    }

    fn earliest(&self, text: &[u8]) -> Option<(usize, &Secret)> {
        let mut best: Option<(usize, &Secret)> = None;
        for secret in &self.secrets {
            if let Some(found) = secret.value.find(text)
                && best.is_none_or(|(at, _)| found < at)
            {
                best = Some((found, secret));
            }
        }
        best
    }

    /// Where the first suffix begins that may still grow into a secret; the length if there is none.
    fn first_open_suffix(&self, text: &[u8]) -> usize {
        let longest = self.secrets.first().map_or(0, |secret| secret.value.needle().len());
        let from = text.len().saturating_sub(longest.saturating_sub(1));
        (from..text.len())
            .find(|&at| {
                let suffix = &text[at..];
                self.secrets.iter().any(|secret| {
                    secret.value.needle().len() > suffix.len() && secret.value.needle().starts_with(suffix)
                })
            })
            .unwrap_or(text.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(secrets: &[(&str, &str)], text: &str, want: &str) {
        for size in 1..=text.len() {
            let mut redactor = Redactor::new(secrets.iter().copied());
            let mut got = Vec::new();
            for piece in text.as_bytes().chunks(size) {
                got.extend(redactor.push(piece));
            }
            got.extend(redactor.finish());
            assert_eq!(String::from_utf8_lossy(&got), want, "pieces of {size}");
        }
        assert_eq!(Redactor::new(secrets.iter().copied()).whole(text), want);
    }

    #[test]
    fn a_secret_is_found_whatever_the_split() {
        let key = [("KEY", "sk-ant-0123456789")];
        check(&key, "a sk-ant-0123456789 b", "a [secret:KEY] b");
        check(&key, "sk-ant-0123456789sk-ant-0123456789", "[secret:KEY][secret:KEY]");
        check(&key, "sk-ant-sk-ant-012345678", "sk-ant-sk-ant-012345678");
        check(&key, "sk-ant-sk-ant-0123456789", "sk-ant-[secret:KEY]");
    }

    #[test]
    fn of_two_that_begin_alike_the_longer_wins() {
        let both = [("A", "aaaabbbbcccc"), ("B", "aaaabbbbccccdddd")];
        check(&both, "x aaaabbbbccccdddd y", "x [secret:B] y");
        check(&both, "x aaaabbbbccccdd", "x [secret:A]dd");
    }

    #[test]
    fn short_values_are_not_secrets() {
        check(&[("A", "password")], "the password is not one", "the password is not one");
    }

    #[test]
    fn nothing_is_held_back_that_cannot_begin_a_secret() {
        let mut redactor = Redactor::new([("KEY", "sk-ant-0123456789")]);
        assert_eq!(redactor.push(b"done\n"), b"done\n");
        assert_eq!(redactor.push(b"s"), b"");
        assert_eq!(redactor.push(b"o\n"), b"so\n");
    }
}
