//! Event sequences as lines, checked against what clients need.

use serde_json::{Value, json};
use yaoki::core::event::{Denial, Event, TurnSummary};
use yaoki::core::fault::{Evidence, Failure, Fault};
use yaoki::core::ids::{CallId, MessageId, OpId};
use yaoki::core::json::RawJson;
use yaoki::core::message::{Block, BlockBody, Call, CallResult, Origin, Reply, StopReason, Usage};
use yaoki::core::record::{OutcomeStatus, Refusal};
use yaoki::core::terminal::{TerminalReason, Transition};

use super::{Init, Wire, result};

fn wire() -> Wire {
    let mut count = 0;
    let uuid = move || {
        count += 1;
        format!("u{count}")
    };
    Wire::new("s1", uuid, || "2026-11-30T12:00:00Z".to_owned())
}

fn committed() -> Event {
    let origin = Origin { format: "anthropic".into(), endpoint: "http://e".into(), model: "m".into() };
    let call = Call {
        id: CallId::new("c1"),
        provider_id: "toolu_1".into(),
        tool: "Bash".into(),
        input: RawJson::parse(r#"{"command":"ls"}"#).unwrap(),
        broken: None,
    };
    let thinking = RawJson::parse(r#"{"type":"thinking","thinking":"hm","signature":"sig"}"#).unwrap();
    let blocks = vec![
        Block { body: BlockBody::Thinking { text: "hm".into() }, raw: Some(thinking) },
        Block { body: BlockBody::Text { text: "Looking.".into() }, raw: None },
        Block { body: BlockBody::Call(call), raw: None },
    ];
    let usage = Usage { input: 100, output: 20, cache_read: 5, cache_write: 0 };
    let reply = Reply { provider_id: "msg_1".into(), origin, blocks, stop: StopReason::ToolUse, usage };
    Event::Committed { message: MessageId::new("m1"), reply }
}

fn summary(reason: TerminalReason, error: Option<&str>) -> TurnSummary {
    TurnSummary {
        reason,
        text: "Done.".into(),
        error: error.map(str::to_owned),
        resumes_at: None,
        failure: None,
        rounds: 2,
        usage: Usage { input: 200, output: 40, ..Usage::default() },
        attempts_failed: 1,
        denials: vec![Denial {
            call: CallId::new("c1"),
            tool: "Bash".into(),
            input: RawJson::empty_object(),
        }],
        stop: Some(StopReason::EndTurn),
    }
}

fn failure(fault: Fault, status: Option<u16>) -> Failure {
    Failure { fault, evidence: Evidence { status, ..Evidence::default() } }
}

#[test]
fn a_turn_is_init_then_a_line_for_each_block_then_results_then_one_result() {
    let mut wire = wire();
    let init = wire.init(&Init { model: "m".into(), ..Init::default() }, 1000);
    assert_eq!(
        (&init["type"], &init["subtype"], &init["session_id"]),
        (&json!("system"), &json!("init"), &json!("s1"))
    );
    assert_eq!(init["claude_code_version"], "2.1.300");
    wire.lines(&Event::Asking { request: 1, attempt: 1, model: "m".into(), streamed: true }, 1010);
    let lines = wire.lines(&committed(), 1110);
    let contents: Vec<&Value> = lines.iter().map(|line| &line["message"]["content"]).collect();
    assert_eq!(
        contents,
        [
            &json!([{"type": "thinking", "thinking": "hm", "signature": "sig"}]),
            &json!([{"type": "text", "text": "Looking."}]),
            &json!([{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}]),
        ]
    );
    for line in &lines {
        assert_eq!(line["type"], "assistant");
        assert_eq!(
            (&line["message"]["id"], &line["message"]["stop_reason"]),
            (&json!("msg_1"), &Value::Null)
        );
        assert_eq!(line["message"]["usage"]["input_tokens"], 100);
        assert!(line["uuid"].is_string() && line["timestamp"].is_string());
    }
    let ended = Event::CallEnded {
        call: CallId::new("c1"),
        op: OpId(7),
        tool: "Bash".into(),
        status: OutcomeStatus::Success,
        result: CallResult::ok("a\nb"),
        took_ms: 3,
    };
    let lines = wire.lines(&ended, 1200);
    assert_eq!((&lines[0]["subtype"], &lines[0]["op"]), (&json!("yaoki_effect"), &json!("op7")));
    assert_eq!(
        lines[1]["message"]["content"],
        json!([{"tool_use_id": "toolu_1", "type": "tool_result", "content": "a\nb", "is_error": false}])
    );
    assert_eq!(lines[1]["tool_use_result"]["stdout"], "a\nb");
    let summary = summary(TerminalReason::Completed, None);
    assert_eq!(wire.lines(&Event::TurnEnded(summary.clone()), 1500), Vec::<Value>::new());
    let result = wire.result(&summary, Some(0.5), 1500);
    for (member, want) in [
        ("type", json!("result")),
        ("subtype", json!("success")),
        ("is_error", json!(false)),
        ("duration_ms", json!(500)),
        ("duration_api_ms", json!(100)),
        ("num_turns", json!(2)),
        ("result", json!("Done.")),
        ("stop_reason", json!("end_turn")),
        ("terminal_reason", json!("completed")),
        ("total_cost_usd", json!(0.5)),
        ("api_error_status", Value::Null),
        ("permission_denials", json!([{"tool_name": "Bash", "tool_use_id": "toolu_1", "tool_input": {}}])),
    ] {
        assert_eq!(result[member], want, "{member}");
    }
    assert_eq!(result["modelUsage"]["m"]["cacheReadInputTokens"], 5);
    assert_eq!(result.get("errors"), None);
}

#[test]
fn a_retry_is_told_in_claudes_words_and_in_ours() {
    let mut wire = wire();
    let retrying = Event::Retrying {
        request: 1,
        retry: 2,
        retries_max: 10,
        after_ms: 1046,
        rule: "overloaded".into(),
        transition: Transition::RequestRetry,
        failure: failure(Fault::Overloaded { wait_ms: None }, Some(529)),
    };
    let lines = wire.lines(&retrying, 0);
    assert_eq!(
        lines[0],
        json!({
            "type": "system", "subtype": "api_retry", "attempt": 2, "max_retries": 10, "retry_delay_ms": 1046,
            "error_status": 529, "error": "overloaded", "session_id": "s1", "uuid": "u1",
        })
    );
    assert_eq!(lines[1]["subtype"], "yaoki_retry");
    assert_eq!((&lines[1]["rule"], &lines[1]["label"]), (&json!("overloaded"), &json!("529 overloaded")));
}

#[test]
fn a_failed_request_ends_with_a_synthetic_message_and_an_error_result() {
    let mut wire = wire();
    let mut summary = summary(TerminalReason::AuthError, Some("401 auth: invalid x-api-key"));
    summary.failure = Some(failure(Fault::Auth, Some(401)));
    let lines = wire.lines(&Event::TurnEnded(summary.clone()), 0);
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["message"]["model"], "<synthetic>");
    assert_eq!(
        (&lines[0]["error"], &lines[0]["is_api_error_message"]),
        (&json!("authentication_failed"), &json!(true))
    );
    let result = wire.result(&summary, None, 0);
    assert_eq!((&result["subtype"], &result["is_error"]), (&json!("success"), &json!(true)));
    assert_eq!((&result["terminal_reason"], &result["api_error_status"]), (&json!("api_error"), &json!(401)));
    assert_eq!(result["yaoki_terminal_reason"], "auth_error");
    assert_eq!(result["result"], "API Error: 401 auth: invalid x-api-key");
    assert_eq!(result["total_cost_usd"], Value::Null);
}

#[test]
fn every_bad_end_that_is_no_success_has_a_list_of_errors() {
    for reason in TerminalReason::ALL {
        let result = wire().result(&summary(*reason, Some("why")), None, 0);
        let is_success = result["subtype"] == "success";
        assert_eq!(result["errors"].is_array(), !is_success, "{}", reason.name());
        assert_eq!(result["result"].is_string(), is_success, "{}", reason.name());
        assert_eq!(result["is_error"], !reason.is_good(), "{}", reason.name());
    }
}

#[test]
fn an_interrupt_is_told_as_the_user_line_that_clients_know() {
    for (reason, text, terminal) in [
        (TerminalReason::CancelledStreaming, "[Request interrupted by user]", "aborted_streaming"),
        (TerminalReason::CancelledTools, "[Request interrupted by user for tool use]", "aborted_tools"),
    ] {
        let lines = wire().lines(&Event::TurnEnded(summary(reason, None)), 0);
        assert_eq!(lines[0]["type"], "user");
        assert_eq!(lines[0]["message"]["content"][0]["text"], text);
        let result = wire().result(&summary(reason, None), None, 0);
        assert_eq!(
            (&result["subtype"], &result["terminal_reason"]),
            (&json!("error_during_execution"), &json!(terminal))
        );
    }
}

#[test]
fn a_denied_call_has_a_line_of_its_own_before_its_result() {
    let mut wire = wire();
    wire.lines(&committed(), 0);
    let refused = Event::CallRefused {
        call: CallId::new("c1"),
        tool: "Bash".into(),
        title: "Bash(ls)".into(),
        why: Refusal::Denied,
        result: CallResult::error("no"),
    };
    let lines = wire.lines(&refused, 0);
    assert_eq!(
        (&lines[0]["subtype"], &lines[0]["tool_use_id"]),
        (&json!("permission_denied"), &json!("toolu_1"))
    );
    assert_eq!(lines[1]["message"]["content"][0]["is_error"], true);
    assert_eq!(lines[1]["tool_use_result"], "Error: no");
}

#[test]
fn a_call_of_an_earlier_process_is_told_by_the_id_that_clients_know() {
    let mut wire = wire();
    wire.knows(&CallId::new("old"), "toolu_old");
    let unknown = Event::OutcomeUnknown {
        call: CallId::new("old"),
        op: OpId(3),
        tool: "Bash".into(),
        title: "Bash(deploy)".into(),
        result: CallResult::error("unknown"),
    };
    let lines = wire.lines(&unknown, 0);
    assert_eq!(lines[0]["subtype"], "yaoki_recovery");
    assert_eq!(lines[1]["message"]["content"][0]["tool_use_id"], "toolu_old");
}

#[test]
fn a_start_that_failed_has_what_clients_require() {
    let result = result::failed_start(None, "no key", "u".into());
    for member in ["subtype", "duration_ms", "duration_api_ms", "is_error", "num_turns", "session_id"] {
        assert!(!result[member].is_null(), "{member}");
    }
    assert_eq!(result["errors"], json!(["no key"]));
    assert_eq!(result.get("terminal_reason"), None);
}
