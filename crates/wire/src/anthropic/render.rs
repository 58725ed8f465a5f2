//! One message as the API's content blocks.

use std::collections::HashMap;
use std::sync::Arc;

use yaoki_core::ids::CallId;
use yaoki_core::message::{Block, BlockBody, Call, Media, Part, ViewMessage, ViewResult};

use super::encode::derived_id;
use super::members::{Members, quote, tidy};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    User,
    Assistant,
}

/// The blocks of one message, printed and joined by commas; empty where nothing of it may be sent.
#[derive(Debug)]
pub(super) struct Fragment {
    pub(super) role: Role,
    pub(super) is_results: bool,
    pub(super) starts_in_thought: bool,
    pub(super) json: Box<str>,
    /// Where a cache mark would go into the last block; none where that block may bear none.
    pub(super) mark_at: Option<usize>,
    /// Whether it was printed for the place its blocks came from.
    pub(super) is_home: bool,
    /// Whether its thoughts are in it. Where signatures are refused they are left out, and nothing else.
    pub(super) is_signed: bool,
    /// Calls within it that go by a derived id.
    pub(super) renamed: Vec<CallId>,
}

/// Who owns which provider id: the first call that bears it. Later ones, and ids the API would refuse, are
/// renamed, the same way in the call and in its result.
pub(super) struct Names<'a>(HashMap<&'a str, &'a CallId>);

impl<'a> Names<'a> {
    pub(super) fn of(messages: &'a [Arc<ViewMessage>]) -> Self {
        let mut owners = HashMap::new();
        for call in messages.iter().flat_map(|message| calls(message)) {
            if is_fit_id(&call.provider_id) {
                owners.entry(call.provider_id.as_str()).or_insert(&call.id);
            }
        }
        Self(owners)
    }

    fn is_renamed(&self, call: &CallId, provider_id: &str) -> bool {
        self.0.get(provider_id).is_none_or(|owner| *owner != call)
    }

    pub(super) fn renamed(&self, message: &ViewMessage) -> Vec<CallId> {
        match message {
            ViewMessage::User { .. } => Vec::new(),
            ViewMessage::Assistant { .. } => calls(message)
                .filter(|call| self.is_renamed(&call.id, &call.provider_id))
                .map(|call| call.id.clone())
                .collect(),
            ViewMessage::Results { results, .. } => results
                .iter()
                .filter(|result| self.is_renamed(&result.call, &result.provider_id))
                .map(|result| result.call.clone())
                .collect(),
        }
    }

    fn name(&self, call: &CallId, provider_id: &str) -> String {
        match self.is_renamed(call, provider_id) {
            true => derived_id(call),
            false => provider_id.to_owned(),
        }
    }
}

fn calls(message: &ViewMessage) -> impl Iterator<Item = &Call> {
    let blocks = match message {
        ViewMessage::Assistant { blocks, .. } => blocks.as_slice(),
        ViewMessage::User { .. } | ViewMessage::Results { .. } => &[],
    };
    blocks.iter().filter_map(|block| match &block.body {
        BlockBody::Call(call) => Some(call),
        _ => None,
    })
}

pub(super) fn render(
    message: &ViewMessage,
    is_home: bool,
    is_signed: bool,
    renamed: Vec<CallId>,
    names: &Names<'_>,
) -> Fragment {
    let (role, blocks) = match message {
        ViewMessage::User { parts, .. } => {
            let mut blocks = render_parts(parts);
            if blocks.is_empty() {
                blocks.push(text_block("(empty message)"));
            }
            (Role::User, blocks)
        }
        ViewMessage::Assistant { blocks, .. } => {
            (Role::Assistant, render_blocks(blocks, is_home, is_signed, names))
        }
        ViewMessage::Results { results, .. } => {
            (Role::User, results.iter().map(|result| render_result(result, names)).collect())
        }
    };
    let json = blocks.join(",").into_boxed_str();
    // Every block of a user is one that may bear a mark; of an assistant's, none is ever asked to.
    let mark_at = (role == Role::User).then(|| json.len().checked_sub(1)).flatten();
    let is_results = matches!(message, ViewMessage::Results { .. });
    let starts_in_thought = is_home && is_signed && starts_in_thought(message) && !json.is_empty();
    Fragment { role, is_results, starts_in_thought, json, mark_at, is_home, is_signed, renamed }
}

fn render_blocks(blocks: &[Block], is_home: bool, is_signed: bool, names: &Names<'_>) -> Vec<String> {
    // The API refuses a message that ends in thought, and one of whose thoughts some are missing.
    let ends_in_thought = blocks.iter().rfind(|block| !is_blank(block)).is_some_and(is_thought);
    blocks
        .iter()
        .filter(|block| !((ends_in_thought || !is_signed) && is_thought(block)))
        .filter_map(|block| render_block(block, is_home, names))
        .collect()
}

fn render_block(block: &Block, is_home: bool, names: &Names<'_>) -> Option<String> {
    let raw = block.raw.as_ref().filter(|_| is_home);
    match (&block.body, raw) {
        _ if is_blank(block) => None,
        (BlockBody::Call(call), Some(raw)) if names.is_renamed(&call.id, &call.provider_id) => {
            let mut members = Members::parse(raw.get()).ok()?;
            members.set_text("id", &derived_id(&call.id));
            Some(members.print())
        }
        (_, Some(raw)) => Some(tidy(raw.get()).into_owned()),
        (BlockBody::Text { text }, None) => Some(text_block(text)),
        (BlockBody::Call(call), None) => Some(format!(
            r#"{{"type":"tool_use","id":{},"name":{},"input":{}}}"#,
            quote(&names.name(&call.id, &call.provider_id)),
            quote(&fit_name(&call.tool)),
            tidy(call.input.get())
        )),
        // Bound to where they came from, or not for an assistant to say.
        (BlockBody::Thinking { .. } | BlockBody::Media(_) | BlockBody::Other { .. }, None) => None,
    }
}

/// Whether the first block that is sent is a thought, where thoughts are sent at all.
fn starts_in_thought(message: &ViewMessage) -> bool {
    let ViewMessage::Assistant { blocks, .. } = message else { return false };
    let mut shown = blocks.iter().filter(|block| !is_blank(block));
    shown.next().is_some_and(is_thought) && !shown.next_back().is_none_or(is_thought)
}

fn is_thought(block: &Block) -> bool {
    match &block.body {
        BlockBody::Thinking { .. } => true,
        BlockBody::Other { name } => name == "redacted_thinking",
        BlockBody::Text { .. } | BlockBody::Call(_) | BlockBody::Media(_) => false,
    }
}

fn is_blank(block: &Block) -> bool {
    matches!(&block.body, BlockBody::Text { text } if text.trim().is_empty())
}

fn render_result(result: &ViewResult, names: &Names<'_>) -> String {
    let id = quote(&names.name(&result.call, &result.provider_id));
    let mut blocks = match result.result.is_error {
        false => render_parts(&result.result.parts),
        // The API takes nothing but text in an error.
        true => result.result.parts.iter().filter_map(render_error_part).collect(),
    };
    if blocks.is_empty() && result.result.is_error {
        blocks.push(text_block("(no output)"));
    }
    let content = match blocks.is_empty() {
        true => String::new(),
        false => format!(r#","content":[{}]"#, blocks.join(",")),
    };
    let error = if result.result.is_error { r#","is_error":true"# } else { "" };
    format!(r#"{{"type":"tool_result","tool_use_id":{id}{content}{error}}}"#)
}

fn render_error_part(part: &Part) -> Option<String> {
    match part {
        Part::Text { text } if text.trim().is_empty() => None,
        Part::Text { text } => Some(text_block(text)),
        Part::Media(media) => Some(text_block(&format!("({} not shown: the call failed)", media.media_type))),
    }
}

fn render_parts(parts: &[Part]) -> Vec<String> {
    parts.iter().filter_map(render_part).collect()
}

fn render_part(part: &Part) -> Option<String> {
    match part {
        Part::Text { text } if text.trim().is_empty() => None,
        Part::Text { text } => Some(text_block(text)),
        Part::Media(media) => Some(media_block(media)),
    }
}

fn text_block(text: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, quote(text))
}

fn media_block(media: &Media) -> String {
    let kind = match media.media_type.as_str() {
        _ if media.data.is_empty() => None,
        "image/png" | "image/jpeg" | "image/gif" | "image/webp" => Some("image"),
        "application/pdf" => Some("document"),
        _ => None,
    };
    match kind {
        Some(kind) => format!(
            r#"{{"type":"{kind}","source":{{"type":"base64","media_type":{},"data":{}}}}}"#,
            quote(&media.media_type),
            quote(&media.data)
        ),
        None => text_block(&format!("({} not shown: the model does not take it)", media.media_type)),
    }
}

fn is_fit_id(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// A model may call a tool by a name that the API refuses to read back.
fn fit_name(name: &str) -> String {
    let fit: String =
        name.chars().take(128).map(|c| if is_fit_id(c.encode_utf8(&mut [0; 4])) { c } else { '_' }).collect();
    if fit.is_empty() { "_".to_owned() } else { fit }
}
