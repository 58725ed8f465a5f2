//! From a message and a fault to the plan: where the stream is broken, and how its bytes are cut into writes.

use crate::ask::Play;
use crate::compose::Message;
use crate::encode::{Event, Kind, Of, Stream, Style, to_event, to_json, to_stream};
use crate::script::{Chunk, Deliver, Fault, How, Place};
use bytes::Bytes;
use serde_json::json;

/// What is played for a message, and whether its fault is in it.
pub(crate) struct Delivered {
    pub plays: Vec<Play>,
    pub fired: bool,
}

/// Returns the plays of a streamed answer.
pub(crate) fn deliver_stream(
    message: &Message,
    way: &Deliver,
    fault: Option<&Fault>,
    headers: Vec<(String, String)>,
) -> Delivered {
    let style = Style::of(way);
    let mut broken = Broken::of(to_stream(message, style), way);
    let fired = fault.is_some_and(|fault| broken.apply(fault, style));
    let mut plays = head(way, 200, headers, broken.content_type.as_deref().unwrap_or(EVENT_STREAM));
    broken.play(&mut plays);
    Delivered { plays, fired }
}

/// Returns the plays of an answer that was not asked to stream. Only faults that need no events can fire.
pub(crate) fn deliver_json(
    message: &Message,
    way: &Deliver,
    fault: Option<&Fault>,
    headers: Vec<(String, String)>,
) -> Delivered {
    let bytes = to_json(message).to_string().into_bytes();
    let mut broken = Broken::of(Stream { bytes, events: Vec::new() }, way);
    let mut length = broken.stream.bytes.len();
    let fired = fault.is_some_and(|fault| broken.apply(fault, Style::of(way)));
    if broken.end == Play::End {
        length = broken.stream.bytes.len();
    }
    let mut plays = head(way, 200, headers, broken.content_type.as_deref().unwrap_or(JSON));
    with_length(&mut plays, length);
    broken.play(&mut plays);
    Delivered { plays, fired }
}

/// Returns the plays of a whole body that is not a message.
pub(crate) fn deliver_body(
    status: u16,
    body: Vec<u8>,
    content_type: &str,
    way: &Deliver,
    headers: Vec<(String, String)>,
) -> Vec<Play> {
    let mut plays = head(way, status, headers, content_type);
    with_length(&mut plays, body.len());
    if !body.is_empty() {
        plays.push(Play::Bytes(body.into()));
    }
    plays.push(Play::End);
    plays
}

pub(crate) const EVENT_STREAM: &str = "text/event-stream; charset=utf-8";
pub(crate) const JSON: &str = "application/json";

fn head(way: &Deliver, status: u16, mut headers: Vec<(String, String)>, content_type: &str) -> Vec<Play> {
    let mut plays = Vec::new();
    if let Some(late_ms) = way.late_ms.filter(|ms| *ms > 0) {
        plays.push(Play::WaitMs(late_ms));
    }
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
        headers.insert(0, ("content-type".into(), content_type.into()));
    }
    plays.push(Play::Head { status, headers });
    plays
}

fn with_length(plays: &mut [Play], length: usize) {
    if let Some(Play::Head { headers, .. }) = plays.last_mut() {
        headers.push(("content-length".into(), length.to_string()));
    }
}

/// A body on its way to being plays.
struct Broken {
    stream: Stream,
    end: Play,
    chunk: Chunk,
    gap_ms: u64,
    content_type: Option<String>,
    /// After the bytes: so many pings, so far apart.
    pings: Option<(u32, u64, Bytes)>,
}

impl Broken {
    fn of(stream: Stream, way: &Deliver) -> Self {
        let chunk = way.chunk.unwrap_or_default();
        Self {
            stream,
            end: Play::End,
            chunk,
            gap_ms: way.gap_ms.unwrap_or(0),
            content_type: None,
            pings: None,
        }
    }

    /// Breaks the body; returns whether there was a place to.
    fn apply(&mut self, fault: &Fault, style: Style) -> bool {
        match fault {
            Fault::Cut { at, how } => self.cut(*at, *how),
            Fault::Stall { at } => self.cut(*at, How::Stall),
            Fault::PingOnly { every_ms, count } => self.ping_only(*count, *every_ms, style),
            Fault::Drip { bytes, every_ms } => {
                self.chunk = Chunk::Bytes(*bytes);
                self.gap_ms = *every_ms;
                self.stream.bytes.len() > *bytes as usize
            }
            Fault::Error { at, r#type, message } => self.error(*at, r#type, message.as_deref(), style),
            Fault::Duplicate { at } => self.duplicate(*at),
            Fault::Drop { at } => self.drop_next(*at),
            Fault::Garbage { at, data } => {
                let data = data.as_deref().unwrap_or(GARBAGE);
                self.insert(*at, to_event("content_block_delta", data, style))
            }
            Fault::Unknown { at, name } => {
                let name = name.as_deref().unwrap_or("lab_novelty");
                let data = json!({ "type": name, "index": 0, "note": "an event that nobody knows" });
                self.insert(*at, to_event(name, &data.to_string(), style))
            }
            Fault::ContentType(kind) => {
                self.content_type = Some(kind.clone());
                true
            }
            Fault::EmptyBody => {
                self.stream = Stream::default();
                true
            }
            // These stand instead of an answer and never come here.
            Fault::Status(_) | Fault::Refuse | Fault::Closed { .. } | Fault::Reset | Fault::Silent => false,
        }
    }

    fn cut(&mut self, at: Place, how: How) -> bool {
        let Some(offset) = self.offset(at) else { return false };
        self.stream.bytes.truncate(offset);
        self.stream.events.retain(|event| event.end <= offset);
        self.end = match how {
            How::Fin => Play::Cut,
            How::Rst => Play::Rst,
            How::Eof => Play::End,
            How::Stall => Play::Stall,
        };
        true
    }

    fn ping_only(&mut self, count: u32, every_ms: u64, style: Style) -> bool {
        self.end = Play::Stall;
        self.pings = Some((
            count.min(PING_COUNT_MAX),
            every_ms,
            to_event("ping", r#"{"type": "ping"}"#, style).into(),
        ));
        let start = self.stream.events.first().map_or(0, |event| event.end);
        self.stream.bytes.truncate(start);
        self.stream.events.truncate(1);
        start > 0
    }

    fn error(&mut self, at: Place, kind: &str, message: Option<&str>, style: Style) -> bool {
        let message = message.unwrap_or_else(|| crate::trouble::usual_message(kind));
        let data = json!({ "type": "error", "error": { "type": kind, "message": message } });
        if !self.cut(at, How::Eof) {
            return false;
        }
        self.push(to_event("error", &data.to_string(), style));
        true
    }

    fn duplicate(&mut self, at: Place) -> bool {
        let Some(count) = self.count(at).filter(|n| *n > 0) else { return false };
        let again = self.stream.bytes[self.start(count - 1)..self.start(count)].to_vec();
        self.insert(at, again)
    }

    fn drop_next(&mut self, at: Place) -> bool {
        let Some(count) = self.count(at) else { return false };
        let (start, end) = (self.start(count), self.start(count + 1));
        self.stream.bytes.drain(start..end);
        self.stream.events.remove(count);
        for event in &mut self.stream.events[count..] {
            event.end -= end - start;
        }
        true
    }

    fn insert(&mut self, at: Place, bytes: Vec<u8>) -> bool {
        let Some(count) = self.count(at) else { return false };
        let (start, length) = (self.start(count), bytes.len());
        self.stream.bytes.splice(start..start, bytes);
        for event in &mut self.stream.events[count..] {
            event.end += length;
        }
        self.stream.events.insert(count, Event { end: start + length, kind: Kind::Other });
        true
    }

    fn push(&mut self, bytes: Vec<u8>) {
        self.stream.bytes.extend_from_slice(&bytes);
        self.stream.events.push(Event { end: self.stream.bytes.len(), kind: Kind::Other });
    }

    /// Returns the byte at which the event of that index starts.
    fn start(&self, index: usize) -> usize {
        index.checked_sub(1).map_or(0, |before| self.stream.events[before].end)
    }

    fn offset(&self, at: Place) -> Option<usize> {
        match at {
            Place::Byte(n) => usize::try_from(n).ok().filter(|n| *n < self.stream.bytes.len()),
            _ => self.count(at).map(|count| self.start(count)),
        }
    }

    /// Returns how many events come before a place, if the stream has the place and goes on after it.
    fn count(&self, at: Place) -> Option<usize> {
        let events = &self.stream.events;
        let stop = |of| events.iter().position(|e| e.kind == Kind::Stop(of)).map(|index| index + 1);
        let count = match at {
            Place::Byte(_) => None,
            Place::Event(n) => Some(n as usize),
            Place::InText => self.middle(Of::Text, 1),
            Place::InToolJson => self.middle(Of::Tool, 2),
            Place::InThinking => self.middle(Of::Thinking, 1),
            Place::AfterToolBlock => stop(Of::Tool),
            Place::BeforeMessageStop => events.len().checked_sub(1),
        };
        count.filter(|count| *count < events.len())
    }

    /// Returns the place after the middle delta of the first block that has at least so many.
    fn middle(&self, of: Of, deltas_min: usize) -> Option<usize> {
        let mut deltas: Vec<usize> = Vec::new();
        for (index, event) in self.stream.events.iter().enumerate() {
            if event.kind == Kind::Delta(of) {
                deltas.push(index);
            } else if event.kind == Kind::Stop(of) {
                if deltas.len() >= deltas_min {
                    break;
                }
                deltas.clear();
            }
        }
        if deltas.len() < deltas_min {
            return None;
        }
        // Of two input deltas the first is empty, and the second may be the whole.
        Some(deltas[(deltas.len() - 1) / 2] + 1)
    }

    fn play(self, plays: &mut Vec<Play>) {
        let ends: Vec<usize> = self.stream.events.iter().map(|event| event.end).collect();
        let bytes = Bytes::from(self.stream.bytes);
        let cuts = cuts(self.chunk, bytes.len(), &ends);
        plays.reserve(cuts.len() + 2);
        let mut start = 0;
        for end in cuts {
            if start > 0 && self.gap_ms > 0 {
                plays.push(Play::WaitMs(self.gap_ms));
            }
            plays.push(Play::Bytes(bytes.slice(start..end)));
            start = end;
        }
        if let Some((count, every_ms, ping)) = self.pings {
            for _ in 0..count {
                plays.push(Play::WaitMs(every_ms));
                plays.push(Play::Bytes(ping.clone()));
            }
        }
        plays.push(self.end);
    }
}

/// Returns where the writes end; the last one is the length.
fn cuts(chunk: Chunk, length: usize, events: &[usize]) -> Vec<usize> {
    let mut cuts = match chunk {
        Chunk::Events => events.to_vec(),
        Chunk::Whole => Vec::new(),
        Chunk::Bytes(bytes) => {
            (1..).map(|n| n * bytes as usize).take_while(|at| *at < length).take(WRITES_MAX).collect()
        }
        Chunk::Random { seed, max } => {
            let mut state = seed;
            let mut at = 0;
            let next = || {
                at += 1 + (splitmix(&mut state) % u64::from(max)) as usize;
                at
            };
            std::iter::repeat_with(next).take_while(|at| *at < length).take(WRITES_MAX).collect()
        }
    };
    if length > 0 && cuts.last() != Some(&length) {
        cuts.push(length);
    }
    cuts
}

fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// More writes than this end in one large one, so that a plan stays small.
const WRITES_MAX: usize = 200_000;
const PING_COUNT_MAX: u32 = 100_000;
const GARBAGE: &str = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_"#;
