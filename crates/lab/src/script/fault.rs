//! The fault menu.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};
use std::collections::BTreeMap;

/// One thing that goes wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// An error status, with the API's error body or another one.
    Status(StatusFault),
    /// The connection is taken away before any byte.
    Refuse,
    /// Nobody listens for so long: this connection is reset, new ones are refused.
    Closed { for_ms: u64 },
    /// The connection is reset after the request and before the head.
    Reset,
    /// The connection stays open and nothing is ever said.
    Silent,
    /// The stream ends at a place.
    Cut {
        at: Place,
        #[serde(default)]
        how: How,
    },
    /// The stream stops at a place and the connection stays open.
    Stall { at: Place },
    /// After `message_start` only pings come, `count` of them; then nothing.
    PingOnly {
        #[serde(default = "ping_every_ms")]
        every_ms: u64,
        #[serde(default = "ping_count")]
        count: u32,
    },
    /// Everything comes, slowly.
    Drip {
        #[schemars(range(min = 1))]
        bytes: u32,
        every_ms: u64,
    },
    /// An `error` event at a place, after which the stream ends.
    Error {
        at: Place,
        r#type: String,
        #[serde(default)]
        message: Option<String>,
    },
    /// The event before the place comes twice.
    Duplicate { at: Place },
    /// The event after the place never comes.
    Drop { at: Place },
    /// An event at a place whose data is not JSON.
    Garbage {
        at: Place,
        #[serde(default)]
        data: Option<String>,
    },
    /// An event of a type that nobody knows at a place. A good client does not mind.
    Unknown {
        at: Place,
        #[serde(default)]
        name: Option<String>,
    },
    /// The answer is whole but its `content-type` is this.
    ContentType(String),
    /// A 200 with no body.
    EmptyBody,
}

impl Fault {
    /// Returns the name that scripts and reports use.
    pub fn name(&self) -> &'static str {
        match self {
            Fault::Status(_) => "status",
            Fault::Refuse => "refuse",
            Fault::Closed { .. } => "closed",
            Fault::Reset => "reset",
            Fault::Silent => "silent",
            Fault::Cut { .. } => "cut",
            Fault::Stall { .. } => "stall",
            Fault::PingOnly { .. } => "ping_only",
            Fault::Drip { .. } => "drip",
            Fault::Error { .. } => "error",
            Fault::Duplicate { .. } => "duplicate",
            Fault::Drop { .. } => "drop",
            Fault::Garbage { .. } => "garbage",
            Fault::Unknown { .. } => "unknown",
            Fault::ContentType(_) => "content_type",
            Fault::EmptyBody => "empty_body",
        }
    }

    /// Whether the fault happens to an answer, so that its step needs one.
    pub fn has_answer(&self) -> bool {
        match self {
            Fault::Status(_)
            | Fault::Refuse
            | Fault::Closed { .. }
            | Fault::Reset
            | Fault::Silent
            | Fault::PingOnly { .. }
            | Fault::EmptyBody => false,
            Fault::Cut { .. }
            | Fault::Stall { .. }
            | Fault::Drip { .. }
            | Fault::Error { .. }
            | Fault::Duplicate { .. }
            | Fault::Drop { .. }
            | Fault::Garbage { .. }
            | Fault::Unknown { .. }
            | Fault::ContentType(_) => true,
        }
    }
}

/// A place in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Place {
    /// After so many bytes of the body; also in an answer that is not streamed.
    Byte(u64),
    /// After so many events.
    Event(u32),
    /// After the middle delta of the first text block.
    InText,
    /// After the middle delta of the first call's input.
    InToolJson,
    /// After the middle delta of the first thinking block.
    InThinking,
    /// After the end of the first call's block.
    AfterToolBlock,
    /// After everything but `message_stop`.
    BeforeMessageStop,
}

/// How a stream ends at a place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// The connection is closed in the middle of the body.
    #[default]
    Fin,
    /// The connection is reset.
    Rst,
    /// The body ends properly, but too early.
    Eof,
    /// Nothing more comes and the connection stays open.
    Stall,
}

/// An answer with another status. In JSON also just the number.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StatusFault {
    pub code: u16,
    /// The error's type; else the usual one of the status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#type: Option<String>,
    /// The error's message; else the usual one of the status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The error's `details` member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<RetryAfter>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    pub body: Body,
}

impl StatusFault {
    /// Returns the usual error of a status.
    pub fn of(code: u16) -> Self {
        Self {
            code,
            r#type: None,
            message: None,
            details: None,
            retry_after: None,
            headers: BTreeMap::new(),
            body: Body::Json,
        }
    }
}

/// The long form; [`StatusFault`] is read through it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LongStatus {
    #[schemars(range(min = 200, max = 599))]
    code: u16,
    #[serde(default)]
    r#type: Option<String>,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    details: Option<serde_json::Value>,
    #[serde(default)]
    retry_after: Option<RetryAfter>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: Body,
}

impl<'de> Deserialize<'de> for StatusFault {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visit;
        impl<'de> de::Visitor<'de> for Visit {
            type Value = StatusFault;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("a status from 200 to 599, or an object with `code`")
            }
            fn visit_u64<E: de::Error>(self, code: u64) -> Result<StatusFault, E> {
                match u16::try_from(code) {
                    Ok(code) if (200..600).contains(&code) => Ok(StatusFault::of(code)),
                    _ => Err(E::invalid_value(de::Unexpected::Unsigned(code), &self)),
                }
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<StatusFault, A::Error> {
                let long = LongStatus::deserialize(de::value::MapAccessDeserializer::new(map))?;
                let LongStatus { code, r#type, message, details, retry_after, headers, body } = long;
                if !(200..600).contains(&code) {
                    return Err(de::Error::invalid_value(de::Unexpected::Unsigned(code.into()), &self));
                }
                Ok(StatusFault { code, r#type, message, details, retry_after, headers, body })
            }
        }
        from.deserialize_any(Visit)
    }
}

impl JsonSchema for StatusFault {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "StatusFault".into()
    }
    fn json_schema(make: &mut SchemaGenerator) -> Schema {
        let long = make.subschema_for::<LongStatus>();
        json_schema!({ "anyOf": [{ "type": "integer", "minimum": 200, "maximum": 599 }, long] })
    }
}

/// The body of an error status.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Body {
    /// The API's error object.
    #[default]
    Json,
    /// A gateway's page.
    Html,
    /// Nothing.
    Empty,
    /// The first half of the API's error object, properly ended.
    Truncated,
    /// This text.
    Text { content_type: String, text: String },
}

/// The wait that the server asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RetryAfter {
    /// A `retry-after-ms` header.
    Ms(u64),
    /// A `retry-after` header with so many seconds.
    S(u64),
    /// A `retry-after` header with this text, sense or nonsense.
    Text(String),
    /// A `retry-after` header with the date so many seconds from now.
    DateInS(i64),
}

fn ping_every_ms() -> u64 {
    1_000
}

fn ping_count() -> u32 {
    600
}
