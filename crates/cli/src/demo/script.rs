//! What the scripted model says, and what goes wrong, in order.
//!
//! Each step expects the result of the one before it: an agent that lost or repeated something is refused by the
//! lab. Deliberately not here: the kill, which happens to the agent and not to its model.

use std::path::Path;

use serde_json::json;
use yaoki_lab::{Answer, Block, Fault, Holds, How, Place, Script, Step};

use super::project::{RIGHT, WRONG};

/// The only key that the lab takes.
pub const KEY: &str = "sk-demo-not-a-secret";

pub const PROMPT: &str = "Make the tests pass, then deploy.";
pub const PROMPT_LATER: &str = "Now tidy up.";

/// Labels of the steps whose faults must have fired.
pub const FAULTS: [&str; 3] = ["overloaded", "cut", "key refused"];

/// Returns the script for a project in this folder.
pub fn script(root: &Path) -> Script {
    let path = |name: &str| root.join(name).to_string_lossy().into_owned();
    let smoke = || says("It is out. A smoke test will tell whether it is well.", bash("sh smoke.sh"));
    let steps = vec![
        Step::status(529).times(2).labelled("overloaded"),
        Step::answer(says(
            "I will read what is to be fixed.",
            Block::tool("Read", json!({ "path": path("sum.sh") })),
        ))
        .labelled("wrong parameter"),
        Step::answer(says(
            "That parameter is called file_path.",
            Block::tool("Read", json!({ "file_path": path("src/sum.sh") })),
        ))
        .expect(after("Read", true, "file_path"))
        .labelled("missing file"),
        Step::answer(says("There is no such file. The tests may tell me more.", bash("sh test.sh")))
            .expect(after("Read", true, "src/sum.sh"))
            .labelled("failing command"),
        Step::answer(says(
            "They fail in sum.sh.",
            Block::tool("Read", json!({ "file_path": path("sum.sh") })),
        ))
        .expect(after("Bash", true, "FAIL: sum 1 2 3 = 6, got -6"))
        .labelled("read"),
        Step::answer(says(
            "It subtracts.",
            Block::tool(
                "Edit",
                json!({ "file_path": path("sum.sh"), "old_string": WRONG, "new_string": RIGHT }),
            ),
        ))
        .expect(after("Read", false, WRONG))
        .labelled("edit"),
        Step::answer(says("Again.", bash("sh test.sh"))).expect(after("Edit", false, "")).labelled("tests"),
        Step::answer(says("All is well; out it goes.", bash("sh deploy.sh")))
            .expect(after("Bash", false, "ok: sum 1 2 3 = 6"))
            .labelled("deploy"),
        Step::answer(smoke())
            .with_fault(Fault::Cut { at: Place::AfterToolBlock, how: How::Fin })
            .expect(after("Bash", false, "deployed sum.sh"))
            .labelled("cut"),
        Step::answer(smoke()).expect(after("Bash", false, "deployed sum.sh")).labelled("smoke test"),
        Step::text("The tests pass, it is deployed once, and the smoke test is healthy.")
            .expect(after("Bash", false, "smoke test: 1 service, healthy"))
            .labelled("answer"),
        Step::status(401)
            .expect(Holds { last_contains: vec![PROMPT_LATER.to_owned()], ..Holds::default() })
            .labelled("key refused"),
    ];
    Script { name: "demo".to_owned(), keys: vec![KEY.to_owned()], ..Script::of(steps) }
}

fn says(text: &str, call: Block) -> Answer {
    Answer::blocks(vec![Block::Text(text.to_owned()), call])
}

fn bash(command: &str) -> Block {
    Block::tool("Bash", json!({ "command": command }))
}

/// The request brings this result of a call.
fn after(tool: &str, is_error: bool, text: &str) -> Holds {
    Holds {
        result_for: vec![tool.to_owned()],
        result_is_error: Some(is_error),
        last_contains: Some(text.to_owned()).filter(|text| !text.is_empty()).into_iter().collect(),
        ..Holds::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lab_takes_the_script_and_every_fault_is_in_it() {
        let script = script(Path::new("/tmp/demo"));
        let json = serde_json::to_string(&script).unwrap();
        assert_eq!(Script::parse(&json).unwrap(), script);
        for label in FAULTS {
            assert!(script.steps.iter().any(|step| step.label == label && step.fault.is_some()), "{label}");
        }
    }
}
