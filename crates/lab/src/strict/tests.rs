//! Every rule, with a request that passes it and one that does not.

use super::*;
use crate::ask::HttpAsk;
use crate::sign::Seal;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::json;

/// Returns `accepted` or the message with which a body is refused.
fn verdict(body: &Value) -> String {
    let script = Script::of(vec![]);
    let known = Known { raw: vec![json!({ "type": "novelty" })] };
    match check(body, &Route::Messages, &script, &known).and_then(|()| {
        let bytes = body.to_string().len();
        fits(body, bytes, &Route::Messages, &script)
    }) {
        Ok(()) => "accepted".into(),
        Err(trouble) => trouble.message,
    }
}

/// A small request with these members put over it.
fn request(over: Value) -> Value {
    let mut body =
        json!({ "model": "m", "max_tokens": 100, "messages": [{ "role": "user", "content": "hi" }] });
    for (name, value) in over.as_object().unwrap() {
        body[name] = value.clone();
    }
    body.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    body
}

fn check_members(rows: &[(Value, &str)]) {
    for (over, want) in rows {
        assert_eq!(verdict(&request(over.clone())), *want, "{over}");
    }
}

fn check_messages(rows: &[(Value, &str)]) {
    for (messages, want) in rows {
        assert_eq!(verdict(&request(json!({ "messages": messages }))), *want, "{messages}");
    }
}

/// A user message of these blocks.
fn user(blocks: Value) -> Value {
    json!([{ "role": "user", "content": blocks }])
}

/// A prompt, an assistant message, and the answer to it.
fn round(assistant: Value, answer: Value) -> Value {
    json!([{ "role": "user", "content": "hi" }, { "role": "assistant", "content": assistant }, { "role": "user", "content": answer }])
}

fn call(id: &str) -> Value {
    json!({ "type": "tool_use", "id": id, "name": "Read", "input": {} })
}

fn result(id: &str) -> Value {
    json!({ "type": "tool_result", "tool_use_id": id, "content": "x" })
}

#[test]
fn the_envelope_is_checked() {
    let script = Script::parse(r#"{"keys": ["good"], "steps": [{"answer": "x"}]}"#).unwrap();
    let json_type = ("content-type", "application/json");
    let version = ("anthropic-version", "2023-06-01");
    let ask = |method: &str, path: &str, headers: &[(&str, &str)], raw: &[u8]| {
        let headers: Vec<(String, String)> =
            headers.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
        let ask = HttpAsk::new(method, path, &headers, raw);
        match route(&ask, &script).and_then(|_| body(&ask, &script)) {
            Ok(_) => "accepted".to_owned(),
            Err(trouble) => format!("{} {}: {}", trouble.status, trouble.kind, trouble.message),
        }
    };
    let post = |headers: &[(&str, &str)], raw: &[u8]| ask("POST", "/v1/messages?beta=true", headers, raw);
    let good = [version, json_type, ("X-API-Key", "good")];
    assert_eq!(post(&good, b"{}"), "accepted");
    assert_eq!(post(&[version, json_type, ("authorization", "Bearer good")], b"{}"), "accepted");
    assert_eq!(post(&[version, json_type], b"{}"), "401 authentication_error: x-api-key header is required");
    assert_eq!(
        post(&[version, json_type, ("x-api-key", "bad")], b"{}"),
        "401 authentication_error: invalid x-api-key"
    );
    assert_eq!(post(&good[1..], b"{}"), "400 invalid_request_error: anthropic-version: header is required");
    assert_eq!(
        post(&[version, good[2]], b"{}"),
        "400 invalid_request_error: Content-Type: must be application/json"
    );
    assert_eq!(ask("GET", "/v1/messages", &good, b"{}"), "405 invalid_request_error: Method Not Allowed");
    assert_eq!(ask("POST", "/v2/messages", &good, b"{}"), "404 not_found_error: Not Found");
    assert_eq!(post(&good, b"[]"), "400 invalid_request_error: Input should be a valid dictionary");
    for (raw, want) in [
        (&b"{\"a\": 1,}"[..], "trailing comma: line 1 column 9 (char 8)"),
        (b"{\"a\": \"\\ud83d\"}", "no low surrogate in string: line 1 column 14 (char 13)"),
        (b"{\"a\": \"\\ude00\"}", "no low surrogate in string: line 1 column 13 (char 12)"),
        (b"{\"a\": \"\xff\"}", "invalid unicode code point: line 1 column 8 (char 7)"),
        (b"{\"a\": NaN}", "expected value: line 1 column 7 (char 6)"),
    ] {
        let want = format!("400 invalid_request_error: The request body is not valid JSON: {want}");
        assert_eq!(post(&good, raw), want, "{}", String::from_utf8_lossy(raw));
    }
    assert_eq!(post(&good, b"{\"a\": \"\\ud83d\\ude00\"}"), "accepted");
}

#[test]
fn sizes_are_limited() {
    let mut script = Script::of(vec![]);
    script.limits.body_bytes_max = 11;
    let headers = [("content-type".to_owned(), "application/json".to_owned())];
    let sized = |raw: &[u8]| {
        body(&HttpAsk::new("POST", "/v1/messages", &headers, raw), &script).map_err(|t| t.status)
    };
    assert!(sized(b"{\"a\":    1}").is_ok());
    assert_eq!(sized(b"{\"a\":     1}"), Err(413));

    script.limits.input_tokens_max = 25;
    script.limits.window_tokens_max = 120;
    let fit = |bytes: usize, max_tokens: u64| {
        let body = json!({ "model": "m", "max_tokens": max_tokens });
        fits(&body, bytes, &Route::Messages, &script).map_err(|trouble| trouble.message)
    };
    assert_eq!(fit(80, 99), Ok(()));
    assert_eq!(fit(100, 90), Err("prompt is too long: 26 tokens > 25 maximum".into()));
    let window = "input length and `max_tokens` exceed context limit: 21 + 100 > 120, decrease input length or `max_tokens` and try again";
    assert_eq!(fit(80, 100), Err(window.into()));
    let output = "max_tokens: 200000 > 128000, which is the maximum allowed number of output tokens for m";
    assert_eq!(fit(80, 200_000), Err(output.into()));

    script.models = vec![crate::script::ModelRow::of("other")];
    let gone = fits(&json!({ "model": "m" }), 8, &Route::Messages, &script).unwrap_err();
    assert_eq!((gone.status, gone.message.as_str()), (404, "model: m"));
}

#[test]
fn members_are_checked() {
    check_members(&[
        (json!({}), "accepted"),
        (json!({ "model": null }), "model: Field required"),
        (json!({ "model": "" }), "model: String should have at least 1 character"),
        (json!({ "max_tokens": null }), "max_tokens: Field required"),
        (json!({ "max_tokens": 0 }), "max_tokens: Input should be greater than or equal to 1"),
        (json!({ "max_tokens": 1.5 }), "max_tokens: Input should be a valid integer"),
        (json!({ "messages": null }), "messages: Field required"),
        (json!({ "messages": [] }), "messages: at least one message is required"),
        (json!({ "stream": true }), "accepted"),
        (json!({ "stream": "yes" }), "stream: Input should be a valid boolean"),
        (json!({ "surprise": 1 }), "surprise: Extra inputs are not permitted"),
        (json!({ "system": "be kind" }), "accepted"),
        (json!({ "system": [{ "type": "text", "text": "be kind" }] }), "accepted"),
        (
            json!({ "system": [{ "type": "text", "text": "" }] }),
            "system: text content blocks must be non-empty",
        ),
        (json!({ "thinking": { "type": "adaptive" } }), "accepted"),
        (json!({ "thinking": { "type": "enabled", "budget_tokens": 1024 }, "max_tokens": 2000 }), "accepted"),
        (
            json!({ "thinking": { "type": "enabled", "budget_tokens": 1024 } }),
            "`max_tokens` must be greater than `thinking.budget_tokens`.",
        ),
        (
            json!({ "thinking": { "type": "enabled", "budget_tokens": 99 } }),
            "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
        ),
        (
            json!({ "thinking": { "type": "adaptive" }, "temperature": 0.5 }),
            "`temperature` may only be set to 1 when thinking is enabled.",
        ),
        (
            json!({ "tool_choice": { "type": "auto" } }),
            "tool_choice: tool_choice may only be specified while providing tools.",
        ),
        (json!({ "tool_choice": { "type": "tool", "name": "x" } }), "Tool 'x' not found in provided tools"),
    ]);
}

#[test]
fn roles_and_contents_are_checked() {
    let hi = json!({ "role": "user", "content": "hi" });
    let yes = json!({ "role": "assistant", "content": "yes" });
    check_messages(&[
        (json!([hi, hi]), "accepted"),
        (json!([hi, yes, hi]), "accepted"),
        (json!([hi, yes, yes, hi]), "accepted"),
        (json!([yes, hi]), "messages: first message must use the \"user\" role"),
        (
            json!([hi, yes]),
            "This model does not support assistant message prefill. The conversation must end with a user message.",
        ),
        (
            json!([{ "role": "system", "content": "x" }]),
            "messages: Unexpected role \"system\". The Messages API accepts a top-level `system` parameter, not \"system\" as an input message role.",
        ),
        (
            json!([{ "role": "tool", "content": "x" }]),
            "messages: Unexpected role \"tool\". Allowed roles are \"user\" or \"assistant\".",
        ),
        (json!([{ "content": "x" }]), "messages.0.role: Field required"),
        (json!([{ "role": "user" }]), "messages.0.content: Field required"),
        (
            json!([{ "role": "user", "content": "x", "id": 1 }]),
            "messages.0.id: Extra inputs are not permitted",
        ),
        (
            json!([{ "role": "user", "content": "" }]),
            "messages.0: all messages must have non-empty content except for the optional final assistant message",
        ),
        (
            json!([{ "role": "user", "content": [] }]),
            "messages.0: all messages must have non-empty content except for the optional final assistant message",
        ),
        (
            json!([{ "role": "user", "content": " \n" }]),
            "messages: text content blocks must contain non-whitespace text",
        ),
    ]);
}

#[test]
fn a_pause_of_the_services_own_tool_may_come_last() {
    let pause = json!([{ "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {} }]);
    check_messages(&[(
        json!([{ "role": "user", "content": "hi" }, { "role": "assistant", "content": pause }]),
        "accepted",
    )]);
}

#[test]
fn blocks_are_checked() {
    let text = |text: &str| json!({ "type": "text", "text": text });
    let marked =
        |text: &str| json!({ "type": "text", "text": text, "cache_control": { "type": "ephemeral" } });
    check_messages(&[
        (user(json!([text("hi")])), "accepted"),
        (user(json!([text("")])), "messages: text content blocks must be non-empty"),
        (user(json!([text("\t")])), "messages: text content blocks must contain non-whitespace text"),
        (user(json!([marked("hi")])), "accepted"),
        (
            user(json!([text("hi"), marked("")])),
            "messages.0.content.1.text: cache_control cannot be set for empty text blocks",
        ),
        (user(json!([{ "text": "hi" }])), "messages.0.content.0.type: Field required"),
        (user(json!([{ "type": "text" }])), "messages.0.content.0.text.text: Field required"),
        (
            user(json!([{ "type": "text", "text": "hi", "raw": 1 }])),
            "messages.0.content.0.text.raw: Extra inputs are not permitted",
        ),
        (
            user(json!([call("a")])),
            "messages.0.content.0: `tool_use` blocks can only be in `assistant` messages",
        ),
        (
            round(json!([result("a")]), json!("hi")),
            "messages.1.content.0: `tool_result` blocks can only be in `user` messages",
        ),
        (round(json!([text("yes"), { "type": "novelty" }]), json!("hi")), "accepted"),
        (
            round(json!([{ "type": "surprise" }]), json!("hi")),
            "messages.1.content.0: Input tag 'surprise' found using 'type' does not match any of the expected tags: 'document', 'image', 'redacted_thinking', 'search_result', 'server_tool_use', 'text', 'thinking', 'tool_result', 'tool_use'",
        ),
    ]);
}

#[test]
fn cache_markers_are_counted_and_ordered() {
    let marked = |ttl: Value| json!({ "type": "text", "text": "x", "cache_control": { "type": "ephemeral", "ttl": ttl } });
    let five = marked(json!("5m"));
    check_messages(&[
        (user(json!([five, five, five, five])), "accepted"),
        (
            user(json!([five, five, five, five, five])),
            "A maximum of 4 blocks with cache_control may be provided. Found 5.",
        ),
        (user(json!([marked(json!("1h")), five])), "accepted"),
        (
            user(json!([five, marked(json!("1h"))])),
            "messages.0.content.1.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block.",
        ),
        (
            user(json!([marked(json!("2h"))])),
            "messages.0.content.0.cache_control.ephemeral: Input should be a valid marker",
        ),
    ]);
    let system = json!([five, five]);
    check_members(&[
        (json!({ "system": system, "messages": user(json!([five, five])) }), "accepted"),
        (
            json!({ "system": system, "messages": user(json!([five, five, five])) }),
            "A maximum of 4 blocks with cache_control may be provided. Found 5.",
        ),
    ]);
}

#[test]
fn calls_and_results_are_paired() {
    let text = json!({ "type": "text", "text": "and" });
    let no_result = "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: b. Each `tool_use` block must have a corresponding `tool_result` block in the next message.";
    let no_call = "messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: z. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.";
    check_messages(&[
        (round(json!([call("a"), call("b")]), json!([result("a"), result("b")])), "accepted"),
        (round(json!([call("a"), call("b")]), json!([result("b"), result("a"), text])), "accepted"),
        (round(json!([call("a"), call("b")]), json!([result("a")])), no_result),
        (round(json!([call("a"), call("b")]), json!([result("a"), text, result("b")])), no_result),
        (round(json!([text]), json!([result("z")])), no_call),
        (
            round(json!([call("a")]), json!([result("a"), result("a")])),
            "messages.2.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks with id: a",
        ),
        (
            round(json!([call("a"), call("a")]), json!([result("a")])),
            "messages.1.content.1: `tool_use` ids must be unique",
        ),
        (
            round(json!([call("a.b")]), json!([result("a.b")])),
            "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
        ),
        (
            round(json!([call("")]), json!([result("")])),
            "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
        ),
    ]);
    let mut later = round(json!([call("b")]), json!("wait"));
    later.as_array_mut().unwrap().push(json!({ "role": "user", "content": [result("b")] }));
    check_messages(&[(later, no_result)]);
}

#[test]
fn an_input_is_an_object() {
    for (input, want) in [
        (json!({ "a": 1 }), "accepted"),
        (json!(null), "messages.1.content.0.tool_use.input: Input should be a valid dictionary"),
        (json!([1]), "messages.1.content.0.tool_use.input: Input should be a valid dictionary"),
        (json!("{}"), "messages.1.content.0.tool_use.input: Input should be a valid dictionary"),
    ] {
        let call = json!({ "type": "tool_use", "id": "a", "name": "Read", "input": input });
        check_messages(&[(round(json!([call]), json!([result("a")])), want)]);
    }
}

#[test]
fn results_are_checked() {
    for (members, want) in [
        (json!({}), "accepted"),
        (json!({ "content": [{ "type": "text", "text": "x" }] }), "accepted"),
        (json!({ "content": "no", "is_error": true }), "accepted"),
        (
            json!({ "content": [{ "type": "text", "text": "" }] }),
            "messages: text content blocks must be non-empty",
        ),
        (
            json!({ "content": "", "is_error": true }),
            "messages.2.content.0.tool_result: content cannot be empty if `is_error` is true",
        ),
        (
            json!({ "is_error": "yes" }),
            "messages.2.content.0.tool_result.is_error: Input should be a valid boolean",
        ),
        (
            json!({ "content": [{ "type": "thinking" }] }),
            "messages.2.content.0.tool_result.content.0: Input tag 'thinking' found using 'type' does not match any of the expected tags: 'document', 'image', 'redacted_thinking', 'search_result', 'server_tool_use', 'text', 'thinking', 'tool_result', 'tool_use'",
        ),
    ] {
        let mut result = json!({ "type": "tool_result", "tool_use_id": "a" });
        result.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        check_messages(&[(round(json!([call("a")]), json!([result])), want)]);
    }
}

#[test]
fn results_of_the_services_tools_follow_their_calls() {
    let used = json!({ "type": "server_tool_use", "id": "s", "name": "web_search", "input": {} });
    let found = json!({ "type": "web_search_tool_result", "tool_use_id": "s", "content": [] });
    let lost = "messages.1.content.0: unexpected `tool_use_id` found in `web_search_tool_result` blocks: s. Each `web_search_tool_result` block must have a corresponding `server_tool_use` block before it.";
    check_messages(&[
        (round(json!([used, found]), json!("hi")), "accepted"),
        (round(json!([found, used]), json!("hi")), lost),
    ]);
}

#[test]
fn tools_are_checked() {
    let tool = |over: Value| {
        let mut tool = json!({ "name": "Read", "description": "Reads.", "input_schema": { "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] } });
        for (name, value) in over.as_object().unwrap() {
            tool[name] = value.clone();
        }
        tool.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        tool
    };
    let name = "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'";
    let invalid = "tools.0.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12 (https://json-schema.org/draft/2020-12).";
    let schema = |words: Value| {
        let mut schema = json!({ "type": "object" });
        schema.as_object_mut().unwrap().extend(words.as_object().unwrap().clone());
        json!({ "input_schema": schema })
    };
    for (over, want) in [
        (json!({}), "accepted"),
        (json!({ "name": "a".repeat(128) }), "accepted"),
        (json!({ "name": "a".repeat(129) }), name),
        (json!({ "name": "" }), name),
        (json!({ "name": "a b" }), name),
        (json!({ "note": "x" }), "tools.0.custom.note: Extra inputs are not permitted"),
        (json!({ "input_schema": null }), "tools.0.custom.input_schema: Field required"),
        (json!({ "input_schema": {} }), "tools.0.custom.input_schema.type: Field required"),
        (
            json!({ "input_schema": { "type": "string" } }),
            "tools.0.custom.input_schema.type: Input should be 'object'",
        ),
        (
            schema(
                json!({ "properties": { "a": { "anyOf": [{ "type": "null" }, { "type": ["string", "integer"] }] } } }),
            ),
            "accepted",
        ),
        (
            schema(json!({ "oneOf": [{ "type": "object" }] })),
            "tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level",
        ),
        (
            schema(json!({ "properties": { "a b": {} } })),
            "tools.0.custom.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'",
        ),
        (schema(json!({ "properties": { "required": ["a"] } })), invalid),
        (schema(json!({ "properties": { "a": { "type": "text" } } })), invalid),
        (schema(json!({ "required": "a" })), invalid),
    ] {
        check_members(&[(json!({ "tools": [tool(over)] }), want)]);
    }
    check_members(&[
        (json!({ "tools": [tool(json!({})), tool(json!({}))] }), "tools: Tool names must be unique."),
        (
            json!({ "tools": [{ "type": "web_search_20250305", "name": "web_search", "max_uses": 5 }] }),
            "accepted",
        ),
    ]);
}

/// The head of a PNG of that size.
fn png(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    bytes.extend_from_slice(&width.to_be_bytes());
    bytes.extend_from_slice(&height.to_be_bytes());
    bytes
}

fn image(kind: &str, bytes: &[u8]) -> Value {
    json!({ "type": "image", "source": { "type": "base64", "media_type": kind, "data": BASE64.encode(bytes) } })
}

#[test]
fn images_are_checked() {
    let jpeg = [0xFF, 0xD8, 0xFF, 0xE0, 0, 4, 0, 0, 0xFF, 0xC0, 0, 11, 8, 0x23, 0x28, 0, 100];
    let gif = b"GIF89a\x10\x00\x10\x00";
    let wide = "messages.0.content.0.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels";
    for (block, want) in [
        (image("image/png", &png(8_000, 10)), "accepted"),
        (image("image/png", &png(10, 8_001)), wide),
        (image("image/jpeg", &jpeg), wide),
        (image("image/gif", gif), "accepted"),
        (
            image("image/png", &jpeg),
            "messages.0.content.0.image.source.base64: The image was specified using the image/png media type, but the image appears to be a image/jpeg image",
        ),
        (image("image/png", b"no image"), "Could not process image"),
        (
            image("image/bmp", &png(1, 1)),
            "messages.0.content.0.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif', 'image/webp'",
        ),
        (
            json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "%" } }),
            "messages.0.content.0.image.source.base64.data: Invalid base64 data",
        ),
        (
            json!({ "type": "image", "source": { "type": "url", "url": "https://example.com/a.png" } }),
            "accepted",
        ),
    ] {
        check_messages(&[(user(json!([block])), want)]);
    }
    let mut large = png(10, 10);
    large.resize(3_932_160, 0);
    check_messages(&[(user(json!([image("image/png", &large)])), "accepted")]);
    large.push(0);
    let want = "messages.2.content.0.tool_result.content.0.image.source.base64: image exceeds 5 MB maximum: 5242884 bytes > 5242880 bytes";
    let result =
        json!({ "type": "tool_result", "tool_use_id": "a", "content": [image("image/png", &large)] });
    check_messages(&[(round(json!([call("a")]), json!([result])), want)]);
}

#[test]
fn thinking_goes_back_as_it_came() {
    let a = json!({ "type": "tool_use", "id": "a", "name": "Read", "input": {} });
    let seal = |number, since| Seal { message: "msg".into(), number, count: 2, since };
    let since = crate::sign::since(&[("tool_use", "a")]);
    let one =
        json!({ "type": "thinking", "thinking": "so…", "signature": seal(0, 0).to_signature("m", "so…") });
    let two = json!({ "type": "redacted_thinking", "data": seal(1, since).to_redacted("m", "dark") });
    let other =
        json!({ "type": "thinking", "thinking": "so…", "signature": seal(0, 0).to_signature("n", "so…") });
    let empty = json!({ "type": "text", "text": "then" });
    let mut edited = one.clone();
    edited["thinking"] = json!("so...");
    let modified = |at: usize| {
        format!(
            "messages.1.content.{at}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response."
        )
    };
    let invalid = "messages.1.content.0: Invalid `signature` in `thinking` block";
    for (assistant, want) in [
        (json!([one, a, two, empty]), "accepted".to_owned()),
        (json!([a, empty]), "accepted".to_owned()),
        (json!([edited, a, two, empty]), invalid.to_owned()),
        (json!([other, a, two, empty]), invalid.to_owned()),
        (json!([one, a, empty]), modified(0)),
        (json!([a, two, empty]), modified(1)),
        (json!([two, a, one, empty]), modified(0)),
        (json!([one, two, a, empty]), modified(1)),
        (
            json!([one, a, two]),
            "messages.1: The final block in an assistant message cannot be `redacted_thinking`.".to_owned(),
        ),
    ] {
        check_messages(&[(round(assistant, json!([result("a")])), &want)]);
    }
    let mut bad = two.clone();
    bad["data"] = json!("bGFi");
    let want = "messages.1.content.2: Invalid `data` in `redacted_thinking` block";
    check_messages(&[(round(json!([one, a, bad, empty]), json!([result("a")])), want)]);
}
