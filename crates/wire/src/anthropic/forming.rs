//! One content block while its deltas come in.

use serde::Deserialize;
use serde_json::Value;
use yaoki_core::json::RawJson;
use yaoki_core::message::{Block, BlockBody, Call, no_call_id};
use yaoki_core::mutant;
use yaoki_core::step::Delta;

use super::members::{Members, quote, tidy};

#[derive(Debug)]
pub(super) struct Forming {
    kind: Kind,
    /// The block as it began, and what deltas set.
    members: Members,
    /// Grown apart from the members, so that a long text costs its length and not its square.
    grown: Vec<(String, String)>,
    /// The input as the model writes it.
    json: String,
    citations: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    Call { id: String, tool: String },
    Other { name: String },
}

#[derive(Deserialize)]
struct WireDelta {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    partial_json: Option<String>,
}

impl Forming {
    /// Begins a block with the object it is announced with.
    pub(super) fn begin(json: &str, hear: &mut (dyn FnMut(Delta) + Send)) -> Result<Self, String> {
        let members = Members::parse(json).map_err(|error| format!("a block is no object: {error}"))?;
        let kind = match members.text("type").ok_or("a block has no type")?.as_str() {
            "text" => Kind::Text,
            "thinking" => Kind::Thinking,
            "tool_use" => Kind::Call {
                id: members.text("id").ok_or("a tool_use block has no id")?,
                tool: members.text("name").ok_or("a tool_use block has no name")?,
            },
            other => Kind::Other { name: other.to_owned() },
        };
        if let Kind::Call { tool, .. } = &kind {
            hear(Delta::CallForming { tool: tool.clone() });
        }
        Ok(Self { kind, members, grown: Vec::new(), json: String::new(), citations: Vec::new() })
    }

    /// Adds a delta; returns whether it brought anything.
    pub(super) fn add(&mut self, json: &str, hear: &mut (dyn FnMut(Delta) + Send)) -> Result<bool, String> {
        let delta: WireDelta =
            serde_json::from_str(json).map_err(|error| format!("unreadable delta: {error}"))?;
        let piece = match (&self.kind, delta.kind.as_str()) {
            (Kind::Text | Kind::Other { .. }, "text_delta") => self.grow("text", delta.text)?,
            (Kind::Thinking | Kind::Other { .. }, "thinking_delta") => {
                self.grow("thinking", delta.thinking)?
            }
            (Kind::Thinking | Kind::Other { .. }, "signature_delta") => {
                let signature = delta.signature.ok_or("a signature_delta without a signature")?;
                self.members.set_text("signature", &signature);
                return Ok(true);
            }
            (Kind::Call { .. } | Kind::Other { .. }, "input_json_delta") => {
                let piece = delta.partial_json.ok_or("an input_json_delta without JSON")?;
                self.json.push_str(&piece);
                return Ok(!piece.is_empty());
            }
            (Kind::Text | Kind::Other { .. }, "citations_delta") => {
                let members = Members::parse(json).map_err(|error| error.to_string())?;
                let citation = members.get("citation").ok_or("a citations_delta without a citation")?;
                self.citations.push(citation.to_owned());
                return Ok(true);
            }
            (
                kind,
                name @ ("text_delta" | "thinking_delta" | "signature_delta" | "input_json_delta"
                | "citations_delta"),
            ) => {
                return Err(format!("a {name} in a block of kind {kind:?}"));
            }
            (_, _) => return self.add_unknown(json),
        };
        match self.kind {
            _ if piece.is_empty() => return Ok(false),
            Kind::Text => {
                if mutant!("wire-text-heard-twice") {
                    hear(Delta::Text(piece.clone()));
                }
                hear(Delta::Text(piece));
            }
            Kind::Thinking => hear(Delta::Thinking(piece)),
            Kind::Call { .. } | Kind::Other { .. } => {}
        }
        Ok(true)
    }

    /// Takes a block that came whole.
    pub(super) fn whole(json: &str, hear: &mut (dyn FnMut(Delta) + Send)) -> Result<Block, String> {
        let mut forming = Self::begin(json, hear)?;
        let text = |key: &str| forming.members.text(key).filter(|text| !text.is_empty());
        match &forming.kind {
            Kind::Text => text("text").map(Delta::Text).into_iter().for_each(hear),
            Kind::Thinking => text("thinking").map(Delta::Thinking).into_iter().for_each(hear),
            // As if deltas had written it: a `null` here is the model's, not a place held for what follows.
            Kind::Call { .. } => {
                forming.json = forming.members.json("input").unwrap_or_default().to_owned();
            }
            Kind::Other { .. } => {}
        }
        Ok(forming.end())
    }

    /// Ends the block. A call whose input is no JSON object is kept as a broken one.
    pub(super) fn end(mut self) -> Block {
        for (key, text) in std::mem::take(&mut self.grown) {
            self.members.set_text(&key, &text);
        }
        if !self.citations.is_empty() {
            let mut all = self.members.get("citations").map_or_else(Vec::new, list_items);
            all.append(&mut self.citations);
            self.members.set("citations", format!("[{}]", all.join(",")));
        }
        match std::mem::replace(&mut self.kind, Kind::Text) {
            Kind::Text => {
                let text = self.members.text("text").unwrap_or_default();
                let is_plain = self.members.has_only(&["type", "text"])
                    || (self.members.has_only(&["type", "text", "citations"])
                        && self.members.get("citations") == Some("[]"));
                Block { body: BlockBody::Text { text }, raw: (!is_plain).then(|| self.members.raw()) }
            }
            Kind::Thinking => {
                let text = self.members.text("thinking").unwrap_or_default();
                Block { body: BlockBody::Thinking { text }, raw: Some(self.members.raw()) }
            }
            Kind::Call { id, tool } => self.end_call(id, tool),
            Kind::Other { name } => {
                if !self.json.trim().is_empty() {
                    // A server's tool runs there, not here: what is not JSON can only be kept as a string.
                    let json = tidy(&self.json).into_owned();
                    let json = if RawJson::parse(&json).is_ok() { json } else { quote(&self.json) };
                    self.members.set("input", json);
                }
                Block { body: BlockBody::Other { name }, raw: Some(self.members.raw()) }
            }
        }
    }

    fn end_call(mut self, provider_id: String, tool: String) -> Block {
        // Deltas write the input anew; what the block began with counts only where there are none.
        let written = match self.json.trim().is_empty() {
            true => self.members.get("input").unwrap_or("{}").to_owned(),
            false => tidy(&self.json).into_owned(),
        };
        let (input, broken) = match read_input(&written) {
            Ok(input) => (input, None),
            Err(why) => (RawJson::empty_object(), Some(why)),
        };
        self.members.set("input", input.get().to_owned());
        let raw = (!self.members.has_only(&["type", "id", "name", "input"])).then(|| self.members.raw());
        Block { body: BlockBody::Call(Call { id: no_call_id(), provider_id, tool, input, broken }), raw }
    }

    fn grow(&mut self, key: &str, piece: Option<String>) -> Result<String, String> {
        let piece = piece.ok_or_else(|| format!("a {key}_delta without {key}"))?;
        self.grow_by(key, &piece);
        Ok(piece)
    }

    fn grow_by(&mut self, key: &str, piece: &str) {
        match self.grown.iter_mut().find(|(k, _)| k == key) {
            Some((_, text)) => text.push_str(piece),
            None => {
                let start = self.members.text(key).unwrap_or_default();
                self.grown.push((key.to_owned(), start + piece));
            }
        }
    }

    /// A delta of a kind not known yet: texts grow the member of their name, anything else replaces it.
    fn add_unknown(&mut self, json: &str) -> Result<bool, String> {
        let delta = Members::parse(json).map_err(|error| error.to_string())?;
        for (key, value) in delta.iter().filter(|(key, _)| *key != "type") {
            match serde_json::from_str::<String>(value) {
                Ok(piece) => self.grow_by(key, &piece),
                Err(_) => self.members.set(key, value.to_owned()),
            }
        }
        Ok(true)
    }
}

/// Reads a call's input. Errors: what is wrong, and where, for the model to read.
fn read_input(json: &str) -> Result<RawJson, String> {
    // As a value, not only as a text: depth and numbers must be readable too.
    match serde_json::from_str::<Value>(json) {
        Ok(Value::Object(_)) => RawJson::parse(json).map_err(|error| error.to_string()),
        Ok(other) => Err(format!("the input is {}, not an object", kind_of(&other))),
        Err(error) => Err(error.to_string()),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn list_items(json: &str) -> Vec<String> {
    serde_json::from_str::<Vec<&serde_json::value::RawValue>>(json)
        .map_or_else(|_| Vec::new(), |items| items.iter().map(|item| item.get().to_owned()).collect())
}
