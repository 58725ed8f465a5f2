//! A message as the API writes it: as server-sent events, or as one JSON object.

use crate::compose::{Message, Sent};
use crate::script::{Deliver, Usage};
use serde_json::{Value, json};
use std::io::Write as _;

/// A stream, whole, with its events marked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stream {
    pub bytes: Vec<u8>,
    pub events: Vec<Event>,
}

/// One event of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event {
    /// Where the event ends in the bytes; it begins where the one before ends.
    pub end: usize,
    pub kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Start,
    Delta(Of),
    Stop(Of),
    Other,
}

/// What a block is, as far as places care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    Text,
    Thinking,
    Tool,
    Rest,
}

/// How events are written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    pub delta_chars: usize,
    pub pings: bool,
    pub crlf: bool,
    pub ascii: bool,
}

impl Style {
    pub fn of(deliver: &Deliver) -> Self {
        Self {
            delta_chars: deliver.delta_chars.map_or(DELTA_CHARS, |n| (n as usize).max(1)),
            pings: deliver.pings.unwrap_or(true),
            crlf: deliver.crlf.unwrap_or(false),
            ascii: deliver.ascii.unwrap_or(false),
        }
    }
}

/// Returns the stream of a message.
pub(crate) fn to_stream(message: &Message, style: Style) -> Stream {
    let mut out = Writer { stream: Stream::default(), style };
    out.start(message);
    for (index, block) in message.blocks.iter().enumerate() {
        out.block(index, block);
    }
    out.stop(message);
    out.stream
}

/// Returns the message as the one object of an answer that is not streamed.
pub(crate) fn to_json(message: &Message) -> Value {
    let content: Vec<Value> = message.blocks.iter().map(to_block).collect();
    let mut whole = json!({
        "id": message.id, "type": "message", "role": "assistant", "model": message.model, "content": content,
        "stop_reason": message.stop_reason, "stop_sequence": message.stop_sequence, "usage": to_usage(message.usage, message.usage.output),
    });
    if let Some(details) = &message.stop_details {
        whole["stop_details"] = details.clone();
    }
    whole
}

/// Returns the bytes of one event.
pub(crate) fn to_event(name: &str, data: &str, style: Style) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len() + data.len() + 20);
    let line_end: &[u8] = if style.crlf { b"\r\n" } else { b"\n" };
    for part in [b"event: ".as_slice(), name.as_bytes(), line_end, b"data: "] {
        out.extend_from_slice(part);
    }
    if style.ascii {
        push_ascii(&mut out, data)
    } else {
        out.extend_from_slice(data.as_bytes())
    }
    out.extend_from_slice(line_end);
    out.extend_from_slice(line_end);
    out
}

fn to_block(block: &Sent) -> Value {
    match block {
        Sent::Text(text) => json!({ "type": "text", "text": text }),
        Sent::Thinking { text, signature } => {
            json!({ "type": "thinking", "thinking": text, "signature": signature })
        }
        Sent::Redacted(data) => json!({ "type": "redacted_thinking", "data": data }),
        Sent::Tool { kind, id, name, json } => {
            let text = if json.is_empty() { "{}" } else { json };
            // Broken JSON has no place in an object; as a string it is still no valid input.
            let input = serde_json::from_str(text).unwrap_or_else(|_| Value::String(json.clone()));
            json!({ "type": kind, "id": id, "name": name, "input": input })
        }
        Sent::Raw(raw) => raw.clone(),
    }
}

fn to_usage(usage: Usage, output: u64) -> Value {
    json!({
        "input_tokens": usage.input, "cache_creation_input_tokens": usage.cache_creation,
        "cache_read_input_tokens": usage.cache_read, "output_tokens": output, "service_tier": "standard",
    })
}

struct Writer {
    stream: Stream,
    style: Style,
}

impl Writer {
    fn start(&mut self, message: &Message) {
        let Message { id, model, usage, .. } = message;
        let data = json!({ "type": "message_start", "message": {
            "id": id, "type": "message", "role": "assistant", "model": model, "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": to_usage(*usage, usage.output.min(1)),
        }});
        self.event(Kind::Start, "message_start", &data.to_string());
    }

    fn block(&mut self, index: usize, block: &Sent) {
        let (of, empty) = match block {
            Sent::Text(_) => (Of::Text, json!({ "type": "text", "text": "" })),
            Sent::Thinking { .. } => {
                (Of::Thinking, json!({ "type": "thinking", "thinking": "", "signature": "" }))
            }
            Sent::Tool { kind, id, name, .. } => {
                let of = if *kind == "tool_use" { Of::Tool } else { Of::Rest };
                (of, json!({ "type": kind, "id": id, "name": name, "input": {} }))
            }
            Sent::Redacted(_) | Sent::Raw(_) => (Of::Rest, to_block(block)),
        };
        let data = json!({ "type": "content_block_start", "index": index, "content_block": empty });
        self.event(Kind::Other, "content_block_start", &data.to_string());
        if index == 0 && self.style.pings {
            self.event(Kind::Other, "ping", r#"{"type": "ping"}"#);
        }
        self.deltas(index, block, of);
        self.event(
            Kind::Stop(of),
            "content_block_stop",
            &format!(r#"{{"type":"content_block_stop","index":{index}}}"#),
        );
    }

    fn deltas(&mut self, index: usize, block: &Sent, of: Of) {
        match block {
            Sent::Text(text) => {
                for piece in pieces(text, |_| self.style.delta_chars) {
                    self.delta(index, of, "text_delta", "text", piece);
                }
            }
            Sent::Thinking { text, signature } => {
                for piece in pieces(text, |_| self.style.delta_chars) {
                    self.delta(index, of, "thinking_delta", "thinking", piece);
                }
                self.delta(index, Of::Rest, "signature_delta", "signature", signature);
            }
            // A model that wrote no input at all.
            Sent::Tool { json, .. } if json.is_empty() => {}
            Sent::Tool { json, .. } => {
                // The API opens the input with an empty delta, and says no more when there are no members.
                self.delta(index, of, "input_json_delta", "partial_json", "");
                let scale = self.style.delta_chars.div_ceil(DELTA_CHARS);
                let json = if json == "{}" { "" } else { json };
                for piece in pieces(json, |n| ODD_CHARS[n % ODD_CHARS.len()] * scale) {
                    self.delta(index, of, "input_json_delta", "partial_json", piece);
                }
            }
            Sent::Redacted(_) | Sent::Raw(_) => {}
        }
    }

    fn delta(&mut self, index: usize, of: Of, kind: &str, member: &str, piece: &str) {
        let mut data = Vec::with_capacity(piece.len() + 100);
        write!(
            data,
            r#"{{"type":"content_block_delta","index":{index},"delta":{{"type":"{kind}","{member}":"#
        )
        .expect("memory takes all");
        serde_json::to_writer(&mut data, piece).expect("a string is JSON");
        data.extend_from_slice(b"}}");
        self.event(
            Kind::Delta(of),
            "content_block_delta",
            std::str::from_utf8(&data).expect("JSON of a str is UTF-8"),
        );
    }

    fn stop(&mut self, message: &Message) {
        let mut delta = json!({ "stop_reason": message.stop_reason, "stop_sequence": message.stop_sequence });
        if let Some(details) = &message.stop_details {
            delta["stop_details"] = details.clone();
        }
        let Usage { input, output, cache_read, cache_creation } = message.usage;
        let data = json!({ "type": "message_delta", "delta": delta, "usage": {
            "input_tokens": input, "cache_creation_input_tokens": cache_creation, "cache_read_input_tokens": cache_read, "output_tokens": output,
        }});
        self.event(Kind::Other, "message_delta", &data.to_string());
        self.event(Kind::Other, "message_stop", r#"{"type":"message_stop"}"#);
    }

    fn event(&mut self, kind: Kind, name: &str, data: &str) {
        let bytes = to_event(name, data, self.style);
        self.stream.bytes.extend_from_slice(&bytes);
        self.stream.events.push(Event { end: self.stream.bytes.len(), kind });
    }
}

/// Cuts a text into pieces of as many characters as `size` says for each.
fn pieces(mut text: &str, size: impl Fn(usize) -> usize) -> Vec<&str> {
    let mut all = Vec::new();
    while !text.is_empty() {
        let end = text.char_indices().nth(size(all.len())).map_or(text.len(), |(at, _)| at);
        let (piece, rest) = text.split_at(end);
        all.push(piece);
        text = rest;
    }
    all
}

fn push_ascii(out: &mut Vec<u8>, data: &str) {
    let mut units = [0; 2];
    for c in data.chars() {
        if c.is_ascii() {
            out.push(c as u8);
        } else {
            for unit in c.encode_utf16(&mut units) {
                write!(out, "\\u{unit:04x}").expect("memory takes all");
            }
        }
    }
}

const DELTA_CHARS: usize = 40;
/// Sizes of the pieces of a call's input: they fall inside names, numbers and escapes.
const ODD_CHARS: [usize; 7] = [1, 5, 12, 2, 29, 3, 17];
