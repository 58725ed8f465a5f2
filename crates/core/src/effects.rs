//! Effects: classes, and the key that makes two calls the same operation.
//!
//! The key is stable over attempts, fallbacks, restarts and machines, because it is derived from what was
//! asked and where in the conversation, never from ids that change when a model is sampled again.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{AgentName, SessionId};

/// What running a call twice, or not knowing whether it ran, would mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectClass {
    /// No write outside caches; may run again at any time.
    Pure,
    /// The same end state for the same key.
    Idempotent,
    /// All touched paths are known and their old bytes are kept.
    Reversible,
    /// Leaves the machine, or destroys what cannot be brought back.
    Irreversible,
    /// Not known: treated as irreversible.
    Unknown,
}

impl EffectClass {
    pub fn is_pure(self) -> bool {
        self == EffectClass::Pure
    }

    pub fn name(self) -> &'static str {
        match self {
            EffectClass::Pure => "pure",
            EffectClass::Idempotent => "idempotent",
            EffectClass::Reversible => "reversible",
            EffectClass::Irreversible => "irreversible",
            EffectClass::Unknown => "unknown",
        }
    }
}

/// Prints JSON compactly with sorted keys, strings byte-exact: equal inputs give equal texts.
pub fn canonical(value: &Value) -> String {
    fn write(value: &Value, out: &mut String) {
        match value {
            Value::Object(map) => {
                let mut keys: Vec<&String> = map.keys().collect();
                keys.sort_unstable();
                out.push('{');
                for (i, key) in keys.into_iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    out.push_str(&Value::String(key.clone()).to_string());
                    out.push(':');
                    write(&map[key], out);
                }
                out.push('}');
            }
            Value::Array(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    write(item, out);
                }
                out.push(']');
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                out.push_str(&value.to_string())
            }
        }
    }
    let mut out = String::new();
    write(value, &mut out);
    out
}

/// Where a call stands: nothing in here changes when the same message is sampled again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogicalPlace<'a> {
    /// The session at the root of all forks.
    pub root: &'a SessionId,
    pub agent: &'a AgentName,
    /// The seq of the input that opened the turn.
    pub input_seq: u64,
    /// Rises when a message is committed and its results are recorded.
    pub round: u64,
    /// Earlier calls in the same message with equal tool and canonical input.
    pub ordinal: u32,
}

/// Derives the operation's key, 64 hex digits.
pub fn op_key(session_key: &str, place: &LogicalPlace<'_>, tool: &str, canonical: &str) -> String {
    let lturn = format!("{}/{}/{}", place.agent, place.input_seq, place.round);
    let mut hasher = blake3::Hasher::new_keyed(&key_bytes(session_key));
    hasher.update(b"yaoki/op/v1");
    for part in [place.root.as_str(), &lturn, tool, canonical] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.update(&place.ordinal.to_le_bytes());
    hasher.finalize().to_hex().to_string()
}

/// Derives the digest that finds equal calls in other turns, 64 hex digits.
pub fn op_digest(session_key: &str, root: &SessionId, tool: &str, canonical: &str) -> String {
    let mut hasher = blake3::Hasher::new_keyed(&key_bytes(session_key));
    hasher.update(b"yaoki/digest/v1");
    for part in [root.as_str(), tool, canonical] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

fn key_bytes(session_key: &str) -> [u8; 32] {
    *blake3::hash(session_key.as_bytes()).as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_text_does_not_depend_on_key_order() {
        let a: Value = serde_json::from_str(r#"{"b":[1,{"y":"\u00e9","x":null}],"a":"x\ny"}"#).unwrap();
        let b: Value = serde_json::from_str(r#"{"a":"x\ny","b":[1,{"x":null,"y":"é"}]}"#).unwrap();
        assert_eq!(canonical(&a), canonical(&b));
        assert_eq!(canonical(&a), r#"{"a":"x\ny","b":[1,{"x":null,"y":"é"}]}"#);
    }

    #[test]
    fn key_depends_on_place_tool_and_input_and_on_nothing_else() {
        let root = SessionId::new("root");
        let agent = AgentName::main();
        let place = |input_seq, round, ordinal| LogicalPlace {
            root: &root,
            agent: &agent,
            input_seq,
            round,
            ordinal,
        };
        let key = op_key("k", &place(4, 1, 0), "Bash", "{}");
        assert_eq!(key, op_key("k", &place(4, 1, 0), "Bash", "{}"));
        let others = [
            op_key("l", &place(4, 1, 0), "Bash", "{}"),
            op_key("k", &place(5, 1, 0), "Bash", "{}"),
            op_key("k", &place(4, 2, 0), "Bash", "{}"),
            op_key("k", &place(4, 1, 1), "Bash", "{}"),
            op_key("k", &place(4, 1, 0), "Edit", "{}"),
            op_key("k", &place(4, 1, 0), "Bash", "{ }"),
        ];
        for (i, other) in others.iter().enumerate() {
            assert_ne!(&key, other, "variant {i}");
        }
        assert_eq!(op_digest("k", &root, "Bash", "{}"), op_digest("k", &root, "Bash", "{}"));
    }
}
