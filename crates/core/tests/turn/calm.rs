//! A world in which nothing fails any more: every open step is answered, and the turn ends.

use yaoki_core::message::StopReason;
use yaoki_core::step::{Answer, Input, Step};
use yaoki_core::turn::Outbox;

use crate::plain::{answered, reply, text};
use crate::rig::{Rig, id_of};
use crate::watch::Checked;
use crate::world::{Known, World};

/// Answers that a turn may take to its end once faults have ceased.
const ANSWERS_MAX: usize = 20_000;

/// Answers open steps until no turn is open. I26.
pub fn until_end(rig: &mut Rig, known: Known) -> Checked<()> {
    for _ in 0..ANSWERS_MAX {
        if !rig.turn.has_open_turn() {
            return rig.check_fold();
        }
        let Some(step) = rig.open.values().next().cloned() else {
            return Err("I26: a turn is open and waits for nothing".into());
        };
        answer(rig, &step, known)?;
    }
    Err("I26: the turn does not end".into())
}

/// Answers one step as a world would in which all goes well.
pub fn answer(rig: &mut Rig, step: &Step, known: Known) -> Checked<Outbox> {
    if let Some(id) = id_of(step) {
        rig.close(&id);
    }
    let input = match step {
        Step::Attempt { request, attempt, .. } => {
            let reply = reply(StopReason::EndTurn, vec![text("Done")]);
            Input::AttemptEnded { request: *request, attempt: *attempt, end: answered(reply) }
        }
        Step::Wait { request, attempt, ms } => {
            rig.tick(*ms);
            Input::Waited { request: *request, attempt: *attempt }
        }
        Step::Prepare { call } => Input::Prepared { call: call.id.clone(), verdict: rig.world.judge(call) },
        Step::Ask { op, .. } => Input::Answered { op: *op, answer: Answer::Allow },
        Step::Run(run) => {
            rig.world.perform(run)?;
            rig.world.reported(run);
            Input::Ran { op: run.op, report: World::success(run) }
        }
        Step::Look { run, wait } => {
            let finding = rig.world.find(run, *wait, known);
            Input::Looked { op: run.op, finding }
        }
        Step::Cancel(_) => return Ok(Outbox::default()),
    };
    rig.input(input)
}
