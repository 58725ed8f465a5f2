//! Stream events, or a plain answer, as deltas and a `Reply`.
//!
//! Promises: a reply exists only after `message_stop`, with a stop reason and with every block closed; a plain
//! answer gives the reply that its stream would have given. Names not known yet are kept or passed over.
//! Deliberately not here: whether a call may run, and what a stop reason means.

use serde::Deserialize;
use serde_json::value::RawValue;
use yaoki_core::fault::Cut;
use yaoki_core::message::{Block, BlockBody, Origin, Reply, StopReason, Usage};
use yaoki_core::mutant;
use yaoki_core::step::Delta;

use super::FORMAT;
use super::forming::Forming;
use super::members::{Members, tidy};
use crate::sse::Event;

/// Why the events cannot become a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Broken {
    /// The stream is cut, and how.
    Cut { cause: Cut, why: String },
    /// The API said `error`: the event's JSON, to be classified.
    Error { body: String },
}

fn protocol(why: impl Into<String>) -> Broken {
    Broken::Cut { cause: Cut::Protocol, why: why.into() }
}

/// Puts the events of one answer together.
#[derive(Debug)]
pub struct Assembler {
    origin: Origin,
    provider_id: String,
    phase: Phase,
    blocks: Vec<Block>,
    open: Option<Forming>,
    stop: Option<StopReason>,
    usage: Usage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// No `message_start` yet.
    Waiting,
    Started,
    /// `message_stop` was seen; what follows is not read.
    Stopped,
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(rename = "type")]
    kind: Option<String>,
    index: Option<u64>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
struct WireMessage<'a> {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(borrow, default)]
    content: Vec<&'a RawValue>,
    stop_reason: Option<String>,
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
struct WireMessageDelta {
    stop_reason: Option<String>,
}

/// Floats, because one gateway or another prints whole numbers so.
#[derive(Deserialize)]
struct WireUsage {
    input_tokens: Option<f64>,
    output_tokens: Option<f64>,
    cache_read_input_tokens: Option<f64>,
    cache_creation_input_tokens: Option<f64>,
}

impl Assembler {
    /// `authority` is the endpoint's scheme, host and port; `asked` stands in where the answer names no model.
    pub fn new(authority: &str, asked: &str) -> Self {
        Self {
            origin: Origin {
                format: FORMAT.to_owned(),
                endpoint: authority.to_owned(),
                model: asked.to_owned(),
            },
            provider_id: String::new(),
            phase: Phase::Waiting,
            blocks: Vec::new(),
            open: None,
            stop: None,
            usage: Usage::default(),
        }
    }

    /// Takes one event; returns whether it brought anything new (a ping does not).
    pub fn take(&mut self, event: &Event, hear: &mut (dyn FnMut(Delta) + Send)) -> Result<bool, Broken> {
        if self.phase == Phase::Stopped || event.name == "ping" {
            return Ok(false);
        }
        let data = tidy(&event.data);
        let wire: Wire<'_> = match serde_json::from_str(&data) {
            Ok(wire) => wire,
            Err(_) if !is_known(&event.name) && event.name != "message" => return Ok(false),
            Err(error) => return Err(protocol(format!("unreadable {} event: {error}", event.name))),
        };
        match wire.kind.as_deref().unwrap_or(&event.name) {
            "message_start" => self.start(&wire),
            "content_block_start" => self.open_block(&wire, hear),
            "content_block_delta" => self.add_delta(&wire, hear),
            "content_block_stop" => self.close_block(&wire),
            "message_delta" => self.take_message_delta(&wire),
            "message_stop" => self.finish_message(),
            "error" => Err(Broken::Error { body: data.into_owned() }),
            _ => Ok(false),
        }
    }

    /// Whether the whole message was seen.
    pub fn is_complete(&self) -> bool {
        self.phase == Phase::Stopped
    }

    /// Whether the message has begun.
    pub fn has_begun(&self) -> bool {
        self.phase != Phase::Waiting
    }

    /// Returns the reply. Errors: [`Cut::Ended`] when the message is not complete.
    pub fn finish(self) -> Result<Reply, Broken> {
        match (self.phase, self.stop) {
            (Phase::Stopped, Some(stop)) => Ok(Reply {
                provider_id: self.provider_id,
                origin: self.origin,
                blocks: self.blocks,
                stop,
                usage: self.usage,
            }),
            _ => Err(Broken::Cut { cause: Cut::Ended, why: "no message_stop".to_owned() }),
        }
    }

    /// Returns what there is, whole or not: what a seeded bug takes for a message.
    #[doc(hidden)]
    pub fn as_it_is(self) -> Reply {
        Reply {
            provider_id: self.provider_id,
            origin: self.origin,
            blocks: self.blocks,
            stop: self.stop.unwrap_or(StopReason::ToolUse),
            usage: self.usage,
        }
    }

    fn start(&mut self, wire: &Wire<'_>) -> Result<bool, Broken> {
        if self.phase != Phase::Waiting {
            return Err(protocol("a second message_start"));
        }
        let message = wire.message.ok_or_else(|| protocol("message_start without a message"))?;
        let message: WireMessage<'_> = serde_json::from_str(message.get())
            .map_err(|error| protocol(format!("message_start: {error}")))?;
        self.take_head(&message);
        self.phase = Phase::Started;
        Ok(true)
    }

    fn take_head(&mut self, message: &WireMessage<'_>) {
        self.provider_id = message.id.clone().unwrap_or_default();
        if let Some(model) = message.model.as_ref().filter(|model| !model.is_empty()) {
            self.origin.model.clone_from(model);
        }
        if let Some(usage) = &message.usage {
            merge_usage(&mut self.usage, usage);
        }
    }

    fn open_block(&mut self, wire: &Wire<'_>, hear: &mut (dyn FnMut(Delta) + Send)) -> Result<bool, Broken> {
        self.must_run("content_block_start")?;
        if self.open.is_some() {
            return Err(protocol("a block begins before the one before it ended"));
        }
        if wire.index != Some(self.blocks.len() as u64) {
            return Err(protocol(format!(
                "block {:?} begins where {} is due",
                wire.index,
                self.blocks.len()
            )));
        }
        let block = wire.content_block.ok_or_else(|| protocol("content_block_start without a block"))?;
        self.open = Some(Forming::begin(block.get(), hear).map_err(protocol)?);
        Ok(true)
    }

    fn add_delta(&mut self, wire: &Wire<'_>, hear: &mut (dyn FnMut(Delta) + Send)) -> Result<bool, Broken> {
        self.must_run("content_block_delta")?;
        let open = self.open_at(wire)?;
        let delta = wire.delta.ok_or_else(|| protocol("content_block_delta without a delta"))?;
        open.add(delta.get(), hear).map_err(protocol)
    }

    fn close_block(&mut self, wire: &Wire<'_>) -> Result<bool, Broken> {
        self.must_run("content_block_stop")?;
        self.open_at(wire)?;
        self.blocks.extend(self.open.take().map(Forming::end));
        let is_call = |block: &Block| matches!(block.body, BlockBody::Call(_));
        if mutant!("wire-complete-block-is-enough") && self.blocks.last().is_some_and(is_call) {
            (self.phase, self.stop) = (Phase::Stopped, Some(StopReason::ToolUse));
        }
        Ok(true)
    }

    fn take_message_delta(&mut self, wire: &Wire<'_>) -> Result<bool, Broken> {
        if self.phase != Phase::Started {
            return Err(protocol("message_delta before message_start"));
        }
        if let Some(usage) = &wire.usage {
            merge_usage(&mut self.usage, usage);
        }
        if let Some(delta) = wire.delta {
            let delta: WireMessageDelta = serde_json::from_str(delta.get())
                .map_err(|error| protocol(format!("message_delta: {error}")))?;
            self.stop = delta.stop_reason.as_deref().map(stop_reason).or(self.stop.take());
        }
        Ok(true)
    }

    fn finish_message(&mut self) -> Result<bool, Broken> {
        if self.phase != Phase::Started {
            return Err(protocol("message_stop before message_start"));
        }
        if self.open.is_some() {
            return Err(protocol("message_stop within a block"));
        }
        if self.stop.is_none() {
            return Err(protocol("message_stop without a stop reason"));
        }
        self.phase = Phase::Stopped;
        Ok(true)
    }

    /// Blocks stand between the start and the stop reason.
    fn must_run(&self, what: &str) -> Result<(), Broken> {
        if self.phase != Phase::Started || self.stop.is_some() {
            return Err(protocol(format!("{what} out of place")));
        }
        Ok(())
    }

    fn open_at(&mut self, wire: &Wire<'_>) -> Result<&mut Forming, Broken> {
        let due = self.blocks.len() as u64;
        match &mut self.open {
            Some(open) if wire.index == Some(due) => Ok(open),
            _ => Err(protocol(format!("an event for block {:?}, which is not open", wire.index))),
        }
    }
}

/// Reads an unstreamed answer. Errors: a cut where the JSON ends early, a protocol error where it is no message.
pub fn read_plain(
    authority: &str,
    asked: &str,
    body: &str,
    hear: &mut (dyn FnMut(Delta) + Send),
) -> Result<Reply, Broken> {
    let body = tidy(body);
    let message: WireMessage<'_> = serde_json::from_str(&body).map_err(|error| Broken::Cut {
        cause: if error.is_eof() { Cut::Ended } else { Cut::Protocol },
        why: format!("unreadable answer: {error}"),
    })?;
    match message.kind.as_deref() {
        Some("error") => return Err(Broken::Error { body: body.into_owned() }),
        Some("message") => {}
        _ => return Err(protocol("the answer is not a message")),
    }
    let mut assembler = Assembler::new(authority, asked);
    assembler.take_head(&message);
    for block in &message.content {
        assembler.blocks.push(Forming::whole(block.get(), hear).map_err(protocol)?);
    }
    assembler.stop = message.stop_reason.as_deref().map(stop_reason);
    assembler.phase = Phase::Started;
    assembler.finish_message()?;
    assembler.finish()
}

/// Whether a text is a JSON object whose `type` is `error` or that has an `error` member.
pub(crate) fn is_error_body(body: &str) -> bool {
    Members::parse(body).is_ok_and(|members| {
        members.text("type").as_deref() == Some("error") || members.get("error").is_some()
    })
}

fn is_known(name: &str) -> bool {
    matches!(
        name,
        "message_start"
            | "content_block_start"
            | "content_block_delta"
            | "content_block_stop"
            | "message_delta"
            | "message_stop"
            | "error"
    )
}

/// What an event tells replaces what an earlier one told: the counts are of the whole answer.
fn merge_usage(usage: &mut Usage, told: &WireUsage) {
    for (place, told) in [
        (&mut usage.input, told.input_tokens),
        (&mut usage.output, told.output_tokens),
        (&mut usage.cache_read, told.cache_read_input_tokens),
        (&mut usage.cache_write, told.cache_creation_input_tokens),
    ] {
        if let Some(told) = told {
            *place = told as u64;
        }
    }
}

fn stop_reason(name: &str) -> StopReason {
    match name {
        "end_turn" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolUse,
        "max_tokens" => StopReason::MaxTokens,
        "stop_sequence" => StopReason::StopSequence,
        "pause_turn" => StopReason::PauseTurn,
        "refusal" => StopReason::Refusal,
        "model_context_window_exceeded" => StopReason::ContextWindow,
        other => StopReason::Other(other.to_owned()),
    }
}
