//! The simulated model and the network before it: a transport whose answers are the lab's.
//!
//! The model goes by what the request shows – how many of its own messages stand after the last prompt – so a
//! repeated, resumed or rebuilt request meets the same plan, under new ids. The lab's strict checks hold for
//! every request.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream;
use serde_json::{Value, json};
use yaoki::wire::transport::{HttpAnswer, HttpAsk, Phase, Transport, TransportError, TransportKind};
use yaoki_lab::{
    Answer, Block, Fault, How, HttpAsk as LabAsk, Lab, Place, Play, RetryAfter, Script, StatusFault, Step,
    Verdict,
};

use crate::coverage::{ANSWER_FAULTS, FLAWS};
use crate::plan::{Plan, Round};
use crate::requests::Requests;
use crate::world::{InFlight, World};

/// Prompts are told apart by this beginning.
pub const PROMPT: &str = "prompt ";
/// The prompt that ends every schedule, when all faults have ceased.
pub const LAST_PROMPT: &str = "prompt last";
/// How a text ends that is cut at the cap, and how its continuation begins.
pub const CUT_END: &str = "is cut right at this place";
/// What the model says when it refuses: no part of any history.
pub const REFUSED: &str = "none of this will be said";
/// What a told wait is, in milliseconds.
const TOLD_MS: u64 = 3_000;

pub struct SimModel {
    pub world: World,
    pub plan: Arc<Plan>,
    requests: Arc<Mutex<Requests>>,
    asks: Mutex<u64>,
}

/// An answer and the calls in it.
struct Said {
    answer: Answer,
    ids: Vec<String>,
    /// Those that may run once all of it has arrived.
    callable: Vec<String>,
    /// The round of the plan that it is.
    round: Option<(usize, usize)>,
}

impl Said {
    fn only(answer: Answer) -> Self {
        Said { answer, ids: Vec::new(), callable: Vec::new(), round: None }
    }
}

impl SimModel {
    pub fn new(world: World, plan: Arc<Plan>) -> Self {
        Self { world, plan, requests: Arc::default(), asks: Mutex::default() }
    }

    pub fn requests(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().expect("unpoisoned")
    }

    fn answer(&self, ask: &HttpAsk) -> (Vec<Play>, Arrival) {
        self.world.trace.bytes(&ask.body);
        self.requests().came(&self.world, ask.header("x-client-request-id").unwrap_or_default());
        let text = std::str::from_utf8(&ask.body).unwrap_or_default();
        let is_streamed = text.contains(r#","stream":true,"#);
        let fault = self.choose_fault(is_streamed);
        let flaw = match fault.is_none() && self.world.may_fault(self.world.swarm.flaws) {
            true => Some(*self.world.dice.pick(&FLAWS)),
            false => None,
        };
        let said = flaw.map_or_else(|| self.say(text), |flaw| self.flawed(flaw));
        let is_answered = fault.as_ref().is_none_or(|(_, fault)| fault.has_answer());
        let step = match &fault {
            Some((_, fault)) if !fault.has_answer() => Step::fault(fault.clone()),
            Some((_, fault)) => Step::answer(said.answer).with_fault(fault.clone()),
            None => Step::answer(said.answer),
        };
        let mut lab = Lab::new(Script::of(vec![step]));
        let plan = lab
            .answer(&LabAsk::new("POST", "/v1/messages", &ask.headers, &ask.body).at(0, 1_796_000_000_000));
        let refused: Vec<String> = lab.report().refused.into_iter().map(|refusal| refusal.message).collect();
        let entry = lab.entries().next_back().expect("what was asked is in the log");
        let mut requests = self.requests();
        requests.check(&self.world, &self.plan, text, entry, &refused);
        requests.failed_with(fault.as_ref().map(|(name, _)| *name));
        if let Some(flaw) = flaw {
            self.world.hit(flaw, "answer");
        }
        if let Some((name, _)) = &fault
            && matches!(entry.verdict, Verdict::Step { fault: Some(_), .. })
        {
            self.world.hit(name, "answer");
            match *name {
                "duplicate" => requests.thought_was_doubled(),
                "429_told" => requests.told_to_wait(TOLD_MS),
                _ => {}
            }
        }
        drop(requests);
        let arrival = Arrival {
            world: self.world.clone(),
            requests: Arc::clone(&self.requests),
            calls: is_answered.then_some((said.ids, said.callable)),
            round: said.round,
            wants_correction: matches!(flaw, Some("no_call" | "void")),
            is_streamed,
            heard: Vec::new(),
        };
        (plan.plays, arrival)
    }

    fn choose_fault(&self, is_streamed: bool) -> Option<(&'static str, Fault)> {
        if !self.world.may_fault(self.world.swarm.answer_faults) {
            return None;
        }
        let dice = &self.world.dice;
        let name = match self.world.swarm.is_outage {
            true if self.world.swarm.is_quota => "429",
            true => *dice.pick(&ANSWER_FAULTS[..4]),
            false => *dice.pick(&ANSWER_FAULTS),
        };
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
    fn say(&self, request: &str) -> Said {
        let last = request.rfind(r#""role":"assistant""#).map_or("", |at| &request[at..]);
        if last.contains(CUT_END) {
            // As models do when they are asked to go on.
            return Said::only(Answer::text(format!("{CUT_END} and goes on to its end")));
        }
        let (turn, shown) = position(request);
        let rounds = shown.max(self.requests().rounds_arrived(turn));
        match self.plan.turns.get(turn).and_then(|turn| turn.get(rounds).or(turn.last())) {
            Some(round) => Said { round: Some((turn, rounds)), ..self.round(round) },
            None => Said::only(Answer::text("everything is well")),
        }
    }

    /// A whole answer that is not a good one.
    fn flawed(&self, flaw: &str) -> Said {
        Said::only(match flaw {
            "cut_text" => {
                Answer::text(format!("a long answer, of which the rest {CUT_END}")).stopped("max_tokens")
            }
            "no_call" => Answer::text("now for a call").stopped("tool_use"),
            "refusal" => Answer::text(REFUSED).stopped("refusal"),
            "pause" => Answer::blocks(self.paused()).stopped("pause_turn"),
            _ => Answer::blocks(Vec::new()),
        })
    }

    /// Work that the service does itself, under way.
    fn paused(&self) -> Vec<Block> {
        let mut asks = self.asks.lock().expect("unpoisoned");
        *asks += 1;
        let id = format!("srvtoolu_{asks}");
        let call = json!({ "type": "server_tool_use", "id": id, "name": "web_search", "input": {} });
        let result = json!({ "type": "web_search_tool_result", "tool_use_id": id, "content": [] });
        vec![Block::Raw(call), Block::Raw(result)]
    }

    fn round(&self, round: &Round) -> Said {
        let mut asks = self.asks.lock().expect("unpoisoned");
        let mut requests = self.requests();
        let mut blocks = Vec::new();
        if round.has_thinking {
            blocks.push(Block::Thinking("let me see – schrittweise".to_owned()));
        }
        blocks.extend(round.text.clone().map(Block::Text));
        let mut ids = Vec::new();
        for call in &round.calls {
            *asks += 1;
            let id = format!("toolu_{asks}");
            requests.call_is(&id, &call.tag);
            ids.push(id.clone());
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
        let whole = round.calls.iter().filter(|call| !call.is_broken);
        let callable = whole.map(|call| call.tag.clone()).collect();
        match round.stop {
            Some(stop) if !round.calls.is_empty() => {
                Said { answer: Answer::blocks(blocks).stopped(stop), ids, callable: Vec::new(), round: None }
            }
            _ => Said { answer: Answer::blocks(blocks), ids, callable, round: None },
        }
    }
}

/// Which prompt is the last one in a request, and which round of its plan is next.
///
/// By the tags that are shown, because messages that follow each other become one; and by the count of messages,
/// because the input of a broken call is not shown.
fn position(request: &str) -> (usize, usize) {
    let number = |text: &str| {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        text[..digits].parse::<usize>().ok()
    };
    let lead = format!(r#""text":"{PROMPT}"#);
    let Some(at) = request.rfind(&lead) else { return (usize::MAX, 0) };
    let rest = &request[at + lead.len()..];
    let Some(turn) = number(rest) else { return (usize::MAX, 0) };
    let tag = format!(r#""tag":"t{turn}r"#);
    let shown = rest.rfind(&tag).and_then(|at| number(&rest[at + tag.len()..]));
    let count = rest.matches(r#""role":"assistant""#).count();
    (turn, shown.map_or(0, |round| round + 1).max(count))
}

/// Watches the bytes of an answer arrive.
struct Arrival {
    world: World,
    requests: Arc<Mutex<Requests>>,
    /// Provider's ids and tags of the calls in it, until all of it has arrived.
    calls: Option<(Vec<String>, Vec<String>)>,
    round: Option<(usize, usize)>,
    /// It is of no use, and the next request must say so.
    wants_correction: bool,
    is_streamed: bool,
    heard: Vec<u8>,
}

impl Arrival {
    fn bytes(&mut self, bytes: &[u8]) {
        const LAST_EVENT: &[u8] = br#""type":"message_stop"}"#;
        if self.calls.is_none() {
            return;
        }
        self.heard.extend_from_slice(bytes);
        if !self.is_streamed {
            return;
        }
        // Only the end can be new.
        let from = self.heard.len().saturating_sub(bytes.len() + LAST_EVENT.len());
        if self.heard[from..].windows(LAST_EVENT.len()).any(|window| window == LAST_EVENT) {
            self.is_whole();
        }
    }

    fn is_whole(&mut self) {
        if let Some((ids, callable)) = self.calls.take() {
            self.requests.lock().expect("unpoisoned").arrived(&ids, self.round, self.wants_correction);
            self.world.may_call(&callable);
        }
    }
}

impl Transport for SimModel {
    fn send(&self, ask: HttpAsk) -> BoxFuture<'_, Result<HttpAnswer, TransportError>> {
        Box::pin(async move {
            self.world.point("before_send").await;
            let in_flight = self.world.attempt_begins();
            tokio::time::sleep(Duration::from_millis(1 + self.world.dice.below(400))).await;
            let (plays, arrival) = self.answer(&ask);
            self.world.point("before_head").await;
            play(plays, arrival, in_flight).await
        })
    }
}

fn failed(phase: Phase, kind: TransportKind) -> TransportError {
    TransportError { phase, kind, stale: false, message: format!("{kind:?} in {phase:?}") }
}

async fn play(plays: Vec<Play>, arrival: Arrival, in_flight: InFlight) -> Result<HttpAnswer, TransportError> {
    let mut plays = plays.into_iter();
    loop {
        match plays.next() {
            Some(Play::WaitMs(ms)) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Some(Play::Head { status, headers }) => {
                let body = stream::unfold(
                    Body { rest: plays, arrival, _in_flight: in_flight, is_over: false },
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
    rest: std::vec::IntoIter<Play>,
    arrival: Arrival,
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
                if body.arrival.world.dice.is(150) {
                    body.arrival.world.point("in_body").await;
                }
                body.arrival.bytes(&bytes);
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
            Some(Play::End) if !body.arrival.is_streamed => {
                if body.arrival.heard.ends_with(b"}") {
                    body.arrival.is_whole();
                }
                return None;
            }
            Some(Play::End | Play::Refuse | Play::Closed { .. } | Play::Reset | Play::Head { .. }) | None => {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_knows_where_it_is_by_what_the_request_shows() {
        let request = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"prompt 0"}]},{"role":"assistant","content":[]},{"role":"user","content":[{"type":"text","text":"prompt 1"}]},{"role":"assistant","content":[]}]}"#;
        assert_eq!(position(request), (1, 1));
        assert_eq!(position(&request.replace("prompt 1", LAST_PROMPT)), (usize::MAX, 0));
        let called = request.replace("[]}]}", r#"[{"input":{"tag":"t1r4c0"}}]}]}"#);
        assert_eq!(position(&called), (1, 5));
        assert_eq!(position("{}"), (usize::MAX, 0));
    }
}
