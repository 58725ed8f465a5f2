//! Streams that the encoder writes, one of each kind, for tests of decoders.
//!
//! The small ones are also files in `streams/`, with the message that each spells out beside it.

use crate::compose::{Ids, Message, compose};
use crate::encode::{Stream, Style, to_event, to_json, to_stream};
use crate::request::Request;
use crate::script::{Answer, Block, Defaults, Deliver, ServerTool, ToolCall};
use serde_json::{Value, json};

/// A whole stream and what it says.
#[derive(Debug, Clone, PartialEq)]
pub struct CorpusStream {
    pub name: &'static str,
    /// Server-sent events, from `message_start` to `message_stop`.
    pub bytes: Vec<u8>,
    /// The same message as an answer that is not streamed. Broken tool input is a string there.
    pub message: Value,
    /// Whether it is small enough to be a file in `streams/`.
    pub is_file: bool,
}

/// Returns all streams.
pub fn corpus() -> Vec<CorpusStream> {
    let plain = Deliver::default();
    let ascii = Deliver { ascii: Some(true), ..plain.clone() };
    let crlf = Deliver { crlf: Some(true), ..plain.clone() };
    let short = Deliver { delta_chars: Some(3), ..plain.clone() };
    let whole = Deliver { delta_chars: Some(u32::MAX), ..plain.clone() };
    vec![
        stream(
            "plain-text",
            Answer::text("Hello! The tests pass now, all fourteen of them, and nothing else has changed."),
            &plain,
        ),
        stream(
            "thinking-text",
            Answer::blocks(vec![
                thinking("The user greets me.  Two spaces,\na line break and a … must survive."),
                text("Hello."),
            ]),
            &plain,
        ),
        stream(
            "redacted-thinking",
            Answer::blocks(vec![Block::Redacted("not for reading".into()), text("I can't show that part.")]),
            &plain,
        ),
        stream("one-tool", Answer::blocks(vec![text("I will read it."), read("src/lib.rs")]), &plain),
        stream(
            "three-tools",
            Answer::blocks(vec![
                read("a.rs"),
                Block::tool("Grep", json!({ "pattern": "fn \\w+\\(", "path": "src", "-n": true })),
                Block::tool("Bash", json!({ "command": "cargo test 2>&1 | tail -5", "timeout": 60_000 })),
            ]),
            &plain,
        ),
        stream("interleaved", interleaved(), &plain),
        stream(
            "server-tool",
            Answer::blocks(vec![text("I will look it up."), search(), text("The newest one is 1.95.")]),
            &plain,
        ),
        stream(
            "unknown-block",
            Answer::blocks(vec![
                Block::Raw(json!({ "type": "lab_novelty", "payload": { "n": [1, 2.5, null] } })),
                text("And a known one."),
            ]),
            &plain,
        ),
        with_strangers(stream(
            "unknown-events",
            Answer::blocks(vec![text("Pings and strangers in between."), read("a.rs")]),
            &plain,
        )),
        stream(
            "non-ascii",
            Answer::blocks(vec![
                thinking("näh… 考える 🤔"),
                text("Grüße, 世界! 👩‍👩‍👧‍👦 e\u{301} \u{200b}\u{2028} done"),
                Block::tool("Write", json!({ "file_path": "日本.txt", "content": "起き上がり 🎎\n" })),
            ]),
            &short,
        ),
        stream("escapes", escapes(), &ascii),
        stream("empty-text", Answer::text(""), &plain),
        stream("max-tokens", Answer::text("This sentence has no").stopped("max_tokens"), &plain),
        stream(
            "max-tokens-in-tool",
            Answer::blocks(vec![broken("{\"file_path\":\"a.md\",\"content\":\"line 1\\nline")])
                .stopped("max_tokens"),
            &plain,
        ),
        stream(
            "refusal",
            Answer {
                stop_details: Some(json!({ "type": "refusal", "category": "cyber", "explanation": null })),
                ..Answer::text("I can't go").stopped("refusal")
            },
            &plain,
        ),
        stream(
            "stop-sequence",
            Answer { stop_sequence: Some("END".into()), ..Answer::text("one two ").stopped("stop_sequence") },
            &plain,
        ),
        stream("no-input", Answer::blocks(vec![Block::tool("TaskList", json!({})), broken("")]), &plain),
        stream(
            "broken-input",
            Answer::blocks(vec![
                broken("{\"file_path\": \"a.rs\", "),
                broken("null"),
                broken("[1]"),
                read("b.rs"),
            ]),
            &plain,
        ),
        stream(
            "crlf",
            Answer::blocks(vec![thinking("Line ends differ."), text("one\ntwo\r\nthree"), read("a.rs")]),
            &crlf,
        ),
        CorpusStream {
            is_file: false,
            ..stream(
                "one-megabyte",
                Answer::blocks(vec![
                    Block::Repeated { text: "0123456789abcde\n".into(), times: 65_536 },
                    read("a.rs"),
                ]),
                &whole,
            )
        },
    ]
}

fn stream(name: &'static str, answer: Answer, way: &Deliver) -> CorpusStream {
    let message = message(&answer);
    let Stream { bytes, .. } = to_stream(&message, Style::of(way));
    CorpusStream { name, bytes, message: to_json(&message), is_file: true }
}

fn message(answer: &Answer) -> Message {
    let body = json!({ "model": "claude-lab-1", "messages": [] });
    compose(answer, &Request { body: &body, bytes: 400 }, &Defaults::default(), &mut Ids::default())
}

/// Puts a ping, an event that nobody knows and a comment between all events.
fn with_strangers(stream: CorpusStream) -> CorpusStream {
    let style = Style::of(&Deliver::default());
    let text = String::from_utf8(stream.bytes).expect("a stream is UTF-8");
    let mut bytes = Vec::new();
    for event in text.split_inclusive("\n\n") {
        bytes.extend_from_slice(event.as_bytes());
        bytes.extend(to_event("ping", r#"{"type": "ping"}"#, style));
        bytes.extend(to_event(
            "lab_novelty",
            r#"{"type":"lab_novelty","index":0,"text":"not for you"}"#,
            style,
        ));
        bytes.extend_from_slice(b": a comment\n\n");
    }
    CorpusStream { bytes, ..stream }
}

fn text(text: &str) -> Block {
    Block::Text(text.into())
}

fn thinking(text: &str) -> Block {
    Block::Thinking(text.into())
}

fn read(path: &str) -> Block {
    Block::tool("Read", json!({ "file_path": path }))
}

fn broken(json: &str) -> Block {
    Block::Tool(ToolCall { name: "Write".into(), input: Value::Null, id: None, raw_input: Some(json.into()) })
}

fn search() -> Block {
    let found = json!([{ "type": "web_search_result", "title": "Rust", "url": "https://example.com/rust", "encrypted_content": "bGFi", "page_age": null }]);
    Block::ServerTool(ServerTool {
        name: "web_search".into(),
        input: json!({ "query": "newest rust" }),
        result: found,
    })
}

fn interleaved() -> Answer {
    let mut blocks = Vec::new();
    for n in 1..=4 {
        blocks.push(thinking(&format!("Step {n}:  what is in file {n}? – 見る")));
        blocks.push(read(&format!("file-{n}.txt")));
    }
    blocks.insert(4, Block::Redacted("between".into()));
    Answer::blocks(blocks)
}

/// Escapes of every kind, which the odd pieces of the encoder fall into.
fn escapes() -> Answer {
    let typed = r#"{"file_path":"a\u002fb.txt","content":"tab\there \"quoted\" back\\slash \u00e9\ud83c\udf8e end\n"}"#;
    Answer::blocks(vec![text("quote \" backslash \\ tab \t null \u{0} emoji 🎎 é"), broken(typed)])
}
