//! The members of a request, and the roles and contents of its messages.

use super::{Check, Route};
use crate::trouble::Trouble;
use serde_json::Value;

/// Checks everything above the blocks.
pub(super) fn check(body: &Value, route: &Route) -> Check {
    for (name, _) in body.as_object().into_iter().flatten() {
        if !MEMBERS.contains(&name.as_str()) {
            return Err(Trouble::invalid(format!("{name}: Extra inputs are not permitted")));
        }
    }
    match &body["model"] {
        Value::Null => return Err(Trouble::invalid("model: Field required")),
        Value::String(model) if model.is_empty() => {
            return Err(Trouble::invalid("model: String should have at least 1 character"));
        }
        Value::String(_) => {}
        _ => return Err(Trouble::invalid("model: Input should be a valid string")),
    }
    if *route == Route::Messages {
        output(body)?;
    }
    system(&body["system"])?;
    messages(body)?;
    choice(body)
}

fn output(body: &Value) -> Check {
    match &body["max_tokens"] {
        Value::Null => return Err(Trouble::invalid("max_tokens: Field required")),
        count if count.as_u64().is_some_and(|n| n >= 1) => {}
        count if count.is_i64() || count.is_u64() => {
            return Err(Trouble::invalid("max_tokens: Input should be greater than or equal to 1"));
        }
        _ => return Err(Trouble::invalid("max_tokens: Input should be a valid integer")),
    }
    if !matches!(body["stream"], Value::Null | Value::Bool(_)) {
        return Err(Trouble::invalid("stream: Input should be a valid boolean"));
    }
    let thinking = &body["thinking"];
    let budget = thinking["budget_tokens"].as_u64();
    match thinking["type"].as_str() {
        None if thinking.is_null() => Ok(()),
        Some("enabled") => match budget {
            None => Err(Trouble::invalid("thinking.enabled.budget_tokens: Field required")),
            Some(n) if n < 1_024 => Err(Trouble::invalid(
                "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
            )),
            Some(n) if Some(n) >= body["max_tokens"].as_u64() => {
                Err(Trouble::invalid("`max_tokens` must be greater than `thinking.budget_tokens`."))
            }
            Some(_) => temperature(body),
        },
        Some("adaptive") => temperature(body),
        Some("disabled") => Ok(()),
        _ => Err(Trouble::invalid(
            "thinking: Input tag found using 'type' does not match any of the expected tags: 'adaptive', 'disabled', 'enabled'",
        )),
    }
}

fn temperature(body: &Value) -> Check {
    match body["temperature"].as_f64() {
        Some(t) if t != 1.0 => {
            Err(Trouble::invalid("`temperature` may only be set to 1 when thinking is enabled."))
        }
        _ => Ok(()),
    }
}

fn system(system: &Value) -> Check {
    match system {
        Value::Null | Value::String(_) => Ok(()),
        Value::Array(blocks) => {
            for (index, block) in blocks.iter().enumerate() {
                let path = format!("system.{index}");
                if block["type"] != "text" {
                    return Err(Trouble::invalid(format!("{path}.type: Input should be 'text'")));
                }
                let Some(text) = block["text"].as_str() else {
                    return Err(Trouble::invalid(format!("{path}.text: Field required")));
                };
                super::blocks::text("system", &path, text, block)?;
            }
            Ok(())
        }
        _ => Err(Trouble::invalid("system: Input should be a valid list")),
    }
}

fn messages(body: &Value) -> Check {
    let messages = match &body["messages"] {
        Value::Null => return Err(Trouble::invalid("messages: Field required")),
        Value::Array(messages) => messages,
        _ => return Err(Trouble::invalid("messages: Input should be a valid list")),
    };
    if messages.is_empty() {
        return Err(Trouble::invalid("messages: at least one message is required"));
    }
    for (index, message) in messages.iter().enumerate() {
        self::message(index, message)?;
    }
    if messages[0]["role"] != "user" {
        return Err(Trouble::invalid("messages: first message must use the \"user\" role"));
    }
    let last = messages.last().expect("it was just found not to be empty");
    if last["role"] == "assistant" && !is_paused(last) {
        return Err(Trouble::invalid(
            "This model does not support assistant message prefill. The conversation must end with a user message.",
        ));
    }
    Ok(())
}

fn message(index: usize, message: &Value) -> Check {
    let Some(members) = message.as_object() else {
        return Err(Trouble::invalid(format!("messages.{index}: Input should be a valid dictionary")));
    };
    if let Some(name) = members.keys().find(|name| *name != "role" && *name != "content") {
        return Err(Trouble::invalid(format!("messages.{index}.{name}: Extra inputs are not permitted")));
    }
    match message["role"].as_str() {
        Some("user" | "assistant") => {}
        Some("system") => {
            return Err(Trouble::invalid(
                "messages: Unexpected role \"system\". The Messages API accepts a top-level `system` parameter, not \"system\" as an input message role.",
            ));
        }
        Some(other) => {
            return Err(Trouble::invalid(format!(
                "messages: Unexpected role \"{other}\". Allowed roles are \"user\" or \"assistant\"."
            )));
        }
        None => return Err(Trouble::invalid(format!("messages.{index}.role: Field required"))),
    }
    match &message["content"] {
        Value::Null => Err(Trouble::invalid(format!("messages.{index}.content: Field required"))),
        Value::String(text) if text.is_empty() => Err(empty(index)),
        Value::String(text) => {
            super::blocks::text("messages", &format!("messages.{index}.content"), text, &Value::Null)
        }
        Value::Array(blocks) if blocks.is_empty() => Err(empty(index)),
        Value::Array(_) => Ok(()),
        _ => Err(Trouble::invalid(format!("messages.{index}.content: Input should be a valid list"))),
    }
}

fn empty(index: usize) -> Trouble {
    Trouble::invalid(format!(
        "messages.{index}: all messages must have non-empty content except for the optional final assistant message"
    ))
}

/// Whether an assistant message is a server tool's pause, which is sent back as it is.
fn is_paused(message: &Value) -> bool {
    crate::request::blocks(message).iter().any(|block| block["type"] == "server_tool_use")
}

fn choice(body: &Value) -> Check {
    let choice = &body["tool_choice"];
    let thinks = matches!(body["thinking"]["type"].as_str(), Some("enabled" | "adaptive"));
    match choice["type"].as_str() {
        None if choice.is_null() => Ok(()),
        Some("any" | "tool") if thinks => {
            Err(Trouble::invalid("Thinking may not be enabled when tool_choice forces tool use."))
        }
        Some("tool") => {
            let name = choice["name"].as_str().unwrap_or("");
            match body["tools"].as_array().is_some_and(|tools| tools.iter().any(|tool| tool["name"] == name))
            {
                true => Ok(()),
                false => Err(Trouble::invalid(format!("Tool '{name}' not found in provided tools"))),
            }
        }
        Some("auto" | "any") if body["tools"].as_array().is_none_or(|tools| tools.is_empty()) => {
            Err(Trouble::invalid("tool_choice: tool_choice may only be specified while providing tools."))
        }
        Some("auto" | "any" | "none") => Ok(()),
        _ => Err(Trouble::invalid(
            "tool_choice: Input tag found using 'type' does not match any of the expected tags: 'auto', 'any', 'tool', 'none'",
        )),
    }
}

/// Members of a request, those behind beta headers included.
const MEMBERS: [&str; 23] = [
    "model",
    "messages",
    "max_tokens",
    "system",
    "tools",
    "tool_choice",
    "thinking",
    "temperature",
    "top_p",
    "top_k",
    "stop_sequences",
    "stream",
    "metadata",
    "service_tier",
    "cache_control",
    "container",
    "context_management",
    "fallbacks",
    "inference_geo",
    "mcp_servers",
    "output_config",
    "output_format",
    "speed",
];
