//! What a complete message leads to, and how a turn ends.

use super::Turn;
use crate::event::{Denial, Event, Level, TurnSummary};
use crate::fault::Fault;
use crate::message::StopReason;
use crate::record::TurnEnd;
use crate::state::OpenTurn;
use crate::terminal::TerminalReason;

impl Turn {
    /// Goes by the stop reason of a message all of whose calls are answered.
    pub(super) fn answer_is_complete(&mut self) {
        let Some(turn) = &self.state.turn else { return };
        let Some(stop) = turn.stop.clone() else { return };
        let has_calls = !turn.calls.is_empty();
        match stop {
            StopReason::ToolUse | StopReason::MaxTokens if has_calls => match self.looping() {
                Some(fault) => self.complete_further(fault),
                None => self.ask(),
            },
            StopReason::EndTurn | StopReason::StopSequence if self.is_visible() => {
                self.end(TerminalReason::Completed, None, None);
            }
            StopReason::EndTurn | StopReason::StopSequence => self.complete_further(Fault::NothingVisible),
            StopReason::MaxTokens => self.complete_further(Fault::OutputCut { has_calls }),
            StopReason::PauseTurn => self.complete_further(Fault::Paused),
            StopReason::ToolUse => self.end(
                TerminalReason::MalformedToolUseExhausted,
                Some("the model stopped for tool use without a tool call".to_owned()),
                None,
            ),
            StopReason::ContextWindow => self.end(
                TerminalReason::MaxOutputTokens,
                Some(
                    "the answer was cut where the model's window ends; begin a new session to go on"
                        .to_owned(),
                ),
                None,
            ),
            StopReason::Refusal => {
                self.end(TerminalReason::Refusal, Some("the model refused to answer".to_owned()), None);
            }
            StopReason::Other(name) => {
                self.notice(
                    Level::Warn,
                    format!("the model stopped for a reason this version does not know ({name:?})"),
                );
                self.end(TerminalReason::Completed, None, None);
            }
        }
    }

    fn is_visible(&self) -> bool {
        self.state.turn.as_ref().is_some_and(|turn| !turn.text().trim().is_empty())
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
            text: turn.map(OpenTurn::text).unwrap_or_default(),
            error,
            resumes_at,
            failure: turn.and_then(|turn| turn.last_failure.clone()),
            rounds: turn.map_or(0, |turn| turn.rounds),
            usage: turn.map(|turn| turn.usage).unwrap_or_default(),
            attempts_failed: turn.map_or(0, |turn| turn.attempts_failed),
            denials: turn.map(|turn| turn.denials.iter().map(to_denial).collect()).unwrap_or_default(),
            stop: match reason {
                // The answer itself is withdrawn.
                TerminalReason::Refusal => Some(StopReason::Refusal),
                _ => turn.and_then(|turn| turn.stop.clone()),
            },
        }
    }
}

fn to_denial(call: &crate::message::Call) -> Denial {
    Denial { call: call.id.clone(), tool: call.tool.clone(), input: call.input.clone() }
}
