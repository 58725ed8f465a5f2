//! No turn recovers without end: the totals of the tables bound it, whatever the world does.

use yaoki_core::message::StopReason;
use yaoki_core::policy::Policy;
use yaoki_core::recovery::rules;
use yaoki_core::step::{AttemptReport, Input, Step};
use yaoki_core::turn::prompt;

use crate::calm;
use crate::plain::{FAULTS, answered, call, failed, fault, reply, text, thought};
use crate::rig::{Rig, id_of};
use crate::world::Known;

/// How often all rules but the last may act in one turn, together.
fn recoveries_max() -> u64 {
    rules().filter(|rule| rule.name != "give-up").map(|rule| u64::from(rule.limit.total)).sum()
}

#[test]
fn the_sum_of_the_totals_bounds_every_turn() {
    assert!(recoveries_max() <= 2_000, "{}", recoveries_max());
    let fallback_models = ["b", "c", "d", "e", "f", "g"].map(str::to_owned).to_vec();
    let endless =
        Policy { max_retries: u32::MAX, max_elapsed_ms: u64::MAX, fallback_models, ..Policy::default() };
    let longest_ms = endless.retry_after_cap_ms.max(endless.backoff_max_ms + endless.backoff_max_ms / 4);
    let mut recoveries = 0;
    for name in FAULTS {
        let end = || failed(fault(name, Some(60_000)), None);
        let (failures, waited_ms) = always_failing_between_rounds(&endless, name, end);
        assert!(waited_ms <= failures * longest_ms, "{name} waited {waited_ms} ms");
        recoveries += failures - 1;
    }
    // Several faults share a row, and each turn has totals of its own.
    assert!(recoveries <= recoveries_max() * FAULTS.len() as u64, "{recoveries}");
}

#[test]
fn answers_that_are_no_good_are_not_asked_for_without_end() {
    let printed = || vec![text("<tool_call>{}</tool_call>")];
    for (name, total, stop, blocks) in [
        ("escalate, continuation", 41, StopReason::MaxTokens, vec![text("words")]),
        ("malformed-call", 21, StopReason::ToolUse, vec![text("words")]),
        ("malformed-call", 21, StopReason::EndTurn, printed()),
        ("nudge", 21, StopReason::EndTurn, vec![thought()]),
        ("pause", 81, StopReason::PauseTurn, vec![text("words")]),
        ("none", 1, StopReason::Refusal, vec![text("words")]),
    ] {
        let end = || answered(reply(stop.clone(), blocks.clone()));
        let (failures, waited_ms) = always_failing_between_rounds(&Policy::default(), name, end);
        assert_eq!((failures, waited_ms), (total, 0), "{name}");
    }
}

/// The world fails once before each message, for ever. Returns failures until the turn ended, and the time waited.
fn always_failing_between_rounds(
    policy: &Policy,
    name: &str,
    fails: impl Fn() -> AttemptReport,
) -> (u64, u64) {
    let mut rig = Rig::with_output_limit(policy.clone(), Some(64_000));
    rig.is_watched = false;
    rig.input(prompt("go")).unwrap();
    let (mut failures, mut waited_ms, mut is_to_fail) = (0, 0, true);
    while rig.turn.has_open_turn() {
        assert!(failures <= recoveries_max() + 1, "{name} goes on for ever");
        let step = rig.open.values().next().cloned().unwrap();
        let Step::Attempt { request, attempt, .. } = step else {
            if let Step::Wait { ms, .. } = step {
                waited_ms += ms;
            }
            calm::answer(&mut rig, &step, Known::Truth).unwrap();
            continue;
        };
        rig.close(&id_of(&step).unwrap());
        let end = if is_to_fail {
            failures += 1;
            fails()
        } else {
            answered(reply(StopReason::ToolUse, vec![call("Read", "a", false)]))
        };
        is_to_fail = !is_to_fail;
        rig.input(Input::AttemptEnded { request, attempt, end }).unwrap();
    }
    (failures, waited_ms)
}

#[test]
fn fifty_rounds_of_one_effect_are_synced_a_hundred_and_two_times() {
    let mut rig = Rig::new(Policy::default());
    let mut syncs = 0;
    let mut out = rig.input(prompt("go")).unwrap();
    let mut rounds = 0;
    loop {
        syncs += u32::from(out.barrier);
        let Some(step) = rig.open.values().next().cloned() else { break };
        out = match step {
            Step::Attempt { request, attempt, .. } if rounds < 50 => {
                rounds += 1;
                rig.close(&id_of(&step).unwrap());
                let end = answered(reply(StopReason::ToolUse, vec![call("Bash", "true", false)]));
                rig.input(Input::AttemptEnded { request, attempt, end }).unwrap()
            }
            step => calm::answer(&mut rig, &step, Known::Truth).unwrap(),
        };
    }
    assert_eq!((rounds, syncs), (50, 102));
}
