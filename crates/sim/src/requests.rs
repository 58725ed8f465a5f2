//! What is held against each request: that it is legal, begins as the one before, and tells the truth.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use yaoki::core::record::Record;
use yaoki_lab::LogEntry;

use crate::model::{PROMPT, REFUSED};
use crate::plan::{FALLBACK, Plan};
use crate::world::World;

/// What the requests so far showed.
#[derive(Default)]
pub struct Requests {
    last: Option<Shape>,
    /// Not before this moment may the next attempt come: the server said so.
    not_before: Option<Instant>,
    /// Which planned call a provider's id stands for.
    tags: BTreeMap<String, String>,
    /// Names of attempts that went out.
    sent: BTreeSet<String>,
    /// Provider's ids of calls in messages that arrived whole.
    arrived: BTreeSet<String>,
    next_rounds: BTreeMap<usize, usize>,
    /// The last answer was of no use: what is asked next says so.
    wants_correction: bool,
    /// The prompts so far, and the model that was asked last in the turn of the last of them.
    asked: Option<(usize, String)>,
    last_fault: Option<&'static str>,
    /// A piece of a signed thought was doubled; it cannot be told from a good one until it is refused.
    is_thought_doubled: bool,
}

/// A request's bytes, apart.
struct Shape {
    body: String,
    /// Without cache marks, and without the model, `stream` and `max_tokens`, which may differ from attempt to attempt.
    head: String,
    model: String,
    /// The messages without cache marks.
    messages: String,
    count: usize,
    max_tokens: u64,
}

const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;
const MESSAGES: &str = r#","messages":["#;

impl Requests {
    /// A new life: what the network knew of the old process is gone.
    ///
    /// With `is_rebuilt` records may be gone too, and the model is asked from an earlier point.
    pub fn forget_process(&mut self, is_rebuilt: bool) {
        // The old process may have died before it read the time, or its turn may be over.
        self.not_before = None;
        self.wants_correction = false;
        if is_rebuilt {
            self.last = None;
            self.asked = None;
            self.sent.clear();
        }
    }

    /// Before the server answers: not too early, and each attempt once (I23).
    pub fn came(&mut self, world: &World, client_id: &str) {
        let is_new = self.sent.insert(client_id.to_owned());
        world.verdicts.hold("I23", is_new, || format!("attempt {client_id} is sent twice"));
        if let Some(not_before) = self.not_before.take() {
            let now = Instant::now();
            world.verdicts.hold("I23", now >= not_before, || {
                format!("asked {:?} before the time the server named", not_before - now)
            });
        }
    }

    pub fn told_to_wait(&mut self, ms: u64) {
        self.not_before = Some(Instant::now() + Duration::from_millis(ms));
    }

    pub fn thought_was_doubled(&mut self) {
        self.is_thought_doubled = true;
    }

    pub fn call_is(&mut self, id: &str, tag: &str) {
        self.tags.insert(id.to_owned(), tag.to_owned());
    }

    /// All of an answer has arrived: calls of these ids, a round of this turn.
    pub fn arrived(&mut self, ids: &[String], round: Option<(usize, usize)>, wants_correction: bool) {
        self.arrived.extend(ids.iter().cloned());
        if let Some((turn, round)) = round {
            let next = self.next_rounds.entry(turn).or_default();
            *next = (*next).max(round + 1);
        }
        self.wants_correction = wants_correction;
    }

    /// The round behind those of a turn that have arrived: no tag is used twice.
    pub fn rounds_arrived(&self, turn: usize) -> usize {
        self.next_rounds.get(&turn).copied().unwrap_or_default()
    }

    pub fn failed_with(&mut self, fault: Option<&'static str>) {
        self.last_fault = fault;
    }

    /// Once the strict server has read it: `text` as sent, `entry` as read.
    pub fn check(&mut self, world: &World, plan: &Plan, text: &str, entry: &LogEntry, refused: &[String]) {
        for message in refused {
            // Refused until the log says that thoughts are left out, also over a crash; the next request is another one.
            let is_dropped = || world.log().count(|record| matches!(record, Record::Dropped(_))) > 0;
            if self.is_thought_doubled && message.contains("signature") && !is_dropped() {
                self.last = None;
                return;
            }
            world.verdicts.broken("I9", format!("the API refuses a request: {message}"));
        }
        let messages = entry.body["messages"].as_array().map_or(&[][..], Vec::as_slice);
        let Some(shape) = Shape::of(text, messages.len()) else {
            return world.verdicts.broken("I6", "a request has another shape than the checks know");
        };
        let cap = u64::from(plan.max_tokens.unwrap_or(u32::MAX));
        world.verdicts.hold("cap", shape.max_tokens <= cap, || {
            format!("{} tokens are asked for, and the user allows {cap}", shape.max_tokens)
        });
        world.verdicts.hold("I10", !text.contains(REFUSED), || "a refused answer is history".to_owned());
        self.check_model(world, text, &shape.model);
        self.check_correction(world, &shape);
        // The last message of the request before may have grown.
        let seen = self.last.as_ref().map_or(0, |last| last.count.saturating_sub(1));
        if let Some(last) = &self.last {
            last.hold_against(&shape, world);
        }
        for message in messages.iter().skip(seen) {
            self.check_message(world, message);
        }
        self.last = Some(shape);
    }

    /// Within a turn the next model of the chain may be asked, for the rest of it, and not because we ask too often.
    fn check_model(&mut self, world: &World, text: &str, model: &str) {
        let turn = text.matches(&format!(r#""text":"{PROMPT}"#)).count();
        let last = self.asked.replace((turn, model.to_owned()));
        let Some((turn_before, from)) = last.filter(|(_, from)| from != model) else { return };
        // What one model signed is left out for the other.
        self.last = None;
        if turn_before != turn {
            return;
        }
        let is_onward = model == FALLBACK && !matches!(self.last_fault, Some("429" | "429_told"));
        world.verdicts.hold("model", is_onward, || {
            format!("{model} is asked after {from}, which failed with {:?}", self.last_fault)
        });
    }

    fn check_correction(&mut self, world: &World, shape: &Shape) {
        if !std::mem::take(&mut self.wants_correction) {
            return;
        }
        let is_said = self.last.as_ref().is_none_or(|last| last.messages != shape.messages);
        world.verdicts.hold("I13", is_said, || {
            "after an answer of no use the same is asked, and nothing is said".to_owned()
        });
    }

    fn check_message(&self, world: &World, message: &Value) {
        let parts = message["content"].as_array().map_or(&[][..], Vec::as_slice);
        for part in parts {
            let id = |name: &str| part[name].as_str().unwrap_or_default();
            match part["type"].as_str() {
                Some("tool_use") => {
                    let is_whole = self.arrived.contains(id("id"));
                    world.verdicts.hold("I10", is_whole, || format!("history holds a cut message: {part}"));
                }
                Some("tool_result") => {
                    if let Some(tag) = self.tags.get(id("tool_use_id")) {
                        check_result(world, tag, &part["content"]);
                    }
                }
                _ => {}
            }
        }
    }
}

/// What the model reads of a call is about that call, is true, and cannot be taken back by a crash (I13, I1).
fn check_result(world: &World, tag: &str, content: &Value) {
    let text = content.as_str().map(str::to_owned).unwrap_or_else(|| content.to_string());
    let verdicts = &world.verdicts;
    let says = |what: &str| text.contains(what);
    let is_unknown = says("[outcome unknown]") || world.is_damaged() && says("[no result was recorded");
    let is_refused = says("<tool_use_error>") || says("[not started") || says("[denied");
    let is_own = is_unknown || says("<tool_use_error>") || says("[not started") || says(tag);
    verdicts.hold("I13", is_own, || format!("the result of {tag} reads {text:?}"));
    if text.contains("ran (") {
        let is_true = world.executed(tag) > 0;
        verdicts.hold("I13", is_true, || format!("the model is told that {tag} ran, and it did not"));
        let is_durable = !world.had_effect(tag) || world.kept().contains(&format!("{tag} ran ("));
        verdicts.hold("I1", is_durable, || format!("the model reads the outcome of {tag}, not durable"));
    } else if is_refused && !is_unknown {
        verdicts
            .hold("I13", !world.had_effect(tag), || format!("{tag} happened, and the model reads {text:?}"));
    }
}

impl Shape {
    fn of(text: &str, count: usize) -> Option<Shape> {
        let (head, messages) = text.split_once(MESSAGES)?;
        let mut head = head.replace(MARK, "").replace(r#","stream":true"#, "");
        let at = head.find(r#","max_tokens":"#)?;
        let digits = head[at + 14..].bytes().take_while(u8::is_ascii_digit).count();
        let max_tokens = head[at + 14..at + 14 + digits].parse().ok()?;
        head.replace_range(at..at + 14 + digits, "");
        let messages = messages.strip_suffix("]}")?.replace(MARK, "");
        let model = head.strip_prefix(r#"{"model":""#)?.split('"').next()?.to_owned();
        head.replace_range(..r#"{"model":"""#.len() + model.len(), "");
        Some(Shape { model, body: text.to_owned(), head, messages, max_tokens, count })
    }

    /// A later request begins with the bytes of an earlier one (I6).
    fn hold_against(&self, next: &Shape, world: &World) {
        let verdicts = &world.verdicts;
        verdicts.hold("I6", self.head == next.head, || {
            format!("system or tools changed within a session: {} and {}", self.head, next.head)
        });
        if self.messages == next.messages {
            // A request of its own may have the messages of the one before and another cap.
            let is_streamed = |shape: &Shape| shape.body.contains(r#","stream":true"#);
            let is_other_way = is_streamed(self) != is_streamed(next) || self.max_tokens != next.max_tokens;
            let is_same = is_other_way || self.body == next.body;
            return verdicts.hold("I6", is_same, || "the same request is sent in other bytes".to_owned());
        }
        let open = self.messages.strip_suffix("]}").unwrap_or(&self.messages);
        let rest = next.messages.strip_prefix(open);
        let is_grown = rest.is_some_and(|rest| rest.starts_with(',') || rest.starts_with(']'));
        verdicts.hold("I6", is_grown, || {
            format!(
                "a request does not begin with what the one before showed: {} and {}",
                self.messages, next.messages
            )
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(messages: &str) -> Shape {
        let text =
            format!(r#"{{"model":"m","max_tokens":100,"system":[],"stream":true,"messages":[{messages}]}}"#);
        Shape::of(&text, 1).unwrap()
    }

    #[test]
    fn what_may_differ_from_attempt_to_attempt_is_no_part_of_the_head() {
        let one = Shape::of(r#"{"model":"m","max_tokens":1,"stream":true,"messages":[]}"#, 0).unwrap();
        let other = Shape::of(r#"{"model":"m","max_tokens":20,"messages":[]}"#, 0).unwrap();
        assert_eq!(one.head, other.head);
        assert_eq!((one.model.as_str(), one.head.as_str()), ("m", ""));
    }

    #[test]
    fn the_mark_moves_and_the_last_message_grows() {
        let world = crate::schedule::still_world();
        let first = shape(r#"{"role":"user","content":[{"a":1,"cache_control":{"type":"ephemeral"}}]}"#);
        first.hold_against(
            &shape(r#"{"role":"user","content":[{"a":1},{"b":2}]},{"role":"x","content":[]}"#),
            &world,
        );
        assert!(world.verdicts.is_empty());
        first.hold_against(&shape(r#"{"role":"user","content":[{"a":2},{"b":2}]}"#), &world);
        assert_eq!(world.verdicts.take().len(), 1);
    }
}
