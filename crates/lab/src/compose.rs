//! From an answer of the script to the message that is sent: ids, signatures, stop reason, usage.

use crate::request::Request;
use crate::script::{Answer, Block, Defaults, Usage};
use crate::sign::{Seal, since};
use serde_json::{Value, json};

/// A message, whole, in the form both encoders read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Message {
    pub id: String,
    pub model: String,
    pub blocks: Vec<Sent>,
    pub stop_reason: String,
    pub stop_sequence: Option<String>,
    pub stop_details: Option<Value>,
    pub usage: Usage,
}

/// A block as it is sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Sent {
    Text(String),
    Thinking {
        text: String,
        signature: String,
    },
    Redacted(String),
    /// A call of the client (`tool_use`) or the service (`server_tool_use`).
    Tool {
        kind: &'static str,
        id: String,
        name: String,
        /// The text of the input, which may be broken JSON.
        json: String,
    },
    Raw(Value),
}

/// Makes the ids of one lab: counted up, but never one that the conversation already has.
///
/// A lab that was started anew begins at 1 again while the client's history does not; so the request has a say.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ids {
    messages: usize,
    calls: usize,
}

impl Ids {
    fn message(&mut self, request: &Request) -> String {
        self.messages = (self.messages + 1).max(request.assistant_count() + 1);
        format!("msg_lab_{:04}", self.messages)
    }

    fn call(&mut self, prefix: &str, request: &Request) -> String {
        loop {
            self.calls += 1;
            let id = format!("{prefix}_lab_{:04}", self.calls);
            if !request.has_call(&id) {
                return id;
            }
        }
    }

    fn told(&self, id: &str, request: &Request) -> String {
        let again = |n: usize| format!("{id}_{n}");
        if !request.has_call(id) {
            return id.to_owned();
        }
        (2..).map(again).find(|id| !request.has_call(id)).expect("a request holds finitely many ids")
    }
}

/// Returns the message that answers a request.
pub(crate) fn compose(answer: &Answer, request: &Request, defaults: &Defaults, ids: &mut Ids) -> Message {
    let id = answer.id.clone().unwrap_or_else(|| ids.message(request));
    let model =
        answer.model.as_ref().or(defaults.model.as_ref()).map_or(request.model(), String::as_str).to_owned();
    let mut blocks = Vec::with_capacity(answer.blocks.len());
    for block in &answer.blocks {
        push(&mut blocks, block, request, ids);
    }
    // The request comes back with the model that was asked, whoever is said to have answered.
    seal(&mut blocks, &id, request.model());
    let has_call = blocks.iter().any(|b| matches!(b, Sent::Tool { kind: "tool_use", .. }));
    let usual = if has_call { "tool_use" } else { "end_turn" };
    let usage = answer.usage.or(defaults.usage).unwrap_or_else(|| estimate(&blocks, request));
    Message {
        id,
        model,
        stop_reason: answer.stop_reason.clone().unwrap_or_else(|| usual.to_owned()),
        stop_sequence: answer.stop_sequence.clone(),
        stop_details: answer.stop_details.clone(),
        usage,
        blocks,
    }
}

fn push(blocks: &mut Vec<Sent>, block: &Block, request: &Request, ids: &mut Ids) {
    match block {
        Block::Text(text) => blocks.push(Sent::Text(text.clone())),
        Block::Repeated { text, times } => blocks.push(Sent::Text(text.repeat(*times as usize))),
        Block::Thinking(text) => blocks.push(Sent::Thinking { text: text.clone(), signature: String::new() }),
        Block::Redacted(text) => blocks.push(Sent::Redacted(text.clone())),
        Block::Tool(call) => {
            let id = match &call.id {
                Some(id) => ids.told(id, request),
                None => ids.call("toolu", request),
            };
            let json = call.raw_input.clone().unwrap_or_else(|| call.input.to_string());
            blocks.push(Sent::Tool { kind: "tool_use", id, name: call.name.clone(), json });
        }
        Block::ServerTool(call) => {
            let id = ids.call("srvtoolu", request);
            let result = json!({ "type": format!("{}_tool_result", call.name), "tool_use_id": id, "content": call.result });
            let json = call.input.to_string();
            blocks.push(Sent::Tool { kind: "server_tool_use", id, name: call.name.clone(), json });
            blocks.push(Sent::Raw(result));
        }
        Block::Raw(raw) => blocks.push(known(raw).unwrap_or_else(|| Sent::Raw(raw.clone()))),
    }
}

/// Returns a raw block as a block that travels in deltas, if it is one that does.
fn known(raw: &Value) -> Option<Sent> {
    let text = |key: &str| raw[key].as_str().map(str::to_owned);
    let members = raw.as_object()?.len();
    match (raw["type"].as_str()?, members) {
        ("text", 2) => Some(Sent::Text(text("text")?)),
        ("thinking", 3) => Some(Sent::Thinking { text: text("thinking")?, signature: text("signature")? }),
        ("tool_use", 4) => Some(Sent::Tool {
            kind: "tool_use",
            id: text("id")?,
            name: text("name")?,
            json: raw["input"].to_string(),
        }),
        ("server_tool_use", 4) => Some(Sent::Tool {
            kind: "server_tool_use",
            id: text("id")?,
            name: text("name")?,
            json: raw["input"].to_string(),
        }),
        _ => None,
    }
}

/// Signs the thinking of a message. A raw block that came with a signature keeps it.
fn seal(blocks: &mut [Sent], message: &str, model: &str) {
    let is_ours = |b: &Sent| match b {
        Sent::Thinking { signature, .. } => signature.is_empty(),
        Sent::Redacted(_) => true,
        Sent::Text(_) | Sent::Tool { .. } | Sent::Raw(_) => false,
    };
    let count = blocks.iter().filter(|b| is_ours(b)).count();
    let mut number = 0;
    let mut after = 0;
    for index in 0..blocks.len() {
        if !is_ours(&blocks[index]) {
            continue;
        }
        let since = if number == 0 { 0 } else { since(&traces(&blocks[after..index])) };
        let seal = Seal { message: message.to_owned(), number, count, since };
        match &mut blocks[index] {
            Sent::Thinking { text, signature } => *signature = seal.to_signature(model, text),
            Sent::Redacted(text) => *text = seal.to_redacted(model, text),
            Sent::Text(_) | Sent::Tool { .. } | Sent::Raw(_) => {}
        }
        (number, after) = (number + 1, index + 1);
    }
}

/// Returns blocks as [`since`] wants them. Blank text is left out: a client may drop it.
fn traces(blocks: &[Sent]) -> Vec<(&str, &str)> {
    blocks
        .iter()
        .filter_map(|block| match block {
            Sent::Text(text) if text.trim().is_empty() => None,
            Sent::Text(text) => Some(("text", text.as_str())),
            Sent::Tool { kind, id, .. } => Some((*kind, id.as_str())),
            Sent::Raw(raw) => Some((raw["type"].as_str().unwrap_or(""), "")),
            Sent::Thinking { .. } => Some(("thinking", "")),
            Sent::Redacted(_) => Some(("redacted_thinking", "")),
        })
        .collect()
}

fn estimate(blocks: &[Sent], request: &Request) -> Usage {
    let size = |block: &Sent| match block {
        Sent::Text(text) | Sent::Redacted(text) | Sent::Thinking { text, .. } => text.len(),
        Sent::Tool { json, .. } => json.len() + 40,
        Sent::Raw(raw) => raw.to_string().len(),
    };
    let bytes: usize = blocks.iter().map(size).sum();
    Usage { input: request.tokens(), output: bytes as u64 / 4 + 1, ..Usage::default() }
}
