//! One real job, end to end: a failing test is read, mended and run.

use serde_json::json;
use yaoki_lab::{Answer, Block, Holds, Script, Step};

use crate::stage::Stage;

const SUM: &str = "for n in \"$@\"; do total=$((total - n)); done\necho \"${total:-0}\"\n";
const TEST: &str = "test \"$(sh sum.sh 1 2 3)\" = 6 && echo pass || { echo fail; exit 1; }\n";
const ANSWER: &str = "The tests pass: sum.sh subtracted, and now it adds.";

fn after(tool: &str, is_error: bool, text: &str) -> Holds {
    Holds {
        result_for: vec![tool.to_owned()],
        result_is_error: Some(is_error),
        last_contains: vec![text.to_owned()],
        ..Holds::default()
    }
}

/// Reads, runs, edits, runs, answers; every step expects the real result of the one before it.
fn script(stage_path: impl Fn(&str) -> String) -> Script {
    let file = stage_path("sum.sh");
    let run = || Step::answer(Answer::blocks(vec![Block::tool("Bash", json!({ "command": "sh test.sh" }))]));
    Script::of(vec![
        Step::answer(Answer::blocks(vec![
            Block::Text("I will look.".into()),
            Block::tool("Read", json!({ "file_path": file })),
            Block::tool("Glob", json!({ "pattern": "*.sh" })),
        ]))
        .expect(Holds {
            last_contains: vec!["make the tests pass".into()],
            tools: ["Read", "Write", "Edit", "Bash", "BashOutput", "KillShell", "Grep", "Glob", "TodoWrite"]
                .map(str::to_owned)
                .into(),
            ..Holds::default()
        }),
        run().expect(Holds { results: Some(2), ..after("Read", false, "total - n") }),
        Step::tool(
            "Edit",
            json!({ "file_path": file, "old_string": "total - n", "new_string": "total + n" }),
        )
        .expect(after("Bash", true, "fail")),
        run().expect(after("Edit", false, "")),
        Step::text(ANSWER).expect(after("Bash", false, "pass")),
    ])
}

#[test]
fn a_failing_test_is_mended_and_the_answer_is_on_stdout() {
    // The script names the project, so the folder comes first.
    let mut stage = Stage::new(Script::of(vec![Step::text("unused")]));
    stage.play(script(|name| stage.path(name)));
    stage.write("project/sum.sh", SUM);
    stage.write("project/test.sh", TEST);
    stage.git(&["add", "."]);

    let ran = stage.run(&["-p", "make the tests pass"]);
    ran.assert_code(0);
    assert_eq!(ran.out, format!("{ANSWER}\n"));
    assert!(stage.plain("sh").arg("test.sh").output().unwrap().status.success(), "the tests pass");
    assert_eq!(stage.read("project/sum.sh"), SUM.replace("total - n", "total + n"));
    assert_eq!(
        stage.git(&["status", "--porcelain"]),
        "AM sum.sh\nA  test.sh\n",
        "nothing is staged or committed"
    );
    stage.assert_accepted();
    assert_eq!(stage.asks().len(), 5);
    let kinds: Vec<String> = stage.records().into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(
        (kinds.first().map(String::as_str), kinds.last().map(String::as_str)),
        (Some("header"), Some("turn_end"))
    );
}

#[test]
fn json_and_stream_json_end_with_one_result() {
    for format in ["json", "stream-json"] {
        let stage = Stage::new(Script::of(vec![Step::text("Well.")]));
        let ran = stage.run(&["-p", "how is it?", "--output-format", format, "--verbose"]);
        ran.assert_code(0);
        let last: serde_json::Value = serde_json::from_str(ran.out.lines().last().unwrap()).unwrap();
        assert_eq!(
            (&last["type"], &last["result"], &last["is_error"]),
            (&json!("result"), &json!("Well."), &json!(false))
        );
        assert_eq!(last["session_id"], stage.session());
    }
}

#[test]
fn without_permission_a_command_is_denied_and_the_turn_goes_on() {
    let stage = Stage::new(Script::of(vec![
        Step::tool("Bash", json!({ "command": "echo once >> ../ledger" })),
        Step::text("I may not.").expect(Holds {
            result_is_error: Some(true),
            results: Some(1),
            ..Holds::default()
        }),
    ]));
    let ran = crate::stage::Running::start(&mut stage.bare(&["-p", "do it"])).wait();
    assert_eq!(ran.out, "I may not.\n");
    assert_eq!(stage.read("ledger"), "");
    stage.assert_accepted();
}
