//! One content block: its members, its text, its cache marker.

use super::{Check, Known, media};
use crate::script::Limits;
use crate::trouble::Trouble;
use serde_json::Value;

/// Checks a block of a message.
pub(super) fn check(path: &str, block: &Value, role: &str, limits: &Limits, known: &Known) -> Check {
    let Some(kind) = block["type"].as_str() else {
        return Err(Trouble::invalid(format!("{path}.type: Field required")));
    };
    let Some(row) = KINDS.iter().find(|row| row.kind == kind) else {
        // A service's own tools come and go, and a block that this lab sends is one that it takes back.
        let is_let_through = kind.ends_with("_tool_result") || BETA_KINDS.contains(&kind) || known.has(block);
        return if is_let_through { Ok(()) } else { Err(unknown(path, kind)) };
    };
    if row.role.is_some_and(|only| only != role) {
        let only = row.role.expect("it was just found");
        return Err(Trouble::invalid(format!("{path}: `{kind}` blocks can only be in `{only}` messages")));
    }
    members(path, block, row)?;
    match kind {
        "text" => text("messages", path, string(path, block, "text")?, block),
        "tool_use" | "server_tool_use" => call(path, block),
        "tool_result" => result(path, block, limits),
        "image" => media::check(path, block, limits),
        _ => Ok(()),
    }
}

/// Checks a text: not empty, not blank, no marker on one that is.
pub(super) fn text(whose: &str, path: &str, text: &str, block: &Value) -> Check {
    if !text.trim().is_empty() {
        return Ok(());
    }
    if !block["cache_control"].is_null() {
        return Err(Trouble::invalid(format!(
            "{path}.text: cache_control cannot be set for empty text blocks"
        )));
    }
    let what = if text.is_empty() { "be non-empty" } else { "contain non-whitespace text" };
    Err(Trouble::invalid(format!("{whose}: text content blocks must {what}")).at(path))
}

/// Checks all cache markers of a request: of a known shape, at most four, longer-lived ones first.
pub(super) fn markers<'a>(body: &'a Value) -> Check {
    let mut marked = Vec::new();
    // The path is made for those that have a marker only: a request has hundreds of blocks.
    let mut look = |block: &'a Value, path: &dyn Fn() -> String| {
        if !block["cache_control"].is_null() {
            marked.push((path(), block));
        }
    };
    for (i, tool) in body["tools"].as_array().into_iter().flatten().enumerate() {
        look(tool, &|| format!("tools.{i}"));
    }
    for (i, block) in body["system"].as_array().into_iter().flatten().enumerate() {
        look(block, &|| format!("system.{i}"));
    }
    for (m, message) in body["messages"].as_array().into_iter().flatten().enumerate() {
        for (b, block) in crate::request::blocks(message).iter().enumerate() {
            for (n, inner) in block["content"].as_array().into_iter().flatten().enumerate() {
                look(inner, &|| format!("messages.{m}.content.{b}.content.{n}"));
            }
            look(block, &|| format!("messages.{m}.content.{b}"));
        }
    }
    let mut is_short = false;
    for (path, block) in &marked {
        let marker = &block["cache_control"];
        let ttl = marker["ttl"].as_str();
        if marker["type"] != "ephemeral" || (!marker["ttl"].is_null() && !matches!(ttl, Some("5m" | "1h"))) {
            return Err(Trouble::invalid(format!(
                "{path}.cache_control.ephemeral: Input should be a valid marker"
            )));
        }
        if is_short && ttl == Some("1h") {
            return Err(Trouble::invalid(format!(
                "{path}.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block."
            )));
        }
        is_short |= ttl != Some("1h");
    }
    // A marker of the whole request stands for one on its last block.
    let count = marked.len() + usize::from(!body["cache_control"].is_null());
    match count {
        0..=MARKERS_MAX => Ok(()),
        found => Err(Trouble::invalid(format!(
            "A maximum of {MARKERS_MAX} blocks with cache_control may be provided. Found {found}."
        ))),
    }
}

fn members(path: &str, block: &Value, row: &Kind) -> Check {
    for name in block.as_object().into_iter().flatten().map(|(name, _)| name.as_str()) {
        if name != "type" && !row.needs.contains(&name) && !row.may_have.contains(&name) {
            return Err(Trouble::invalid(format!(
                "{path}.{}.{name}: Extra inputs are not permitted",
                row.kind
            )));
        }
    }
    match row.needs.iter().find(|name| block.get(**name).is_none()) {
        Some(name) => Err(Trouble::invalid(format!("{path}.{}.{name}: Field required", row.kind))),
        None => Ok(()),
    }
}

fn call(path: &str, block: &Value) -> Check {
    let kind = block["type"].as_str().unwrap_or("");
    let id = string(path, block, "id")?;
    if !is_name(id, usize::MAX) {
        return Err(Trouble::invalid(format!(
            "{path}.{kind}.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
        )));
    }
    let name = string(path, block, "name")?;
    if !is_name(name, TOOL_USE_NAME_CHARS_MAX) {
        return Err(Trouble::invalid(format!(
            "{path}.{kind}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,{TOOL_USE_NAME_CHARS_MAX}}}$'"
        )));
    }
    match block["input"].is_object() {
        true => Ok(()),
        false => Err(Trouble::invalid(format!("{path}.{kind}.input: Input should be a valid dictionary"))),
    }
}

fn result(path: &str, block: &Value, limits: &Limits) -> Check {
    string(path, block, "tool_use_id")?;
    let is_error = match &block["is_error"] {
        Value::Null => false,
        Value::Bool(is_error) => *is_error,
        _ => {
            return Err(Trouble::invalid(format!(
                "{path}.tool_result.is_error: Input should be a valid boolean"
            )));
        }
    };
    match &block["content"] {
        Value::Null | Value::String(_) => {}
        Value::Array(blocks) => {
            for (index, inner) in blocks.iter().enumerate() {
                inside(&format!("{path}.tool_result.content.{index}"), inner, limits)?;
                if is_error && inner["type"] != "text" {
                    return Err(Trouble::invalid(format!(
                        "{path}.tool_result: all content must be type `text` if `is_error` is true"
                    )));
                }
            }
        }
        _ => {
            return Err(Trouble::invalid(format!(
                "{path}.tool_result.content: Input should be a valid list"
            )));
        }
    }
    let is_empty = match &block["content"] {
        Value::String(text) => text.is_empty(),
        Value::Array(blocks) => blocks.is_empty(),
        _ => true,
    };
    match is_error && is_empty {
        true => Err(Trouble::invalid(format!(
            "{path}.tool_result: content cannot be empty if `is_error` is true"
        ))),
        false => Ok(()),
    }
}

/// Checks a block inside a tool result.
fn inside(path: &str, block: &Value, limits: &Limits) -> Check {
    match block["type"].as_str() {
        Some("text" | "image" | "document" | "search_result") => {
            check(path, block, "user", limits, &Known::default())
        }
        Some("tool_reference") => Ok(()),
        Some(kind) => Err(unknown(path, kind)),
        None => Err(Trouble::invalid(format!("{path}.type: Field required"))),
    }
}

fn string<'a>(path: &str, block: &'a Value, member: &str) -> Result<&'a str, Trouble> {
    let kind = block["type"].as_str().unwrap_or("");
    block[member]
        .as_str()
        .ok_or_else(|| Trouble::invalid(format!("{path}.{kind}.{member}: Input should be a valid string")))
}

/// Whether a text is made of letters, digits, `_` and `-`, and is neither empty nor too long.
pub(super) fn is_name(text: &str, chars_max: usize) -> bool {
    (1..=chars_max).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

fn unknown(path: &str, kind: &str) -> Trouble {
    let tags: Vec<String> = KINDS.iter().map(|row| format!("'{}'", row.kind)).collect();
    Trouble::invalid(format!(
        "{path}: Input tag '{kind}' found using 'type' does not match any of the expected tags: {}",
        tags.join(", ")
    ))
}

/// A block type, who may send it, and its members.
struct Kind {
    kind: &'static str,
    role: Option<&'static str>,
    needs: &'static [&'static str],
    may_have: &'static [&'static str],
}

const KINDS: [Kind; 9] = [
    Kind {
        kind: "document",
        role: Some("user"),
        needs: &["source"],
        may_have: &["title", "context", "citations", "cache_control"],
    },
    Kind { kind: "image", role: Some("user"), needs: &["source"], may_have: &["cache_control"] },
    Kind { kind: "redacted_thinking", role: Some("assistant"), needs: &["data"], may_have: &[] },
    Kind {
        kind: "search_result",
        role: Some("user"),
        needs: &["source", "title", "content"],
        may_have: &["citations", "cache_control"],
    },
    Kind {
        kind: "server_tool_use",
        role: Some("assistant"),
        needs: &["id", "name", "input"],
        may_have: &["cache_control", "caller"],
    },
    Kind { kind: "text", role: None, needs: &["text"], may_have: &["citations", "cache_control"] },
    Kind { kind: "thinking", role: Some("assistant"), needs: &["thinking", "signature"], may_have: &[] },
    Kind {
        kind: "tool_result",
        role: Some("user"),
        needs: &["tool_use_id"],
        may_have: &["content", "is_error", "cache_control"],
    },
    Kind {
        kind: "tool_use",
        role: Some("assistant"),
        needs: &["id", "name", "input"],
        may_have: &["cache_control", "caller"],
    },
];

/// Types behind beta headers, let through unseen.
const BETA_KINDS: [&str; 5] =
    ["compaction", "container_upload", "fallback", "mcp_tool_use", "mcp_tool_result"];
const MARKERS_MAX: usize = 4;
const TOOL_USE_NAME_CHARS_MAX: usize = 200;
