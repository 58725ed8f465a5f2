//! The simulated model and the network before it: a transport whose answers are the lab's.
//!
//! The model goes by what the request shows – how many of its own messages stand after the last prompt – so a
//! repeated, resumed or rebuilt request meets the same plan, under new ids. The lab's strict checks hold for
//! every request.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::time::Instant;
use yaoki::wire::transport::{HttpAnswer, HttpAsk, Phase, Transport, TransportError, TransportKind};
use yaoki_lab::{
    Answer, Block, Fault, How, HttpAsk as LabAsk, Lab, Place, Play, RetryAfter, Script, StatusFault, Step,
    Verdict,
};

use crate::coverage::ANSWER_FAULTS;
use crate::plan::{Plan, Round};
use crate::world::{InFlight, World};

/// Prompts are told apart by this beginning.
pub const PROMPT: &str = "prompt ";
/// The prompt that ends every schedule, when all faults have ceased.
pub const LAST_PROMPT: &str = "prompt last";

pub struct SimModel {
    pub world: World,
    pub plan: Arc<Plan>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    asks: u64,
    /// Not before this moment may the next attempt come: the server said so.
    not_before: Option<Instant>,
    last_messages: Vec<Value>,
    last_fixed: Option<(Value, Value)>,
    /// Which planned call a provider's id stands for.
    tags: BTreeMap<String, String>,
    is_thought_doubled: bool,
}

impl SimModel {
    pub fn new(world: World, plan: Arc<Plan>) -> Self {
        Self { world, plan, seen: Mutex::default() }
    }

    /// A new life: what the network knew of the old process is gone.
    pub fn forget_connection(&self, is_rebuilt: bool) {
        let mut seen = self.seen();
        // The old process may have died before it read the time, or its turn may be over.
        seen.not_before = None;
        if is_rebuilt {
            seen.last_messages.clear();
        }
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().expect("unpoisoned")
    }

    fn answer(&self, ask: &HttpAsk) -> Vec<Play> {
        let body: Value = match serde_json::from_slice(&ask.body) {
            Ok(body) => body,
            Err(error) => {
                self.world.verdicts.broken("I9", format!("a request is not JSON: {error}"));
                return vec![Play::Reset];
            }
        };
        self.check_request(&body);
        let fault = self.choose_fault(body["stream"] == json!(true));
        let step = match &fault {
            Some((_, fault)) if !fault.has_answer() => Step::fault(fault.clone()),
            Some((_, fault)) => Step::answer(self.say(&body)).with_fault(fault.clone()),
            None => Step::answer(self.say(&body)),
        };
        let mut lab = Lab::new(Script::of(vec![step]));
        let plan = lab
            .answer(&LabAsk::new("POST", "/v1/messages", &ask.headers, &ask.body).at(0, 1_796_000_000_000));
        for refusal in lab.report().refused {
            let mut seen = self.seen();
            // A doubled piece of a signed thought cannot be told from a good one until it is refused, once.
            if seen.is_thought_doubled && refusal.message.contains("signature") {
                seen.is_thought_doubled = false;
                seen.last_messages.clear();
                continue;
            }
            drop(seen);
            self.world.verdicts.broken("I9", format!("the API refuses a request: {}", refusal.message));
        }
        if let Some((name, _)) = &fault
            && lab.log().iter().any(|entry| matches!(entry.verdict, Verdict::Step { fault: Some(_), .. }))
        {
            self.world.coverage.hit(name, "answer");
            self.seen().is_thought_doubled |= *name == "duplicate";
        }
        let told_ms = fault.as_ref().filter(|(name, _)| *name == "429_told").map(|_| TOLD_MS);
        self.seen().not_before = told_ms.map(|ms| Instant::now() + Duration::from_millis(ms));
        plan.plays
    }

    /// Holds what this request shows against what the last one did, and against what was really done.
    fn check_request(&self, body: &Value) {
        let verdicts = &self.world.verdicts;
        let mut seen = self.seen();
        if let Some(not_before) = seen.not_before {
            let now = Instant::now();
            verdicts.hold("I23", now >= not_before, || {
                format!("asked {:?} before the time the server named", not_before - now)
            });
        }
        let messages: Vec<Value> =
            body["messages"].as_array().cloned().unwrap_or_default().into_iter().map(unmarked).collect();
        let fixed = (unmarked(body["system"].clone()), unmarked(body["tools"].clone()));
        if let Some(last) = &seen.last_fixed {
            verdicts.hold("I6", *last == fixed, || "system or tools changed within a session".to_owned());
        }
        let is_grown = is_prefix(&seen.last_messages, &messages);
        verdicts
            .hold("I6", is_grown, || "a request does not begin with what the one before showed".to_owned());
        self.check_results(&seen.tags, &messages);
        seen.last_messages = messages;
        seen.last_fixed = Some(fixed);
    }

    /// What the model reads of a call is about that call, or says plainly that nobody knows (I13).
    fn check_results(&self, tags: &BTreeMap<String, String>, messages: &[Value]) {
        for part in messages.iter().flat_map(parts).filter(|part| part["type"] == "tool_result") {
            let id = part["tool_use_id"].as_str().unwrap_or_default();
            let Some(tag) = tags.get(id) else { continue };
            let text =
                part["content"].as_str().map(str::to_owned).unwrap_or_else(|| part["content"].to_string());
            let is_marked = text.contains("<tool_use_error>") || text.contains("[not started");
            let is_own = is_marked || text.contains(tag.as_str());
            self.world.verdicts.hold("I13", is_own, || format!("the result of {tag} reads {text:?}"));
            let claims = text.contains("ran (");
            let is_true = !claims || self.world.executed(tag) > 0;
            self.world
                .verdicts
                .hold("I13", is_true, || format!("the model is told that {tag} ran, and it did not"));
        }
    }

    fn choose_fault(&self, is_streamed: bool) -> Option<(&'static str, Fault)> {
        if !self.world.may_fault(self.world.swarm.answer_faults) {
            return None;
        }
        let dice = &self.world.dice;
        let name = *dice.pick(&ANSWER_FAULTS);
        let at = *dice.pick(&[
            Place::Event(1),
            Place::Event(3),
            Place::InText,
            Place::InToolJson,
            Place::InThinking,
            Place::AfterToolBlock,
            Place::BeforeMessageStop,
            Place::Byte(dice.below(1_500)),
        ]);
        let at = if is_streamed { at } else { Place::Byte(1 + dice.below(200)) };
        let status = |code| Fault::Status(StatusFault::of(code));
        let fault = match name {
            "529" => status(529),
            "500" => status(500),
            "429" => status(429),
            "429_told" => Fault::Status(StatusFault {
                retry_after: Some(RetryAfter::Ms(TOLD_MS)),
                ..StatusFault::of(429)
            }),
            "408" => status(408),
            "html" => Fault::Status(StatusFault { body: yaoki_lab::Body::Html, ..StatusFault::of(502) }),
            "empty" => Fault::EmptyBody,
            // Permanent, and therefore rarer: they end the turn.
            "401" if dice.is(300) => status(401),
            "400" if dice.is(300) => status(400),
            "401" | "400" => return None,
            "refuse" => Fault::Refuse,
            "reset" => Fault::Reset,
            "silent" => Fault::Silent,
            "cut_fin" => Fault::Cut { at, how: How::Fin },
            "cut_rst" => Fault::Cut { at, how: How::Rst },
            "cut_eof" => Fault::Cut { at, how: How::Eof },
            "stall" => Fault::Stall { at },
            "ping_only" => Fault::PingOnly { every_ms: 20_000, count: 100 },
            "drip" => Fault::Drip { bytes: 40, every_ms: 2_000 },
            "error_event" => Fault::Error { at, r#type: "overloaded_error".to_owned(), message: None },
            "duplicate" => Fault::Duplicate { at },
            "garbage" => Fault::Garbage { at, data: None },
            _ => Fault::Unknown { at, name: None },
        };
        Some((name, fault))
    }

    /// What the plan says at the point the request shows.
    fn say(&self, body: &Value) -> Answer {
        let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let (turn, rounds) = position(messages);
        let round = self.plan.turns.get(turn).and_then(|turn| turn.get(rounds).or(turn.last()));
        match round {
            Some(round) if turn < self.plan.turns.len() => self.round(round),
            _ => Answer::text("everything is well"),
        }
    }

    fn round(&self, round: &Round) -> Answer {
        let mut seen = self.seen();
        let mut blocks = Vec::new();
        if round.has_thinking {
            blocks.push(Block::Thinking("let me see – schrittweise".to_owned()));
        }
        blocks.extend(round.text.clone().map(Block::Text));
        for call in &round.calls {
            seen.asks += 1;
            let id = format!("toolu_{}", seen.asks);
            seen.tags.insert(id.clone(), call.tag.clone());
            blocks.push(match call.is_broken {
                false => Block::tool_as(id, call.tool, json!({ "tag": call.tag })),
                true => Block::Tool(yaoki_lab::ToolCall {
                    id: Some(id),
                    name: call.tool.to_owned(),
                    input: Value::Null,
                    raw_input: Some(format!("{{\"tag\": \"{}", call.tag)),
                }),
            });
        }
        match round.stop {
            Some(stop) if !round.calls.is_empty() => Answer::blocks(blocks).stopped(stop),
            _ => Answer::blocks(blocks),
        }
    }
}

/// What a told wait is, in milliseconds.
const TOLD_MS: u64 = 3_000;

/// Which prompt is the last one in a request, and how many messages of the model come after it.
fn position(messages: &[Value]) -> (usize, usize) {
    let mut turn = usize::MAX;
    let mut rounds = 0;
    for message in messages {
        if message["role"] == "assistant" {
            rounds += 1;
        } else {
            for part in parts(message) {
                let text = part["text"].as_str().unwrap_or_default();
                if let Some(number) = text.strip_prefix(PROMPT) {
                    turn = number.parse().unwrap_or(usize::MAX);
                    rounds = 0;
                }
            }
        }
    }
    (turn, rounds)
}

fn parts(message: &Value) -> Vec<Value> {
    match &message["content"] {
        Value::Array(parts) => parts.clone(),
        text => vec![json!({ "type": "text", "text": text })],
    }
}

/// A value without its cache marks, which move.
fn unmarked(mut value: Value) -> Value {
    match &mut value {
        Value::Object(map) => {
            map.shift_remove("cache_control");
            for inner in map.values_mut() {
                *inner = unmarked(inner.take());
            }
        }
        Value::Array(items) => {
            for item in items.iter_mut() {
                *item = unmarked(item.take());
            }
        }
        _ => {}
    }
    value
}

/// Whether `now` begins with `before`: equal messages, the last one perhaps with more parts behind.
fn is_prefix(before: &[Value], now: &[Value]) -> bool {
    let Some((last, whole)) = before.split_last() else { return true };
    if now.len() < before.len() || whole != &now[..whole.len()] {
        return false;
    }
    let (then, here) = (parts(last), parts(&now[whole.len()]));
    last["role"] == now[whole.len()]["role"] && here.starts_with(&then)
}

impl Transport for SimModel {
    fn send(&self, ask: HttpAsk) -> BoxFuture<'_, Result<HttpAnswer, TransportError>> {
        Box::pin(async move {
            self.world.point("before_send").await;
            let in_flight = self.world.attempt_begins();
            tokio::time::sleep(Duration::from_millis(1 + self.world.dice.below(400))).await;
            let plays = self.answer(&ask);
            self.world.point("before_head").await;
            play(self.world.clone(), plays, in_flight).await
        })
    }
}

fn failed(phase: Phase, kind: TransportKind) -> TransportError {
    TransportError { phase, kind, stale: false, message: format!("{kind:?} in {phase:?}") }
}

async fn play(world: World, plays: Vec<Play>, in_flight: InFlight) -> Result<HttpAnswer, TransportError> {
    let mut plays = plays.into_iter();
    loop {
        match plays.next() {
            Some(Play::WaitMs(ms)) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Some(Play::Head { status, headers }) => {
                let rest: Vec<Play> = plays.collect();
                let body = stream::unfold(
                    Body { world, rest: rest.into_iter(), _in_flight: in_flight, is_over: false },
                    next_piece,
                );
                return Ok(HttpAnswer { status, headers, body: Box::pin(body) });
            }
            Some(Play::Refuse | Play::Closed { .. }) => {
                return Err(failed(Phase::Connect, TransportKind::Refused));
            }
            Some(Play::Stall) => std::future::pending().await,
            Some(Play::Reset | Play::Rst | Play::Cut | Play::Bytes(_) | Play::End) | None => {
                return Err(failed(Phase::BeforeAnswer, TransportKind::Reset));
            }
        }
    }
}

struct Body {
    world: World,
    rest: std::vec::IntoIter<Play>,
    _in_flight: InFlight,
    is_over: bool,
}

async fn next_piece(mut body: Body) -> Option<(Result<Bytes, TransportError>, Body)> {
    if body.is_over {
        return None;
    }
    loop {
        match body.rest.next() {
            Some(Play::WaitMs(ms)) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Some(Play::Bytes(bytes)) => {
                if body.world.dice.is(150) {
                    body.world.point("in_body").await;
                }
                return Some((Ok(bytes), body));
            }
            Some(Play::Stall) => std::future::pending().await,
            Some(Play::Cut) => {
                body.is_over = true;
                return Some((Err(failed(Phase::Body, TransportKind::Ended)), body));
            }
            Some(Play::Rst) => {
                body.is_over = true;
                return Some((Err(failed(Phase::Body, TransportKind::Reset)), body));
            }
            Some(Play::End | Play::Refuse | Play::Closed { .. } | Play::Reset | Play::Head { .. }) | None => {
                return None;
            }
        }
    }
}
