//! Names of things: sessions, messages, calls, operations.
//!
//! Ids of messages and blocks are derived from where they stand in the log, so a replay gives the
//! same ids and nothing here rolls dice. A session's own id comes from outside.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Wraps a text that is already such an id.
            pub fn new(text: impl AsRef<str>) -> Self {
                Self(Arc::from(text.as_ref()))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

text_id! {
    /// One session; a UUID v7 made when the session is.
    SessionId
}
text_id! {
    /// One message of the conversation; a UUID v8 derived from its record.
    MessageId
}
text_id! {
    /// One tool call of the model; a UUID v8 derived from its message's record and its place.
    /// The provider's own id is a field of the call, because it changes when a model is sampled again.
    CallId
}
text_id! {
    /// Whose record this is: `main`, or a sub-agent's name.
    AgentName
}

impl AgentName {
    pub fn main() -> Self {
        Self::new("main")
    }
}

/// One operation: a tool call from its intent to its outcome. Numbered by the seq of its intent
/// record and written `op17`, so that a person can type it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OpId(pub u64);

impl fmt::Display for OpId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "op{}", self.0)
    }
}

impl fmt::Debug for OpId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "op{}", self.0)
    }
}

impl std::str::FromStr for OpId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.strip_prefix("op")
            .and_then(|digits| digits.parse().ok())
            .map(OpId)
            .ok_or_else(|| format!("{text:?} is not an operation id such as op17"))
    }
}

impl Serialize for OpId {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for OpId {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Derives the id of the thing at `index` in record `seq`: a UUID v8 from BLAKE3(session ‖ seq ‖ index).
pub fn derive_uuid(session: &SessionId, seq: u64, index: u32) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(session.as_str().as_bytes());
    hasher.update(&[0]);
    hasher.update(&seq.to_le_bytes());
    hasher.update(&index.to_le_bytes());
    let mut bytes = [0u8; 16];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    bytes[6] = (bytes[6] & 0x0f) | 0x80;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let mut text = String::with_capacity(36);
    for (i, byte) in bytes.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        for nibble in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(nibble), 16).expect("a nibble is below sixteen"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_ids_are_uuids_of_version_8_and_depend_on_every_part() {
        let session = SessionId::new("s");
        let id = derive_uuid(&session, 7, 0);
        assert_eq!(id.len(), 36);
        assert_eq!(&id[14..15], "8");
        assert!(matches!(&id[19..20], "8" | "9" | "a" | "b"));
        assert_eq!(id, derive_uuid(&session, 7, 0));
        for other in [
            derive_uuid(&session, 8, 0),
            derive_uuid(&session, 7, 1),
            derive_uuid(&SessionId::new("t"), 7, 0),
        ] {
            assert_ne!(id, other);
        }
    }

    #[test]
    fn operation_ids_read_back() {
        assert_eq!("op17".parse::<OpId>(), Ok(OpId(17)));
        assert!("17".parse::<OpId>().is_err());
    }
}
