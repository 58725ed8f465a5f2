//! The calls of one message: judged, intended, permitted, started, settled; in parallel if all only read.

use super::{Judged, Turn};
use crate::effects::{LogicalPlace, op_digest, op_key};
use crate::event::Event;
use crate::ids::{AgentName, CallId, OpId};
use crate::message::{Call, CallResult, StopReason};
use crate::record::{Intent, Permission, Refusal, Started, Verdict};
use crate::state::OpPhase;
use crate::step::{Answer, Judgement, Plan, PrepareVerdict, RunStep, Step, StepId};

/// What the model is told of a call that may have run, and of which no record or trace is left.
pub(super) const LOST: &str = "[outcome unknown] Whether this call ran in an earlier process is not known. \
     Check what it should have changed before doing anything else; do not repeat it without checking.";

impl Turn {
    /// Moves the open calls on: looks at what an earlier process left, judges, starts what may start.
    pub(super) fn work_calls(&mut self) {
        if self.refuse_unfinished() {
            return self.go_on();
        }
        self.settle_leftovers();
        while self.state.open_calls().next().is_some() {
            if self.is_working() || !self.judge_open() {
                return;
            }
            self.act_on_judged();
        }
        // All were refused at once; what is behind them is next.
        self.go_on();
    }

    /// Whether a call is running, being looked at, or waits for a person. Calls beside it wait for its end.
    fn is_working(&self) -> bool {
        // These are the last variants in the order of `StepId`, so they are found without a walk.
        let is_one = |step: &StepId| matches!(step, StepId::Run(_) | StepId::Ask(_) | StepId::Look(_));
        self.performing.last().is_some_and(is_one) && !crate::mutant!("calls-run-beside-effects")
    }

    fn is_judging(&self) -> bool {
        self.performing.iter().any(|step| matches!(step, StepId::Prepare(_)))
    }

    /// Has every open call judged. Returns whether that is done.
    fn judge_open(&mut self) -> bool {
        if self.is_judging() {
            return false;
        }
        let unjudged: Vec<Call> =
            self.state.open_calls().filter(|call| !self.judged.contains_key(&call.id)).cloned().collect();
        for call in unjudged {
            self.prepare(call);
        }
        !self.is_judging()
    }

    /// Starts or settles what may be: all open calls if none of them changes anything, else one after the other.
    fn act_on_judged(&mut self) {
        if self.state.open_calls().all(|call| self.may_run_beside(&call.id)) {
            let open: Vec<Call> = self.state.open_calls().cloned().collect();
            let (stale, fresh): (Vec<Call>, Vec<Call>) =
                open.into_iter().partition(|call| self.is_stale(&call.id));
            if stale.is_empty() {
                return fresh.iter().for_each(|call| self.act(call));
            }
            return stale.into_iter().for_each(|call| self.prepare(call));
        }
        while let Some(call) = self.first_open() {
            if self.is_stale(&call.id) {
                return self.prepare(call);
            }
            self.act(&call);
            if !self.performing.is_empty() {
                return;
            }
        }
    }

    fn first_open(&self) -> Option<Call> {
        self.state.open_calls().next().cloned()
    }

    /// Whether a run ended since a call was judged: what was true of the world may not be any more.
    fn is_stale(&self, call: &CallId) -> bool {
        let is_old = |judged: &Judged| judged.runs_ended != self.runs_ended;
        self.judged.get(call).is_some_and(is_old) && !crate::mutant!("stale-judgement-stands")
    }

    /// Calls of a message that did not end for them never run: their input may be half.
    fn refuse_unfinished(&mut self) -> bool {
        let stop = self.state.turn.as_ref().and_then(|turn| turn.stop.clone());
        let (why, text) = match stop {
            Some(StopReason::ToolUse) | None => return false,
            Some(StopReason::MaxTokens | StopReason::ContextWindow) => (
                Refusal::Truncated,
                "<tool_use_error>The message was cut at the output limit, so this call may be incomplete and was not run. \
                 Do the work in smaller pieces: several shorter calls.</tool_use_error>",
            ),
            Some(
                StopReason::EndTurn
                | StopReason::StopSequence
                | StopReason::PauseTurn
                | StopReason::Refusal
                | StopReason::Other(_),
            ) => (Refusal::NotStarted, "[not started: the message did not end for tool use]"),
        };
        if crate::mutant!("truncated-calls-run") {
            return false;
        }
        let open: Vec<CallId> = self.state.open_calls().map(|call| call.id.clone()).collect();
        for call in &open {
            self.refuse(call, why, CallResult::error(text));
        }
        true
    }

    /// Operations that an earlier process left open: what never started is judged anew, what did is looked at.
    fn settle_leftovers(&mut self) {
        if !std::mem::take(&mut self.has_leftovers) {
            return;
        }
        let open: Vec<CallId> = self.state.open_calls().map(|call| call.id.clone()).collect();
        for call in open {
            let Some((op, found)) = self.state.open_op(&call) else {
                if self.state.is_lost(&call) && !crate::mutant!("gap-leaves-calls-open") {
                    self.refuse(&call, Refusal::Lost, CallResult::error(LOST));
                }
                continue;
            };
            let is_ours = [StepId::Run(op), StepId::Ask(op), StepId::Look(op)]
                .iter()
                .any(|id| self.performing.contains(id));
            if is_ours {
                continue;
            }
            if found.phase == OpPhase::Started {
                self.look(op, true);
            } else if let Some(reason) = found.denied.clone() {
                self.refuse(&call, Refusal::Denied, CallResult::error(reason));
            } else if found.phase == OpPhase::Permitted && crate::mutant!("permission-outlives-the-process") {
                self.start(op);
            } else {
                self.reopen(op, "recorded", Verdict::Not);
            }
        }
    }

    pub(super) fn look(&mut self, op: OpId, wait: bool) {
        if let Some(run) = self.run_step(op) {
            self.perform(StepId::Look(op), Step::Look { run, wait });
        }
    }

    /// Has a call judged outside. One whose input is no JSON is judged here: it never runs.
    fn prepare(&mut self, call: Call) {
        if let Some(broken) = &call.broken
            && !crate::mutant!("broken-input-runs")
        {
            let verdict = broken_input(&call.tool, broken);
            self.judged.insert(call.id, Judged { verdict, runs_ended: self.runs_ended });
            return;
        }
        let id = StepId::Prepare(call.id.clone());
        if !self.performing.contains(&id) {
            self.judged.remove(&call.id);
            self.perform(id, Step::Prepare { call });
        }
    }

    /// Whether a call neither changes anything nor waits for a person.
    fn may_run_beside(&self, call: &CallId) -> bool {
        match self.judged.get(call).map(|judged| &judged.verdict) {
            Some(PrepareVerdict::Ready(plan)) => {
                plan.class.is_pure()
                    && matches!(plan.permission, Judgement::Allow { .. } | Judgement::Deny { .. })
            }
            // A precondition may be met by a call before it: a read before an edit.
            Some(PrepareVerdict::Refused { why, .. }) => *why != Refusal::Precondition,
            None => false,
        }
    }

    fn act(&mut self, call: &Call) {
        let Some(judged) = self.judged.remove(&call.id) else { return self.prepare(call.clone()) };
        match judged.verdict {
            PrepareVerdict::Refused { why, title, result } => {
                self.refuse_as(&call.id, call.tool.clone(), title, why, result)
            }
            PrepareVerdict::Ready(plan) => match plan.permission.clone() {
                Judgement::Deny { reason, .. } => {
                    self.refuse_as(
                        &call.id,
                        call.tool.clone(),
                        plan.title,
                        Refusal::Denied,
                        CallResult::error(reason),
                    );
                }
                Judgement::Allow { by } => {
                    let op = self.intend(call, plan);
                    self.permit(op, true, by, None);
                    self.start(op);
                }
                Judgement::Ask => {
                    let title = plan.title.clone();
                    let op = self.intend(call, plan);
                    self.barrier();
                    self.perform(StepId::Ask(op), Step::Ask { op, call: call.clone(), title });
                }
            },
        }
    }

    /// Writes what is about to be done, before anyone is asked and before anything is done.
    fn intend(&mut self, call: &Call, plan: Plan) -> OpId {
        let op = OpId(self.seq_next());
        let (key, digest) = self.key_of(call, &plan.canonical);
        let intent = Intent {
            op,
            call: call.id.clone(),
            tool: call.tool.clone(),
            class: plan.class,
            title: plan.title,
            input: plan.input,
            key,
            digest,
            pre: plan.pre,
        };
        self.write(intent);
        op
    }

    fn key_of(&self, call: &Call, canonical: &str) -> (String, String) {
        let (Some(header), Some(turn)) = (&self.state.header, &self.state.turn) else {
            return Default::default();
        };
        let root = header.parent.as_ref().unwrap_or(&header.session);
        let digest = op_digest(&header.key, root, &call.tool, canonical);
        if let Some(key) = self.state.key_before(&call.id, &digest) {
            return (key.to_owned(), digest);
        }
        let ordinal =
            if crate::mutant!("key-ordinal-reused") { 0 } else { self.state.ordinal(&call.id, &digest) };
        let place = LogicalPlace {
            root,
            agent: &AgentName::main(),
            input_seq: turn.input_seq,
            round: u64::from(turn.rounds),
            ordinal,
        };
        (op_key(&header.key, &place, &call.tool, canonical), digest)
    }

    fn permit(&mut self, op: OpId, allowed: bool, by: String, reason: Option<String>) {
        let epoch = self.state.epoch;
        self.write(Permission { op, allowed, by, epoch, reason });
    }

    fn start(&mut self, op: OpId) {
        let attempt = self.state.ops.get(&op).map_or(1, |op| op.starts + 1);
        self.write(Started { op, attempt });
        let Some(run) = self.run_step(op) else { return };
        if !run.class.is_pure() && !crate::mutant!("no-barrier-before-effect") {
            self.barrier();
        }
        self.tell(Event::CallStarted {
            call: run.call.clone(),
            op,
            tool: run.tool.clone(),
            title: run.title.clone(),
        });
        self.perform(StepId::Run(op), Step::Run(run));
    }

    fn run_step(&self, op: OpId) -> Option<RunStep> {
        let found = self.state.ops.get(&op)?;
        let intent = &found.intent;
        Some(RunStep {
            op,
            call: intent.call.clone(),
            tool: intent.tool.clone(),
            class: intent.class,
            title: intent.title.clone(),
            input: intent.input.clone(),
            key: intent.key.clone(),
            pre: intent.pre.clone(),
            attempt: found.starts.max(1),
        })
    }

    pub(super) fn answered(&mut self, op: OpId, answer: Answer) {
        let Some(found) = self.state.ops.get(&op) else { return };
        let (call, tool, title) =
            (found.intent.call.clone(), found.intent.tool.clone(), found.intent.title.clone());
        let (by, reason) = match answer {
            Answer::Allow => {
                self.permit(op, true, "person".to_owned(), None);
                return self.start(op);
            }
            Answer::Deny { reason } => ("person", reason),
            Answer::Nobody { reason } => ("headless", reason),
        };
        if crate::mutant!("denied-calls-run") {
            return self.start(op);
        }
        self.permit(op, false, by.to_owned(), Some(reason.clone()));
        self.refuse_as(&call, tool, title, Refusal::Denied, CallResult::error(reason));
    }
}

/// What the model is told of a call that was started before, and is now refused.
pub(super) fn not_again(refusal: &CallResult) -> CallResult {
    CallResult::error(format!("{LOST} It was not started again: {}", refusal.text()))
}

fn broken_input(tool: &str, broken: &str) -> PrepareVerdict {
    let text = format!(
        "<tool_use_error>InputValidationError: the input of {tool} is not valid JSON: {broken}</tool_use_error>"
    );
    PrepareVerdict::Refused {
        why: Refusal::InvalidInput,
        title: tool.to_owned(),
        result: CallResult::error(text),
    }
}
