//! Input that cannot be: one clear line that names the next thing to try, exit code 1 or 2, nothing lost.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use yaoki_lab::{Script, Step};

use crate::skip;
use crate::stage::{Ran, Running, Stage, entries};

fn stage() -> Stage {
    Stage::new(Script::of(vec![Step::text("Said.").times(9)]))
}

/// One line on standard error that says these words, nothing on standard output, no request.
fn assert_one_line(stage: &Stage, what: &str, ran: &Ran, codes: &[i32], words: &[&str]) {
    assert!(ran.status.code().is_some_and(|code| codes.contains(&code)), "{what}: {ran:?}");
    assert_eq!(ran.out, "", "{what}");
    let [line] = ran.err_lines()[..] else { panic!("{what}: not one line: {:?}", ran.err) };
    for word in words {
        assert!(line.contains(word), "{what}: {word:?} is not in {line:?}");
    }
    assert_eq!(stage.asks().len(), 0, "{what}: nothing was sent");
}

#[test]
fn each_is_one_line_with_the_next_thing_to_try() {
    let stage = stage();
    stage.write("project/file", "x");
    for (what, args, codes, words) in [
        ("wrong flag", &["-p", "x", "--modle", "m"][..], &[2][..], &["--modle", "--model"][..]),
        ("wrong value", &["-p", "x", "--output-format", "xml"], &[2], &["xml", "stream-json"]),
        ("no such settings", &["-p", "x", "--settings", "none.json"], &[2], &["none.json"]),
        ("broken settings", &["-p", "x", "--settings", "{\"model\": "], &[2], &["--settings"]),
        ("unknown setting", &["-p", "x", "--settings", "{\"maxRetries\": \"ten\"}"], &[2], &["maxRetries"]),
        ("not a directory", &["-p", "x", "--cwd", "file"], &[1, 2], &["file"]),
        ("no such directory", &["-p", "x", "--cwd", "none"], &[1, 2], &["none"]),
        (
            "unknown session",
            &["resume", "0199-none", "--continue"],
            &[1, 2],
            &["0199-none", "yaoki sessions"],
        ),
        (
            "unknown session by flag",
            &["-p", "x", "--resume", "0199-none"],
            &[1, 2],
            &["0199-none", "yaoki sessions"],
        ),
        (
            "a rule on no tool",
            &["-p", "x", "--disallowedTools", "bash"],
            &[2],
            &["\"bash\"", "did you mean Bash?"],
        ),
        ("settings that are a list", &["-p", "x", "--settings", "[]"], &[2], &["JSON object"]),
        ("empty prompt", &["-p", ""], &[1, 2], &["prompt"]),
        ("no such script", &["-p", "x", "--fake", "none.json"], &[1, 2], &["none.json"]),
    ] {
        let ran = stage.run(args);
        assert_one_line(&stage, what, &ran, codes, words);
    }
    assert_eq!(entries(&stage.home().join("sessions")).len(), 0, "no session was begun");
}

#[test]
fn an_unreadable_config_is_named_and_left_as_it_is() {
    let stage = stage();
    let folder = stage.base().join(".config/yaoki");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("settings.json");
    fs::write(&file, "{\"model\": ").unwrap();
    let ran = stage.run(&["-p", "x"]);
    assert_one_line(&stage, "broken config", &ran, &[2], &["settings.json"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "{\"model\": ");

    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&file).is_ok() {
        // Root reads everything; a folder in its place cannot be read by anybody.
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
    }
    let ran = stage.run(&["-p", "x"]);
    assert_one_line(&stage, "unreadable config", &ran, &[2], &["settings.json"]);
}

#[test]
fn without_a_key_it_says_what_to_set_and_where() {
    let stage = stage();
    let mut command = stage.yaoki(&["-p", "x"]);
    command.env_remove("ANTHROPIC_API_KEY");
    let ran = Running::start(&mut command).wait();
    assert_one_line(&stage, "no key", &ran, &[2], &["ANTHROPIC_API_KEY"]);
}

#[test]
fn root_does_not_skip_permissions_outside_of_a_sandbox() {
    if !rustix::process::geteuid().is_root() {
        skip!("this is not root");
    }
    let stage = stage();
    let mut command = stage.yaoki(&["-p", "x"]);
    command.env_remove("IS_SANDBOX");
    let ran = Running::start(&mut command).wait();
    assert_one_line(&stage, "root", &ran, &[1, 2], &["IS_SANDBOX=1"]);
}

#[test]
fn a_read_only_disk_is_named_and_nothing_is_lost() {
    if !rustix::process::geteuid().is_root() {
        skip!("only root can mount a read-only disk");
    }
    let stage = stage();
    stage.run(&["-p", "say it"]).assert_code(0);
    let log = stage.session_folder().join(format!("{}.jsonl", stage.session()));
    let before = fs::read(&log).unwrap();
    let asked = stage.asks().len();

    // In a namespace of its own: this machine's disks stay as they are.
    let read_only = |args: &[&str]| {
        let yaoki = stage.yaoki(args);
        let home = stage.home();
        let mut command = stage.plain("unshare");
        command.args(["--mount", "sh", "-c"]);
        command
            .arg("mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\" || exit 99; exec \"$@\"")
            .arg(home);
        command.arg(yaoki.get_program()).args(yaoki.get_args());
        command.envs(yaoki.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Running::start(&mut command).wait()
    };
    let session = stage.session();
    for args in [&["-p", "again"][..], &["-p", "again", "--resume", &session]] {
        let ran = read_only(args);
        if ran.status.code() == Some(99) || ran.err.starts_with("unshare") {
            skip!("no mount namespace: {}", ran.err);
        }
        assert!(matches!(ran.status.code(), Some(1 | 2)), "{ran:?}");
        assert!(ran.err_lines().len() == 1 && ran.err.contains("ead-only"), "{ran:?}");
        assert_eq!(stage.asks().len(), asked, "nothing is asked that could not be remembered");
    }
    assert_eq!(fs::read(&log).unwrap(), before);
    stage.run(&["-p", "again", "--resume", &session]).assert_code(0);
}

#[test]
fn a_program_that_reads_json_is_told_of_a_start_that_failed() {
    let stage = stage();
    for args in [
        &["-p", "x", "--output-format", "json", "--modle", "m"][..],
        &["-p", "x", "--output-format=stream-json", "--verbose", "--max-turns", "0"],
        &["-p", "x", "--output-format", "stream-json"],
        &["-p", "--output-format", "json"],
        &["x", "--output-format", "json"],
        &["resume", "ID", "--output-format", "json"],
        &["-p", "x", "--output-format", "json", "--disallowedTools", "Bsh"],
    ] {
        // The flag that comes along would stand behind what is wrong.
        let ran = Running::start(&mut stage.bare(args)).wait();
        ran.assert_code(2);
        let [line] = ran.out.lines().collect::<Vec<_>>()[..] else { panic!("{args:?}: {ran:?}") };
        let result: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!((&result["type"], &result["is_error"]), (&"result".into(), &true.into()), "{args:?}");
        let told = result["errors"][0].as_str().unwrap();
        assert!(ran.err.contains(told) && ran.err_lines().len() == 1, "{args:?}: {ran:?}");
    }
    assert_eq!(stage.asks().len(), 0);
}

#[test]
fn a_session_whose_header_is_damaged_is_listed_as_such_and_nothing_is_offered_that_cannot_be_done() {
    let stage = stage();
    stage.run(&["-p", "say it"]).assert_code(0);
    let session = stage.session();
    let log = stage.session_folder().join(format!("{session}.jsonl"));
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, text.replacen("\"format\"", "\"farmat\"", 1)).unwrap();
    let ran = Running::start(&mut stage.bare(&["sessions", "--all"])).wait();
    ran.assert_code(0);
    assert!(ran.out.contains("  damaged  "), "{ran:?}");
    let ran = stage.run(&["-p", "go on", "--resume", &session]);
    ran.assert_code(1);
    assert!(ran.err.contains("is damaged") && !ran.err.contains("fork"), "{ran:?}");
}

#[test]
fn the_key_of_the_scripted_model_takes_no_word_out_of_what_is_told() {
    let stage = stage();
    let script = r#"{"steps": [{"fault": {"status": {"code": 404, "message": "no label of this lab"}}}]}"#;
    stage.write("script.json", script);
    let ran = stage.run(&["-p", "x", "--fake", "../script.json"]);
    ran.assert_code(1);
    assert!(ran.err.contains("no label of this lab"), "{ran:?}");
    assert!(ran.err.contains("ANTHROPIC_BASE_URL: it is the address without /v1"), "{ran:?}");
}
