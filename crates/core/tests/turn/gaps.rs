//! Middle damage: a part of the log is gone, and what it said of effects with it.

use std::collections::BTreeSet;

use yaoki_core::ids::{CallId, OpId};
use yaoki_core::message::{BlockBody, ViewMessage};
use yaoki_core::policy::Policy;
use yaoki_core::record::{Gap, Record};
use yaoki_core::request::Request;
use yaoki_core::state::Place;
use yaoki_core::step::{Input, RunStep};
use yaoki_core::turn::prompt;
use yaoki_core::view;

use crate::calm;
use crate::course;
use crate::rig::Rig;
use crate::watch::Checked;
use crate::world::Known;

/// Records that one gap takes.
const LENGTHS: [usize; 5] = [1, 2, 3, 5, 8];
/// Records behind it that are left.
const LEFT: [usize; 4] = [1, 3, 4, usize::MAX];

#[test]
fn after_any_gap_in_any_course_no_effect_is_repeated_and_history_is_whole() {
    let count = every_gap().unwrap_or_else(|violation| panic!("{violation}"));
    assert!(count > 2_000, "{count} gaps");
}

/// Puts a gap at every place of every course, and goes on. Returns how many there were.
pub fn every_gap() -> Checked<usize> {
    let mut count = 0;
    for name in course::ALL {
        let (course, _) = course::play(&course::read(name));
        let log = &course.rig.log;
        for from in Rig::SET_UP..log.len() {
            for length in LENGTHS.into_iter().filter(|length| from + length < log.len()) {
                for left in LEFT {
                    count += 1;
                    let log = &log[..log.len().min((from + length).saturating_add(left))];
                    go_on(&course.rig.policy, log, from, length).map_err(|violation| {
                        format!("{name}, {length} records from {from}, {left} behind: {violation}")
                    })?;
                }
            }
        }
    }
    Ok(count)
}

fn go_on(policy: &Policy, log: &[(Place, Record)], from: usize, length: usize) -> Checked<()> {
    let (before, behind) = (&log[..from], &log[from + length..]);
    let (first, last) = (log[from].0, log[from + length - 1].0);
    let gap = Record::Gap(Gap { seq_from: first.seq, seq_to: last.seq });
    let damaged: Vec<_> =
        before.iter().cloned().chain([(first, gap)]).chain(behind.iter().cloned()).collect();
    let mut rig = Rig::resumed(policy.clone(), &damaged)?;
    // What the gap took cannot be checked against; what counts here is that nothing runs twice.
    rig.is_watched = false;
    for run in runs(log) {
        rig.world.ran_before(&run, !has_end(log, run.op));
    }
    rig.input(Input::Continue)?;
    calm::until_end(&mut rig, Known::Truth)?;
    rig.input(prompt("and now"))?;
    is_paired(&view::request(rig.turn.state()))?;
    calm::until_end(&mut rig, Known::Truth)
}

fn has_end(log: &[(Place, Record)], op: OpId) -> bool {
    log.iter().any(|(_, record)| match record {
        Record::Outcome(outcome) => outcome.op == op,
        Record::Detached(detached) => detached.op == op,
        Record::Unknown(unknown) => unknown.op == op,
        _ => false,
    })
}

/// All runs of a log, each of which had its effect.
fn runs(log: &[(Place, Record)]) -> Vec<RunStep> {
    let has_started =
        |op| log.iter().any(|(_, record)| matches!(record, Record::Started(started) if started.op == op));
    let intents = log.iter().filter_map(|(_, record)| match record {
        Record::Intent(intent) if has_started(intent.op) => Some(intent),
        _ => None,
    });
    intents
        .map(|intent| RunStep {
            op: intent.op,
            call: intent.call.clone(),
            tool: intent.tool.clone(),
            class: intent.class,
            title: intent.title.clone(),
            input: intent.input.clone(),
            key: intent.key.clone(),
            pre: intent.pre.clone(),
            attempt: 1,
        })
        .collect()
}

fn is_paired(ask: &Request) -> Checked<()> {
    let mut due: BTreeSet<CallId> = BTreeSet::new();
    for message in &ask.messages {
        if let ViewMessage::Results { results, .. } = &**message {
            let ids: BTreeSet<CallId> = results.iter().map(|result| result.call.clone()).collect();
            if ids != due {
                return Err(format!("I9: results {ids:?} for calls {due:?}"));
            }
            due.clear();
            continue;
        }
        if !due.is_empty() {
            return Err(format!("I9: no results for {due:?}"));
        }
        if let ViewMessage::Assistant { blocks, .. } = &**message {
            due.extend(blocks.iter().filter_map(|block| match &block.body {
                BlockBody::Call(call) => Some(call.id.clone()),
                _ => None,
            }));
        }
    }
    if due.is_empty() { Ok(()) } else { Err(format!("I9: no results for {due:?}")) }
}
