//! Two answers of a model, as server-sent events: one that asks for a command, one that ends the turn.

/// Returns an answer that asks to run `true`.
pub fn asks_for_a_command(round: usize) -> String {
    let block = format!(r#"{{"type":"tool_use","id":"toolu_bench{round:04}","name":"Bash","input":{{}}}}"#);
    let delta = r#"{"type":"input_json_delta","partial_json":"{\"command\": \"true\"}"}"#;
    answer(round, &block, delta, "tool_use")
}

/// Returns an answer of one sentence.
pub fn says_done(round: usize) -> String {
    let block = r#"{"type":"text","text":""}"#;
    let delta = r#"{"type":"text_delta","text":"All done."}"#;
    answer(round, block, delta, "end_turn")
}

fn answer(round: usize, block: &str, delta: &str, stop: &str) -> String {
    let usage = r#"{"input_tokens":1000,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}"#;
    let start = format!(
        r#"{{"type":"message_start","message":{{"id":"msg_bench{round:04}","type":"message","role":"assistant","model":"{MODEL}","content":[],"stop_reason":null,"stop_sequence":null,"usage":{usage}}}}}"#
    );
    let end = format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"{stop}","stop_sequence":null}},"usage":{{"output_tokens":20}}}}"#
    );
    [
        ("message_start", start),
        (
            "content_block_start",
            format!(r#"{{"type":"content_block_start","index":0,"content_block":{block}}}"#),
        ),
        ("content_block_delta", format!(r#"{{"type":"content_block_delta","index":0,"delta":{delta}}}"#)),
        ("content_block_stop", r#"{"type":"content_block_stop","index":0}"#.to_owned()),
        ("message_delta", end),
        ("message_stop", r#"{"type":"message_stop"}"#.to_owned()),
    ]
    .iter()
    .map(|(event, data)| format!("event: {event}\ndata: {data}\n\n"))
    .collect()
}

/// The model that is asked, and answers.
pub const MODEL: &str = "claude-sonnet-4-5";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_ends_with_the_event_that_the_server_holds_back() {
        for text in [asks_for_a_command(1), says_done(2)] {
            assert_eq!(text.matches("\n\n").count(), 6, "{text}");
            assert!(text.ends_with("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"), "{text}");
        }
        assert!(asks_for_a_command(1).contains("toolu_bench0001"));
    }
}
