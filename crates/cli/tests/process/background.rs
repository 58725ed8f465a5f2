//! What still runs when print mode ends is named, for nobody watches it any more.

use serde_json::{Value, json};
use yaoki_lab::{Script, Step};

use crate::stage::{Running, Stage};

#[test]
fn a_child_that_a_command_leaves_behind_is_named_at_the_end() {
    let stage = Stage::new(Script::of(vec![
        Step::tool("Bash", json!({ "command": "read -r word < ../never & echo begun" })),
        Step::text("It runs."),
    ]));
    let never = stage.pipe("never");
    let args = ["-p", "begin it", "--output-format", "stream-json", "--verbose"];
    let ran = Running::start(&mut stage.yaoki(&args)).wait();
    never.say("go");
    ran.assert_code(0);
    let [line] = ran.err_lines()[..] else { panic!("{ran:?}") };
    let session = stage.session();
    assert!(line.starts_with("! bash_") && line.contains("still runs"), "{line}");
    assert!(line.contains(&format!("yaoki resume {session}")), "{line}");
    let lines: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told = lines.iter().find(|line| line["subtype"] == "yaoki_background").unwrap();
    let task = told["tasks"][0]["task_id"].as_str().unwrap();
    assert!(line.contains(task), "{told}");
    assert_eq!(lines.last().unwrap()["type"], "result", "it comes before the result");
}
