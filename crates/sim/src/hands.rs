//! The simulated tools and the person: an executor and a person port whose truth is the world's.
//!
//! `look` only reads; `put` has one end state for its key; `edit` can be probed; `act` runs under a runner that
//! outlives the process; `send` does not, so its outcome can be lost for good; `wrong` never fits its schema.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use yaoki::core::effects::EffectClass;
use yaoki::core::ids::OpId;
use yaoki::core::json::RawJson;
use yaoki::core::message::{Call, CallResult};
use yaoki::core::record::{OutcomeStatus, Refusal};
use yaoki::core::request::ToolSpec;
use yaoki::core::step::{Answer, Finding, Judgement, Plan, PrepareVerdict, RunReport, RunStep};
use yaoki::executor::{Executor, Progress};
use yaoki::{Person, Question};

use crate::plan::TOOLS;
use crate::world::{OpState, World};

pub struct SimExecutor {
    pub world: World,
}

impl Executor for SimExecutor {
    fn specs(&self) -> Vec<ToolSpec> {
        let schema =
            RawJson::parse(r#"{"type":"object","properties":{"tag":{"type":"string"}},"required":["tag"]}"#);
        let schema = schema.expect("a fixed schema");
        TOOLS
            .iter()
            .map(|name| ToolSpec {
                name: (*name).to_owned(),
                description: format!("does {name}"),
                schema: schema.clone(),
            })
            .collect()
    }

    fn prepare<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, PrepareVerdict> {
        Box::pin(async move {
            self.world.point("prepare").await;
            self.world.judged(&call.id);
            let refused = |text: String| PrepareVerdict::Refused {
                why: Refusal::InvalidInput,
                title: call.tool.clone(),
                result: CallResult::error(format!("<tool_use_error>{text}</tool_use_error>")),
            };
            // The machine answers for what is no JSON; here it is only another input.
            let Some(class) = class_of(&call.tool) else {
                return refused("it does not fit its schema".to_owned());
            };
            let tag = tag_of(&call.input);
            let permission = match hash(&tag) % 7 {
                0 if !class.is_pure() => Judgement::Ask,
                1 => Judgement::Deny { by: "rule".to_owned(), reason: format!("[denied by rule] {tag}") },
                _ => Judgement::Allow { by: "mode".to_owned() },
            };
            PrepareVerdict::Ready(Plan {
                class,
                title: format!("{}({tag})", call.tool),
                input: call.input.clone(),
                canonical: yaoki::core::effects::canonical(&call.input.value()),
                pre: Some(RawJson::parse(&self.world.boots().to_string()).expect("a number is JSON")),
                permission,
            })
        })
    }

    fn run<'a>(
        &'a self,
        run: &'a RunStep,
        progress: Progress<'a>,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, RunReport> {
        Box::pin(async move {
            let world = &self.world;
            world.point("before_run").await;
            let tag = tag_of(&run.input);
            let _active = world.begins(run, &tag);
            progress("working".to_owned());
            if run.tool == "act" {
                world.start_command(run.op, tag.clone(), run.class, run.key.clone());
                world.point("in_run").await;
                let state = tokio::select! {
                    biased;
                    () = cancel.cancelled() => {
                        world.stop_command(run.op);
                        return cancelled(&tag);
                    }
                    state = world.until_ended(run.op) => state,
                };
                world.point("after_run").await;
                return ended(state, &tag);
            }
            let (before_ms, after_ms) = (1 + world.dice.below(3_000), 1 + world.dice.below(3_000));
            tokio::select! {
                biased;
                () = cancel.cancelled() => return cancelled(&tag),
                () = tokio::time::sleep(Duration::from_millis(before_ms)) => {}
            }
            let count = world.execute(&tag, run.class, &run.key);
            world.point("in_run").await;
            tokio::time::sleep(Duration::from_millis(after_ms)).await;
            world.point("after_run").await;
            // Who only looks sees the same each time.
            success(format!("{tag} ran ({})", if run.class.is_pure() { 1 } else { count }))
        })
    }

    fn look<'a>(
        &'a self,
        run: &'a RunStep,
        wait: bool,
        _progress: Progress<'a>,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, Finding> {
        Box::pin(async move {
            let world = &self.world;
            world.point("look").await;
            let tag = tag_of(&run.input);
            match run.tool.as_str() {
                "act" => match world.command(run.op) {
                    // Its ticket may have gone with the power.
                    None if !is_same_boot(world, run) => nothing("the machine was off"),
                    None => Finding::NeverRan,
                    Some(OpState::Running) if wait => tokio::select! {
                        biased;
                        () = cancel.cancelled() => {
                            world.stop_command(run.op);
                            Finding::Ended(cancelled(&tag))
                        }
                        state = world.until_ended(run.op) => found(state, &tag),
                    },
                    Some(OpState::Running) => Finding::Ended(RunReport::Detached {
                        task: format!("bash_{}", run.op.0),
                        result: CallResult::ok(format!("{tag} is still running as bash_{}", run.op.0)),
                    }),
                    Some(state) => found(state, &tag),
                },
                "edit" if world.executed(&tag) > 0 => Finding::Ended(success(format!("{tag} ran (probed)"))),
                "edit" => Finding::NeverRan,
                _ => nothing("the process died while it ran"),
            }
        })
    }

    fn forget(&self, op: OpId) {
        self.world.forget_command(op);
    }

    fn sweep(&self, is_settled: &dyn Fn(OpId) -> bool) {
        self.world.kept_commands().into_iter().filter(|op| is_settled(*op)).for_each(|op| self.forget(op));
    }
}

fn class_of(tool: &str) -> Option<EffectClass> {
    match tool {
        "look" => Some(EffectClass::Pure),
        "put" => Some(EffectClass::Idempotent),
        "edit" => Some(EffectClass::Reversible),
        "act" => Some(EffectClass::Unknown),
        "send" => Some(EffectClass::Irreversible),
        _ => None,
    }
}

fn tag_of(input: &RawJson) -> String {
    input.value()["tag"].as_str().unwrap_or_default().to_owned()
}

fn hash(tag: &str) -> u64 {
    tag.bytes().fold(7, |sum, byte| sum * 31 % 1_000_003 + u64::from(byte))
}

/// Whether the machine has been up since the operation was judged.
fn is_same_boot(world: &World, run: &RunStep) -> bool {
    run.pre.as_ref().is_some_and(|pre| pre.get() == world.boots().to_string())
}

fn success(text: String) -> RunReport {
    RunReport::Ended { status: OutcomeStatus::Success, result: CallResult::ok(text), post: None, took_ms: 1 }
}

fn cancelled(tag: &str) -> RunReport {
    let result = CallResult::error(format!("[cancelled] {tag} was interrupted by the user"));
    RunReport::Ended { status: OutcomeStatus::CancelledPartial, result, post: None, took_ms: 1 }
}

fn nothing(why: &str) -> Finding {
    Finding::Nothing { why: why.to_owned() }
}

fn ended(state: OpState, tag: &str) -> RunReport {
    match state {
        OpState::Exited { text } => success(if text.contains(tag) { text } else { format!("{tag}: {text}") }),
        OpState::Running | OpState::Lost => RunReport::Lost { why: "its runner died".to_owned() },
    }
}

fn found(state: OpState, tag: &str) -> Finding {
    match state {
        OpState::Exited { .. } => Finding::Ended(ended(state, tag)),
        OpState::Running | OpState::Lost => nothing("its runner died"),
    }
}

/// A person who takes a while, denies some things, and is not always there.
pub struct SimPerson {
    pub world: World,
}

impl Person for SimPerson {
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            self.world.asked(question.op);
            self.world.point("ask").await;
            tokio::time::sleep(Duration::from_millis(self.world.dice.below(60_000))).await;
            if self.world.may_fault(self.world.swarm.person_faults) {
                self.world.denied(question.op);
                if self.world.dice.is(500) {
                    self.world.hit("deny", "ask");
                    return Answer::Deny { reason: format!("[denied by the user] {}", question.title) };
                }
                self.world.hit("nobody", "ask");
                return Answer::Nobody { reason: format!("[denied: nobody to ask] {}", question.title) };
            }
            Answer::Allow
        })
    }
}
