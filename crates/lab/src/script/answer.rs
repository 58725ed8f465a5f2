//! What the model says: blocks, why it stopped, what it cost.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::Value;

/// A message of the model. In JSON also a string (one text block) or a list (of blocks).
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Answer {
    pub blocks: Vec<Block>,
    /// Else `tool_use` when there is a call, and `end_turn`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_sequence: Option<String>,
    /// Sent beside the stop reason; a refusal has its category here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_details: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The model that is said to have answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The message's id; else `msg_lab_0001` and so on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

impl Answer {
    /// Returns an answer of one text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::blocks(vec![Block::Text(text.into())])
    }

    /// Returns an answer of these blocks.
    pub fn blocks(blocks: Vec<Block>) -> Self {
        Self { blocks, ..Self::default() }
    }

    /// Returns the answer with this stop reason.
    pub fn stopped(self, reason: impl Into<String>) -> Self {
        Self { stop_reason: Some(reason.into()), ..self }
    }

    /// Returns the answer with these token counts.
    pub fn costing(self, input: u64, output: u64) -> Self {
        Self { usage: Some(Usage { input, output, ..Usage::default() }), ..self }
    }
}

impl From<&str> for Answer {
    fn from(text: &str) -> Self {
        Answer::text(text)
    }
}

impl From<Vec<Block>> for Answer {
    fn from(blocks: Vec<Block>) -> Self {
        Answer::blocks(blocks)
    }
}

/// The long form; [`Answer`] is read through it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LongAnswer {
    blocks: Vec<Block>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    stop_sequence: Option<String>,
    #[serde(default)]
    stop_details: Option<Value>,
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    id: Option<String>,
}

impl<'de> Deserialize<'de> for Answer {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visit;
        impl<'de> de::Visitor<'de> for Visit {
            type Value = Answer;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("a text, a list of blocks, or an object with `blocks`")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Answer, E> {
                Ok(Answer::text(text))
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, seq: A) -> Result<Answer, A::Error> {
                Vec::deserialize(de::value::SeqAccessDeserializer::new(seq)).map(Answer::blocks)
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Answer, A::Error> {
                let long = LongAnswer::deserialize(de::value::MapAccessDeserializer::new(map))?;
                let LongAnswer { blocks, stop_reason, stop_sequence, stop_details, usage, model, id } = long;
                Ok(Answer { blocks, stop_reason, stop_sequence, stop_details, usage, model, id })
            }
        }
        from.deserialize_any(Visit)
    }
}

impl JsonSchema for Answer {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Answer".into()
    }
    fn json_schema(make: &mut SchemaGenerator) -> Schema {
        let long = make.subschema_for::<LongAnswer>();
        let blocks = make.subschema_for::<Vec<Block>>();
        json_schema!({ "anyOf": [{ "type": "string" }, blocks, long] })
    }
}

/// One block of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Block {
    /// Text. The empty text is a block that opens and closes with no delta.
    Text(String),
    /// The same text many times over, for large answers.
    Repeated { text: String, times: u32 },
    /// Thinking; the lab signs it for the model that answers.
    Thinking(String),
    /// Thinking that the client may not read.
    Redacted(String),
    /// A call of one of the client's tools.
    Tool(ToolCall),
    /// A call that the service runs itself, with its result.
    ServerTool(ServerTool),
    /// Any block, as it is. Its `input` or `text`, if its type is known, travels in deltas.
    Raw(Value),
}

impl Block {
    /// Returns a call with an id of the lab's.
    pub fn tool(name: impl Into<String>, input: Value) -> Self {
        Block::Tool(ToolCall { name: name.into(), input, id: None, raw_input: None })
    }

    /// Returns a call with this id.
    pub fn tool_as(id: impl Into<String>, name: impl Into<String>, input: Value) -> Self {
        Block::Tool(ToolCall { name: name.into(), input, id: Some(id.into()), raw_input: None })
    }
}

/// A call of one of the client's tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    pub name: String,
    #[serde(default = "no_input")]
    pub input: Value,
    /// Else `toolu_lab_0001` and so on. `result_for` can name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The text of the input as the model wrote it, which may be broken JSON; `input` is then not used.
    /// Empty: the block opens and closes with no delta.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_input: Option<String>,
}

/// A call that the service runs itself: a `server_tool_use` block and the block of its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerTool {
    pub name: String,
    #[serde(default = "no_input")]
    pub input: Value,
    /// The result block's type is `NAME_tool_result` and this is its content.
    #[serde(default)]
    pub result: Value,
}

fn no_input() -> Value {
    Value::Object(serde_json::Map::new())
}

/// Token counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_creation: u64,
}
