//! A JSON object as ordered members whose values stay the text they came in.
//!
//! Promises: what is not set is printed as it was read; order is kept. Texts come out on one line and without
//! lone surrogates (`tidy`).

use std::borrow::Cow;
use std::fmt;

use memchr::memchr;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use yaoki_core::json::RawJson;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Members(Vec<(String, String)>);

impl Members {
    pub(super) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(&tidy(text))
    }

    /// Returns the JSON text of a member.
    pub(super) fn json(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
    }

    /// Returns the JSON text of a member that is not `null`.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.json(key).filter(|value| *value != "null")
    }

    /// Returns a member that is a string.
    pub(super) fn text(&self, key: &str) -> Option<String> {
        self.get(key).and_then(|json| serde_json::from_str(json).ok())
    }

    pub(super) fn set(&mut self, key: &str, json: String) {
        match self.0.iter_mut().find(|(k, _)| k == key) {
            Some((_, value)) => *value = json,
            None => self.0.push((key.to_owned(), json)),
        }
    }

    pub(super) fn set_text(&mut self, key: &str, text: &str) {
        self.set(key, quote(text));
    }

    /// Whether there is nothing here but these keys.
    pub(super) fn has_only(&self, keys: &[&str]) -> bool {
        self.0.iter().all(|(key, value)| keys.contains(&key.as_str()) || value == "null")
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    pub(super) fn print(&self) -> String {
        let mut out = String::from("{");
        for (index, (key, value)) in self.0.iter().enumerate() {
            if 0 < index {
                out.push(',');
            }
            out.push_str(&quote(key));
            out.push(':');
            out.push_str(value);
        }
        out.push('}');
        out
    }

    pub(super) fn raw(&self) -> RawJson {
        RawJson::parse(&self.print()).expect("members are JSON texts and keys are quoted")
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Take;
        impl<'de> Visitor<'de> for Take {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Members::default();
                while let Some((key, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    // Of two members with one name the last counts, as for most readers.
                    members.set(&key, value.get().to_owned());
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Take)
    }
}

/// Returns a text as a JSON string.
pub(super) fn quote(text: &str) -> String {
    serde_json::to_string(text).expect("a string always serializes")
}

/// Returns a JSON text that is fit to keep and to send: one line, for the log holds one record a line, and no
/// half of a surrogate pair, which strict readers and the API refuse; U+FFFD stands in for it.
pub(super) fn tidy(json: &str) -> Cow<'_, str> {
    let json = match json.contains(['\n', '\r']) {
        // Outside of strings they are white space, and within strings they cannot stand.
        true => Cow::Owned(json.replace(['\n', '\r'], " ")),
        false => Cow::Borrowed(json),
    };
    match mend_surrogates(&json) {
        Some(mended) => Cow::Owned(mended),
        None => json,
    }
}

/// Returns the text with lone `\ud800`–`\udfff` escapes replaced; none where there are none.
fn mend_surrogates(json: &str) -> Option<String> {
    let bytes = json.as_bytes();
    let mut out: Option<String> = None;
    // Everything before it is in `out`, once there is an `out`.
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr(b'\\', rest)) {
        let escape = at + found;
        at = match unit(bytes, escape) {
            Some(0xD800..=0xDBFF) if matches!(unit(bytes, escape + 6), Some(0xDC00..=0xDFFF)) => escape + 12,
            Some(0xD800..=0xDFFF) => {
                let text = out.get_or_insert_default();
                text.push_str(&json[copied..escape]);
                text.push_str("\\ufffd");
                copied = escape + 6;
                copied
            }
            // Any other escape: the byte after the backslash is part of it.
            _ => escape + 2,
        };
    }
    let mut text = out?;
    text.push_str(&json[copied..]);
    Some(text)
}

/// Returns the code unit of a `\uXXXX` that begins at `at`.
fn unit(bytes: &[u8], at: usize) -> Option<u16> {
    let escape = bytes.get(at..at + 6)?;
    if !escape.starts_with(b"\\u") || !escape[2..].iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let digits = std::str::from_utf8(&escape[2..]).ok()?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn members_that_are_not_set_are_printed_as_they_were_read() {
        let mut members = Members::parse(r#"{"b": 1.50, "a":"\u00e9","c": [1, 2]}"#).unwrap();
        members.set("b", "2".into());
        members.set_text("d", "x\"");
        assert_eq!(members.print(), r#"{"b":2,"a":"\u00e9","c":[1, 2],"d":"x\""}"#);
    }

    #[test]
    fn lone_surrogates_are_replaced_and_pairs_are_not() {
        for (text, want) in [
            (r#""a\ud83d\ude00b""#, r#""a\ud83d\ude00b""#),
            (r#""a\ud83db""#, r#""a\ufffdb""#),
            (r#""\ude00\ud83d""#, r#""\ufffd\ufffd""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\\\ud83d\n""#, r#""\\\ufffd\n""#),
            (r#""\uD83D""#, r#""\ufffd""#),
            ("{\n\"a\":\r\n1}", "{ \"a\":  1}"),
        ] {
            assert_eq!(tidy(text), want, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_tidy_text_can_be_read_whatever_escapes_it_had(
            units in proptest::collection::vec(prop_oneof![any::<u16>(), 0xD800u16..0xE000], 0..20)
        ) {
            let text: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            let json = format!("\"{text}\"");
            let read: String = serde_json::from_str(&tidy(&json)).unwrap();
            prop_assert_eq!(read, String::from_utf16_lossy(&units));
        }

        #[test]
        fn noise_never_panics(noise in ".{0,80}") {
            let _ = tidy(&noise);
        }
    }
}
