//! The lab's streams, cut at every byte, in any chunks, and against their plain twins.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use proptest::prelude::*;
use yaoki_core::fault::Cut;
use yaoki_core::json::RawJson;
use yaoki_core::message::{BlockBody, Reply};
use yaoki_core::step::Delta;
use yaoki_lab::{CorpusStream, corpus};
use yaoki_wire::anthropic::assemble::{Assembler, Broken, read_plain};
use yaoki_wire::sse::Decoder;

const AUTHORITY: &str = "https://api.anthropic.com";

/// Decoder and assembler in a row.
struct Ear {
    decoder: Decoder,
    assembler: Assembler,
    heard: Vec<Delta>,
}

impl Ear {
    fn new() -> Self {
        Self { decoder: Decoder::default(), assembler: Assembler::new(AUTHORITY, "asked"), heard: Vec::new() }
    }

    fn push(&mut self, bytes: &[u8]) {
        let mut events = Vec::new();
        self.decoder.push(bytes, &mut events).unwrap();
        for event in &events {
            self.assembler.take(event, &mut |delta| self.heard.push(delta)).unwrap();
        }
    }
}

fn whole(stream: &CorpusStream) -> Reply {
    let mut ear = Ear::new();
    ear.push(&stream.bytes);
    ear.assembler.finish().unwrap()
}

#[test]
fn a_stream_cut_at_any_byte_is_no_reply_and_the_whole_one_is() {
    let streams = corpus();
    assert!(12 <= streams.len());
    for stream in &streams {
        let mut ear = Ear::new();
        let mut complete_at = None;
        for (at, byte) in stream.bytes.iter().enumerate() {
            ear.push(std::slice::from_ref(byte));
            if ear.assembler.is_complete() && complete_at.is_none() {
                complete_at = Some(at + 1);
            }
        }
        assert_eq!(complete_at, Some(stop_end(stream)), "{}", stream.name);
        assert_eq!(ear.assembler.finish().unwrap(), whole(stream), "{}", stream.name);
    }
}

/// Returns where the blank line that ends `message_stop` is known to be one.
fn stop_end(stream: &CorpusStream) -> usize {
    let name = b"event: message_stop";
    let start = stream.bytes.windows(name.len()).position(|window| window == name).unwrap();
    let rest = &stream.bytes[start..];
    let end = |blank: &[u8]| rest.windows(blank.len()).position(|window| window == blank);
    // With CRLF the CR of the empty line tells.
    start + end(b"\n\n").map(|at| at + 2).or(end(b"\r\n\r\n").map(|at| at + 3)).unwrap()
}

#[test]
fn what_is_put_together_of_a_cut_stream_is_refused() {
    for stream in corpus().iter().filter(|stream| stream.bytes.len() < 20_000) {
        for end in 0..stop_end(stream) {
            let mut ear = Ear::new();
            ear.push(&stream.bytes[..end]);
            let got = ear.assembler.finish();
            assert!(
                matches!(got, Err(Broken::Cut { cause: Cut::Ended, .. })),
                "{} cut at {end}: {got:?}",
                stream.name
            );
        }
    }
}

#[test]
fn a_plain_answer_gives_the_reply_of_its_stream() {
    for stream in corpus() {
        let streamed = whole(&stream);
        let text = stream.message.to_string();
        let plain = read_plain(AUTHORITY, "asked", &text, &mut |_| {}).unwrap();
        assert_eq!(comparable(plain), comparable(streamed), "{}", stream.name);
    }
}

/// Broken input cannot be written in a plain answer, so what is wrong with it differs; a stream keeps the
/// model's own spelling of an input.
fn comparable(mut reply: Reply) -> Reply {
    for block in &mut reply.blocks {
        if let BlockBody::Call(call) = &mut block.body {
            call.broken = call.broken.take().map(|_| "broken".to_owned());
            call.input = RawJson::of(&call.input.value());
        }
    }
    reply
}

#[test]
fn what_is_heard_of_a_stream_is_the_text_of_its_reply() {
    for stream in corpus() {
        let mut ear = Ear::new();
        ear.push(&stream.bytes);
        let reply = ear.assembler.finish().unwrap();
        let mut texts = String::new();
        let mut tools = Vec::new();
        for delta in ear.heard {
            match delta {
                Delta::Text(piece) => texts.push_str(&piece),
                Delta::Thinking(_) => {}
                Delta::CallForming { tool } => tools.push(tool),
            }
        }
        assert_eq!(texts, reply.text(), "{}", stream.name);
        assert_eq!(tools, reply.calls().map(|call| call.tool.clone()).collect::<Vec<_>>(), "{}", stream.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_chunking_gives_the_same_reply_and_the_same_deltas(
        pick in any::<prop::sample::Index>(),
        sizes in proptest::collection::vec(1usize..4_000, 1..8),
    ) {
        let streams = corpus();
        let stream = pick.get(&streams);
        let mut at_once = Ear::new();
        at_once.push(&stream.bytes);
        let mut ear = Ear::new();
        let mut rest = stream.bytes.as_slice();
        for size in sizes.iter().cycle() {
            let (chunk, after) = rest.split_at(rest.len().min(*size));
            ear.push(chunk);
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(ear.heard, at_once.heard);
        prop_assert_eq!(ear.assembler.finish(), at_once.assembler.finish());
    }
}
