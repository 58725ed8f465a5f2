//! Every crash in every course: each prefix of its log is a session that can be gone on with, or asked something else.

use yaoki_core::policy::Policy;
use yaoki_core::record::Record;
use yaoki_core::state::{OpPhase, Place};
use yaoki_core::step::Input;
use yaoki_core::terminal::TerminalReason;
use yaoki_core::turn::prompt;

use crate::calm;
use crate::course;
use crate::rig::Rig;
use crate::watch::Checked;
use crate::world::Known;

/// What is to be found of operations that were open: they ended, never began, or nobody knows.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Ended,
    NeverRan,
    Nothing,
}

const FATES: [Fate; 3] = [Fate::Ended, Fate::NeverRan, Fate::Nothing];

#[test]
fn every_prefix_of_every_course_can_be_gone_on_with() {
    let count = for_each_prefix(|policy, log, fate| {
        let (mut rig, known) = find(policy, log, fate)?;
        let was_open = rig.turn.has_open_turn();
        rig.input(Input::Continue)?;
        calm::until_end(&mut rig, known)?;
        ended(&rig, usize::from(was_open))
    });
    assert!(count > 2_000, "{count} prefixes");
}

#[test]
fn every_prefix_of_every_course_can_be_asked_something_else() {
    for_each_prefix(|policy, log, fate| {
        let (mut rig, known) = find(policy, log, fate)?;
        let was_open = rig.turn.has_open_turn();
        rig.input(prompt("something else"))?;
        calm::until_end(&mut rig, known)?;
        let reasons: Vec<TerminalReason> = rig.ends.iter().map(|end| end.reason).collect();
        let stays_undecided = reasons.first() == Some(&TerminalReason::NeedsDecision);
        let want: &[TerminalReason] = match was_open {
            true if stays_undecided => &[TerminalReason::NeedsDecision, TerminalReason::Completed],
            true => &[TerminalReason::Interrupted, TerminalReason::Completed],
            false => &[TerminalReason::Completed],
        };
        if reasons != want {
            return Err(format!("it ended {reasons:?}"));
        }
        ended(&rig, want.len())
    });
}

#[test]
fn every_prefix_of_every_course_can_be_interrupted() {
    for_each_prefix(|policy, log, fate| {
        let (mut rig, known) = find(policy, log, fate)?;
        let was_open = rig.turn.has_open_turn();
        rig.input(Input::Continue)?;
        rig.input(Input::Interrupt)?;
        calm::until_end(&mut rig, known)?;
        ended(&rig, usize::from(was_open))
    });
}

fn for_each_prefix(check: impl Fn(&Policy, &[(Place, Record)], Fate) -> Checked<()>) -> usize {
    let mut count = 0;
    for name in course::ALL {
        let (course, _) = course::play(&course::read(name));
        let (log, policy) = (&course.rig.log, &course.rig.policy);
        for length in Rig::SET_UP..=log.len() {
            for fate in FATES {
                count += 1;
                if let Err(violation) = check(policy, &log[..length], fate) {
                    let last = &log[length - 1].1;
                    panic!("{name}, after {length} records ({last:?}), {fate:?}: {violation}");
                }
            }
        }
    }
    count
}

fn find(policy: &Policy, log: &[(Place, Record)], fate: Fate) -> Checked<(Rig, Known)> {
    let mut rig = Rig::resumed(policy.clone(), log)?;
    let open: Vec<_> = rig.turn.state().orphans().map(|(op, _)| op).collect();
    for op in open {
        match fate {
            Fate::Ended => rig.world.did_before(op),
            Fate::NeverRan | Fate::Nothing => rig.world.forgo(op),
        }
    }
    let known = if matches!(fate, Fate::Nothing) { Known::Nothing } else { Known::Truth };
    Ok((rig, known))
}

fn ended(rig: &Rig, turns: usize) -> Checked<()> {
    if rig.ends.len() != turns {
        return Err(format!("{} turns ended, {turns} were open", rig.ends.len()));
    }
    let is_open = |op: &yaoki_core::state::Op| op.phase == OpPhase::Started;
    match rig.turn.state().ops.values().find(|op| is_open(op)) {
        Some(op) => Err(format!("I16: {} has no end", op.intent.title)),
        None => Ok(()),
    }
}
