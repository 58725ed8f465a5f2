//! Nothing is connected to but the configured endpoint, and the key is written nowhere.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;
use yaoki_lab::{Body, Fault, Script, StatusFault, Step};

use crate::skip;
use crate::stage::{KEY, Running, Stage};

#[test]
fn only_the_endpoint_is_connected_to() {
    let traced = Command::new("strace").args(["-f", "-e", "trace=none", "true"]).output();
    if !traced.is_ok_and(|output| output.status.success()) {
        skip!("strace is not here, or may not trace");
    }
    let stage = Stage::new(Script::of(vec![
        Step::status(529),
        Step::tool("Bash", json!({ "command": "git status" })),
        Step::text("Said."),
    ]));
    let trace = stage.base().join("trace");
    let yaoki = stage.yaoki(&["-p", "say it"]);
    let mut command = stage.plain("strace");
    command.args(["-f", "-qq", "-e", "trace=connect,sendto,sendmsg,bind,listen", "-o"]).arg(&trace);
    command.arg(yaoki.get_program()).args(yaoki.get_args());
    command.envs(yaoki.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Running::start(&mut command).wait().assert_code(0);

    let endpoint =
        format!("sin_port=htons({}), sin_addr=inet_addr(\"127.0.0.1\")", stage.server.addr().port());
    let text = fs::read_to_string(&trace).unwrap();
    let named: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("sa_family=") || line.contains("bind("))
        // The C library of a shell asks for the user's name here; it leads nowhere else.
        .filter(|line| !line.contains("sa_family=AF_UNIX, sun_path=\"/var/run/nscd/socket\""))
        .collect();
    assert!(named.iter().any(|line| line.contains("connect(")), "the trace saw the connection: {text}");
    for line in named {
        assert!(line.contains("connect(") && line.contains(&endpoint), "not the endpoint: {line}");
    }
    stage.assert_accepted();
}

#[test]
fn the_key_is_in_no_file_and_no_output() {
    // The environment of a command, a file that holds it, and a server that repeats it.
    let refusal = StatusFault { body: Body::Text { content_type: "application/json".into(), text: json!({
        "type": "error", "error": { "type": "authentication_error", "message": format!("invalid x-api-key {KEY}") },
    }).to_string() }, ..StatusFault::of(401) };
    let stage = Stage::new(Script::of(vec![
        Step::tool("Bash", json!({ "command": "env; cat ../elsewhere; cat /proc/$PPID/environ" })),
        Step::fault(Fault::Status(refusal)),
    ]));
    stage.write("elsewhere", &format!("key={KEY}\n"));
    let ran = stage.run(&["-p", "say it", "--output-format", "stream-json", "--verbose"]);
    ran.assert_code(1);
    stage.assert_accepted();
    assert!(!ran.out.contains(KEY), "stdout: {}", ran.out);
    assert!(!ran.err.contains(KEY), "stderr: {}", ran.err);
    let mut seen = 0;
    assert_absent(&stage.home(), &mut seen);
    assert!(seen > 0, "there are files");
    let last = stage.asks().pop().unwrap();
    assert!(!last.body.to_string().contains(KEY), "the model is not told: {}", last.body);
}

/// Looks into every file of a folder.
fn assert_absent(folder: &Path, seen: &mut usize) {
    for path in crate::stage::entries(folder) {
        if path.is_dir() {
            assert_absent(&path, seen);
        } else if path.is_file() {
            *seen += 1;
            let bytes = fs::read(&path).unwrap();
            let is_there = bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes());
            assert!(!is_there, "{}", path.display());
        }
    }
}
