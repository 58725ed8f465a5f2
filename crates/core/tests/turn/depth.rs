//! Many calls in one message: no deep recursion, and the work grows with what is new.

use yaoki_core::message::{Block, StopReason};
use yaoki_core::policy::Policy;
use yaoki_core::step::{Input, Step, StepId};
use yaoki_core::turn::prompt;

use crate::calm;
use crate::plain::{answered, call, reply};
use crate::rig::Rig;
use crate::world::Known;

const CALLS: usize = 2_000;
/// A test thread has 2 MiB; what is not recursion over calls needs far less than this.
const STACK_BYTES: usize = 256 * 1024;

fn asked(rig: &mut Rig, blocks: Vec<Block>) {
    rig.input(prompt("go")).unwrap();
    let Some(Step::Attempt { request, attempt, .. }) = rig.open.values().next().cloned() else { panic!() };
    rig.close(&StepId::Attempt { request, attempt });
    let end = answered(reply(StopReason::ToolUse, blocks));
    rig.input(Input::AttemptEnded { request, attempt, end }).unwrap();
}

/// Runs one message of many calls to its end on a small stack. Returns how many runs there were.
fn run_many(tools: &'static [&'static str]) -> usize {
    let work = move || {
        let mut rig = Rig::new(Policy::default());
        rig.is_watched = false;
        let blocks = (0..CALLS).map(|i| call(tools[i % tools.len()], &i.to_string(), false)).collect();
        asked(&mut rig, blocks);
        calm::until_end(&mut rig, Known::Truth).unwrap();
        assert_eq!(rig.ends.len(), 1);
        rig.turn.state().ops.len()
    };
    std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work).unwrap().join().unwrap()
}

#[test]
fn two_thousand_calls_in_one_message_need_no_deep_stack() {
    for (tools, runs) in [
        (&["Read"][..], CALLS),
        (&["Bash"], CALLS),
        (&["Nope"], 0),
        (&["DenyBash"], 0),
        (&["Nope", "Bash", "DenyRead", "Read"], CALLS / 2),
    ] {
        assert_eq!(run_many(tools), runs, "{tools:?}");
    }
}

#[test]
fn an_interrupt_among_two_thousand_calls_ends_the_turn() {
    let mut rig = Rig::new(Policy::default());
    rig.is_watched = false;
    asked(&mut rig, (0..CALLS).map(|i| call("Read", &i.to_string(), false)).collect());
    for step in rig.open.clone().values() {
        calm::answer(&mut rig, step, Known::Truth).unwrap();
    }
    assert_eq!(rig.open.len(), CALLS);
    rig.input(Input::Interrupt).unwrap();
    assert_eq!(rig.told_to_stop.len(), CALLS);
    calm::until_end(&mut rig, Known::Truth).unwrap();
}
