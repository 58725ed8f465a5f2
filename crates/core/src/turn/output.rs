//! Whole answers that are not good answers: cut at the limit, malformed, empty, paused, refused.
//!
//! Some are withdrawn before they become history, so that the model does not go on from them; the others are kept and
//! a line that only the model reads asks for more. Which, and how often, the tables say.

use super::Turn;
use crate::event::{Event, Level, Spent};
use crate::fault::{Evidence, Failure, Fault};
use crate::message::{Reply, StopReason};
use crate::record::Discarded;
use crate::recovery::{self, Remedy, Rule};
use crate::terminal::TerminalReason;

impl Turn {
    /// Lets the table judge a whole answer before it is history. Returns whether it was withdrawn.
    pub(super) fn withdraws_answer(&mut self, request: u64, attempt: u32, reply: &Reply) -> bool {
        let Some(fault) = fault_before_history(reply) else { return false };
        let failure = seen(fault);
        let Some((rule, remedy)) = self.decide(&failure, true) else { return false };
        match &remedy {
            Remedy::RaiseCap { .. } | Remedy::Correct { .. } => {
                self.take_back(request, attempt, reply, failure.label());
                self.charge(request, attempt, rule, &failure, &remedy);
                self.ask_on();
                true
            }
            Remedy::GiveUp { reason, .. } if is_never_history(&failure.fault) => {
                self.take_back(request, attempt, reply, failure.label());
                self.end(*reason, Some(words_of_end(&failure.fault).to_owned()), None);
                true
            }
            Remedy::GiveUp { .. } if failure.fault == Fault::PrintedCall => {
                self.notice(Level::Warn, "the answer ends in what looks like a call; nothing was called");
                false
            }
            _ => false,
        }
    }

    /// The turn is being stopped: nothing is asked any more, and an answer that must not be history does not become it.
    /// Returns whether it was withdrawn.
    pub(super) fn withdraws_when_stopping(&mut self, request: u64, attempt: u32, reply: &Reply) -> bool {
        let Some(fault) = fault_before_history(reply).filter(is_never_history) else { return false };
        self.take_back(request, attempt, reply, seen(fault).label());
        true
    }

    /// Lets the table answer what the turn's last message, which is history, is lacking.
    pub(super) fn complete_further(&mut self, fault: Fault) {
        let failure = seen(fault);
        let Some((rule, remedy)) = self.decide(&failure, false) else { return };
        let request = self.state.requests;
        match remedy {
            Remedy::Continue { .. } | Remedy::Nudge { .. } | Remedy::GoOn | Remedy::Warn { .. } => {
                self.charge(request, 0, rule, &failure, &remedy);
                self.ask();
            }
            _ => self.give_up_on_answer(&failure.fault),
        }
    }

    fn give_up_on_answer(&mut self, fault: &Fault) {
        // The empty answer is a round itself.
        let has_worked = self.state.turn.as_ref().is_some_and(|turn| turn.rounds > 1);
        match fault {
            Fault::Paused => {
                self.notice(Level::Warn, "the service paused too often; the turn ends here");
                self.end(TerminalReason::Completed, None, None);
            }
            Fault::NothingVisible if has_worked => {
                self.notice(
                    Level::Warn,
                    "the model ended without a word; its work is done, its answer is empty",
                );
                self.end(TerminalReason::Completed, None, None);
            }
            Fault::NothingVisible => {
                self.end(TerminalReason::EmptyAnswer, Some(words_of_end(fault).to_owned()), None)
            }
            Fault::ToolLoop { .. } => {
                self.end(TerminalReason::ToolLoop, Some(words_of_end(fault).to_owned()), None);
            }
            _ => self.end(TerminalReason::MaxOutputTokens, Some(words_of_end(fault).to_owned()), None),
        }
    }

    /// The loop that the last rounds are, if they are one.
    pub(super) fn looping(&self) -> Option<Fault> {
        let rounds = &self.state.turn.as_ref()?.alike;
        let is_loop = recovery::tool_loop::is_due(rounds.count, rounds.are_errors)
            && !crate::mutant!("loop-is-not-seen");
        is_loop.then_some(Fault::ToolLoop { rounds: rounds.count, are_errors: rounds.are_errors })
    }

    /// Withdraws a whole answer, shown or not.
    fn take_back(&mut self, request: u64, attempt: u32, reply: &Reply, reason: String) {
        let shown = std::mem::take(&mut self.shown);
        self.write(Discarded { request, attempt, shown, reason: reason.clone() });
        let spent = Some(Spent { model: reply.origin.model.clone(), usage: reply.usage });
        self.tell(Event::Withdrawn { request, shown, reason, spent });
    }

    /// Tells that a rule acted, in words.
    pub(super) fn tell_recovery(&mut self, request: u64, rule: &Rule, failure: &Failure, remedy: &Remedy) {
        let text = match remedy {
            Remedy::Switch { model } => {
                let from = self.state.model_asked().to_owned();
                let cause = match failure.fault {
                    Fault::Overloaded { .. } => "high demand for".to_owned(),
                    Fault::ModelGone => "the absence of".to_owned(),
                    _ => format!("{} from", failure.label()),
                };
                let anew = match self.state.totals.context {
                    0 => String::new(),
                    tokens => format!("; it reads the whole conversation anew, {tokens} tokens or more"),
                };
                format!("Switched to {model} due to {cause} {from}{anew}")
            }
            Remedy::RaiseCap { max_tokens } => {
                format!("The answer was cut at our output limit; asking again with up to {max_tokens} tokens")
            }
            Remedy::Correct { .. } => {
                format!("{}; asking again with a correction", capital(&failure.label()))
            }
            Remedy::Continue { .. } => {
                "The answer was cut at the output limit; asking for the rest".to_owned()
            }
            Remedy::Nudge { .. } => "The answer held nothing to see; asking for one".to_owned(),
            Remedy::GoOn => "The service paused its work; going on".to_owned(),
            Remedy::Warn { .. } => {
                "The model repeats a call that comes out the same; telling it so".to_owned()
            }
            _ => return,
        };
        self.tell(Event::Recovering {
            request,
            rule: rule.name.to_owned(),
            transition: remedy.transition(),
            text,
        });
    }
}

fn seen(fault: Fault) -> Failure {
    Failure { fault, evidence: Evidence::default() }
}

/// Whether an answer with this fault is of no use to the conversation, whatever follows.
fn is_never_history(fault: &Fault) -> bool {
    matches!(fault, Fault::Refused | Fault::MalformedCall) && !crate::mutant!("refusal-is-kept")
}

/// What is wrong with a whole answer that should perhaps not become history.
fn fault_before_history(reply: &Reply) -> Option<Fault> {
    let has_calls = reply.calls().next().is_some();
    match reply.stop {
        StopReason::MaxTokens => Some(Fault::OutputCut { has_calls }),
        StopReason::ToolUse if !has_calls => Some(Fault::MalformedCall),
        StopReason::Refusal => Some(Fault::Refused),
        StopReason::EndTurn if !has_calls && is_printed_call(&reply.text()) => Some(Fault::PrintedCall),
        StopReason::EndTurn
        | StopReason::ToolUse
        | StopReason::StopSequence
        | StopReason::PauseTurn
        | StopReason::ContextWindow
        | StopReason::Other(_) => None,
    }
}

/// Whether a text ends in a call written out in one of the forms that models were trained on. Only at the end: an answer
/// that talks about such a form goes on after it.
fn is_printed_call(text: &str) -> bool {
    let text = text.trim_end();
    let is_xml =
        text.ends_with("</function_calls>") || text.ends_with("</invoke>") || text.ends_with("</tool_call>");
    is_xml && (text.contains("<invoke name=") || text.contains("<tool_call>"))
}

fn words_of_end(fault: &Fault) -> &'static str {
    match fault {
        Fault::Refused => "the model refused to answer",
        Fault::MalformedCall => "the model stopped for tool use without a tool call, twice",
        Fault::NothingVisible => "the model's answer was empty",
        Fault::ToolLoop { .. } => "the model makes the same call again and again, with the same result",
        _ => "the answer was cut at the output limit; raise maxTokens or ask for smaller pieces",
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_call_is_known_by_how_the_text_ends() {
        for (text, want) in [
            ("I will look.\n<function_calls>\n<invoke name=\"Read\"></invoke>\n</function_calls>", true),
            ("<tool_call>{\"name\":\"Read\"}</tool_call>\n", true),
            ("The form is <invoke name=\"x\"></invoke>, as you see.", false),
            ("done", false),
        ] {
            assert_eq!(is_printed_call(text), want, "{text}");
        }
    }
}
