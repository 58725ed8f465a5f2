//! What statuses, codes and words come to, by the tables of the spec.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use proptest::prelude::*;
use serde_json::json;
use yaoki_core::fault::{Failure, Fault, Feature};
use yaoki_wire::anthropic::assemble::{Assembler, read_plain};
use yaoki_wire::anthropic::classify::{Seen, classify};
use yaoki_wire::endpoint::Secret;
use yaoki_wire::sse::Event;

const KEY: &str = "sk-ant-very-secret";

fn told(status: u16, headers: &[(&str, &str)], body: &str) -> Failure {
    let headers: Vec<(String, String)> =
        headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    classify(Seen { status: Some(status), headers: &headers, body, wall_s: None, secret: &Secret::new(KEY) })
}

fn error(kind: &str, message: &str) -> String {
    json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_body"})
        .to_string()
}

fn server(status: u16) -> Fault {
    Fault::Server { status: Some(status), wait_ms: None }
}

#[test]
fn each_row_of_the_taxonomy() {
    const INVALID: &str = "invalid_request_error";
    let quota = |resets_at: Option<&str>| Fault::Quota { resets_at: resets_at.map(str::to_owned) };
    let refused = |feature| Fault::FeatureRefused { feature };
    let cap = |room| Fault::OutputCap { room };
    for (status, kind, message, want) in [
        (400, INVALID, "max_tokens: must be greater than 0", Fault::Invalid),
        (
            400,
            INVALID,
            "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1",
            Fault::HistoryBug,
        ),
        (
            400,
            INVALID,
            "messages.1.content.0: unexpected `tool_use_id` found in `tool_result` blocks: x",
            Fault::HistoryBug,
        ),
        (400, INVALID, "messages.1.content.0: Invalid `signature` in `thinking` block", Fault::HistoryBug),
        (400, INVALID, "messages: text content blocks must be non-empty", Fault::HistoryBug),
        (
            400,
            INVALID,
            "messages: roles must alternate between \"user\" and \"assistant\"",
            Fault::HistoryBug,
        ),
        (400, INVALID, "prompt is too long: 210000 tokens > 200000 maximum", Fault::TooLong),
        (
            400,
            INVALID,
            "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again",
            cap(Some(11_760)),
        ),
        (
            400,
            INVALID,
            "input length and `max_tokens` exceed context limit: 200500 + 8000 > 200000",
            Fault::TooLong,
        ),
        (400, INVALID, "input length and `max_tokens` exceed context limit", cap(None)),
        (
            400,
            INVALID,
            "max_tokens: 64000 > 32000, which is the maximum allowed number of output tokens for m",
            cap(Some(32_000)),
        ),
        (
            400,
            INVALID,
            "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.",
            quota(Some("2026-12-01 at 00:00 UTC")),
        ),
        (400, INVALID, "Your credit balance is too low to access the Anthropic API.", quota(None)),
        (400, INVALID, "Unexpected value(s) `x-1` for the `anthropic-beta` header.", refused(Feature::Beta)),
        (
            400,
            INVALID,
            "system.0.cache_control: Extra inputs are not permitted",
            refused(Feature::CacheControl),
        ),
        (400, INVALID, "thinking: Extra inputs are not permitted", refused(Feature::Thinking)),
        (400, INVALID, "streaming is not supported by this deployment", refused(Feature::Streaming)),
        (422, INVALID, "something else", Fault::Invalid),
        (401, "authentication_error", "invalid x-api-key", Fault::Auth),
        (402, "billing_error", "pay", quota(None)),
        (403, "permission_error", "no", Fault::Auth),
        (404, "not_found_error", "model: claude-nope", Fault::ModelGone),
        (404, "not_found_error", "Not found", Fault::Invalid),
        (408, "novel", "slow", server(408)),
        (409, "conflict_error", "again", server(409)),
        (413, "request_too_large", "Request exceeds the maximum size", Fault::TooLong),
        (429, "rate_limit_error", "slow down", Fault::RateLimited { wait_ms: None }),
        (429, "novel", "slow down", Fault::RateLimited { wait_ms: None }),
        (500, "api_error", "Internal server error", server(500)),
        (502, "novel", "bad gateway", server(502)),
        (504, "timeout_error", "timed out", server(504)),
        (529, "overloaded_error", "Overloaded", Fault::Overloaded { wait_ms: None }),
        (529, "api_error", "Overloaded", Fault::Overloaded { wait_ms: None }),
        (500, "overloaded_error", "Overloaded", Fault::Overloaded { wait_ms: None }),
        (418, "novel", "teapot", Fault::Invalid),
    ] {
        assert_eq!(told(status, &[], &error(kind, message)).fault, want, "{status} {kind} {message}");
    }
}

#[test]
fn a_finer_code_outranks_the_type_and_gateways_codes_are_read() {
    let quota = Fault::Quota { resets_at: None };
    for (status, body, want) in [
        (
            429,
            json!({"type": "error", "error": {"type": "rate_limit_error", "message": "cap",
                   "details": {"error_code": "enforced_spend_limit_reached"}}}),
            quota.clone(),
        ),
        (429, json!({"error": {"type": "insufficient_quota", "code": null}}), quota.clone()),
        (429, json!({"error": {"type": "x", "code": "insufficient_quota"}}), quota),
        (400, json!({"error": {"code": "context_length_exceeded", "message": "m"}}), Fault::TooLong),
        (404, json!({"error": {"code": "model_not_found"}}), Fault::ModelGone),
        (401, json!({"detail": "who?"}), Fault::Auth),
        (500, json!({"error": "broke"}), server(500)),
    ] {
        assert_eq!(told(status, &[], &body.to_string()).fault, want, "{body}");
    }
    // The header is evidence and changes no class.
    let failure = told(429, &[("x-should-retry", "true")], &error("billing_error", "pay"));
    assert_eq!(
        (failure.fault, failure.evidence.should_retry),
        (Fault::Quota { resets_at: None }, Some(true))
    );
}

#[test]
fn a_page_of_a_gateway_is_told_by_its_status_and_its_title() {
    let html = "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>";
    let failure = told(502, &[("content-type", "text/html")], html);
    assert_eq!(failure.fault, server(502));
    assert_eq!(failure.evidence.message, "502 Bad Gateway");
    assert_eq!(told(404, &[], html).fault, Fault::Invalid);
    assert_eq!(told(413, &[], html).fault, Fault::TooLong);
    assert_eq!(told(503, &[("retry-after", "3")], "").fault.wait_ms(), Some(3_000));
}

#[test]
fn a_redirect_is_refused_with_the_place_it_named() {
    let failure = told(301, &[("location", "https://b.example/v1/messages")], "");
    assert_eq!(failure.fault, Fault::Invalid);
    assert!(failure.evidence.message.contains("https://b.example/v1/messages"));
}

#[test]
fn evidence_is_bounded_and_never_holds_the_key() {
    let long = format!("{KEY} {}", "é".repeat(5_000));
    let headers = [("request-id", KEY), ("x-should-retry", "false")];
    let failure = told(400, &headers, &error(KEY, &long));
    let evidence = &failure.evidence;
    assert_eq!(evidence.message.chars().count(), 2_000);
    assert!(!format!("{failure:?}").contains(KEY));
    assert_eq!(evidence.request_id.as_deref(), Some("[key]"));
    assert_eq!((evidence.status, evidence.should_retry), (Some(400), Some(false)));
    let failure = told(500, &[], &error("api_error", "m"));
    assert_eq!(failure.evidence.request_id.as_deref(), Some("req_body"));
    assert_eq!(failure.evidence.code.as_deref(), Some("api_error"));
}

proptest! {
    #[test]
    fn noise_is_classified_without_a_panic(
        status in any::<u16>(),
        name in "(retry-after|retry-after-ms|date|anthropic-ratelimit-x-reset|x-ratelimit-reset-y)",
        value in ".{0,40}",
        body in ".{0,200}",
    ) {
        told(status, &[(&name, &value)], &body);
        told(400, &[(&name, &value)], &error("invalid_request_error", &format!("max_tokens exceed context limit {body}")));
    }

    #[test]
    fn reset_times_of_any_shape_are_read_without_a_panic(value in "[0-9TZtz:+. -]{0,32}") {
        told(429, &[("anthropic-ratelimit-requests-reset", &value)], "");
    }

    #[test]
    fn events_of_any_shape_are_taken_without_a_panic(
        list in proptest::collection::vec((0usize..8, ".{0,60}", any::<prop::sample::Index>()), 0..20),
    ) {
        const NAMES: [&str; 8] = ["message_start", "content_block_start", "content_block_delta",
            "content_block_stop", "message_delta", "message_stop", "error", "ping"];
        const DATA: [&str; 9] = [
            r#"{"message":{"id":"m","model":"x","usage":{"input_tokens":-1.5}}}"#,
            r#"{"index":0,"content_block":{"type":"text","text":"a","citations":null}}"#,
            r#"{"index":0,"content_block":{"type":"tool_use","id":"t","name":"n"}}"#,
            r#"{"index":0,"content_block":{"type":"new","input":[1]}}"#,
            r#"{"index":0,"delta":{"type":"text_delta","text":"\ud800"}}"#,
            r#"{"index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a"}}"#,
            r#"{"index":0,"delta":{"type":"new_delta","text":"x","citations":[2]}}"#,
            r#"{"index":0}"#,
            r#"{"delta":{"stop_reason":"end_turn"}}"#,
        ];
        let mut assembler = Assembler::new("https://a.example", "m");
        for (name, noise, pick) in list {
            let data = if noise.len() < 20 { (*pick.get(&DATA)).to_owned() } else { noise };
            let event = Event { name: NAMES[name].to_owned(), data, id: None };
            if assembler.take(&event, &mut |_| {}).is_err() {
                break;
            }
        }
        let _ = assembler.finish();
    }

    #[test]
    fn a_plain_answer_of_any_shape_is_read_without_a_panic(body in ".{0,200}") {
        let _ = read_plain("https://a.example", "m", &body, &mut |_| {});
    }
}
