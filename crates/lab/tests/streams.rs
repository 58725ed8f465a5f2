//! The streams in `streams/` are the ones that the encoder writes today.
//!
//! `YAOKI_WRITE_STREAMS=1 cargo test -p yaoki-lab --test streams` writes them anew.

#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use yaoki_lab::{CorpusStream, corpus};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("streams")
}

fn files(stream: &CorpusStream) -> [(String, Vec<u8>); 2] {
    let message = serde_json::to_string_pretty(&stream.message).unwrap() + "\n";
    [
        (format!("{}.sse", stream.name), stream.bytes.clone()),
        (format!("{}.json", stream.name), message.into_bytes()),
    ]
}

#[test]
fn the_files_are_fresh() {
    let is_to_write = std::env::var_os("YAOKI_WRITE_STREAMS").is_some();
    let mut names = BTreeSet::new();
    for (name, bytes) in corpus().iter().filter(|stream| stream.is_file).flat_map(files) {
        let path = folder().join(&name);
        if is_to_write {
            fs::write(&path, &bytes).unwrap();
        }
        let on_disk = fs::read(&path).unwrap_or_default();
        assert!(on_disk == bytes, "{name} is stale: run with YAOKI_WRITE_STREAMS=1");
        names.insert(name);
    }
    let on_disk =
        fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(on_disk.collect::<BTreeSet<_>>(), names);
}

/// Reads a stream the plain way and returns its content blocks; none for a call whose input is not JSON.
fn assemble(bytes: &[u8]) -> (Vec<Option<Value>>, String) {
    let text = std::str::from_utf8(bytes).unwrap().replace("\r\n", "\n");
    let mut blocks: Vec<(Value, String)> = Vec::new();
    let mut stop = String::new();
    for event in text.split("\n\n").filter(|event| event.starts_with("event: ")) {
        let (name, data) = event.split_once("\ndata: ").unwrap();
        let data: Value = serde_json::from_str(data).unwrap();
        assert_eq!(name.strip_prefix("event: ").unwrap(), data["type"]);
        match data["type"].as_str().unwrap() {
            "content_block_start" => blocks.push((data["content_block"].clone(), String::new())),
            "content_block_delta" => add(blocks.last_mut().unwrap(), &data["delta"]),
            "message_delta" => stop = data["delta"]["stop_reason"].as_str().unwrap().to_owned(),
            _ => {}
        }
    }
    (blocks.into_iter().map(|(block, input)| with_input(block, &input)).collect(), stop)
}

fn add((block, input): &mut (Value, String), delta: &Value) {
    for member in ["text", "thinking", "signature"] {
        if let Some(piece) = delta[member].as_str() {
            block[member] = Value::String(block[member].as_str().unwrap().to_owned() + piece);
        }
    }
    input.push_str(delta["partial_json"].as_str().unwrap_or(""));
}

fn with_input(mut block: Value, input: &str) -> Option<Value> {
    if !input.is_empty() {
        block["input"] = serde_json::from_str(input).ok()?;
    }
    Some(block)
}

#[test]
fn a_stream_says_what_the_whole_message_says() {
    for stream in corpus() {
        let (blocks, stop) = assemble(&stream.bytes);
        let want = stream.message["content"].as_array().unwrap();
        assert_eq!(blocks.len(), want.len(), "{}", stream.name);
        for (got, want) in blocks.iter().zip(want) {
            match got {
                Some(got) => assert_eq!(got, want, "{}", stream.name),
                None => assert!(want["input"].is_string(), "{}", stream.name),
            }
        }
        assert_eq!(stop, stream.message["stop_reason"].as_str().unwrap(), "{}", stream.name);
    }
}

#[test]
fn there_is_one_stream_of_each_kind() {
    let all = corpus();
    let has = |name: &str, what: &str| {
        let stream =
            all.iter().find(|stream| stream.name == name).unwrap_or_else(|| panic!("no stream {name}"));
        assert!(String::from_utf8_lossy(&stream.bytes).contains(what), "{name} lacks {what}");
    };
    has("thinking-text", "signature_delta");
    has("redacted-thinking", "redacted_thinking");
    has("three-tools", "\"index\":2");
    has("server-tool", "web_search_tool_result");
    has("non-ascii", "🤔");
    has("escapes", "\\ud83c\\udf8e");
    has("crlf", "\r\n\r\n");
    has("no-input", "\"input\":{}}}\n\nevent: content_block_stop");
    assert!(all.iter().any(|stream| stream.bytes.len() > 1_000_000));
    assert_eq!(all.len(), 20);
}
