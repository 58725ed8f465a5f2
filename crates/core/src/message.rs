//! Messages and their blocks, free of any provider.
//!
//! A block has neutral fields that every provider can render, and `raw`: the provider's own JSON, sent
//! back untouched to where it came from. Results are not "user messages" here; they belong to their call.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{CallId, MessageId};
use crate::json::RawJson;

/// Where a block came from. Signed and opaque blocks go back only to an equal origin.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Origin {
    /// The wire format: `anthropic`.
    pub format: String,
    /// Scheme, host and port; never a path or a credential.
    pub endpoint: String,
    /// The model that served the block, which may not be the one asked.
    pub model: String,
}

/// One block of a model's message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Block {
    pub body: BlockBody,
    /// The provider's JSON of this block, complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<RawJson>,
}

/// The closed set of kinds. Tagged from outside: a tag within would make serde copy, and reprint, raw JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockBody {
    Text {
        text: String,
    },
    /// Thoughts of the model; `text` is for people, what is sent back is `raw`.
    Thinking {
        text: String,
    },
    Call(Call),
    Media(Media),
    /// Anything else (server tools, redacted thinking, kinds not known yet); kept and sent back as it came.
    Other {
        name: String,
    },
}

/// One tool call as the model wrote it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Ours. Empty until the message is committed, which derives it.
    #[serde(default = "no_call_id")]
    pub id: CallId,
    /// The provider's; sent back to it, never used to tell calls apart.
    pub provider_id: String,
    pub tool: String,
    /// Always an object; `{}` where the model's JSON was broken.
    pub input: RawJson,
    /// What was wrong with the model's JSON, and where. Such a call never runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
}

pub fn no_call_id() -> CallId {
    CallId::new("")
}

/// An image or document, base64 in `data`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Media {
    /// `image/png`, `application/pdf`, …
    pub media_type: String,
    pub data: Arc<str>,
}

/// A part of what a person or a tool says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Part {
    Text { text: String },
    Media(Media),
}

impl Part {
    pub fn text(text: impl Into<String>) -> Self {
        Part::Text { text: text.into() }
    }
}

/// What a call came to, as the model will read it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallResult {
    pub parts: Vec<Part>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

impl CallResult {
    pub fn ok(text: impl Into<String>) -> Self {
        Self { parts: vec![Part::text(text)], is_error: false }
    }

    pub fn error(text: impl Into<String>) -> Self {
        Self { parts: vec![Part::text(text)], is_error: true }
    }

    /// All text parts joined, for people.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::Text { text } => Some(text.as_str()),
                Part::Media(_) => None,
            })
            .collect();
        texts.join("\n")
    }
}

/// A complete answer of a model, before or after it is committed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The provider's message id.
    pub provider_id: String,
    pub origin: Origin,
    pub blocks: Vec<Block>,
    pub stop: StopReason,
    pub usage: Usage,
}

impl Reply {
    /// All visible text joined.
    pub fn text(&self) -> String {
        visible_text(&self.blocks)
    }

    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.blocks.iter().filter_map(|block| match &block.body {
            BlockBody::Call(call) => Some(call),
            _ => None,
        })
    }
}

/// The text blocks of a message, joined.
pub fn visible_text(blocks: &[Block]) -> String {
    let mut text = String::new();
    for block in blocks {
        if let BlockBody::Text { text: piece } = &block.body {
            text.push_str(piece);
        }
    }
    text
}

/// Why the model stopped. `Other` keeps names not known yet; they end a turn with a notice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    EndTurn,
    ToolUse,
    MaxTokens,
    StopSequence,
    PauseTurn,
    Refusal,
    ContextWindow,
    Other(String),
}

/// Tokens of one answer, as the provider counted them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

impl Usage {
    pub fn add(&mut self, other: Usage) {
        // Saturating: the numbers are a server's word.
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
    }

    /// Everything the model read.
    pub fn context(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }
}

/// One message as a request shows it: the unit whose bytes never change once sent.
#[derive(Debug, Clone, PartialEq)]
pub enum ViewMessage {
    User {
        id: MessageId,
        parts: Vec<Part>,
    },
    Assistant {
        id: MessageId,
        origin: Origin,
        blocks: Vec<Block>,
    },
    /// The results of the calls of the assistant message before it, in call order.
    Results {
        id: MessageId,
        results: Vec<ViewResult>,
    },
}

impl ViewMessage {
    pub fn id(&self) -> &MessageId {
        match self {
            ViewMessage::User { id, .. }
            | ViewMessage::Assistant { id, .. }
            | ViewMessage::Results { id, .. } => id,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ViewResult {
    pub call: CallId,
    /// The provider's id of the call, as it stands in the assistant message.
    pub provider_id: String,
    pub result: CallResult,
}
