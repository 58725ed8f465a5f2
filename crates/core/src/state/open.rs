//! What is open: the turn, its request, its operations. As plain as the records it is folded from.

use std::collections::{BTreeMap, BTreeSet};

use crate::fault::Failure;
use crate::ids::CallId;
use crate::ledger::Ledger;
use crate::message::{Block, Call, CallResult, StopReason, Usage, visible_text};
use crate::record::Intent;
use crate::terminal::Transition;

/// A turn that has begun and not ended.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenTurn {
    /// The seq of the input that opened it.
    pub input_seq: u64,
    pub max_turns: Option<u32>,
    /// Messages committed in it.
    pub rounds: u32,
    pub ledger: Ledger,
    pub usage: Usage,
    pub attempts_failed: u32,
    /// The model that serves the rest of the turn in place of the session's.
    pub model: Option<String>,
    /// Text of messages that the latest one continues.
    pub text_before: String,
    /// The request that is being asked, from its first attempt to its answer.
    pub request: Option<OpenRequest>,
    /// The committed message whose calls are being answered.
    pub calls: Vec<Call>,
    /// Calls before this one all have results.
    pub(super) settled_to: usize,
    /// Calls of that message that were intended, by digest, in order: their ordinals.
    pub(super) intended: BTreeMap<String, Vec<CallId>>,
    /// The key that each of them got.
    pub(super) keys: BTreeMap<CallId, OpKey>,
    /// Part of the log behind that message is gone: a call without an operation may have run all the same.
    pub is_gapped: bool,
    /// Calls of it that were to run again because nobody knows whether they did.
    pub(super) ran_perhaps: BTreeSet<CallId>,
    pub stop: Option<StopReason>,
    /// Rounds in a row whose calls and results are the same.
    pub alike: Alike,
    /// Calls that permission was refused for.
    pub denials: Vec<Call>,
    pub last_failure: Option<Failure>,
    /// The turn's latest message from the model.
    pub last_blocks: Vec<Block>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OpKey {
    pub(super) digest: String,
    pub(super) key: String,
}

/// How often in a row the model did the same and got the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Alike {
    /// Digest of the last round's calls and results.
    last: Option<blake3::Hash>,
    pub count: u32,
    pub are_errors: bool,
}

impl Alike {
    /// Takes a round whose calls all have results.
    pub(super) fn take(&mut self, round: &[(&Call, &CallResult)]) {
        let mut hasher = blake3::Hasher::new();
        for (call, result) in round {
            for text in [call.tool.as_str(), call.input.get(), &result.text()] {
                hasher.update(&(text.len() as u64).to_le_bytes());
                hasher.update(text.as_bytes());
            }
        }
        let digest = Some(hasher.finalize());
        self.count = if self.last == digest { self.count + 1 } else { 1 };
        self.last = digest;
        self.are_errors = round.iter().all(|(_, result)| result.is_error);
    }

    /// The model was told; what follows is counted anew.
    pub(super) fn told(&mut self) {
        self.count = 0;
    }
}

/// One logical request and its attempts so far.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenRequest {
    pub number: u64,
    /// Attempts that began.
    pub attempts: u32,
    /// Whether the last one has not ended.
    pub is_asking: bool,
    pub is_streamed: bool,
    /// Retries that cost one.
    pub retries: u32,
    pub streams_broken: u32,
    /// Overloads in a row, of the model that is asked now.
    pub overloads: u32,
    /// The session clock at the first failure.
    pub failing_since_ms: Option<u64>,
    /// How the last attempt failed, until a rule has answered it.
    pub unanswered: Option<Failure>,
    pub wait: Option<Wait>,
    /// Whether the next attempt goes out in one piece.
    pub unstreamed_next: bool,
    pub max_tokens: Option<u32>,
}

/// A wait before the next attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    pub rule: String,
    pub transition: Transition,
    pub after_ms: u64,
    /// The session clock when it began.
    pub since_ms: u64,
}

/// One operation, from its intent on.
#[derive(Debug, Clone, PartialEq)]
pub struct Op {
    pub intent: Intent,
    pub phase: OpPhase,
    /// The epoch in which it was allowed.
    pub allowed_in: Option<u32>,
    /// Why it was not allowed. A no holds also if the process died before the call was answered with it.
    pub denied: Option<String>,
    /// Records behind its intent are gone: it may have run, and what it left may have been cleared away.
    pub is_doubtful: bool,
    pub starts: u32,
}

/// The states of effects.md that this version reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpPhase {
    Intended,
    Permitted,
    Started,
    Detached,
    Done,
    /// Denied or cancelled before it started.
    Dropped,
    Unknown,
    Settled,
}

impl OpPhase {
    pub fn is_open(self) -> bool {
        match self {
            OpPhase::Intended | OpPhase::Permitted | OpPhase::Started => true,
            OpPhase::Detached | OpPhase::Done | OpPhase::Dropped | OpPhase::Unknown | OpPhase::Settled => {
                false
            }
        }
    }
}

impl OpenTurn {
    pub(super) fn opened_by(input_seq: u64, max_turns: Option<u32>) -> Self {
        Self {
            input_seq,
            max_turns,
            rounds: 0,
            ledger: Ledger::default(),
            usage: Usage::default(),
            attempts_failed: 0,
            model: None,
            text_before: String::new(),
            request: None,
            calls: Vec::new(),
            settled_to: 0,
            intended: BTreeMap::new(),
            keys: BTreeMap::new(),
            is_gapped: false,
            ran_perhaps: BTreeSet::new(),
            stop: None,
            alike: Alike::default(),
            denials: Vec::new(),
            last_failure: None,
            last_blocks: Vec::new(),
        }
    }
}

impl OpenTurn {
    /// The latest message goes on in the next one. One whose calls were answered stays a round of its own.
    pub(super) fn continue_message(&mut self) {
        if self.stop.take().is_some() && !crate::mutant!("continuation-counts-as-round") {
            self.rounds = self.rounds.saturating_sub(u32::from(self.calls.is_empty()));
        }
        self.text_before = self.text();
    }

    /// What the person reads as the turn's latest message: its text behind that of the messages it continues.
    pub fn text(&self) -> String {
        joined(&self.text_before, &visible_text(&self.last_blocks))
    }
}

/// Two pieces of one text. A model that goes on may say its last words again: they are left out.
fn joined(before: &str, after: &str) -> String {
    if before.trim().is_empty() {
        return after.to_owned();
    }
    let starts = before.char_indices().rev().map(|(at, _)| at);
    let overlap = starts
        .skip(REPEAT_MIN - 1)
        .take(REPEAT_MAX - REPEAT_MIN)
        .filter(|at| after.starts_with(&before[*at..]) && !crate::mutant!("continuation-repeats-itself"))
        .last();
    format!("{}{after}", &before[..overlap.unwrap_or(before.len())])
}

/// Fewer characters than these may be equal by chance.
const REPEAT_MIN: usize = 12;
const REPEAT_MAX: usize = 2_000;

impl OpenRequest {
    pub(super) fn new(number: u64) -> Self {
        Self {
            number,
            attempts: 0,
            is_asking: false,
            is_streamed: true,
            retries: 0,
            streams_broken: 0,
            overloads: 0,
            failing_since_ms: None,
            unanswered: None,
            wait: None,
            unstreamed_next: false,
            max_tokens: None,
        }
    }

    pub(super) fn begin(&mut self, attempt: u32, is_streamed: bool) {
        self.attempts = attempt;
        self.is_asking = true;
        self.is_streamed = is_streamed;
        self.wait = None;
        self.unanswered = None;
    }
}

impl Op {
    pub(super) fn intended(intent: Intent) -> Self {
        Self {
            intent,
            phase: OpPhase::Intended,
            allowed_in: None,
            denied: None,
            is_doubtful: false,
            starts: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_goes_on_without_saying_its_last_words_again() {
        for (before, after, want) in [
            ("", "all", "all"),
            (" \n", "all", "all"),
            ("ban", "ana", "banana"),
            ("one and the same line, ", "the same line, and on", "one and the same line, and on"),
            ("naïve née, déjà vu", "née, déjà vu, encore", "naïve née, déjà vu, encore"),
            ("the whole of it", "the whole of it", "the whole of it"),
            ("no repeat here at all", " and on", "no repeat here at all and on"),
        ] {
            assert_eq!(joined(before, after), want, "{before:?} + {after:?}");
        }
    }
}
