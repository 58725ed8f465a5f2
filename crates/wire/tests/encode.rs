//! Requests as bytes: what is sent, what is left out, and what may never change.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use serde_json::{Value, json};
use yaoki_core::ids::{CallId, MessageId};
use yaoki_core::json::RawJson;
use yaoki_core::message::{Block, BlockBody, Call, CallResult, Media, Origin, Part, ViewMessage, ViewResult};
use yaoki_core::request::{Context, Request, Thinking, ToolChoice, ToolSpec};
use yaoki_lab::{Answer, HttpAsk, Lab, Script, Step};
use yaoki_wire::anthropic::assemble::read_plain;
use yaoki_wire::anthropic::encode::Encoder;

const HERE: &str = "https://api.anthropic.com";
const MODEL: &str = "claude-test-1";

fn request(messages: Vec<ViewMessage>) -> Request {
    let tool = |name: &str| ToolSpec {
        name: name.to_owned(),
        description: format!("Does {name}."),
        schema: RawJson::parse(r#"{"type":"object","properties":{}}"#).unwrap(),
    };
    Request {
        model: MODEL.to_owned(),
        context: Arc::new(Context {
            system: vec!["You are a test.".into(), " ".into(), "It is Monday.".into()],
            tools: vec![tool("Read"), tool("Write")],
        }),
        messages: messages.into_iter().map(Arc::new).collect(),
        max_tokens: 4_096,
        thinking: Thinking::Off,
        tool_choice: ToolChoice::Auto,
        streamed: true,
        cached: true,
        signed: true,
    }
}

fn user(id: &str, text: &str) -> ViewMessage {
    ViewMessage::User { id: MessageId::new(id), parts: vec![Part::text(text)] }
}

fn assistant(id: &str, blocks: Vec<Block>) -> ViewMessage {
    let origin = Origin { format: "anthropic".into(), endpoint: HERE.into(), model: MODEL.into() };
    ViewMessage::Assistant { id: MessageId::new(id), origin, blocks }
}

fn results(id: &str, results: Vec<(&str, &str, CallResult)>) -> ViewMessage {
    let results = results.into_iter().map(|(call, provider_id, result)| ViewResult {
        call: CallId::new(call),
        provider_id: provider_id.to_owned(),
        result,
    });
    ViewMessage::Results { id: MessageId::new(id), results: results.collect() }
}

fn text(text: &str) -> Block {
    Block { body: BlockBody::Text { text: text.into() }, raw: None }
}

fn call(id: &str, provider_id: &str) -> Block {
    let call = Call {
        id: CallId::new(id),
        provider_id: provider_id.into(),
        tool: "Read".into(),
        input: RawJson::parse(r#"{"file_path":"a"}"#).unwrap(),
        broken: None,
    };
    Block { body: BlockBody::Call(call), raw: None }
}

fn thinking(raw: &str) -> Block {
    let raw = Some(RawJson::parse(raw).unwrap());
    Block { body: BlockBody::Thinking { text: "hm".into() }, raw }
}

fn other(name: &str, raw: &str) -> Block {
    Block { body: BlockBody::Other { name: name.into() }, raw: Some(RawJson::parse(raw).unwrap()) }
}

fn encode(request: &Request) -> Value {
    serde_json::from_slice(&Encoder::new().encode(request, HERE)).unwrap()
}

/// Encodes without cache marks and returns `messages`.
fn messages(list: Vec<ViewMessage>) -> Value {
    encode(&Request { cached: false, ..request(list) })["messages"].clone()
}

#[test]
fn a_whole_request_has_each_part_in_its_place() {
    let ask = Request { thinking: Thinking::Budget(2_048), ..request(vec![user("m1", "Hi")]) };
    let mark = json!({"type": "ephemeral"});
    let schema = json!({"type": "object", "properties": {}});
    assert_eq!(
        encode(&ask),
        json!({
            "model": MODEL,
            "max_tokens": 4096,
            "tools": [
                {"name": "Read", "description": "Does Read.", "input_schema": schema},
                {"name": "Write", "description": "Does Write.", "input_schema": schema, "cache_control": mark},
            ],
            "system": [
                {"type": "text", "text": "You are a test."},
                {"type": "text", "text": "It is Monday.", "cache_control": mark},
            ],
            "thinking": {"type": "enabled", "budget_tokens": 2048},
            "stream": true,
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": mark}]},
            ],
        })
    );
}

#[test]
fn what_is_not_asked_for_is_not_there() {
    let ask = Request {
        context: Arc::new(Context { system: vec![], tools: vec![] }),
        streamed: false,
        cached: false,
        tool_choice: ToolChoice::Any,
        ..request(vec![user("m1", "Hi")])
    };
    assert_eq!(
        encode(&ask),
        json!({
            "model": MODEL,
            "max_tokens": 4096,
            "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
        })
    );
}

#[test]
fn the_cap_on_output_is_never_above_the_limit_of_the_model_that_is_asked() {
    for (model, asked, want) in [
        ("claude-opus-4-1", 64_000, 32_000),
        ("claude-opus-4-5", 64_000, 64_000),
        ("claude-opus-4-5", 4_096, 4_096),
        (MODEL, 64_000, 64_000),
    ] {
        let ask = Request { model: model.into(), max_tokens: asked, ..request(vec![user("u", "go")]) };
        assert_eq!(encode(&ask)["max_tokens"], want, "{model}");
    }
}

#[test]
fn thinking_is_only_asked_for_where_the_api_allows_it() {
    for (thinking, choice, max_tokens, want) in [
        (Thinking::Adaptive, ToolChoice::Auto, 9_000, json!({"type": "adaptive"})),
        (
            Thinking::Budget(20_000),
            ToolChoice::Auto,
            9_000,
            json!({"type": "enabled", "budget_tokens": 8_999}),
        ),
        (Thinking::Budget(5), ToolChoice::None, 9_000, json!({"type": "enabled", "budget_tokens": 1_024})),
        (Thinking::Budget(5_000), ToolChoice::Auto, 1_000, Value::Null),
        (Thinking::Adaptive, ToolChoice::Any, 9_000, Value::Null),
        (Thinking::Adaptive, ToolChoice::Tool("Read".into()), 9_000, Value::Null),
    ] {
        let label = format!("{thinking:?} {choice:?} {max_tokens}");
        let ask = Request { thinking, tool_choice: choice, max_tokens, ..request(vec![user("m1", "Hi")]) };
        assert_eq!(encode(&ask)["thinking"], want, "{label}");
    }
}

#[test]
fn raw_blocks_go_back_byte_for_byte_to_where_they_came_from_and_nowhere_else() {
    let signed = r#"{"type":"thinking","thinking":"h\u00e4","signature":"c2ln"}"#;
    let cited = r#"{"type":"text","text":"It is so.","citations":[{"n": 1.0}]}"#;
    let search = r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"q":"x"}}"#;
    let cited_block = Block {
        body: BlockBody::Text { text: "It is so.".into() },
        raw: Some(RawJson::parse(cited).unwrap()),
    };
    let blocks = vec![thinking(signed), other("server_tool_use", search), cited_block, call("c1", "toolu_1")];
    let list = |origin: Origin| {
        let id = MessageId::new("m2");
        vec![
            user("m1", "Hi"),
            ViewMessage::Assistant { id, origin, blocks: blocks.clone() },
            results("m3", vec![("c1", "toolu_1", CallResult::ok("done"))]),
        ]
    };
    let origin = |format: &str, endpoint: &str, model: &str| Origin {
        format: format.into(),
        endpoint: endpoint.into(),
        model: model.into(),
    };

    let home = Encoder::new().encode(&request(list(origin("anthropic", HERE, MODEL))), HERE);
    let home = String::from_utf8(home.to_vec()).unwrap();
    assert!(home.contains(&format!("{signed},{search},{cited},")), "{home}");

    // Where signatures are refused only the thoughts are left out: paused work of the service still goes back to it.
    let ask = Request { signed: false, ..request(list(origin("anthropic", HERE, MODEL))) };
    let unsigned = String::from_utf8(Encoder::new().encode(&ask, HERE).to_vec()).unwrap();
    assert!(unsigned.contains(&format!("{search},{cited},")) && !unsigned.contains(signed), "{unsigned}");

    for abroad in [
        origin("other", HERE, MODEL),
        origin("anthropic", "https://gateway.example", MODEL),
        origin("anthropic", HERE, "claude-test-2"),
    ] {
        let sent = messages(list(abroad));
        assert_eq!(
            sent[1]["content"],
            json!([
                {"type": "text", "text": "It is so."},
                {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "a"}},
            ])
        );
    }
}

#[test]
fn a_turn_whose_thoughts_cannot_be_sent_goes_on_without_thinking() {
    let signed = r#"{"type":"thinking","thinking":"hm","signature":"c2ln"}"#;
    let turn = |rest: Vec<ViewMessage>| {
        let mut list = vec![user("m1", "Hi"), assistant("m2", vec![thinking(signed), call("c1", "t1")])];
        list.push(results("m3", vec![("c1", "t1", CallResult::ok("x"))]));
        list.extend(rest);
        list
    };
    let second = || {
        vec![assistant("m4", vec![call("c2", "t2")]), results("m5", vec![("c2", "t2", CallResult::ok("y"))])]
    };
    let over = || vec![assistant("m4", vec![text("Done.")]), user("m5", "More")];
    for (rest, signed, want) in [
        (vec![], true, true),
        (vec![], false, false),
        (second(), true, true),
        (second(), false, false),
        (over(), false, true),
    ] {
        let ask = Request { thinking: Thinking::Budget(1_024), signed, ..request(turn(rest)) };
        let sent = encode(&ask);
        assert_eq!(sent.get("thinking").is_some(), want, "{sent}");
        assert_eq!(sent.to_string().contains("c2ln"), signed, "{sent}");
    }
}

#[test]
fn a_model_that_serves_under_another_name_gets_its_thoughts_back_once_that_is_known() {
    let signed = r#"{"type":"thinking","thinking":"hm","signature":"c2ln"}"#;
    let origin = Origin { format: "anthropic".into(), endpoint: HERE.into(), model: "inner-name".into() };
    let blocks = vec![thinking(signed), text("Hello.")];
    let ask = request(vec![
        user("m1", "Hi"),
        ViewMessage::Assistant { id: MessageId::new("m2"), origin, blocks },
        user("m3", "More"),
    ]);
    let encoder = Encoder::new();
    let sent = |encoder: &Encoder| String::from_utf8(encoder.encode(&ask, HERE).to_vec()).unwrap();
    assert!(!sent(&encoder).contains(signed));
    encoder.learn_served(MODEL, "inner-name");
    assert!(sent(&encoder).contains(signed));
}

#[test]
fn blank_texts_are_never_sent_and_what_is_left_empty_merges_away() {
    let signed = r#"{"type":"thinking","thinking":"hm","signature":"c2ln"}"#;
    for left_empty in [
        vec![text(" \n")],
        vec![thinking(signed)],
        vec![text(""), other("redacted_thinking", r#"{"type":"redacted_thinking","data":"eA=="}"#)],
    ] {
        let got = messages(vec![user("m1", "Hi"), assistant("m2", left_empty), user("m3", "Go on")]);
        assert_eq!(
            got,
            json!([{"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "text", "text": "Go on"}]}])
        );
    }
    let got = messages(vec![user("m1", " "), assistant("m2", vec![text("a"), text("\t")])]);
    assert_eq!(
        got,
        json!([
            {"role": "user", "content": [{"type": "text", "text": "(empty message)"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "a"}]},
        ])
    );
}

#[test]
fn a_message_that_ends_in_thought_is_sent_without_any_of_its_thoughts() {
    let signed = r#"{"type":"thinking","thinking":"hm","signature":"c2ln"}"#;
    let blocks = vec![thinking(signed), text("Half"), thinking(signed), text(" ")];
    let got = messages(vec![user("m1", "Hi"), assistant("m2", blocks), user("m3", "Go on")]);
    assert_eq!(got[1]["content"], json!([{"type": "text", "text": "Half"}]));
}

#[test]
fn results_stand_before_what_the_person_says_next_in_one_message() {
    let got = messages(vec![
        user("m1", "Hi"),
        assistant("m2", vec![call("c1", "toolu_1"), call("c2", "toolu_2")]),
        results("m3", vec![("c1", "toolu_1", CallResult::ok("")), ("c2", "toolu_2", CallResult::error(" "))]),
        user("m4", "Stop"),
    ]);
    assert_eq!(
        got[2],
        json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1"},
            {"type": "tool_result", "tool_use_id": "toolu_2",
             "content": [{"type": "text", "text": "(no output)"}], "is_error": true},
            {"type": "text", "text": "Stop"},
        ]})
    );
}

#[test]
fn media_go_where_the_api_takes_them_and_are_named_where_it_does_not() {
    let media = |media_type: &str, data: &str| {
        Part::Media(Media { media_type: media_type.into(), data: Arc::from(data) })
    };
    let image =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}});
    let document = json!({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "aGk="}});
    let note = |text: &str| json!({"type": "text", "text": text});
    let parts =
        vec![media("image/png", "aGk="), media("application/pdf", "aGk="), media("audio/wav", "aGk=")];
    let got = messages(vec![
        ViewMessage::User { id: MessageId::new("m1"), parts },
        assistant("m2", vec![call("c1", "toolu_1"), call("c2", "toolu_2")]),
        results(
            "m3",
            vec![
                ("c1", "toolu_1", CallResult { parts: vec![media("image/png", "aGk=")], is_error: false }),
                ("c2", "toolu_2", CallResult { parts: vec![media("image/png", "aGk=")], is_error: true }),
            ],
        ),
    ]);
    assert_eq!(
        got[0]["content"],
        json!([image, document, note("(audio/wav not shown: the model does not take it)")])
    );
    assert_eq!(got[2]["content"][0]["content"], json!([image]));
    assert_eq!(got[2]["content"][1]["content"], json!([note("(image/png not shown: the call failed)")]));
}

#[test]
fn a_provider_id_that_comes_twice_is_renamed_in_the_call_and_in_its_result() {
    let raw = r#"{"type":"tool_use","id":"toolu_1","name":"Read","input":{},"caller":{"type":"direct"}}"#;
    let with_raw = Block { raw: Some(RawJson::parse(raw).unwrap()), ..call("c-3", "toolu_1") };
    let got = messages(vec![
        user("m1", "Hi"),
        assistant("m2", vec![call("c-1", "toolu_1"), call("c-2", "not fit!")]),
        results(
            "m3",
            vec![("c-1", "toolu_1", CallResult::ok("a")), ("c-2", "not fit!", CallResult::ok("b"))],
        ),
        assistant("m4", vec![with_raw]),
        results("m5", vec![("c-3", "toolu_1", CallResult::ok("c"))]),
    ]);
    let ids = |message: &Value, key: &str| -> Vec<String> {
        let blocks = message["content"].as_array().unwrap().iter();
        blocks.map(|block| block[key].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&got[1], "id"), ["toolu_1", "toolu_c2"]);
    assert_eq!(ids(&got[2], "tool_use_id"), ["toolu_1", "toolu_c2"]);
    assert_eq!(ids(&got[3], "id"), ["toolu_c3"]);
    assert_eq!(ids(&got[4], "tool_use_id"), ["toolu_c3"]);
    assert_eq!(got[3]["content"][0]["caller"], json!({"type": "direct"}));
}

#[test]
fn half_surrogates_do_not_leave_the_house() {
    let mut block = call("c1", "toolu_1");
    if let BlockBody::Call(call) = &mut block.body {
        call.input = RawJson::parse(r#"{"a":"\ud83d","b":"\ud83d\ude00"}"#).unwrap();
    }
    let got = messages(vec![
        user("m1", "Hi"),
        assistant(
            "m2",
            vec![thinking(r#"{"type":"thinking","thinking":"\udfff","signature":"eA=="}"#), block],
        ),
        results("m3", vec![("c1", "toolu_1", CallResult::ok("x"))]),
    ]);
    assert_eq!(got[1]["content"][0]["thinking"], "\u{fffd}");
    assert_eq!(got[1]["content"][1]["input"], json!({"a": "\u{fffd}", "b": "😀"}));
}

#[test]
fn at_most_four_marks_and_the_last_on_the_last_thing_a_user_said() {
    let list = vec![
        user("m1", "Hi"),
        assistant("m2", vec![text("a"), call("c1", "toolu_1")]),
        results("m3", vec![("c1", "toolu_1", CallResult::ok("x"))]),
        assistant("m4", vec![other("server_tool_use", r#"{"type":"server_tool_use","id":"s","name":"n"}"#)]),
    ];
    let got = encode(&request(list));
    assert_eq!(got.to_string().matches("cache_control").count(), 3);
    assert_eq!(got["messages"][2]["content"][0]["cache_control"], json!({"type": "ephemeral"}));
}

/// A history that grows by a round, an interruption and a later turn.
fn growing() -> Vec<ViewMessage> {
    vec![
        user("m1", "Hi"),
        assistant(
            "m2",
            vec![
                thinking(r#"{"type":"thinking","thinking":"hm","signature":"eA=="}"#),
                call("c1", "toolu_1"),
            ],
        ),
        results("m3", vec![("c1", "toolu_1", CallResult::ok("x"))]),
        user("m4", "Wait"),
        user("m5", "Go on"),
        assistant("m6", vec![text("Done."), call("c2", "toolu_1")]),
        results("m7", vec![("c2", "toolu_1", CallResult::ok("y"))]),
    ]
}

#[test]
fn the_prefix_of_a_round_begins_with_that_of_the_round_before_and_is_what_is_sent() {
    let all = growing();
    let kept = Encoder::new();
    let mut last = Vec::new();
    for count in 1..=all.len() {
        let ask = Request { cached: false, ..request(all[..count].to_vec()) };
        let prefix = kept.prefix_bytes(&ask, HERE);
        assert!(prefix.starts_with(&last), "at {count}");
        // A process that resumes prints the same as the one that went on.
        assert_eq!(prefix, Encoder::new().prefix_bytes(&ask, HERE));
        let sent = kept.encode(&ask, HERE);
        assert_eq!(sent, Encoder::new().encode(&ask, HERE));
        let shown = String::from_utf8(prefix.clone()).unwrap();
        for part in shown.splitn(3, "],") {
            assert!(String::from_utf8(sent.to_vec()).unwrap().contains(part), "at {count}: {part}");
        }
        // Marks are the only difference between a cached request and one that is not.
        let marked = kept.encode(&Request { cached: true, ..ask.clone() }, HERE);
        let marked = String::from_utf8(marked.to_vec()).unwrap();
        assert_eq!(marked.replace(r#","cache_control":{"type":"ephemeral"}"#, "").as_bytes(), &sent[..]);
        last = prefix;
    }
}

#[test]
fn a_message_that_is_shown_otherwise_under_its_id_is_printed_anew() {
    let signed = r#"{"type":"thinking","thinking":"hm","signature":"c2ln"}"#;
    let encoder = Encoder::new();
    let list = |blocks| request(vec![user("m1", "Hi"), assistant("m2", blocks), user("m3", "More")]);
    let with = encoder.encode(&list(vec![thinking(signed), text("Yes.")]), HERE);
    assert!(String::from_utf8(with.to_vec()).unwrap().contains(signed));
    let without = encoder.encode(&list(vec![text("Yes.")]), HERE);
    assert!(!String::from_utf8(without.to_vec()).unwrap().contains(signed));
}

#[test]
fn fragments_no_longer_shown_are_forgotten_and_printed_again_the_same() {
    let encoder = Encoder::new();
    let first = request(vec![user("m1", "Hi")]);
    let sent = encoder.encode(&first, HERE);
    for n in 0..600 {
        encoder.encode(&request(vec![user(&format!("other{n}"), "Hm")]), HERE);
    }
    assert_eq!(encoder.encode(&first, HERE), sent);
}

#[test]
fn a_round_trip_through_a_reply_changes_nothing() {
    let reply = read_plain(
        HERE,
        MODEL,
        r#"{"type":"message","id":"msg_1","model":"claude-test-1","stop_reason":"tool_use","content":[
            {"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"text","text":"I read."},
            {"type":"tool_use","id":"toolu_1","name":"Read","input":{"file_path":"a"}}]}"#,
        &mut |_| {},
    )
    .unwrap();
    let sent = messages(vec![
        user("m1", "Hi"),
        ViewMessage::Assistant { id: MessageId::new("m2"), origin: reply.origin, blocks: reply.blocks },
    ]);
    assert_eq!(
        sent[1]["content"],
        json!([
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "text", "text": "I read."},
            {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "a"}},
        ])
    );
}

#[test]
fn the_strict_lab_takes_a_conversation_that_it_led_itself() {
    let script = Script::of(vec![
        Step::answer(Answer::blocks(vec![
            yaoki_lab::Block::Thinking("First I look.".into()),
            yaoki_lab::Block::Text("I will look.".into()),
            yaoki_lab::Block::tool("Read", json!({"file_path": "a"})),
            yaoki_lab::Block::tool("Read", json!({"file_path": "b"})),
        ])),
        Step::answer(Answer::blocks(vec![
            yaoki_lab::Block::Redacted("hidden".into()),
            yaoki_lab::Block::Text("All done.".into()),
        ])),
        Step::text("Goodbye."),
    ]);
    let mut lab = Lab::new(script);
    let encoder = Encoder::new();
    let mut list = vec![user("m0", "Hi")];
    for round in 1..=3 {
        let ask = Request {
            streamed: false,
            thinking: Thinking::Budget(1_024),
            ..request(std::mem::take(&mut list))
        };
        let body = encoder.encode(&ask, HERE);
        let headers = [
            ("x-api-key".to_owned(), "k".to_owned()),
            ("anthropic-version".to_owned(), "2023-06-01".to_owned()),
            ("content-type".to_owned(), "application/json".to_owned()),
        ];
        let plan = lab.answer(&HttpAsk::new("POST", "/v1/messages", &headers, &body));
        let answer = String::from_utf8(plan.body()).unwrap();
        assert_eq!(plan.status(), Some(200), "{answer}");
        let mut reply = read_plain(HERE, MODEL, &answer, &mut |_| {}).unwrap();
        list = ask.messages.iter().map(|message| (**message).clone()).collect();
        let mut pairs = Vec::new();
        for (index, block) in reply.blocks.iter_mut().enumerate() {
            if let BlockBody::Call(call) = &mut block.body {
                call.id = CallId::new(format!("c{round}{index}"));
                pairs.push((call.id.to_string(), call.provider_id.clone(), CallResult::ok("text")));
            }
        }
        let id = MessageId::new(format!("a{round}"));
        list.push(ViewMessage::Assistant { id, origin: reply.origin, blocks: reply.blocks });
        let id = format!("u{round}");
        list.push(match pairs.is_empty() {
            true => user(&id, "Go on"),
            false => {
                results(&id, pairs.iter().map(|(c, p, r)| (c.as_str(), p.as_str(), r.clone())).collect())
            }
        });
    }
}
