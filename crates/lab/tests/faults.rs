//! Every fault of the menu, once where it fires and once where it cannot.
#![allow(clippy::unwrap_used)]

mod common;

use common::{ask, body, error, request, steps, writes};
use serde_json::json;
use yaoki_lab::{Plan, Play};

const TEXT: &str = r#"{"text": "Once upon a time there was a text that was long enough for more than one delta, three in fact."}"#;
const TOOL: &str = r#"{"tool": {"name": "Read", "input": {"file_path": "src/lib.rs", "limit": 10}}}"#;
const THINKING: &str =
    r#"{"thinking": "Hm. A thought that is long enough for more than a single delta, I think."}"#;

/// Plays a fault on an answer of these blocks. Returns the plan and whether the fault fired.
fn broken(blocks: &[&str], fault: &str, streamed: bool) -> (Plan, bool) {
    let mut lab = steps(&format!("{{\"answer\": [{}], \"fault\": {fault}}}", blocks.join(", ")));
    let mut request = request("hi");
    request["stream"] = json!(streamed);
    let plan = ask(&mut lab, &request);
    (plan, lab.report().steps[0].fired)
}

fn whole(blocks: &[&str]) -> String {
    let mut lab = steps(&format!("{{\"answer\": [{}]}}", blocks.join(", ")));
    body(&ask(&mut lab, &request("hi")))
}

/// The names of the events of a body.
fn names(body: &str) -> Vec<&str> {
    body.lines().filter_map(|line| line.strip_prefix("event: ")).collect()
}

#[test]
fn a_status_has_the_apis_usual_error() {
    for (code, kind, message) in [
        (400, "invalid_request_error", "Invalid request"),
        (401, "authentication_error", "invalid x-api-key"),
        (403, "permission_error", "Your API key does not have permission to use the specified resource."),
        (404, "not_found_error", "Not found"),
        (413, "request_too_large", "Request exceeds the maximum size"),
        (429, "rate_limit_error", "Number of requests has exceeded your rate limit."),
        (500, "api_error", "Internal server error"),
        (503, "api_error", "Internal server error"),
        (529, "overloaded_error", "Overloaded"),
    ] {
        let mut lab = steps(&format!("{{\"fault\": {{\"status\": {code}}}}}"));
        let plan = ask(&mut lab, &request("hi"));
        assert_eq!(error(&plan), (code, kind.into(), message.into()));
        assert_eq!(plan.header("content-length"), Some(plan.body().len().to_string().as_str()));
        assert_eq!(plan.header("request-id"), Some("req_lab_0001"));
        assert!(lab.report().steps[0].fired);
    }
}

#[test]
fn a_status_says_what_the_script_says() {
    let mut lab = steps(
        r#"{"fault": {"status": {"code": 429, "type": "quota", "message": "spent", "details": {"error_code": "enforced_spend_limit_reached"}, "headers": {"X-Should-Retry": "false"}}}}"#,
    );
    let plan = ask(&mut lab, &request("hi"));
    let want = json!({ "type": "error", "error": { "type": "quota", "message": "spent", "details": { "error_code": "enforced_spend_limit_reached" } }, "request_id": "req_lab_0001" });
    assert_eq!(body(&plan), want.to_string());
    assert_eq!(plan.header("x-should-retry"), Some("false"));
}

#[test]
fn a_status_may_have_another_body() {
    for (form, kind, want) in [
        (r#""html""#, "text/html", "<html>"),
        (r#""empty""#, "application/json", ""),
        (
            r#""truncated""#,
            "application/json",
            "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"",
        ),
        (r#"{"text": {"content_type": "text/plain", "text": "no"}}"#, "text/plain", "no"),
    ] {
        let mut lab = steps(&format!("{{\"fault\": {{\"status\": {{\"code\": 529, \"body\": {form}}}}}}}"));
        let plan = ask(&mut lab, &request("hi"));
        assert_eq!(plan.header("content-type"), Some(kind), "{form}");
        assert!(
            body(&plan).starts_with(want) && want.is_empty() == body(&plan).is_empty(),
            "{form}: {}",
            body(&plan)
        );
        assert!(form == r#""empty""# || !body(&plan).ends_with("}"), "{form}");
        assert_eq!(plan.header("content-length"), Some(plan.body().len().to_string().as_str()), "{form}");
        assert_eq!(plan.ending(), &Play::End, "{form}");
    }
}

#[test]
fn a_wait_is_asked_for_in_every_form() {
    for (wait, name, want) in [
        (r#"{"ms": 1500}"#, "retry-after-ms", "1500"),
        (r#"{"s": 2}"#, "retry-after", "2"),
        (r#"{"text": "-5"}"#, "retry-after", "-5"),
        (r#"{"text": "abc"}"#, "retry-after", "abc"),
        // The clock stands half a second after 13:33:20; the date is rounded up.
        (r#"{"date_in_s": 3}"#, "retry-after", "Mon, 21 Sep 2026 14:13:24 GMT"),
    ] {
        let mut lab =
            steps(&format!("{{\"fault\": {{\"status\": {{\"code\": 429, \"retry_after\": {wait}}}}}}}"));
        let plan = ask(&mut lab, &request("hi"));
        assert_eq!(plan.header(name), Some(want));
        assert_eq!(plan.header("date"), Some("Mon, 21 Sep 2026 14:13:20 GMT"));
    }
}

#[test]
fn connections_are_taken_away_before_the_head() {
    for (fault, want) in [
        (r#""refuse""#, Play::Refuse),
        (r#""reset""#, Play::Reset),
        (r#""silent""#, Play::Stall),
        (r#"{"closed": {"for_ms": 200}}"#, Play::Closed { for_ms: 200 }),
    ] {
        let mut lab = steps(&format!("{{\"fault\": {fault}, \"deliver\": {{\"late_ms\": 5}}}}"));
        assert_eq!(ask(&mut lab, &request("hi")).plays, [Play::WaitMs(5), want]);
        assert!(lab.report().steps[0].fired);
    }
}

#[test]
fn a_stream_is_cut_at_a_byte_in_every_way() {
    let all = whole(&[TEXT]);
    for (how, want) in [("fin", Play::Cut), ("rst", Play::Rst), ("eof", Play::End), ("stall", Play::Stall)] {
        let (plan, fired) =
            broken(&[TEXT], &format!(r#"{{"cut": {{"at": {{"byte": 500}}, "how": "{how}"}}}}"#), true);
        assert_eq!((body(&plan).as_str(), plan.ending(), fired), (&all[..500], &want, true), "{how}");
    }
    let at = |byte: usize| broken(&[TEXT], &format!(r#"{{"cut": {{"at": {{"byte": {byte}}}}}}}"#), true);
    assert_eq!(at(0).0.plays.len(), 2, "a head and a cut");
    let (last, fired) = at(all.len() - 1);
    assert_eq!((body(&last).len(), fired), (all.len() - 1, true));
    let (past, fired) = at(all.len());
    assert_eq!((body(&past), past.ending(), fired), (all, &Play::End, false));
    assert!(!at(10_000).1);
}

#[test]
fn a_stream_is_cut_at_a_place() {
    for (place, ends_with, blocks) in [
        (r#"{"event": 0}"#, "", vec![TEXT]),
        (r#"{"event": 2}"#, "\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n", vec![TEXT]),
        (r#""in_text""#, "\"text\":\"as long enough for more than one delta, \"}}\n\n", vec![TEXT]),
        (r#""in_text""#, "\"text\":\"Hello!\"}}\n\n", vec![r#"{"text": "Hello!"}"#]),
        (r#""in_tool_json""#, "\"partial_json\":\"\\\"file\"}}\n\n", vec![TEXT, TOOL]),
        (
            r#""in_thinking""#,
            "\"thinking\":\"Hm. A thought that is long enough for mo\"}}\n\n",
            vec![THINKING, TEXT],
        ),
        (
            r#""after_tool_block""#,
            "{\"type\":\"content_block_stop\",\"index\":1}\n\n",
            vec![TEXT, TOOL, TOOL],
        ),
        (r#""before_message_stop""#, "\"output_tokens\":24}}\n\n", vec![TEXT]),
    ] {
        let (plan, fired) = broken(&blocks, &format!(r#"{{"cut": {{"at": {place}}}}}"#), true);
        assert!(fired && body(&plan).ends_with(ends_with), "{place}: {}", body(&plan));
        assert!(whole(&blocks).starts_with(&body(&plan)) && plan.ending() == &Play::Cut, "{place}");
    }
}

#[test]
fn a_place_that_the_stream_does_not_have_does_not_fire() {
    let events = names(&whole(&[TEXT])).len();
    for (place, blocks) in [
        (format!(r#"{{"event": {events}}}"#), vec![TEXT]),
        (r#""in_text""#.into(), vec![TOOL]),
        (r#""in_text""#.into(), vec![r#"{"text": ""}"#]),
        (r#""in_tool_json""#.into(), vec![TEXT]),
        (r#""in_tool_json""#.into(), vec![r#"{"tool": {"name": "TaskList"}}"#]),
        (r#""in_thinking""#.into(), vec![TEXT]),
        (r#""after_tool_block""#.into(), vec![TEXT]),
    ] {
        for fault in [
            format!(r#"{{"cut": {{"at": {place}}}}}"#),
            format!(r#"{{"error": {{"at": {place}, "type": "api_error"}}}}"#),
        ] {
            let (plan, fired) = broken(&blocks, &fault, true);
            assert_eq!((body(&plan), plan.ending(), fired), (whole(&blocks), &Play::End, false), "{fault}");
        }
    }
}

#[test]
fn a_report_complains_of_a_fault_that_did_not_fire() {
    let mut lab = steps(r#"{"answer": "short", "fault": {"cut": {"at": {"byte": 10000}}}}"#);
    ask(&mut lab, &request("hi"));
    assert_eq!(lab.report().complaints(), ["step 1: the fault did not fire"]);
}

#[test]
fn an_answer_that_is_not_streamed_is_cut_at_bytes_only() {
    let (all, _) = broken(&[TEXT], r#"{"unknown": {"at": {"event": 0}}}"#, false);
    let length = all.body().len().to_string();
    assert_eq!(all.header("content-length"), Some(length.as_str()));
    for (fault, fired, ending, told) in [
        (r#"{"cut": {"at": {"byte": 50}}}"#, true, Play::Cut, length.as_str()),
        (r#"{"stall": {"at": {"byte": 50}}}"#, true, Play::Stall, &length),
        (r#"{"cut": {"at": {"byte": 50}, "how": "eof"}}"#, true, Play::End, "50"),
        (r#"{"cut": {"at": "in_text"}}"#, false, Play::End, &length),
        (r#"{"error": {"at": "in_text", "type": "api_error"}}"#, false, Play::End, &length),
        (r#"{"garbage": {"at": {"event": 1}}}"#, false, Play::End, &length),
    ] {
        let (plan, has_fired) = broken(&[TEXT], fault, false);
        assert_eq!(
            (has_fired, plan.ending(), plan.header("content-length")),
            (fired, &ending, Some(told)),
            "{fault}"
        );
        assert_eq!(plan.body().len(), if fired { 50 } else { length.parse().unwrap() }, "{fault}");
    }
}

#[test]
fn a_stall_keeps_the_connection() {
    let (plan, fired) = broken(&[TEXT], r#"{"stall": {"at": {"event": 3}}}"#, true);
    assert_eq!((names(&body(&plan)).len(), plan.ending(), fired), (3, &Play::Stall, true));
}

#[test]
fn pings_alone_come_on_time() {
    let mut lab = steps(r#"{"fault": {"ping_only": {"every_ms": 20, "count": 3}}}"#);
    let plan = ask(&mut lab, &request("hi"));
    assert_eq!(names(&body(&plan)), ["message_start", "ping", "ping", "ping"]);
    assert_eq!(plan.plays.iter().filter(|play| **play == Play::WaitMs(20)).count(), 3);
    assert_eq!(plan.ending(), &Play::Stall);
    assert!(lab.report().steps[0].fired);
}

#[test]
fn a_drip_is_slow_and_whole() {
    let (plan, fired) = broken(&[TEXT], r#"{"drip": {"bytes": 100, "every_ms": 30}}"#, true);
    let all = whole(&[TEXT]);
    assert_eq!((body(&plan), fired), (all.clone(), true));
    let sizes = writes(&plan);
    assert!(sizes[..sizes.len() - 1].iter().all(|size| *size == 100));
    assert_eq!(plan.plays.iter().filter(|play| **play == Play::WaitMs(30)).count(), sizes.len() - 1);
    let (_, fired) =
        broken(&[TEXT], &format!(r#"{{"drip": {{"bytes": {}, "every_ms": 30}}}}"#, all.len()), true);
    assert!(!fired, "one write is no drip");
}

#[test]
fn an_error_event_ends_the_stream() {
    let (plan, fired) = broken(&[TEXT], r#"{"error": {"at": "in_text", "type": "overloaded_error"}}"#, true);
    let want = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    assert!(fired && body(&plan).ends_with(want), "{}", body(&plan));
    assert_eq!(plan.ending(), &Play::End);
}

#[test]
fn events_are_doubled_lost_and_added() {
    let plain = whole(&[TEXT]);
    let plain = names(&plain);
    for (fault, want) in [
        (r#"{"duplicate": {"at": {"event": 1}}}"#, [&plain[..1], &plain[..]].concat()),
        (r#"{"drop": {"at": {"event": 0}}}"#, plain[1..].to_vec()),
        (r#"{"drop": {"at": "before_message_stop"}}"#, plain[..plain.len() - 1].to_vec()),
        (r#"{"garbage": {"at": {"event": 0}}}"#, [&["content_block_delta"], &plain[..]].concat()),
        (r#"{"unknown": {"at": {"event": 0}, "name": "news"}}"#, [&["news"], &plain[..]].concat()),
    ] {
        let (plan, fired) = broken(&[TEXT], fault, true);
        assert_eq!((names(&body(&plan)), fired, plan.ending()), (want, true, &Play::End), "{fault}");
    }
    for fault in ["duplicate", "drop", "garbage", "unknown"] {
        let (plan, fired) = broken(&[TEXT], &format!(r#"{{"{fault}": {{"at": {{"event": 99}}}}}}"#), true);
        assert_eq!((names(&body(&plan)), fired), (plain.clone(), false), "{fault}");
    }
}

#[test]
fn garbage_is_not_json() {
    let (plan, _) = broken(&[TEXT], r#"{"garbage": {"at": {"event": 2}}}"#, true);
    let data = body(&plan).lines().filter_map(|line| line.strip_prefix("data: ")).nth(2).unwrap().to_owned();
    assert!(serde_json::from_str::<serde_json::Value>(&data).is_err(), "{data}");
    let (plan, _) = broken(&[TEXT], r#"{"garbage": {"at": {"event": 2}, "data": "<oops>"}}"#, true);
    assert!(body(&plan).contains("event: content_block_delta\ndata: <oops>\n\n"));
}

#[test]
fn a_content_type_can_be_wrong_and_a_body_missing() {
    let (plan, fired) = broken(&[TEXT], r#"{"content_type": "text/html"}"#, true);
    assert_eq!((body(&plan), plan.header("content-type"), fired), (whole(&[TEXT]), Some("text/html"), true));
    for streamed in [true, false] {
        let mut lab = steps(r#"{"fault": "empty_body"}"#);
        let mut request = request("hi");
        request["stream"] = json!(streamed);
        let plan = ask(&mut lab, &request);
        assert_eq!((plan.status(), plan.body().len(), plan.ending()), (Some(200), 0, &Play::End));
        assert!(lab.report().steps[0].fired);
    }
}

#[test]
fn writes_are_cut_as_told() {
    let sized = |deliver: &str| {
        let plan =
            ask(&mut steps(&format!("{{\"answer\": [{TEXT}], \"deliver\": {deliver}}}")), &request("hi"));
        assert_eq!(body(&plan), whole(&[TEXT]), "{deliver}");
        writes(&plan)
    };
    let length = whole(&[TEXT]).len();
    assert_eq!(sized("{}").len(), names(&whole(&[TEXT])).len());
    assert_eq!(sized(r#"{"chunk": "whole"}"#), [length]);
    assert_eq!(sized(r#"{"chunk": {"bytes": 1}}"#), vec![1; length]);
    let random = sized(r#"{"chunk": {"random": {"seed": 3, "max": 9}}}"#);
    assert!(random.iter().all(|size| (1..=9).contains(size)) && random.iter().any(|size| *size > 4));
    assert_eq!(random, sized(r#"{"chunk": {"random": {"seed": 3, "max": 9}}}"#));
    assert_ne!(random, sized(r#"{"chunk": {"random": {"seed": 4, "max": 9}}}"#));
}

#[test]
fn a_head_can_be_late() {
    let mut lab = steps(r#"{"answer": "x", "deliver": {"late_ms": 70}}"#);
    assert_eq!(ask(&mut lab, &request("hi")).plays[0], Play::WaitMs(70));
}
