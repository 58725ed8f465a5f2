//! What operations came to: as their performer says, as is found of those of an earlier process, or unknown.

use super::stopping::{StopCause, Stopping};
use super::{Told, Turn};
use crate::effects::EffectClass;
use crate::event::Event;
use crate::ids::OpId;
use crate::message::CallResult;
use crate::policy::OnUnknown;
use crate::record::{Detached, Outcome, Resolved, Unknown, Verdict};
use crate::step::{Finding, RunReport};

impl Turn {
    pub(super) fn ran(&mut self, op: OpId, report: RunReport) {
        let Some(found) = self.state.ops.get(&op) else { return };
        let (call, tool, class) = (found.intent.call.clone(), found.intent.tool.clone(), found.intent.class);
        let is_effect = !class.is_pure();
        self.runs_ended += 1;
        self.is_dirty |= is_effect;
        match report {
            RunReport::Ended { status, result, post, took_ms } => {
                self.write(Outcome { op, status, result: result.clone(), post, took_ms });
                let ended = Event::CallEnded { call, op, tool, status, result, took_ms };
                self.out.events.push(Told { event: ended, durable: is_effect });
            }
            RunReport::Detached { task, result } => {
                self.is_dirty = true;
                self.write(Detached { op, task: task.clone(), result: result.clone() });
                self.out
                    .events
                    .push(Told { event: Event::Detached { call, op, task, result }, durable: true });
            }
            RunReport::Lost { why } => self.surface_unknown(op, &why),
        }
    }

    /// Takes what was found of an operation that an earlier process started.
    pub(super) fn looked(&mut self, op: OpId, finding: Finding) {
        let Some(found) = self.state.ops.get(&op) else { return };
        let class = found.intent.class;
        let finding = match finding {
            Finding::NeverRan if found.is_doubtful && !crate::mutant!("gap-is-forgotten") => {
                Finding::Nothing { why: "part of the log is missing".to_owned() }
            }
            other => other,
        };
        match finding {
            Finding::Ended(report) => self.ran(op, report),
            Finding::NeverRan => self.reopen(op, "probe", Verdict::Not),
            Finding::Nothing { why } => {
                let may_run_again = match class {
                    EffectClass::Pure => true,
                    // When the turn stops it will not be run again, so what became of it stays open.
                    EffectClass::Idempotent => self.stopping.is_none(),
                    EffectClass::Reversible | EffectClass::Irreversible | EffectClass::Unknown => {
                        crate::mutant!("resume-reruns-unknown")
                    }
                };
                if may_run_again {
                    self.reopen(op, "recorded", Verdict::Again);
                } else {
                    self.surface_unknown(op, &why);
                }
            }
        }
    }

    /// The call is open again: judged anew, with a permission of its own.
    pub(super) fn reopen(&mut self, op: OpId, by: &str, verdict: Verdict) {
        self.write(Resolved { op, by: by.to_owned(), verdict });
    }

    pub(super) fn surface_unknown(&mut self, op: OpId, why: &str) {
        let Some(found) = self.state.ops.get(&op) else { return };
        let intent = found.intent.clone();
        let result = CallResult::error(unknown_text(op, &intent.title, why));
        self.is_dirty = true;
        self.write(Unknown { op, why: why.to_owned(), result: result.clone() });
        let event =
            Event::OutcomeUnknown { call: intent.call, op, tool: intent.tool, title: intent.title, result };
        self.tell_durable(event);
        if self.policy.on_unknown == OnUnknown::Stop {
            self.stopping.get_or_insert(Stopping { reason: StopCause::Undecided, is_hurried: false });
        }
    }
}

/// What the model is told of an outcome that nobody knows. Never phrased as a failure, and never as a success.
fn unknown_text(op: OpId, title: &str, why: &str) -> String {
    format!(
        "[outcome unknown] {op} {title} was started and may or may not have happened ({why}). \
         Check what it should have changed before doing anything else; do not repeat it without checking."
    )
}
