//! How requests find their steps, and what is remembered of them.
#![allow(clippy::unwrap_used)]

mod common;

use common::{ask, body, error, get, headers, lab, of, request, steps, text};
use serde_json::{Value, json};
use yaoki_lab::{Block, Holds, HttpAsk, Lab, Play, Script, Step, Verdict, example, script_schema};

/// A round trip: the call that was answered, and its result.
fn after_call(id: &str, name: &str, is_error: bool) -> Value {
    let call = json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
    let result = json!({ "type": "tool_result", "tool_use_id": id, "content": "out", "is_error": is_error });
    let mut body = request("hi");
    body["messages"] = json!([
        { "role": "user", "content": "hi" },
        { "role": "assistant", "content": [call] },
        { "role": "user", "content": [result] },
    ]);
    body
}

fn heard(lab: &mut Lab, prompts: &[&str]) -> Vec<String> {
    prompts.iter().map(|prompt| text(&ask(lab, &request(prompt)))).collect()
}

#[test]
fn steps_are_taken_in_order_and_as_often_as_they_say() {
    let mut lab = steps(r#"{"answer": "a"}, {"answer": "b", "repeat": 2}, {"answer": "c"}"#);
    assert_eq!(heard(&mut lab, &["1", "2", "3", "4"]), ["a", "b", "b", "c"]);
    let (status, kind, message) = error(&ask(&mut lab, &request("5")));
    assert_eq!((status, kind.as_str()), (400, "lab_exhausted"));
    assert_eq!(message, "the script is exhausted: all 3 steps are used up");
    assert_eq!(lab.report().complaints(), ["1 requests found no step"]);
    assert_eq!(lab.report().steps.iter().map(|s| s.asked).collect::<Vec<_>>(), [1, 2, 1]);
}

#[test]
fn the_end_can_be_something_else() {
    let mut last = lab(r#"{"steps": [{"answer": "a"}, {"answer": "b"}], "at_end": "repeat_last"}"#);
    assert_eq!(heard(&mut last, &["1", "2", "3", "4"]), ["a", "b", "b", "b"]);
    let mut said = lab(r#"{"steps": [{"answer": "a"}], "at_end": {"answer": "no more"}}"#);
    assert_eq!(heard(&mut said, &["1", "2", "3"]), ["a", "no more", "no more"]);
    assert_eq!(said.report().complaints(), Vec::<String>::new());
}

const CONDITIONAL: &str = r#"
    {"answer": "for tea", "when": {"contains": ["tea"]}},
    {"answer": "for all"},
    {"answer": "for coffee", "when": {"contains": ["coffee"]}}"#;

#[test]
fn a_step_that_does_not_hold_is_stepped_over_and_looked_at_again() {
    let mut lab = steps(CONDITIONAL);
    assert_eq!(heard(&mut lab, &["milk", "tea", "coffee"]), ["for all", "for tea", "for coffee"]);
    let message = error(&ask(&mut steps(r#"{"answer": "x", "when": {"model": "other"}}"#), &request("hi"))).2;
    assert_eq!(
        message,
        "the script is exhausted: no step that is left holds (step 1: model is `claude-lab-1`, not `other`)"
    );
}

#[test]
fn in_an_ordered_script_it_is_gone() {
    let mut lab = lab(&format!(r#"{{"in_order": true, "steps": [{CONDITIONAL}]}}"#));
    assert_eq!(heard(&mut lab, &["milk", "coffee"]), ["for all", "for coffee"]);
    assert_eq!(error(&ask(&mut lab, &request("tea"))).1, "lab_exhausted");
}

#[test]
fn everything_about_a_request_can_be_asked() {
    let base = after_call("toolu_1", "Read", true);
    let mut tools = base.clone();
    tools["tools"] = json!([{ "name": "Bash", "input_schema": { "type": "object" } }]);
    tools["system"] = json!("you are kind");
    for (body, holds, want) in [
        (&base, r#"{"model": "claude-*"}"#, true),
        (&base, r#"{"model": "gpt-*"}"#, false),
        (&base, r#"{"contains": ["hi", "out"]}"#, true),
        (&base, r#"{"contains": ["hi", "absent"]}"#, false),
        (&tools, r#"{"contains": ["you are kind"]}"#, true),
        (&base, r#"{"lacks": ["absent"]}"#, true),
        (&base, r#"{"lacks": ["hi"]}"#, false),
        (&base, r#"{"last_contains": ["out"]}"#, true),
        (&base, r#"{"last_contains": ["hi"]}"#, false),
        (&base, r#"{"last_lacks": ["hi"]}"#, true),
        (&base, r#"{"last_lacks": ["out"]}"#, false),
        (&base, r#"{"result_for": ["toolu_1"]}"#, true),
        (&base, r#"{"result_for": ["Read"]}"#, true),
        (&base, r#"{"result_for": ["Bash"]}"#, false),
        (&base, r#"{"result_is_error": true}"#, true),
        (&base, r#"{"result_for": ["Read"], "result_is_error": false}"#, false),
        (&base, r#"{"results": 1}"#, true),
        (&base, r#"{"results": 0}"#, false),
        (&base, r#"{"messages": 3}"#, true),
        (&base, r#"{"messages": 1}"#, false),
        (&base, r#"{"max_tokens": 1000}"#, true),
        (&base, r#"{"max_tokens": 1}"#, false),
        (&base, r#"{"streamed": true}"#, true),
        (&base, r#"{"streamed": false}"#, false),
        (&tools, r#"{"tools": ["Bash"]}"#, true),
        (&base, r#"{"tools": ["Bash"]}"#, false),
    ] {
        let mut by_when = steps(&format!(r#"{{"answer": "yes", "when": {holds}}}, {{"answer": "no"}}"#));
        assert_eq!(text(&ask(&mut by_when, body)), if want { "yes" } else { "no" }, "when {holds}");
        let mut by_expect = steps(&format!(r#"{{"answer": "yes", "expect": {holds}}}"#));
        let plan = ask(&mut by_expect, body);
        assert_eq!(plan.status(), Some(if want { 200 } else { 400 }), "expect {holds}");
        assert_eq!(by_expect.report().complaints().is_empty(), want, "expect {holds}");
    }
}

#[test]
fn a_failed_expectation_is_a_violation() {
    let mut lab = of(vec![
        Step::text("x").labelled("first").expect(Holds { messages: Some(3), ..Holds::default() }),
        Step::text("y"),
    ]);
    let plan = ask(&mut lab, &request("hi"));
    assert_eq!(error(&plan), (400, "lab_expectation".into(), "first: there are 1 messages, not 3".into()));
    assert_eq!(lab.report().steps[0].violations, ["request 1: there are 1 messages, not 3"]);
    assert_eq!(heard(&mut lab, &["hi"]), ["y"], "the step is used up");
}

#[test]
fn a_request_that_is_refused_takes_no_step() {
    let mut lab = steps(r#"{"answer": "x"}"#);
    let mut bad = request("hi");
    bad["messages"] = json!([{ "role": "user", "content": [{ "type": "text", "text": "" }] }]);
    assert_eq!(error(&ask(&mut lab, &bad)).2, "messages: text content blocks must be non-empty");
    assert_eq!(
        lab.report().complaints(),
        ["request 1: 400: messages: text content blocks must be non-empty (messages.0.content.0)"]
    );
    assert_eq!(heard(&mut lab, &["hi"]), ["x"]);
    let mut lax = common::lab(r#"{"strict": false, "steps": [{"answer": "x"}]}"#);
    assert_eq!(text(&ask(&mut lax, &bad)), "x");
}

#[test]
fn ids_are_never_ones_that_the_conversation_has() {
    let read = r#"{"answer": [{"tool": {"name": "Read"}}, {"tool": {"name": "Bash", "id": "toolu_mine"}}]}"#;
    let mut lab = steps(read);
    let first = body(&ask(&mut lab, &request("hi")));
    assert!(
        first.contains("\"toolu_lab_0001\"")
            && first.contains("\"toolu_mine\"")
            && first.contains("\"msg_lab_0001\"")
    );
    // A lab that was started anew, in the middle of the conversation.
    let mut anew = steps(read);
    let later = body(&ask(&mut anew, &after_call("toolu_lab_0001", "Read", false)));
    assert!(later.contains("\"toolu_lab_0002\"") && later.contains("\"msg_lab_0002\""), "{later}");
    let mut anew = steps(read);
    assert!(body(&ask(&mut anew, &after_call("toolu_mine", "Read", false))).contains("\"toolu_mine_2\""));
}

#[test]
fn thinking_comes_back_to_a_lab_that_was_started_anew() {
    let script = r#"{"answer": [{"thinking": "so…"}, {"tool": {"name": "Read"}}, {"redacted": "dark"}, {"text": "and"}, {"tool": {"name": "Read"}}]}"#;
    let mut body = request("hi");
    body["stream"] = json!(false);
    let answer: Value = serde_json::from_slice(&ask(&mut steps(script), &body).body()).unwrap();
    let results = json!([1, 2].map(
        |n| json!({ "type": "tool_result", "tool_use_id": format!("toolu_lab_000{n}"), "content": "x" })
    ));
    body["messages"] = json!([
        { "role": "user", "content": "hi" },
        { "role": "assistant", "content": answer["content"] },
        { "role": "user", "content": results },
    ]);
    let mut anew = steps(r#"{"answer": "x", "repeat": 3}"#);
    assert_eq!(ask(&mut anew, &body).status(), Some(200));
    let mut other = body.clone();
    other["model"] = json!("claude-lab-2");
    assert_eq!(
        error(&ask(&mut anew, &other)).2,
        "messages.1.content.0: Invalid `signature` in `thinking` block"
    );
    body["messages"][1]["content"][0]["thinking"] = json!("so...");
    assert_eq!(ask(&mut anew, &body).status(), Some(400));
}

#[test]
fn what_an_answer_costs_is_told_or_estimated() {
    let usage = |script: &str| {
        let mut body = request("hi");
        body["stream"] = json!(false);
        let answer: Value = serde_json::from_slice(&ask(&mut lab(script), &body).body()).unwrap();
        let count = |name: &str| answer["usage"][name].as_u64().unwrap();
        [
            count("input_tokens"),
            count("output_tokens"),
            count("cache_read_input_tokens"),
            count("cache_creation_input_tokens"),
        ]
    };
    let step = r#""usage": {"input": 7, "output": 8, "cache_read": 9, "cache_creation": 10}"#;
    assert_eq!(
        usage(&format!(r#"{{"steps": [{{"answer": {{"blocks": [{{"text": "x"}}], {step}}}}}]}}"#)),
        [7, 8, 9, 10]
    );
    let defaults = r#""defaults": {"usage": {"input": 100, "output": 20}}"#;
    assert_eq!(usage(&format!(r#"{{{defaults}, "steps": [{{"answer": "x"}}]}}"#)), [100, 20, 0, 0]);
    let bytes = {
        let mut body = request("hi");
        body["stream"] = json!(false);
        body.to_string().len() as u64
    };
    assert_eq!(usage(r#"{"steps": [{"answer": "twelve bytes"}]}"#), [bytes / 4 + 1, 4, 0, 0]);
}

#[test]
fn stop_reasons_follow_from_the_blocks_or_the_script() {
    for (answer, want) in [
        (r#""x""#, "end_turn"),
        (r#"[{"text": "x"}, {"tool": {"name": "Read"}}]"#, "tool_use"),
        (r#"{"blocks": [{"text": "x"}], "stop_reason": "pause_turn"}"#, "pause_turn"),
    ] {
        let said = body(&ask(&mut steps(&format!(r#"{{"answer": {answer}}}"#)), &request("hi")));
        assert!(said.contains(&format!("\"stop_reason\":\"{want}\"")), "{said}");
    }
}

#[test]
fn models_and_tokens_are_told() {
    let script =
        r#"{"models": [{"id": "m-1", "max_input_tokens": 1000}, {"id": "m-2"}], "steps": [{"answer": "x"}]}"#;
    let mut lab = lab(script);
    let (status, list) = get(&mut lab, "/v1/models?limit=20");
    assert_eq!((status, &list["data"][0]["id"], &list["last_id"]), (200, &json!("m-1"), &json!("m-2")));
    assert_eq!(get(&mut lab, "/v1/models/m-1").1["max_input_tokens"], 1000);
    assert_eq!(get(&mut lab, "/v1/models/m-3").0, 404);
    let mut count = request("hi");
    count["model"] = json!("m-1");
    for member in ["max_tokens", "stream"] {
        count.as_object_mut().unwrap().remove(member);
    }
    let raw = count.to_string();
    let plan = lab.answer(&HttpAsk::new("POST", "/v1/messages/count_tokens", &headers(), raw.as_bytes()));
    assert_eq!(body(&plan), format!("{{\"input_tokens\":{}}}", raw.len() / 4 + 1));
    let gone = ask(&mut lab, &request("hi"));
    assert_eq!(error(&gone), (404, "not_found_error".into(), "model: claude-lab-1".into()));
}

#[test]
fn the_log_has_every_request_and_no_key() {
    let mut lab = steps(r#"{"label": "one", "fault": {"status": 529}}, {"answer": "x"}"#);
    ask(&mut lab, &request("hi"));
    ask(&mut lab, &request("again"));
    get(&mut lab, "/v1/models");
    lab.played(2, false);
    let log = lab.log();
    assert_eq!(log[0].verdict, Verdict::Step { label: "one".into(), fault: Some("status") });
    assert_eq!((log[0].at_ms, log[0].status, log[0].played), (7, Some(529), None));
    assert_eq!((&log[1].body, log[1].played), (&request("again"), Some(false)));
    assert_eq!(log[2].verdict, Verdict::Other);
    assert_eq!(log[0].headers[0], ("x-api-key".into(), "***".into()));
    assert!(!format!("{log:?}").contains("secret"));
}

#[test]
fn the_log_is_bounded() {
    let mut lab = lab(r#"{"steps": [{"answer": "x", "repeat": "always"}]}"#);
    for _ in 0..Lab::LOG_ENTRIES_MAX + 3 {
        ask(&mut lab, &request("hi"));
    }
    assert_eq!((lab.log().len(), lab.log()[0].ask), (Lab::LOG_ENTRIES_MAX, 4));
}

#[test]
fn the_same_requests_get_the_same_bytes() {
    let run = || {
        let mut lab = lab(example("five-errors").unwrap());
        (0..3).map(|n| ask(&mut lab, &request(&n.to_string()))).collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}

#[test]
fn five_errors_go_as_the_story_goes() {
    let mut lab = lab(example("five-errors").unwrap());
    assert_eq!(ask(&mut lab, &request("hi")).status(), Some(529));
    let mut messages = vec![json!({ "role": "user", "content": "hi" })];
    let mut totals = [0, 0];
    loop {
        let plan = ask(&mut lab, &json!({ "model": "m", "max_tokens": 9, "messages": messages }));
        assert_eq!(plan.status(), Some(200), "{}", body(&plan));
        let answer: Value = serde_json::from_slice(&plan.body()).unwrap();
        totals[0] += answer["usage"]["input_tokens"].as_u64().unwrap();
        totals[1] += answer["usage"]["output_tokens"].as_u64().unwrap();
        messages.push(json!({ "role": "assistant", "content": answer["content"] }));
        let calls = answer["content"].as_array().unwrap().iter().filter(|block| block["type"] == "tool_use");
        let results: Vec<Value> = calls
            .map(|call| json!({ "type": "tool_result", "tool_use_id": call["id"], "content": "no", "is_error": true }))
            .collect();
        let is_over = results.is_empty();
        let next = if is_over { json!("Say it again") } else { json!(results) };
        messages.push(json!({ "role": "user", "content": next }));
        if is_over {
            break;
        }
    }
    assert_eq!(
        ask(&mut lab, &json!({ "model": "m", "max_tokens": 9, "messages": messages })).status(),
        Some(401)
    );
    assert_eq!((messages.len(), totals), (9, [400, 80]));
    assert_eq!((lab.report().answered, lab.report().complaints()), (4, vec![]));
}

#[test]
fn the_schema_knows_every_member_of_an_example() {
    let schema = script_schema();
    let known = |name: &str| schema["properties"].get(name).is_some();
    assert!(["steps", "at_end", "defaults", "limits", "in_order", "$schema"].iter().all(|name| known(name)));
    let text = schema.to_string();
    for word in ["ping_only", "in_tool_json", "repeat_last", "date_in_s", "raw_input", "result_for"] {
        assert!(text.contains(word), "{word}");
    }
}

#[test]
fn a_script_can_be_made_in_code() {
    let mut lab = Lab::new(Script {
        steps: vec![
            Step::status(529).times(2),
            Step::answer(vec![Block::tool_as("toolu_a", "Bash", json!({ "command": "ls" }))]),
        ],
        ..Script::default()
    });
    let statuses: Vec<_> = (0..3).map(|_| ask(&mut lab, &request("hi")).status()).collect();
    assert_eq!(statuses, [Some(529), Some(529), Some(200)]);
    assert_eq!(ask(&mut lab, &request("hi")).ending(), &Play::End);
}
