//! Stopping a turn that is open: a person interrupts, something else is asked, or nobody knows what an effect came to.
//!
//! Promises: what has an effect is told to stop and waited for, every call gets its result, and only then the turn
//! ends.

use super::Turn;
use super::calls::LOST;
use crate::ids::CallId;
use crate::message::CallResult;
use crate::policy::OnUnknown;
use crate::record::Refusal;
use crate::state::OpPhase;
use crate::step::{Step, StepId};
use crate::terminal::TerminalReason;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stopping {
    pub(super) reason: StopCause,
    /// A person waits for it: what an earlier process left running is stopped too.
    pub(super) is_hurried: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopCause {
    /// A person interrupted.
    Person,
    /// The process that ran this turn died, and something else was asked.
    Died,
    /// Something else was asked while it ran.
    Replaced,
    /// An effect's outcome is unknown, and policy says to stop.
    Undecided,
}

impl Turn {
    /// The process died between an unknown outcome and the end that policy wants for it.
    pub(super) fn stop_if_undecided(&mut self) {
        let Some(turn) = &self.state.turn else { return };
        let is_unknown = |call: &CallId| {
            let op = self.state.op_of_call.get(call).and_then(|op| self.state.ops.get(op));
            op.is_some_and(|op| op.phase == OpPhase::Unknown)
        };
        let is_at_calls = turn.request.is_none();
        if self.policy.on_unknown == OnUnknown::Stop
            && is_at_calls
            && turn.calls.iter().any(|call| is_unknown(&call.id))
        {
            self.stopping.get_or_insert(Stopping { reason: StopCause::Undecided, is_hurried: false });
        }
    }

    pub(super) fn stop(&mut self, reason: StopCause) {
        if !self.has_open_turn() {
            return;
        }
        let stopping = self.stopping.get_or_insert(Stopping { reason, is_hurried: false });
        stopping.is_hurried |= reason == StopCause::Person;
        self.wind_down();
    }

    /// Ends what is open, and the turn once nothing is. What has an effect is asked to stop and waited for; what has
    /// none is let go at once.
    pub(super) fn wind_down(&mut self) {
        let Some(stopping) = self.stopping else { return };
        let mut is_waiting = false;
        if crate::mutant!("interrupt-lets-go-of-runs") {
            self.performing.retain(|step| !matches!(step, StepId::Run(_)));
        }
        for step in self.performing.clone() {
            match step {
                StepId::Attempt { .. } | StepId::Run(_) => {
                    is_waiting = true;
                    self.cancel_once(step);
                }
                // Looking without waiting ends by itself; one that waits is told not to.
                StepId::Look(_) => {
                    is_waiting = true;
                    if stopping.is_hurried {
                        self.cancel_once(step);
                    }
                }
                StepId::Wait { .. } | StepId::Prepare(_) | StepId::Ask(_) => {
                    self.close(&step);
                    self.out.steps.push(Step::Cancel(step));
                }
            }
        }
        let open: Vec<CallId> = self.state.open_calls().map(|call| call.id.clone()).collect();
        for call in open {
            match self.state.open_op(&call) {
                Some((op, found)) if found.phase == OpPhase::Started => {
                    let is_ours = self.performing.contains(&StepId::Run(op))
                        || self.performing.contains(&StepId::Look(op));
                    if !is_ours {
                        self.look(op, false);
                    }
                    is_waiting = true;
                }
                None if self.state.ran_perhaps(&call) => {
                    self.refuse(&call, Refusal::Lost, CallResult::error(LOST));
                }
                Some(_) | None => self.refuse(&call, Refusal::NotStarted, not_started(stopping.reason)),
            }
        }
        if !is_waiting {
            self.end_stopped(stopping.reason);
        }
    }

    fn cancel_once(&mut self, step: StepId) {
        if self.told_to_stop.insert(step.clone()) {
            self.out.steps.push(Step::Cancel(step));
        }
    }

    fn end_stopped(&mut self, cause: StopCause) {
        // While a request is open, the calls of the message before it are long answered.
        let is_at_calls =
            self.state.turn.as_ref().is_some_and(|turn| turn.request.is_none() && !turn.calls.is_empty());
        let cancelled =
            if is_at_calls { TerminalReason::CancelledTools } else { TerminalReason::CancelledStreaming };
        let (reason, error) = match cause {
            StopCause::Person if is_at_calls => (cancelled, "interrupted while tools ran"),
            StopCause::Person => (cancelled, "interrupted"),
            StopCause::Replaced => (cancelled, "another prompt came before this turn ended"),
            StopCause::Died => {
                (TerminalReason::Interrupted, "the process that ran this turn ended before it did")
            }
            StopCause::Undecided => (TerminalReason::NeedsDecision, "an operation's outcome is not known"),
        };
        self.end(reason, Some(error.to_owned()), None);
    }
}

fn not_started(cause: StopCause) -> CallResult {
    CallResult::error(match cause {
        StopCause::Person => "[not started: interrupted by the user before this call ran]",
        StopCause::Replaced => "[not started: another prompt came before this call ran]",
        StopCause::Died => "[not started: the process ended before this call ran]",
        StopCause::Undecided => "[not started: the turn stopped at an operation whose outcome is not known]",
    })
}
