//! The world outside: what tools do, and what an earlier process can be found to have done.

use std::collections::BTreeMap;

use yaoki_core::effects::EffectClass;
use yaoki_core::ids::{CallId, OpId};
use yaoki_core::message::{Call, CallResult};
use yaoki_core::record::{OutcomeStatus, Refusal};
use yaoki_core::step::{Finding, Judgement, PrepareVerdict, RunReport, RunStep};

use crate::plain::{ended, ready, refused};
use crate::watch::Checked;

#[derive(Default)]
pub struct World {
    /// Effects whose end was reported; what is true of the world may change with each.
    pub version: u64,
    /// How often each call had its effect.
    runs_of_call: BTreeMap<CallId, u32>,
    runs_of_key: BTreeMap<String, u32>,
    /// Operations that had their effect, or certainly did not.
    did_run: BTreeMap<OpId, bool>,
}

/// What can be known of an operation of an earlier process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// The truth.
    Truth,
    /// It still runs.
    StillRuns,
    Nothing,
}

impl World {
    /// Judges by the tool's name: see the match.
    pub fn judge(&self, call: &Call) -> PrepareVerdict {
        let by_rule = Judgement::Allow { by: "rule".into() };
        let denied = Judgement::Deny { by: "rule".into(), reason: "a rule denies this".into() };
        let ready = |class, permission| ready(call, class, permission, self.version);
        match call.tool.as_str() {
            "Read" => ready(EffectClass::Pure, by_rule),
            "Put" => ready(EffectClass::Idempotent, by_rule),
            "Edit" => ready(EffectClass::Reversible, by_rule),
            "Deploy" => ready(EffectClass::Irreversible, by_rule),
            "Bash" => ready(EffectClass::Unknown, by_rule),
            "AskRead" => ready(EffectClass::Pure, Judgement::Ask),
            "AskBash" => ready(EffectClass::Unknown, Judgement::Ask),
            "DenyRead" => ready(EffectClass::Pure, denied),
            "DenyBash" => ready(EffectClass::Unknown, denied),
            // Reads what an effect before it makes.
            "ReadNew" if self.version > 0 => ready(EffectClass::Pure, by_rule),
            "ReadNew" => refused(call, Refusal::Precondition, "no such file", self.version),
            _ => refused(call, Refusal::UnknownTool, "no such tool", self.version),
        }
    }

    /// Has the effect of a run, if it did not have it yet. I15: never twice.
    pub fn perform(&mut self, run: &RunStep) -> Checked<()> {
        if self.did_run.insert(run.op, true) == Some(true) {
            return Ok(());
        }
        let is_once =
            matches!(run.class, EffectClass::Reversible | EffectClass::Irreversible | EffectClass::Unknown);
        // What may run twice is not durable before it runs: after a power cut another call may bear its call's id.
        if !is_once {
            return Ok(());
        }
        let of_call = self.runs_of_call.entry(run.call.clone()).or_default();
        *of_call += 1;
        let of_key = self.runs_of_key.entry(run.key.clone()).or_default();
        *of_key += 1;
        if *of_call > 1 || *of_key > 1 {
            return Err(format!("I15: {} ran {of_call} times for its call, {of_key} for its key", run.title));
        }
        Ok(())
    }

    /// It will never have its effect: the process died before it began.
    pub fn forgo(&mut self, op: OpId) {
        self.did_run.entry(op).or_insert(false);
    }

    /// A call had its effect. Its traces are there to be found until its end was durable.
    pub fn ran_before(&mut self, run: &RunStep, has_traces: bool) {
        self.runs_of_call.insert(run.call.clone(), 1);
        self.runs_of_key.insert(run.key.clone(), 1);
        self.did_run.insert(run.op, has_traces);
    }

    /// It had its effect before this world was looked at.
    pub fn did_before(&mut self, op: OpId) {
        self.did_run.insert(op, true);
    }

    /// A report of how a run ended arrives.
    pub fn reported(&mut self, run: &RunStep) {
        self.version += u64::from(!run.class.is_pure());
    }

    pub fn success(run: &RunStep) -> RunReport {
        ended(OutcomeStatus::Success, format!("{} did {}", run.op, run.title))
    }

    pub fn detached(run: &RunStep) -> RunReport {
        RunReport::Detached { task: "bash_1".into(), result: CallResult::ok(format!("{} runs on", run.op)) }
    }

    /// What is found of an operation; never against the truth. One that was never given out did not run.
    pub fn find(&mut self, run: &RunStep, wait: bool, known: Known) -> Finding {
        let did_run = self.did_run.get(&run.op) == Some(&true);
        if known == Known::Nothing {
            return Finding::Nothing { why: "the machine lost power".into() };
        }
        if !did_run {
            self.forgo(run.op);
            return Finding::NeverRan;
        }
        self.reported(run);
        let is_running = known == Known::StillRuns && !wait;
        Finding::Ended(if is_running { World::detached(run) } else { World::success(run) })
    }
}
