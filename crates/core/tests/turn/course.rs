//! The course of a turn, written down: a script and what it leads to are one file.
//!
//! `course/NAME.txt`: lines that start with `> ` are inputs, the lines below are what each leads to – records (`.`),
//! the barrier (`=`), events (`!`, `!!` for those that claim to be durable), steps (`>`, indented). `YAOKI_BLESS=1`
//! writes what is; read the difference as you would read code.

use std::path::PathBuf;

use yaoki_core::message::{Block, StopReason};
use yaoki_core::policy::{OnUnknown, Policy};
use yaoki_core::record::{Gap, OutcomeStatus, Record};
use yaoki_core::state::Place;
use yaoki_core::step::{Answer, Delta, Input, RunReport, RunStep, Step, StepId};
use yaoki_core::turn::{Outbox, prompt};

use crate::plain::{answered, call, ended, failed, fault, reply, text, thought};
use crate::rig::Rig;
use crate::show;
use crate::watch::Checked;
use crate::world::{Known, World};

/// A script being played.
pub struct Course {
    pub rig: Rig,
    last: Option<Input>,
}

/// Plays the script in `course/NAME.txt` and compares all it leads to.
pub fn check(name: &str) {
    let written = read(name);
    let is = play(&written).1.join("\n") + "\n";
    if std::env::var_os("YAOKI_BLESS").is_some() {
        std::fs::write(path(name), is).unwrap();
    } else if is != written {
        let line = is.lines().zip(written.lines()).position(|(a, b)| a != b).unwrap_or(0);
        panic!("course/{name}.txt differs from line {}; it is now\n{is}", line + 1);
    }
}

pub fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/turn/course").join(format!("{name}.txt"))
}

pub fn read(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("course/{name}.txt: {error}"))
}

/// Plays the inputs of a script. Returns the rig at its end, and all lines as they should be.
pub fn play(script: &str) -> (Course, Vec<String>) {
    let mut lines = Vec::new();
    let mut head = script.lines().take_while(|line| line.starts_with('#')).peekable();
    let (policy, output_limit) = head_policy(head.peek().copied().unwrap_or(""));
    let mut course = Course { rig: Rig::with_output_limit(policy, output_limit), last: None };
    for line in script.lines() {
        if line.starts_with('#') {
            lines.push(line.to_owned());
        }
        let Some(input) = line.strip_prefix("> ") else { continue };
        lines.push(line.to_owned());
        let out = course.play(input).unwrap_or_else(|violation| panic!("> {input}\n{violation}"));
        lines.extend(show::outbox(&out));
    }
    course.rig.check_fold().unwrap();
    (course, lines)
}

/// The first line may change the policy (`# max_retries=2 on_unknown=stop fallback=b,c`) and say that the cap on output
/// is ours to raise (`# output_limit=64000`).
fn head_policy(line: &str) -> (Policy, Option<u32>) {
    let mut policy = Policy::default();
    let mut output_limit = None;
    for (name, value) in line.split_whitespace().filter_map(|word| word.split_once('=')) {
        match name {
            "max_retries" => policy.max_retries = value.parse().unwrap(),
            "on_unknown" => policy.on_unknown = OnUnknown::Stop,
            "fallback" => policy.fallback_models = value.split(',').map(str::to_owned).collect(),
            "output_limit" => output_limit = Some(value.parse().unwrap()),
            other => panic!("no policy is called {other}"),
        }
    }
    (policy, output_limit)
}

impl Course {
    fn play(&mut self, line: &str) -> Checked<Outbox> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "torn" => {
                let (lost, input) = rest.split_once(' ').expect("torn COUNT INPUT");
                self.rig.tear = Some(lost.parse().unwrap());
                self.play(input)
            }
            "prompt" => self.input(prompt_of(rest)),
            "continue" => self.input(Input::Continue),
            "interrupt" => self.input(Input::Interrupt),
            "tick" => {
                self.rig.tick(rest.parse().unwrap());
                self.rig.settle()
            }
            "hear" => self.hear(Delta::Text(rest.into())),
            "think" => self.hear(Delta::Thinking(rest.into())),
            "reply" => self.reply(rest),
            "fail" => self.fail(rest),
            "waited" => self.waited(rest),
            "judge" => self.judge(),
            "allow" => self.answer(Answer::Allow),
            "deny" => self.answer(Answer::Deny { reason: rest.into() }),
            "nobody" => self.answer(Answer::Nobody { reason: rest.into() }),
            "ran" => self.ran(rest),
            "look" => self.looked(rest),
            "again" => {
                let last = self.last.clone().expect("something was said before");
                self.input(last)
            }
            "late" => self.input(late(rest)),
            "lost" => {
                let out = self.input(Input::StorageFailed { error: "no space".into() });
                self.rig.open.clear();
                out
            }
            "gap" => {
                let (from, to) = rest.split_once(' ').expect("gap FROM TO");
                self.gap(from.parse().unwrap(), to.parse().unwrap())
            }
            "crash" => {
                let lost: usize = if rest.is_empty() { 0 } else { rest.parse().unwrap() };
                self.crash(lost)
            }
            other => panic!("no input is called {other:?}"),
        }
    }

    fn input(&mut self, input: Input) -> Checked<Outbox> {
        self.last = Some(input.clone());
        self.rig.input(input)
    }

    fn open(&self, is_it: impl Fn(&Step) -> bool) -> Step {
        let found = self.rig.open.values().find(|step| is_it(step));
        found.unwrap_or_else(|| panic!("no such step is open: {:?}", self.rig.open.keys())).clone()
    }

    fn attempt(&self) -> (u64, u32) {
        let Step::Attempt { request, attempt, .. } = self.open(|step| matches!(step, Step::Attempt { .. }))
        else {
            unreachable!()
        };
        (request, attempt)
    }

    fn hear(&mut self, delta: Delta) -> Checked<Outbox> {
        let (request, attempt) = self.attempt();
        self.rig.turn.hear(request, attempt, delta);
        self.rig.settle()
    }

    fn reply(&mut self, line: &str) -> Checked<Outbox> {
        let (stop, blocks) = line.split_once(' ').unwrap_or((line, ""));
        let stop: StopReason = serde_json::from_value(stop.into()).unwrap_or(StopReason::Other(stop.into()));
        let blocks: Vec<Block> = blocks_of(blocks);
        let (request, attempt) = self.attempt();
        self.rig.close(&StepId::Attempt { request, attempt });
        self.input(Input::AttemptEnded { request, attempt, end: answered(reply(stop, blocks)) })
    }

    fn fail(&mut self, line: &str) -> Checked<Outbox> {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let (mut wait_ms, mut should_retry) = (None, None);
        for (name, value) in words.filter_map(|word| word.split_once('=')) {
            match name {
                "wait" => wait_ms = Some(value.parse().unwrap()),
                "retry" => should_retry = Some(value.parse().unwrap()),
                other => panic!("no fact is called {other}"),
            }
        }
        let (request, attempt) = self.attempt();
        self.rig.close(&StepId::Attempt { request, attempt });
        if let Some(wait_ms) = wait_ms {
            self.rig.watch.told_to_wait(request, attempt, wait_ms);
        }
        self.input(Input::AttemptEnded { request, attempt, end: failed(fault(name, wait_ms), should_retry) })
    }

    /// The wait is over, or a timer says so after other milliseconds than were asked for.
    fn waited(&mut self, after_ms: &str) -> Checked<Outbox> {
        let Step::Wait { request, attempt, ms } = self.open(|step| matches!(step, Step::Wait { .. })) else {
            unreachable!()
        };
        self.rig.tick(if after_ms.is_empty() { ms } else { after_ms.parse().unwrap() });
        self.rig.close(&StepId::Wait { request, attempt });
        self.input(Input::Waited { request, attempt })
    }

    /// Answers all open judgements, in order of the calls; shows what the last led to.
    fn judge(&mut self) -> Checked<Outbox> {
        let mut out = None;
        let steps: Vec<Step> = self.rig.open.values().cloned().collect();
        for step in steps {
            let Step::Prepare { call } = step else { continue };
            let verdict = self.rig.world.judge(&call);
            self.rig.close(&StepId::Prepare(call.id.clone()));
            let led_to = self.input(Input::Prepared { call: call.id, verdict })?;
            assert!(out.is_none_or(|before: Outbox| before.records.is_empty()), "judging writes nothing");
            out = Some(led_to);
        }
        Ok(out.expect("something is to be judged"))
    }

    fn answer(&mut self, answer: Answer) -> Checked<Outbox> {
        let Step::Ask { op, .. } = self.open(|step| matches!(step, Step::Ask { .. })) else { unreachable!() };
        self.rig.close(&StepId::Ask(op));
        self.input(Input::Answered { op, answer })
    }

    /// `TITLE [ok|failed|cancelled|lost|detached]`
    fn ran(&mut self, line: &str) -> Checked<Outbox> {
        let mut words = line.split_whitespace();
        let title = words.next().unwrap_or_default().to_owned();
        let Step::Run(run) = self.open(|step| matches!(step, Step::Run(run) if run.title == title)) else {
            unreachable!()
        };
        self.rig.world.perform(&run)?;
        let report = report(&run, words.next().unwrap_or("ok"));
        self.rig.close(&StepId::Run(run.op));
        self.rig.world.reported(&run);
        self.input(Input::Ran { op: run.op, report })
    }

    /// `truth|running|nothing`
    fn looked(&mut self, line: &str) -> Checked<Outbox> {
        let known = match line {
            "truth" => Known::Truth,
            "running" => Known::StillRuns,
            "nothing" => Known::Nothing,
            other => panic!("nothing is found by {other:?}"),
        };
        let Step::Look { run, wait } = self.open(|step| matches!(step, Step::Look { .. })) else {
            unreachable!()
        };
        let finding = self.rig.world.find(&run, wait, known);
        self.rig.close(&StepId::Look(run.op));
        self.input(Input::Looked { op: run.op, finding })
    }

    /// The process dies, and of its log the records of these numbers are gone.
    fn gap(&mut self, from: u64, to: u64) -> Checked<Outbox> {
        let is_within = |(place, _): &(Place, Record)| (from..=to).contains(&place.seq);
        let log = &mut self.rig.log;
        let at = log.iter().position(is_within).expect("the gap is in the log");
        let place = log[at].0;
        log.retain(|one| !is_within(one));
        log.insert(at, (place, Record::Gap(Gap { seq_from: from, seq_to: to })));
        let policy = self.rig.policy.clone();
        let log = std::mem::take(log);
        self.rig = Rig::resumed(policy, &log)?;
        Ok(Outbox::default())
    }

    /// The process dies; what runs goes on and has its effect. `lost` records at the end are gone.
    fn crash(&mut self, lost: usize) -> Checked<Outbox> {
        for step in self.rig.open.values() {
            if let Step::Run(run) = step {
                self.rig.world.perform(run)?;
            }
        }
        self.rig.crash(self.rig.log.len() - lost)?;
        Ok(Outbox::default())
    }
}

fn prompt_of(line: &str) -> Input {
    let (head, rest) = line.split_once(' ').unwrap_or((line, ""));
    let Some(limit) = head.strip_prefix("max_turns=") else { return prompt(line) };
    let Input::Prompt { parts, uuid, .. } = prompt(rest) else { unreachable!() };
    Input::Prompt { parts, uuid, max_turns: Some(limit.parse().unwrap()) }
}

/// Reports of steps that are not open.
fn late(line: &str) -> Input {
    match line {
        "reply" => Input::AttemptEnded {
            request: 1,
            attempt: 1,
            end: answered(reply(StopReason::EndTurn, vec![text("late")])),
        },
        "wait" => Input::Waited { request: 1, attempt: 2 },
        other => panic!("nothing is late by {other:?}"),
    }
}

pub fn report(run: &RunStep, how: &str) -> RunReport {
    match how {
        "ok" => World::success(run),
        "failed" => ended(OutcomeStatus::FailedClean, format!("{} exit code 1", run.op)),
        "cancelled" => ended(OutcomeStatus::CancelledPartial, format!("{} was stopped", run.op)),
        "lost" => RunReport::Lost { why: "the runner died".into() },
        "detached" => World::detached(run),
        other => panic!("nothing ends by {other:?}"),
    }
}

/// `"text"`, `thought`, `Tool(arg)`, `Tool(arg)!` for broken input; 3*Tool(a) for three of them.
fn blocks_of(line: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (words, after) = quoted.split_once('"').expect("a quote ends");
            blocks.push(text(words));
            rest = after.trim_start();
            continue;
        }
        let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
        if word == "thought" {
            blocks.push(thought());
            rest = after.trim_start();
            continue;
        }
        let is_broken = word.ends_with('!');
        let (tool, arg) =
            word.trim_end_matches('!').trim_end_matches(')').split_once('(').expect("Tool(arg)");
        blocks.push(call(tool, arg, is_broken));
        rest = after.trim_start();
    }
    blocks
}

macro_rules! courses {
    ($($(#[$doc:meta])* $name:ident)*) => {
        /// Every script there is.
        pub const ALL: &[&str] = &[$(stringify!($name)),*];

        $($(#[$doc])* #[test] fn $name() { check(stringify!($name)); })*

        #[test]
        fn every_script_is_played() {
            let folder = path("x").parent().unwrap().to_owned();
            let mut files: Vec<String> = std::fs::read_dir(folder).unwrap()
                .map(|file| file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
                .collect();
            files.sort();
            let mut all = ALL.to_vec();
            all.sort_unstable();
            assert_eq!(files, all);
        }
    };
}

courses! {
    a_prompt_is_answered
    three_rounds_of_tools
    reads_run_together_without_a_barrier
    effects_in_order_share_their_barriers
    a_mixed_batch_is_judged_again_after_an_effect
    a_read_before_an_effect_lets_it_be_judged_again
    an_unknown_tool_is_answered_with_an_error
    the_same_failing_call_is_told_twice_and_then_ends
    a_rule_denies_a_call
    a_person_allows_a_call
    a_person_denies_a_call
    nobody_can_be_asked
    broken_input_is_answered_and_its_siblings_run
    overload_is_waited_out
    two_retries_make_three_requests
    a_400_is_asked_once
    the_server_permits_a_400_to_be_asked_again
    the_server_forbids_to_ask_again
    a_wait_as_told_is_waited
    a_wait_over_the_cap_ends_with_the_time_to_go_on
    a_cut_is_withdrawn_and_asked_again
    two_cuts_are_asked_for_in_one_piece
    an_unstreamed_request_stays_so_through_an_overload
    a_cap_that_is_too_high_comes_down
    a_refused_feature_is_dropped
    a_stale_connection_is_replaced_at_once
    progress_clears_a_streak
    a_rule_that_acted_often_enough_acts_no_more
    a_call_cut_at_the_output_limit_never_runs
    a_call_in_a_message_that_ended_never_runs
    an_answer_cut_is_asked_again_with_the_models_limit
    an_answer_cut_again_at_the_models_limit_is_continued
    a_cut_answer_is_continued_three_times
    a_users_cap_is_not_raised
    a_cap_that_came_down_is_not_raised
    the_limit_of_rounds_ends_the_turn
    pauses_go_on
    pauses_are_bounded
    an_empty_answer_is_an_error
    an_empty_end_after_work_is_the_end
    a_refusal_is_withdrawn
    a_refusal_that_meets_an_interrupt_is_withdrawn
    nothing_to_see_is_nudged_once
    a_call_that_did_not_arrive_is_corrected_once
    a_correction_after_tools_is_said_behind_the_results
    a_printed_call_is_corrected_once
    three_overloads_lead_to_the_next_model
    overloads_count_through_a_cut
    the_next_turn_asks_the_first_model_again
    a_missing_model_leads_on
    server_errors_lead_on_when_retries_are_out
    a_wait_over_the_cap_leads_on
    no_fallback_for_auth
    a_crash_after_a_fallback_stays_with_it
    a_crash_before_a_continuation_is_asked_goes_on
    an_unknown_stop_ends_with_a_notice
    an_interrupt_while_streaming
    an_interrupt_while_streaming_the_second_round
    an_interrupt_while_waiting
    an_interrupt_while_asking
    an_interrupt_while_judging
    an_interrupt_while_running
    an_interrupt_that_meets_a_full_answer
    late_and_doubled_reports_change_nothing
    a_lost_log_ends_all
    a_lost_run_is_unknown
    a_lost_run_may_stop_the_turn
    a_run_goes_on_in_the_background
    a_crash_while_streaming
    a_crash_while_waiting_waits_what_is_left
    a_crash_before_the_table_answered
    a_crash_while_running_takes_the_outcome
    a_crash_of_the_machine_leaves_an_unknown
    a_crash_of_the_machine_may_stop_the_turn
    a_crash_before_the_stop_at_an_unknown_stops_all_the_same
    a_crash_while_asking_asks_again
    a_crash_after_a_no_keeps_it
    a_prompt_after_a_crash_closes_the_turn
    an_interrupt_while_looking
    an_interrupt_before_an_effect_runs_again
    a_no_to_an_effect_that_may_have_happened
    a_gap_that_takes_the_intent_of_what_may_have_happened
    an_interrupt_after_a_gap
    two_prompts_while_a_turn_is_open
}
