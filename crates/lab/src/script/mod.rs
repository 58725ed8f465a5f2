//! A script: what the lab will say, step by step, and what it expects to hear.
//!
//! The types are the schema: unknown members are refused, and [`script_schema`] prints them as JSON Schema.

mod answer;
mod fault;
mod holds;
mod load;

pub use answer::{Answer, Block, ServerTool, ToolCall, Usage};
pub use fault::{Body, Fault, How, Place, RetryAfter, StatusFault};
pub use holds::Holds;
pub use load::ScriptError;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A whole script.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    /// For editors; not read.
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// What the script is called in reports.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// For people; not read.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// What a step has when it does not say otherwise.
    pub defaults: Defaults,
    /// Sizes above which a request is refused.
    pub limits: Limits,
    /// Whether requests are checked as the real API does; true unless said otherwise.
    pub strict: bool,
    /// The models there are. Empty: any model is served. Else another one is a 404.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ModelRow>,
    /// The keys that are accepted. Empty: any key. Else another one is a 401.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// Whether a step that was stepped over is gone for good.
    pub in_order: bool,
    /// What is said, in order.
    pub steps: Vec<Step>,
    /// What happens to a request that finds no step.
    pub at_end: AtEnd,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            schema: None,
            name: String::new(),
            note: String::new(),
            defaults: Defaults::default(),
            limits: Limits::default(),
            strict: true,
            models: Vec::new(),
            keys: Vec::new(),
            in_order: false,
            steps: Vec::new(),
            at_end: AtEnd::Error,
        }
    }
}

impl Script {
    /// Returns a script of these steps and defaults for all else.
    pub fn of(steps: Vec<Step>) -> Self {
        Self { steps, ..Self::default() }
    }
}

/// One answer or fault, and the requests it is for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Step {
    /// What the step is called in reports; else `step N`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// For people; not read.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// The step is stepped over by requests for which this does not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<Holds>,
    /// What must hold for the request that takes the step; else it is a violation and answered 400.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect: Option<Holds>,
    /// What the model says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// What goes wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// How the bytes travel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deliver: Option<Deliver>,
    /// How many requests the step serves.
    pub repeat: Repeat,
}

impl Step {
    /// Returns a step that answers.
    pub fn answer(answer: impl Into<Answer>) -> Self {
        Self { answer: Some(answer.into()), ..Self::default() }
    }

    /// Returns a step that says one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::answer(Answer::text(text))
    }

    /// Returns a step that calls one tool.
    pub fn tool(name: impl Into<String>, input: serde_json::Value) -> Self {
        Self::answer(Answer::blocks(vec![Block::tool(name, input)]))
    }

    /// Returns a step that only fails.
    pub fn fault(fault: Fault) -> Self {
        Self { fault: Some(fault), ..Self::default() }
    }

    /// Returns a step that answers with an error status.
    pub fn status(code: u16) -> Self {
        Self::fault(Fault::Status(StatusFault::of(code)))
    }

    /// Returns the step with a fault in its answer.
    pub fn with_fault(self, fault: Fault) -> Self {
        Self { fault: Some(fault), ..self }
    }

    /// Returns the step with a label.
    pub fn labelled(self, label: impl Into<String>) -> Self {
        Self { label: label.into(), ..self }
    }

    /// Returns the step for `count` requests.
    pub fn times(self, count: u32) -> Self {
        Self { repeat: Repeat::Times(count), ..self }
    }

    /// Returns the step for requests like this only.
    pub fn when(self, holds: Holds) -> Self {
        Self { when: Some(holds), ..self }
    }

    /// Returns the step with this expected of its request.
    pub fn expect(self, holds: Holds) -> Self {
        Self { expect: Some(holds), ..self }
    }
}

/// How many requests a step serves: a number, or `"always"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    Times(u32),
    Always,
}

impl Default for Repeat {
    fn default() -> Self {
        Repeat::Times(1)
    }
}

impl Serialize for Repeat {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Repeat::Times(count) => to.serialize_u32(*count),
            Repeat::Always => to.serialize_str("always"),
        }
    }
}

impl<'de> Deserialize<'de> for Repeat {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visit;
        impl de::Visitor<'_> for Visit {
            type Value = Repeat;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("a number from 1 or \"always\"")
            }
            fn visit_u64<E: de::Error>(self, count: u64) -> Result<Repeat, E> {
                match u32::try_from(count) {
                    Ok(count) if count >= 1 => Ok(Repeat::Times(count)),
                    _ => Err(E::invalid_value(de::Unexpected::Unsigned(count), &self)),
                }
            }
            fn visit_str<E: de::Error>(self, word: &str) -> Result<Repeat, E> {
                match word {
                    "always" => Ok(Repeat::Always),
                    other => Err(E::invalid_value(de::Unexpected::Str(other), &self)),
                }
            }
        }
        from.deserialize_any(Visit)
    }
}

impl JsonSchema for Repeat {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Repeat".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "integer", "minimum": 1 }, { "const": "always" }] })
    }
}

/// What happens to a request that finds no step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum AtEnd {
    /// A 400 that says the script is exhausted.
    #[default]
    Error,
    /// The last step of the script serves it, whatever its `when`.
    RepeatLast,
    /// This is said.
    Answer(Box<Answer>),
}

/// What a step has when it does not say otherwise.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Defaults {
    /// The model named in answers; else the one that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Token counts of answers; else estimated from bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// How the bytes travel.
    pub deliver: Deliver,
}

/// How the bytes of an answer travel. A member that a step leaves out is taken from `defaults`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Deliver {
    /// How the body is cut into writes; one write for each event unless said otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk: Option<Chunk>,
    /// Milliseconds before the head.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_ms: Option<u64>,
    /// Milliseconds between writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap_ms: Option<u64>,
    /// Characters in one text or thinking delta; 40 unless said otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta_chars: Option<u32>,
    /// Whether a ping follows the start of the first block; true unless said otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pings: Option<bool>,
    /// Whether lines end with CR LF.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crlf: Option<bool>,
    /// Whether every character outside ASCII is written as a `\u` escape.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ascii: Option<bool>,
}

/// How a body is cut into writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Chunk {
    /// One write for each event.
    #[default]
    Events,
    /// One write.
    Whole,
    /// Writes of so many bytes.
    Bytes(#[schemars(range(min = 1))] u32),
    /// Writes of 1 to `max` bytes, chosen by `seed`.
    Random {
        seed: u64,
        #[schemars(range(min = 1))]
        max: u32,
    },
}

/// Sizes above which a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Bytes of a request body; more is a 413.
    pub body_bytes_max: u64,
    /// Highest `max_tokens` that may be asked for.
    pub output_tokens_max: u64,
    /// Tokens of input, at four bytes of body each; more is "prompt is too long". 0: no limit.
    pub input_tokens_max: u64,
    /// Tokens of input and `max_tokens` together. 0: no limit.
    pub window_tokens_max: u64,
    /// Bytes of one image.
    pub image_bytes_max: u64,
    /// Width and height of one image.
    pub image_px_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes_max: 32 * 1024 * 1024,
            output_tokens_max: 128_000,
            input_tokens_max: 0,
            window_tokens_max: 0,
            image_bytes_max: 5 * 1024 * 1024,
            image_px_max: 8_000,
        }
    }
}

/// A model that `/v1/models` lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelRow {
    pub id: String,
    #[serde(default = "window_tokens")]
    pub max_input_tokens: u64,
    #[serde(default = "output_tokens")]
    pub max_tokens: u64,
}

impl ModelRow {
    /// Returns a model with the usual sizes.
    pub fn of(id: impl Into<String>) -> Self {
        Self { id: id.into(), max_input_tokens: window_tokens(), max_tokens: output_tokens() }
    }
}

fn window_tokens() -> u64 {
    200_000
}

fn output_tokens() -> u64 {
    64_000
}

/// Returns the JSON Schema of a script.
pub fn script_schema() -> serde_json::Value {
    schemars::schema_for!(Script).to_value()
}
