//! Thinking goes back as it came: byte for byte, all of a message's or none, in place, to the model that signed it.
//!
//! Nothing is remembered for this; see [`crate::sign`].

use super::Check;
use crate::sign::{Seal, since};
use crate::trouble::Trouble;
use serde_json::Value;

/// Checks the thinking of one assistant message.
pub(super) fn check(path: &str, blocks: &[Value], model: &str) -> Check {
    let is_thinking =
        |block: &Value| matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"));
    let mut sealed: Vec<(usize, Seal)> = Vec::new();
    for (number, block) in blocks.iter().enumerate().filter(|(_, block)| is_thinking(block)) {
        sealed.push((number, seal(&format!("{path}.content.{number}"), block, model)?));
    }
    if let Some(last) = blocks.last().filter(|block| is_thinking(block)) {
        let kind = last["type"].as_str().unwrap_or("");
        return Err(Trouble::invalid(format!(
            "{path}: The final block in an assistant message cannot be `{kind}`."
        )));
    }
    in_place(path, blocks, &sealed)
}

fn seal(path: &str, block: &Value, model: &str) -> Result<Seal, Trouble> {
    let text = |member: &str| block[member].as_str().unwrap_or("");
    if block["type"] == "thinking" {
        let seal = Seal::from_signature(text("signature"), model, text("thinking"));
        return seal
            .ok_or_else(|| Trouble::invalid(format!("{path}: Invalid `signature` in `thinking` block")));
    }
    let seal = Seal::from_redacted(text("data"), model);
    seal.ok_or_else(|| Trouble::invalid(format!("{path}: Invalid `data` in `redacted_thinking` block")))
}

/// Whether the blocks of each sent message are all there, in order, with the same blocks between them.
fn in_place(path: &str, blocks: &[Value], sealed: &[(usize, Seal)]) -> Check {
    let mut expected: Option<(&Seal, usize)> = None;
    for (number, seal) in sealed {
        let is_right = match expected {
            Some((before, at)) => {
                let is_next = seal.message == before.message && seal.number == before.number + 1;
                is_next && seal.since == since(&traces(&blocks[at + 1..*number]))
            }
            None => seal.number == 0,
        };
        if !is_right {
            return Err(modified(&format!("{path}.content.{number}")));
        }
        expected = (seal.number + 1 < seal.count).then_some((seal, *number));
    }
    match expected {
        Some((_, at)) => Err(modified(&format!("{path}.content.{at}"))),
        None => Ok(()),
    }
}

/// Returns blocks as [`since`] wants them, as the sender told them.
fn traces(blocks: &[Value]) -> Vec<(&str, &str)> {
    blocks
        .iter()
        .filter_map(|block| match block["type"].as_str()? {
            "text" => {
                block["text"].as_str().filter(|text| !text.trim().is_empty()).map(|text| ("text", text))
            }
            kind @ ("tool_use" | "server_tool_use") => Some((kind, block["id"].as_str().unwrap_or(""))),
            kind => Some((kind, "")),
        })
        .collect()
}

fn modified(path: &str) -> Trouble {
    Trouble::invalid(format!(
        "{path}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response."
    ))
}
