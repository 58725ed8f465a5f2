//! JSON kept as the text it came in.
//!
//! A provider's own blocks go back to it untouched; parsing and printing them again would be a change.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A valid JSON text in one line, cheap to clone, compared byte for byte.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RawJson(Arc<str>);

impl RawJson {
    /// Takes a text that must be JSON. Errors: the parser's, with the place.
    ///
    /// Line breaks between tokens become spaces: a record is one line, and what is sent must be equal before and
    /// after it was read back.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let raw: &RawValue = serde_json::from_str(text)?;
        Ok(Self::one_line(raw))
    }

    fn one_line(raw: &RawValue) -> Self {
        let text = raw.get();
        // Inside strings a line break is always escaped, so any that is left stands between tokens.
        if text.contains(['\n', '\r']) {
            return Self(Arc::from(text.replace(['\n', '\r'], " ")));
        }
        Self(Arc::from(text))
    }

    /// Prints a value whose serialization cannot fail (strings, maps with string keys).
    pub fn of(value: &impl Serialize) -> Self {
        Self(Arc::from(serde_json::to_string(value).expect("plain data always serializes")))
    }

    pub fn empty_object() -> Self {
        Self(Arc::from("{}"))
    }

    pub fn get(&self) -> &str {
        &self.0
    }

    pub fn value(&self) -> serde_json::Value {
        serde_json::from_str(&self.0).expect("only valid JSON gets in")
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for RawJson {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(s)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(d)?;
        Ok(Self::one_line(&raw))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_keeps_its_bytes_but_for_line_breaks_between_tokens() {
        for (text, want) in [
            (r#"{"a": 1.0e5,"b":"\u00e9"}"#, r#"{"a": 1.0e5,"b":"\u00e9"}"#),
            ("{\n  \"a\": \"x\\ny\"\r\n}", "{   \"a\": \"x\\ny\"  }"),
            ("  [1 , 2]\n", "[1 , 2]"),
        ] {
            assert_eq!(RawJson::parse(text).unwrap().get(), want);
            assert_eq!(serde_json::from_str::<RawJson>(text).unwrap().get(), want);
        }
        assert!(RawJson::parse("{\"a\":\n").is_err());
    }
}
