//! What a complete message leads to, and how a turn ends.

use super::Turn;
use crate::event::{Denial, Event, Level, TurnSummary};
use crate::message::{StopReason, visible_text};
use crate::record::TurnEnd;
use crate::terminal::TerminalReason;

/// Pauses of server-side work that one turn sits through.
const PAUSES_MAX: u32 = 8;

impl Turn {
    /// Goes by the stop reason of a message all of whose calls are answered.
    pub(super) fn answer_is_complete(&mut self) {
        let Some(turn) = &self.state.turn else { return };
        let Some(stop) = turn.stop.clone() else { return };
        let has_calls = !turn.calls.is_empty();
        let pauses = turn.pauses;
        match stop {
            StopReason::ToolUse if has_calls => self.ask(),
            StopReason::ToolUse => self.end(
                TerminalReason::MalformedToolUseExhausted,
                Some("the model stopped for tool use without a tool call".to_owned()),
                None,
            ),
            StopReason::EndTurn | StopReason::StopSequence => self.finish(),
            StopReason::MaxTokens if has_calls => self.ask(),
            StopReason::MaxTokens | StopReason::ContextWindow => self.end(
                TerminalReason::MaxOutputTokens,
                Some(
                    "the answer was cut at the output limit; raise maxTokens or ask for smaller pieces"
                        .to_owned(),
                ),
                None,
            ),
            StopReason::PauseTurn if pauses <= PAUSES_MAX => self.ask(),
            StopReason::PauseTurn => {
                self.notice(
                    Level::Warn,
                    format!("the service paused more than {PAUSES_MAX} times; the turn ends here"),
                );
                self.finish();
            }
            StopReason::Refusal => {
                self.end(TerminalReason::Refusal, Some("the model refused to answer".to_owned()), None);
            }
            StopReason::Other(name) => {
                self.notice(
                    Level::Warn,
                    format!("the model stopped for a reason this version does not know ({name:?})"),
                );
                self.finish();
            }
        }
    }

    fn finish(&mut self) {
        let Some(turn) = &self.state.turn else { return };
        if !visible_text(&turn.last_blocks).trim().is_empty() {
            return self.end(TerminalReason::Completed, None, None);
        }
        if turn.rounds > 1 {
            self.notice(Level::Warn, "the model ended without a word; its work is done, its answer is empty");
            return self.end(TerminalReason::Completed, None, None);
        }
        self.end(TerminalReason::EmptyAnswer, Some("the model's answer was empty".to_owned()), None);
    }

    /// Ends the turn. The reason is durable before anyone is told.
    pub(super) fn end(&mut self, reason: TerminalReason, error: Option<String>, resumes_at: Option<String>) {
        let summary = self.summary(reason, error.clone(), resumes_at.clone());
        self.write(TurnEnd { reason, error, resumes_at });
        if !crate::mutant!("turn-end-not-synced") {
            self.barrier();
        }
        self.judged.clear();
        self.stopping = None;
        self.tell_durable(Event::TurnEnded(summary));
        if let Some(input) = self.next_prompts.pop_front() {
            self.begin(input);
        }
    }

    pub(super) fn summary(
        &self,
        reason: TerminalReason,
        error: Option<String>,
        resumes_at: Option<String>,
    ) -> TurnSummary {
        let turn = self.state.turn.as_ref();
        TurnSummary {
            reason,
            text: turn.map(|turn| visible_text(&turn.last_blocks)).unwrap_or_default(),
            error,
            resumes_at,
            failure: turn.and_then(|turn| turn.last_failure.clone()),
            rounds: turn.map_or(0, |turn| turn.rounds),
            usage: turn.map(|turn| turn.usage).unwrap_or_default(),
            attempts_failed: turn.map_or(0, |turn| turn.attempts_failed),
            denials: turn.map(|turn| turn.denials.iter().map(to_denial).collect()).unwrap_or_default(),
            stop: turn.and_then(|turn| turn.stop.clone()),
        }
    }
}

fn to_denial(call: &crate::message::Call) -> Denial {
    Denial { call: call.id.clone(), tool: call.tool.clone(), input: call.input.clone() }
}
