//! The REPL with piped input: five errors of two prompts, and the process goes on after each.

use yaoki_lab::{Script, example};

use crate::stage::{Running, Stage};

#[test]
fn five_errors_do_not_end_it_and_the_counts_are_right() {
    let stage = Stage::new(Script::parse(example("five-errors").unwrap()).unwrap());
    let mut command = stage.yaoki(&[]);
    let ran = Running::start_with(&mut command, "Summarise the README\nSay it again\n/status\n");
    ran.assert_code(0);
    stage.assert_accepted();
    let shown = format!("{}{}", ran.out, ran.err);
    for words in [
        "Summarise the README",
        "Say it again",
        "/status",
        "529",
        "Retrying in",
        "file_path",
        "There is no README.md in the project root. Shall I write one?",
        "401",
        "invalid x-api-key",
    ] {
        assert!(shown.contains(words), "{words:?} is not in\n{shown}");
    }
    for (name, value) in [
        ("messages", "9"),
        ("context", "100"),
        ("model", "claude-opus-5-5"),
        ("effort", "medium"),
        ("session", &stage.session()),
    ] {
        let line = ran.out.lines().find(|line| line.trim_start().starts_with(name) && line.contains(value));
        assert!(line.is_some(), "{name} is not {value}:\n{}", ran.out);
    }
    let total = ran.out.lines().find(|line| line.contains("400") && line.contains("80"));
    assert!(total.is_some_and(|line| line.contains('4')), "{}", ran.out);
    assert_eq!(stage.asks().len(), 6, "four answered, two failed attempts");
}
