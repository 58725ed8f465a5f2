//! Someone who watches a session and believes what they are told: nothing they rely on may be taken back.

use std::collections::BTreeSet;

use yaoki::core::event::{Event, TurnSummary};
use yaoki::core::ids::OpId;
use yaoki::core::message::{BlockBody, Reply, Usage};
use yaoki::core::record::{AttemptEnd, Record};
use yaoki::core::terminal::{TerminalReason, Transition};

use crate::log::Log;
use crate::model::CUT_END;
use crate::world::{OpState, World};

/// What onlookers were told and may rely on, over all lives of the process.
#[derive(Debug, Clone, Default)]
pub struct Acks {
    pub inputs: u64,
    pub ends: u64,
    pub retries: u64,
    pub ops: BTreeSet<OpId>,
}

/// An onlooker of one life.
pub struct Onlooker<'a> {
    world: World,
    acks: &'a mut Acks,
    is_turn_open: bool,
    /// Request and attempt that is being asked.
    asking: Option<(u64, u32)>,
    /// What was shown of it and is neither committed nor withdrawn.
    text: String,
    thought: String,
    /// Rounds of the turn that were seen; none when an earlier process began it.
    rounds: Option<u32>,
    running: BTreeSet<OpId>,
    over: BTreeSet<OpId>,
    max_turns: Option<u32>,
}

impl<'a> Onlooker<'a> {
    pub fn new(world: World, acks: &'a mut Acks, is_turn_open: bool, max_turns: Option<u32>) -> Self {
        Onlooker {
            world,
            acks,
            is_turn_open,
            asking: None,
            text: String::new(),
            thought: String::new(),
            rounds: None,
            running: BTreeSet::new(),
            over: BTreeSet::new(),
            max_turns,
        }
    }

    pub fn see(&mut self, event: &Event) {
        // The dead tell nobody anything.
        if self.world.is_dying() {
            return;
        }
        self.world.trace.closely(event);
        let is_lost = matches!(event, Event::TurnEnded(end) if end.reason == TerminalReason::StorageFailed);
        if is_lost {
            return;
        }
        let is_apart = matches!(event, Event::Accepted { .. } | Event::Notice { .. });
        self.hold("events", is_apart || self.is_turn_open, || format!("outside a turn: {event:?}"));
        match event {
            Event::Accepted { .. } => self.accepted(),
            Event::Asking { request, attempt, .. } => self.asking(*request, *attempt),
            Event::Text { request, piece } => {
                self.is_asking(*request, event);
                self.text.push_str(piece);
            }
            Event::Thinking { request, piece } => {
                self.is_asking(*request, event);
                self.thought.push_str(piece);
            }
            Event::CallForming { request, .. } => self.is_asking(*request, event),
            Event::Withdrawn { request, shown, .. } => self.withdrawn(*request, *shown, event),
            Event::Committed { reply, .. } => self.committed(reply),
            Event::RequestFailed { .. } => self.is_settled(event),
            Event::Retrying { .. } => {
                self.is_settled(event);
                self.retrying();
            }
            Event::Recovering { transition, .. } => self.recovering(*transition, event),
            Event::CallStarted { op, .. } => {
                let is_new = self.running.insert(*op) && !self.over.contains(op);
                self.hold("events", is_new, || format!("twice: {event:?}"));
            }
            Event::CallOutput { op, .. } => {
                self.hold("events", !self.over.contains(op), || format!("after its end: {event:?}"));
            }
            Event::CallEnded { op, tool, .. } => self.call_over(*op, "outcome", tool == "look"),
            Event::Detached { op, .. } => self.call_over(*op, "detached", false),
            Event::OutcomeUnknown { op, tool, .. } => {
                self.call_over(*op, "unknown", false);
                self.is_unknown(*op, tool);
            }
            Event::CallRefused { .. } | Event::Notice { .. } => {}
            Event::TurnEnded(summary) => self.ended(summary),
        }
    }

    fn accepted(&mut self) {
        self.hold("events", !self.is_turn_open, || "a prompt is accepted within a turn".to_owned());
        self.is_turn_open = true;
        self.rounds = Some(0);
        self.acks.inputs += 1;
        let (told, kept) = (self.acks.inputs, self.world.kept().count("input"));
        self.hold("I1", kept >= told, || format!("{told} prompts accepted, {kept} durable"));
    }

    fn asking(&mut self, request: u64, attempt: u32) {
        let is_next = self.asking.is_none_or(|last| last < (request, attempt));
        self.hold("events", is_next, || format!("attempt {attempt} of request {request} is not the next"));
        let is_clear = self.text.is_empty() && self.thought.is_empty();
        self.hold("I7", is_clear, || format!("asked again over text that was shown: {:?}", self.text));
        self.asking = Some((request, attempt));
    }

    fn is_asking(&self, request: u64, event: &Event) {
        let is_it = self.asking.is_some_and(|(asked, _)| asked == request);
        self.hold("events", is_it, || format!("of no open request: {event:?}"));
    }

    /// What is withdrawn is what was shown.
    fn withdrawn(&mut self, request: u64, shown: u64, event: &Event) {
        self.is_asking(request, event);
        let seen = (self.text.chars().count() + self.thought.chars().count()) as u64;
        self.hold("I7", seen == shown, || format!("{seen} characters were shown, {shown} withdrawn"));
        self.text.clear();
        self.thought.clear();
    }

    /// What becomes history is what was shown.
    fn committed(&mut self, reply: &Reply) {
        let (mut text, mut thought) = (String::new(), String::new());
        for block in &reply.blocks {
            match &block.body {
                BlockBody::Text { text: piece } => text.push_str(piece),
                BlockBody::Thinking { text: piece } => thought.push_str(piece),
                BlockBody::Call(_) | BlockBody::Media(_) | BlockBody::Other { .. } => {}
            }
        }
        let is_same = text == self.text && thought == self.thought;
        self.hold("I7", is_same, || format!("{:?} was shown, {text:?} is history", self.text));
        self.text.clear();
        self.thought.clear();
        self.rounds = self.rounds.map(|rounds| rounds + 1);
    }

    /// A rule acted on an answer, which is history by then or withdrawn.
    fn recovering(&mut self, transition: Transition, event: &Event) {
        self.is_settled(event);
        if transition.continues_message() {
            // The message and the one that goes on from it are one round.
            self.rounds = self.rounds.map(|rounds| rounds.saturating_sub(1));
        }
    }

    /// What a recovery cost is on disk before it is paid for, or a crash would refill it (I21).
    fn retrying(&mut self) {
        self.acks.retries += 1;
        let (told, kept) = (self.acks.retries, self.world.kept().count("budget"));
        self.hold("I21", kept >= told, || format!("{told} retries shown, {kept} durable"));
    }

    fn is_settled(&self, event: &Event) {
        let is_clear = self.text.is_empty() && self.thought.is_empty();
        self.hold("I7", is_clear, || format!("{:?} is neither history nor withdrawn: {event:?}", self.text));
    }

    fn call_over(&mut self, op: OpId, kind: &str, is_pure: bool) {
        self.running.remove(&op);
        let is_first = self.over.insert(op);
        self.hold("events", is_first, || format!("{op} ended twice"));
        if !is_pure {
            self.acks.ops.insert(op);
            let is_kept = self.world.kept().has(kind, op);
            self.hold("I1", is_kept, || format!("the {kind} of {op} is shown and not durable"));
        }
    }

    /// Nobody is told that an outcome is unknown which could have been known (I17), unless traces are gone.
    fn is_unknown(&self, op: OpId, tool: &str) {
        if self.world.is_damaged() {
            return;
        }
        let is_known = match tool {
            "look" | "edit" => true,
            "act" => matches!(self.world.command(op), Some(OpState::Exited { .. } | OpState::Running)),
            _ => false,
        };
        self.hold("I17", !is_known, || {
            format!("the outcome of {op} ({tool}) is there, and said to be unknown")
        });
    }

    fn ended(&mut self, summary: &TurnSummary) {
        let rounds = summary.rounds;
        self.is_turn_open = false;
        let is_said_once = !summary.text.contains(&format!("{CUT_END}{CUT_END}"));
        self.hold("I7", is_said_once, || format!("a continued text repeats itself: {:?}", summary.text));
        let spent = spent_in_turn(&self.world.log());
        let is_counted = spent == summary.usage || self.world.is_damaged();
        self.hold("I22", is_counted, || format!("{spent:?} was spent, {:?} is counted", summary.usage));
        self.hold("I31", self.running.is_empty(), || format!("the turn ended while {:?} run", self.running));
        let is_clear = self.text.is_empty() && self.thought.is_empty();
        self.hold("I7", is_clear, || format!("the turn ended over {:?}", self.text));
        if let Some(seen) = self.rounds.take() {
            self.hold("I22", seen == rounds, || format!("{seen} rounds were seen, {rounds} are counted"));
        }
        let is_within = self.max_turns.is_none_or(|max| rounds <= max);
        self.hold("I22", is_within, || format!("{rounds} rounds, of {:?} allowed", self.max_turns));
        self.acks.ends += 1;
        let (told, kept) = (self.acks.ends, self.world.kept().count("turn_end"));
        self.hold("I1", kept >= told, || format!("{told} turns told as ended, {kept} durable"));
    }

    fn hold(&self, invariant: &'static str, holds: bool, what: impl FnOnce() -> String) {
        self.world.verdicts.hold(invariant, holds, what);
    }
}

/// What all answers of the turn that ended last cost, kept or not.
fn spent_in_turn(log: &Log) -> Usage {
    let mut spent = Usage::default();
    let until_end = log.records().rev().skip_while(|(_, record)| !matches!(record, Record::TurnEnd(_)));
    for (_, record) in until_end.take_while(|(_, record)| !matches!(record, Record::InputGiven(_))) {
        if let Record::AttemptEnd(AttemptEnd { usage: Some(usage), .. }) = record {
            spent.add(*usage);
        }
    }
    spent
}
