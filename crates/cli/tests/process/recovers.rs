//! Answers that are no good, and models that can't serve: what goes out, in order, and how it ends.

use serde_json::{Value, json};
use yaoki_lab::{Answer, Fault, Script, StatusFault, Step};

use crate::stage::{Ran, Stage};

/// A failure that asks to be tried again at once.
fn busy() -> Step {
    let headers = [("retry-after-ms".to_owned(), "1".to_owned())].into();
    Step::fault(Fault::Status(StatusFault { headers, ..StatusFault::of(529) }))
}

fn asked<'a>(stage: &Stage, of: impl Fn(&Value) -> Value + 'a) -> Vec<Value> {
    stage.asks().iter().map(|entry| of(&entry.body)).collect()
}

fn lines(ran: &Ran) -> Vec<Value> {
    ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn three_overloads_lead_to_the_next_model_for_the_rest_of_the_turn() {
    let stage = Stage::new(Script::of(vec![
        busy(),
        busy(),
        busy(),
        Step::tool("Bash", json!({ "command": "echo here" })),
        Step::text("Said."),
    ]));
    let ran = stage.run(&[
        "-p",
        "say it",
        "--model",
        "claude-opus-5-5",
        "--fallback-model",
        "claude-opus-5,claude-opus-4-8",
    ]);
    ran.assert_code(0);
    assert_eq!(ran.out, "Said.\n");
    assert!(
        ran.err.contains("Switched to claude-opus-5 due to high demand for claude-opus-5-5"),
        "{}",
        ran.err
    );
    let (first, next) = ("claude-opus-5-5", "claude-opus-5");
    assert_eq!(asked(&stage, |body| body["model"].clone()), [first, first, first, next, next]);
    stage.assert_accepted();
}

#[test]
fn a_cut_answer_is_asked_for_with_the_models_limit_and_then_continued() {
    let stage = Stage::new(Script::of(vec![
        Step::answer(Answer::text("One, t").stopped("max_tokens").costing(10, 3)),
        Step::answer(Answer::text("One, two, ").stopped("max_tokens").costing(10, 5)),
        Step::answer(Answer::text("three.").costing(20, 2)),
    ]));
    let ran = stage.run(&["-p", "count", "--output-format", "stream-json", "--verbose"]);
    ran.assert_code(0);
    let lines = lines(&ran);
    let result = lines.last().unwrap();
    assert_eq!((&result["result"], &result["num_turns"]), (&json!("One, two, three."), &json!(1)));
    assert_eq!(result["usage"]["output_tokens"], 10, "what was withdrawn is paid for");
    assert_eq!(result["modelUsage"]["claude-opus-5-5"]["outputTokens"], 10);
    let rules: Vec<&Value> =
        lines.iter().filter(|line| line["subtype"] == "yaoki_recovery").map(|line| &line["rule"]).collect();
    assert_eq!(rules, ["escalate", "continuation"]);
    assert_eq!(asked(&stage, |body| body["max_tokens"].clone()), [32_000, 128_000, 32_000]);
    assert_eq!(asked(&stage, |body| json!(body["messages"].as_array().unwrap().len())), [1, 1, 3]);
    stage.assert_accepted();
}

#[test]
fn a_refusal_is_withdrawn_and_ends_the_turn() {
    let stage =
        Stage::new(Script::of(vec![Step::answer(Answer::text("I can\u{2019}t.").stopped("refusal"))]));
    let ran = stage.run(&["-p", "say it", "--output-format", "stream-json", "--verbose"]);
    ran.assert_code(1);
    let lines = lines(&ran);
    let result = lines.last().unwrap();
    assert_eq!(
        (&result["stop_reason"], &result["yaoki_terminal_reason"]),
        (&json!("refusal"), &json!("refusal"))
    );
    assert!(lines.iter().any(|line| line["subtype"] == "yaoki_withdrawn"), "{}", ran.out);
    let kinds: Vec<String> = stage.records().into_iter().map(|(kind, _)| kind).collect();
    assert!(!kinds.iter().any(|kind| kind == "assistant_committed"), "{kinds:?}");
    stage.assert_accepted();
}
