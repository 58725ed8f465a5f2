//! Whether a request is one that the real API would take, and the refusal in its words when it is not.
//!
//! Each file checks one part, and stops at the first trouble. Where the API's message does not tell the place, the
//! report and the log do. Not checked: features behind beta headers (their members are let through), token counts of
//! a real tokenizer, documents.

mod blocks;
mod head;
mod media;
mod pairing;
mod schema;
mod thinking;
mod top;

pub(crate) use head::{Route, body, fits, route};

use crate::request::blocks as blocks_of;
use crate::script::{Answer, AtEnd, Block, Limits, Script};
use crate::trouble::Trouble;
use serde_json::Value;

/// The verdict of a check.
type Check = Result<(), Trouble>;

/// Blocks of types the API does not name that this script sends, and so has to take back.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    raw: Vec<Value>,
}

impl Known {
    pub fn of(script: &Script) -> Self {
        let at_end = match &script.at_end {
            AtEnd::Answer(answer) => Some(answer.as_ref()),
            AtEnd::Error | AtEnd::RepeatLast => None,
        };
        let answers = script.steps.iter().filter_map(|step| step.answer.as_ref()).chain(at_end);
        let raw = |answer: &Answer| -> Vec<Value> {
            let raw = answer.blocks.iter().filter_map(|block| match block {
                Block::Raw(raw) => Some(raw.clone()),
                _ => None,
            });
            raw.collect()
        };
        Self { raw: answers.flat_map(raw).collect() }
    }

    fn has(&self, block: &Value) -> bool {
        self.raw.iter().any(|raw| raw["type"] == block["type"])
    }
}

/// Checks a request.
pub(crate) fn check(body: &Value, route: &Route, script: &Script, known: &Known) -> Check {
    top::check(body, route)?;
    schema::check(&body["tools"])?;
    let model = body["model"].as_str().unwrap_or("");
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    for (index, message) in messages.iter().enumerate() {
        check_message(index, message, model, &script.limits, known)?;
    }
    blocks::markers(body)?;
    pairing::check(messages)
}

fn check_message(index: usize, message: &Value, model: &str, limits: &Limits, known: &Known) -> Check {
    let path = format!("messages.{index}");
    let role = message["role"].as_str().unwrap_or("");
    for (number, block) in blocks_of(message).iter().enumerate() {
        blocks::check(&format!("{path}.content.{number}"), block, role, limits, known)?;
    }
    if role == "assistant" {
        thinking::check(&path, blocks_of(message), model)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
