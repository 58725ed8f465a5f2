//! The command runner against real processes: one binary that is the runner, an agent that gets killed, and
//! the tests themselves.
//!
//! Nothing sleeps to wait for something: files and processes are looked at until a deadline.

#![allow(clippy::unwrap_used)]

mod runner_bench;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use runner_bench::{Bench, until};
use serde_json::json;
use yaoki::core::effects::EffectClass;
use yaoki::core::record::OutcomeStatus;
use yaoki::core::step::{Finding, RunReport};

type Test = fn(&mut Bench);

const TESTS: &[(&str, Test)] = &[
    ("a_result_is_output_errors_and_exit_code", a_result_is_output_errors_and_exit_code),
    ("a_child_that_keeps_the_pipe_open_does_not_hold_up_the_call", a_child_that_keeps_the_pipe_open),
    ("a_time_limit_ends_the_whole_tree_on_time", a_time_limit_ends_the_whole_tree_on_time),
    ("a_process_that_ignores_a_polite_request_is_killed", a_process_that_ignores_a_polite_request_is_killed),
    ("commands_that_would_read_end_at_once", commands_that_would_read_end_at_once),
    ("huge_output_is_cut_and_kept", huge_output_is_cut_and_kept),
    ("a_killed_agents_command_goes_on_and_its_outcome_is_taken", a_killed_agents_command_goes_on),
    ("an_outcome_reads_the_same_after_a_restart", an_outcome_reads_the_same_after_a_restart),
    ("a_command_that_still_runs_is_attached_to_or_detached", a_command_that_still_runs),
    ("a_ticket_runs_once_however_often_it_is_started", a_ticket_runs_once),
    ("a_run_that_a_looker_called_off_never_happens", a_run_that_a_looker_called_off_never_happens),
    ("a_missing_folder_proves_nothing_after_a_reboot", a_missing_folder_proves_nothing_after_a_reboot),
    ("a_dead_runner_leaves_an_unknown_outcome", a_dead_runner_leaves_an_unknown_outcome),
    ("a_cancelled_command_is_gone_when_the_report_comes", a_cancelled_command_is_gone),
    ("a_stopped_agent_does_not_hold_up_the_command", a_stopped_agent_does_not_hold_up_the_command),
    ("a_background_command_is_heard_and_ended", a_background_command_is_heard_and_ended),
    ("secrets_are_in_no_result_and_no_file", secrets_are_in_no_result_and_no_file),
    ("output_that_cannot_be_kept_comes_with_a_warning", output_that_cannot_be_kept_comes_with_a_warning),
    ("a_full_disk_keeps_no_command_from_running", a_full_disk_keeps_no_command_from_running),
    ("a_folder_goes_when_its_outcome_is_durable", a_folder_goes_when_its_outcome_is_durable),
    ("a_command_that_cannot_start_says_why", a_command_that_cannot_start_says_why),
];

fn main() -> ExitCode {
    let args: Vec<std::ffi::OsString> = std::env::args_os().collect();
    match args.get(1).and_then(|arg| arg.to_str()) {
        Some(yaoki::runner::RUNNER_ARG) => return yaoki::runner::main_from_args(&args[2]),
        Some(runner_bench::AGENT_ARG) => return runner_bench::be_an_agent(&args[2..]),
        _ => {}
    }
    let wanted: Vec<&str> =
        args.iter().skip(1).filter_map(|arg| arg.to_str()).filter(|a| !a.starts_with('-')).collect();
    if args.iter().any(|arg| arg == "--list") {
        TESTS.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let mut failed = 0;
    for (name, test) in
        TESTS.iter().filter(|(name, _)| wanted.is_empty() || wanted.iter().any(|w| name.contains(w)))
    {
        let began = Instant::now();
        let is_ok = std::panic::catch_unwind(|| test(&mut Bench::new())).is_ok();
        println!(
            "test {name} ... {} ({} ms)",
            if is_ok { "ok" } else { "FAILED" },
            began.elapsed().as_millis()
        );
        failed += u32::from(!is_ok);
    }
    println!("{failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn a_result_is_output_errors_and_exit_code(bench: &mut Bench) {
    let cwd = bench.cwd().to_str().unwrap().to_owned();
    for (command, want, status) in [
        ("echo \"$YAOKI_IDEMPOTENCY_KEY $TERM\"", "key-7 dumb", OutcomeStatus::Success),
        ("echo hello", "hello", OutcomeStatus::Success),
        ("true", "(no output)", OutcomeStatus::Success),
        ("pwd", &cwd, OutcomeStatus::Success),
        (
            "printf out; printf err >&2; exit 3",
            "out\n[stderr]\nerr\n[exit code 3]",
            OutcomeStatus::FailedClean,
        ),
        ("kill -9 $$", "[ended by signal 9, SIGKILL]", OutcomeStatus::FailedPartial),
        ("printf 'a\\xe9\\0b'", "a\u{fffd}\u{fffd}b", OutcomeStatus::Success),
    ] {
        let (got, text, is_error) = bench.bash(json!({"command": command}));
        assert_eq!((got, text.as_str()), (status, want), "{command}");
        assert_eq!(is_error, status != OutcomeStatus::Success);
    }
}

fn a_child_that_keeps_the_pipe_open(bench: &mut Bench) {
    for command in [
        format!("{} & echo done", bench.sleeper()),
        format!("(while :; do echo x; sleep 0.05; {} & done) & echo done", bench.sleeper()),
    ] {
        let began = Instant::now();
        let (status, text, _) = bench.bash(json!({"command": command}));
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        assert_eq!(status, OutcomeStatus::Success);
        assert!(text.contains("done"), "{text}");
        let task = format!("bash_{}", bench.last_op());
        assert!(text.contains(&format!("[still running in the background as {task}: ")), "{text}");
        let killed = bench.call("KillShell", json!({"shell_id": task}));
        assert_eq!(killed.1, format!("{task} and everything it started have been stopped."));
        assert_eq!(bench.sleepers(), 0);
    }
}

fn a_time_limit_ends_the_whole_tree_on_time(bench: &mut Bench) {
    let sleeper = bench.sleeper();
    // In the group, beside it, and in a session of its own.
    let command = format!("echo begun; {sleeper} & (setsid {sleeper} &) ; {sleeper}");
    let began = Instant::now();
    let (status, text, is_error) = bench.bash(json!({"command": command, "timeout": 300}));
    assert!(began.elapsed() < Duration::from_millis(2_300), "{:?}", began.elapsed());
    assert_eq!((status, is_error), (OutcomeStatus::FailedPartial, true));
    assert_eq!(text, "begun\n[timed out after 0.300s]");
    assert_eq!(bench.sleepers(), 0);
}

fn a_process_that_ignores_a_polite_request_is_killed(bench: &mut Bench) {
    let command = format!("trap '' TERM; {} & while :; do {}; done", bench.sleeper(), bench.sleeper());
    let began = Instant::now();
    let (_, text, _) = bench.bash(json!({"command": command, "timeout": 200}));
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    assert_eq!(text, "[timed out after 0.200s]");
    assert_eq!(bench.sleepers(), 0);
}

fn commands_that_would_read_end_at_once(bench: &mut Bench) {
    bench.sh(
        "git init -q . && git config user.email a@b && git config user.name a && echo x > f && git add f",
    );
    for background in [false, true] {
        for command in ["cat", "read x; echo got", "git commit", "cat /dev/tty", "git rebase -i HEAD"] {
            let began = Instant::now();
            let input = json!({"command": command, "run_in_background": background});
            if background {
                let task = bench.detach(input);
                until("it ends", || {
                    bench.call("BashOutput", json!({"bash_id": task})).1.contains("has ended")
                });
            } else {
                bench.bash(input);
            }
            assert!(began.elapsed() < Duration::from_secs(2), "{command}: {:?}", began.elapsed());
        }
    }
    let (_, text, _) = bench.bash(json!({"command": "git commit"}));
    assert!(text.contains("there is no editor here"), "{text}");
}

fn huge_output_is_cut_and_kept(bench: &mut Bench) {
    for (command, bytes) in [
        ("yes 0123456789 | head -c 20000000", 20_000_000),
        ("head -c 20000000 /dev/zero | tr '\\0' x", 20_000_000),
        ("yes '😀é' | head -c 5000000; exit 1", 5_000_000),
    ] {
        let (_, text, _) = bench.bash(json!({"command": command}));
        assert!(text.chars().count() < 30_500, "{} characters", text.chars().count());
        assert!(text.contains(&format!("the whole output, {bytes} bytes, is in ")), "{command}");
        let path = text.split("bytes, is in ").nth(1).unwrap().split(']').next().unwrap();
        let kept = std::fs::metadata(path).unwrap().len();
        assert!(kept == bytes || (kept > 15_000_000 && kept <= 33_000_000), "{kept} bytes kept");
        bench.forget_last();
        assert!(std::fs::metadata(path).is_ok(), "the named file outlives the run's folder");
    }
}

fn a_killed_agents_command_goes_on(bench: &mut Bench) {
    let command =
        "echo begun >> ledger; until [ -e go ]; do sleep 0.01; done; echo done >> ledger; echo out; exit 4";
    let step = bench.step("Bash", json!({"command": command}));
    let mut agent = bench.spawn_agent(&step);
    until("the command runs", || bench.has("ledger"));
    agent.kill().unwrap();
    agent.wait().unwrap();
    assert_eq!(bench.look(&step, false), None, "it is still running");
    bench.write("go", "");
    let (status, text) = bench.look(&step, true).expect("an outcome");
    assert_eq!((status, text.as_str()), (OutcomeStatus::FailedClean, "out\n[exit code 4]"));
    assert_eq!(bench.read("ledger"), "begun\ndone\n");
}

fn an_outcome_reads_the_same_after_a_restart(bench: &mut Bench) {
    for command in ["echo a; echo b >&2; exit 2", "yes | head -c 200000", "true", "kill -11 $$"] {
        let (status, text, _) = bench.bash(json!({"command": command}));
        let step = bench.last_step();
        assert_eq!(bench.restarted().look(&step, true), Some((status, text)), "{command}");
    }
}

fn a_command_that_still_runs(bench: &mut Bench) {
    let step = bench.step("Bash", json!({"command": format!("echo hi; touch begun; {}", bench.sleeper())}));
    let mut agent = bench.spawn_agent(&step);
    until("the command runs", || bench.has("begun"));
    agent.kill().unwrap();
    agent.wait().unwrap();
    match bench.find_out(&step, false) {
        Finding::Ended(RunReport::Detached { task, .. }) => {
            assert_eq!(task, format!("bash_{}", step.op.0));
            let heard = bench.call("BashOutput", json!({"bash_id": task}));
            assert_eq!(heard.1, format!("hi\n[{task} is running]"));
        }
        other => panic!("{other:?}"),
    }
    bench.cancel_when(|| true);
    let (status, text) = bench.look(&step, true).expect("an outcome");
    assert_eq!(status, OutcomeStatus::CancelledPartial);
    assert_eq!(text, "hi\n[stopped by the user before it finished]");
    assert_eq!(bench.sleepers(), 0);
}

fn a_ticket_runs_once(bench: &mut Bench) {
    let step = bench.step("Bash", json!({"command": "echo x >> ledger; sleep 0.1"}));
    let mut agents: Vec<_> = (0..4).map(|_| bench.spawn_agent(&step)).collect();
    let (status, _) = bench.until_looked(&step);
    assert_eq!(status, OutcomeStatus::Success);
    for agent in &mut agents {
        agent.wait().unwrap();
    }
    assert_eq!(bench.read("ledger"), "x\n");
}

fn a_run_that_a_looker_called_off_never_happens(bench: &mut Bench) {
    let step = bench.step("Bash", json!({"command": "echo x >> ledger"}));
    std::fs::create_dir_all(bench.folder(&step)).unwrap();
    for _ in 0..2 {
        assert_eq!(bench.find_out(&step, true), Finding::NeverRan);
    }
    match bench.run(&step) {
        RunReport::Ended { status, result, .. } => {
            assert_eq!(status, OutcomeStatus::FailedClean);
            assert!(result.text().contains("the command was not run"), "{}", result.text());
        }
        other => panic!("{other:?}"),
    }
    assert!(!bench.has("ledger"));
}

fn a_missing_folder_proves_nothing_after_a_reboot(bench: &mut Bench) {
    let mut step = bench.step("Bash", json!({"command": "echo x >> ledger"}));
    assert_eq!(bench.find_out(&step, true), Finding::NeverRan);
    step.pre = Some(yaoki::core::json::RawJson::of(&json!({"boot": "another"})));
    let why = "the machine was restarted since".to_owned();
    assert_eq!(bench.find_out(&step, true), Finding::Nothing { why });
}

fn a_dead_runner_leaves_an_unknown_outcome(bench: &mut Bench) {
    let step = bench.step("Bash", json!({"command": format!("touch begun; {}", bench.sleeper())}));
    let mut agent = bench.spawn_agent(&step);
    until("the command runs", || bench.has("begun"));
    let note = std::fs::read_to_string(bench.folder(&step).join("started")).unwrap();
    let runner = note.lines().find_map(|line| line.strip_prefix("pid ")).unwrap();
    bench.sh(&format!("kill -9 {runner}"));
    let why = "its runner died before the command ended".to_owned();
    assert_eq!(bench.find_out(&step, true), Finding::Nothing { why });
    agent.wait().unwrap();
    bench.end_sleepers();
}

fn a_cancelled_command_is_gone(bench: &mut Bench) {
    let command = format!("echo hi; touch begun; {} & {}", bench.sleeper(), bench.sleeper());
    let begun = bench.cwd().join("begun");
    bench.cancel_when(move || begun.exists());
    let (status, text, is_error) = bench.bash(json!({"command": command}));
    assert_eq!((status, is_error), (OutcomeStatus::CancelledPartial, true));
    assert_eq!(text, "hi\n[stopped by the user before it finished]");
    assert_eq!(bench.sleepers(), 0);
}

fn a_stopped_agent_does_not_hold_up_the_command(bench: &mut Bench) {
    let command = "touch begun; until [ -e go ]; do sleep 0.01; done; yes | head -c 3000000; touch done";
    let step = bench.step("Bash", json!({"command": command}));
    let mut agent = bench.spawn_agent(&step);
    until("the command runs", || bench.has("begun"));
    bench.sh(&format!("kill -STOP {}", agent.id()));
    bench.write("go", "");
    until("the command is through", || bench.has("done"));
    let (status, _) = bench.look(&step, true).expect("an outcome");
    assert_eq!(status, OutcomeStatus::Success);
    agent.kill().unwrap();
    agent.wait().unwrap();
}

fn a_background_command_is_heard_and_ended(bench: &mut Bench) {
    let command = format!(
        "echo one; until [ -e go ]; do sleep 0.01; done; echo two >&2; touch said; {}",
        bench.sleeper()
    );
    let task = bench.detach(json!({"command": command, "run_in_background": true}));
    let hear = |bench: &mut Bench| bench.call("BashOutput", json!({"bash_id": task})).1;
    let mut heard = String::new();
    until("it has spoken", || {
        heard = hear(bench);
        heard.contains("one")
    });
    assert_eq!(heard, format!("one\n[{task} is running]"));
    assert_eq!(hear(bench), format!("(no new output)\n[{task} is running]"));
    bench.write("go", "");
    until("it has spoken again", || {
        heard = hear(bench);
        heard.contains("two")
    });
    assert_eq!(heard, format!("[stderr]\ntwo\n[{task} is running]"));
    let step = bench.step("KillShell", json!({"shell_id": task}));
    assert_eq!(step.class, EffectClass::Idempotent);
    bench.call("KillShell", json!({"shell_id": task}));
    assert_eq!(bench.sleepers(), 0);
    assert_eq!(hear(bench), format!("(no new output)\n[{task} has ended, ended by signal 15]"));
    assert_eq!(
        bench.call("BashOutput", json!({"bash_id": "bash_999"})).1,
        "<tool_use_error>Error: there is no background command bash_999. Running: none</tool_use_error>"
    );
}

fn secrets_are_in_no_result_and_no_file(bench: &mut Bench) {
    let secret = runner_bench::SECRET;
    bench.write("token", secret);
    let half = secret.len() / 2;
    let command = format!(
        "cat token; printf {}; sleep 0.05; printf {} >&1; env | grep -c ANTHROPIC",
        &secret[..half],
        &secret[half..]
    );
    let (_, text, _) = bench.bash(json!({"command": "cat token; cat token >&2"}));
    assert_eq!(text, "[secret:TOKEN]\n[stderr]\n[secret:TOKEN]");
    let (_, text, _) = bench.bash(json!({"command": command}));
    assert_eq!(text, "[secret:TOKEN][secret:TOKEN]0\n[exit code 1]");
    for name in ["out", "err", "exit"] {
        let kept = std::fs::read_to_string(bench.folder(&bench.last_step()).join(name)).unwrap();
        assert!(!kept.contains(secret), "{name}");
    }
    let (_, text) = bench.call("Read", json!({"file_path": "token"}));
    assert_eq!(text, "     1→[secret:TOKEN]");
}

fn output_that_cannot_be_kept_comes_with_a_warning(bench: &mut Bench) {
    let step = bench.step("Bash", json!({"command": "echo hello"}));
    // As on a full disk: the file cannot be made.
    std::fs::create_dir_all(bench.folder(&step).join("out")).unwrap();
    match bench.run(&step) {
        RunReport::Ended { status, result, .. } => {
            assert_eq!(status, OutcomeStatus::Success);
            let text = result.text();
            assert!(text.starts_with("hello\n[warning: the output could not be kept in its file"), "{text}");
            assert!(text.contains(bench.folder(&step).to_str().unwrap()), "{text}");
        }
        other => panic!("{other:?}"),
    }
}

fn a_full_disk_keeps_no_command_from_running(bench: &mut Bench) {
    // No byte can be written to any file; pipes work.
    bench.wrap_runner("trap '' XFSZ; ulimit -f 0");
    let (status, text, _) = bench.bash(json!({"command": "echo hello"}));
    assert_eq!(status, OutcomeStatus::Success);
    assert!(text.starts_with("hello\n[warning: the output could not be kept in its file"), "{text}");
    let step = bench.last_step();
    until("the runner is gone", || matches!(bench.find_out(&step, false), Finding::Nothing { .. }));
}

fn a_folder_goes_when_its_outcome_is_durable(bench: &mut Bench) {
    bench.bash(json!({"command": "echo a"}));
    let folder = bench.folder(&bench.last_step());
    until("the runner is gone", || {
        bench.forget_last();
        !folder.exists()
    });
    bench.bash(json!({"command": format!("{} & echo a", bench.sleeper())}));
    let folder = bench.folder(&bench.last_step());
    bench.forget_last();
    assert!(folder.exists(), "something of it still runs");
    let task = format!("bash_{}", bench.last_op());
    bench.call("KillShell", json!({"shell_id": task}));
    yaoki::executor::Executor::sweep(bench.tools(), &|_| true);
    assert!(!folder.exists());
}

fn a_command_that_cannot_start_says_why(bench: &mut Bench) {
    let step = bench.step("Bash", json!({"command": "echo a"}));
    std::fs::remove_dir_all(bench.cwd()).unwrap();
    match bench.run(&step) {
        RunReport::Ended { status, result, .. } => {
            assert_eq!((status, result.is_error), (OutcomeStatus::FailedClean, true));
            assert!(result.text().contains("could not start the runner in"), "{}", result.text());
        }
        other => panic!("{other:?}"),
    }
}
