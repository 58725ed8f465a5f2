//! One logical request to a model, as the view builds it and a wire format encodes it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::json::RawJson;
use crate::message::ViewMessage;

/// A tool as a model is told of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON Schema, an object.
    pub schema: RawJson,
}

/// What stays the same for a whole session: made once, recorded once (`context`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Context {
    /// Blocks of the system prompt: instructions, environment, project memory.
    pub system: Vec<String>,
    pub tools: Vec<ToolSpec>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Thinking {
    #[default]
    Off,
    Adaptive,
    /// At most so many tokens of thought.
    Budget(u32),
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    #[default]
    Auto,
    Any,
    None,
    Tool(String),
}

/// A request, complete but for the wire format's own dress.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub model: String,
    pub context: Arc<Context>,
    pub messages: Vec<Arc<ViewMessage>>,
    pub max_tokens: u32,
    pub thinking: Thinking,
    pub tool_choice: ToolChoice,
    /// Whether the answer is asked for as a stream.
    pub streamed: bool,
    /// Whether cache marks are set.
    pub cached: bool,
    /// Whether thinking is sent back to the model that signed it.
    pub signed: bool,
}
