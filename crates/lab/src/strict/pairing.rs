//! Calls and results: each call has one result, in the next message, before anything else.

use super::Check;
use crate::request::blocks;
use crate::trouble::Trouble;
use serde_json::Value;
use std::collections::HashSet;

/// Checks ids and pairs over all messages.
pub(super) fn check(messages: &[Value]) -> Check {
    let mut seen = HashSet::new();
    for (index, message) in messages.iter().enumerate() {
        ids(index, message, &mut seen)?;
        server_results(index, message)?;
        answered(index, message, messages.get(index + 1))?;
        let before = index.checked_sub(1).map(|before| &messages[before]);
        results(index, message, before)?;
    }
    Ok(())
}

fn ids<'a>(index: usize, message: &'a Value, seen: &mut HashSet<&'a str>) -> Check {
    for (number, block) in blocks(message).iter().enumerate() {
        let is_call = block["type"] == "tool_use" || block["type"] == "server_tool_use";
        if is_call && !seen.insert(block["id"].as_str().unwrap_or("")) {
            return Err(Trouble::invalid(format!(
                "messages.{index}.content.{number}: `tool_use` ids must be unique"
            )));
        }
    }
    Ok(())
}

/// Each call of an assistant message has a result among those that open the next message.
fn answered(index: usize, message: &Value, next: Option<&Value>) -> Check {
    let calls = blocks(message).iter().filter(|block| block["type"] == "tool_use");
    let first: &[Value] = next.filter(|next| next["role"] == "user").map_or(&[], blocks);
    let first: Vec<&str> = first.iter().map_while(result_id).collect();
    let open: Vec<&str> =
        calls.filter_map(|call| call["id"].as_str()).filter(|id| !first.contains(id)).collect();
    match open.is_empty() {
        true => Ok(()),
        false => Err(Trouble::invalid(format!(
            "messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
            open.join(", ")
        ))),
    }
}

/// Each result has its call in the message before, and no call has two.
fn results(index: usize, message: &Value, before: Option<&Value>) -> Check {
    let calls: &[Value] = before.map_or(&[], blocks);
    let mut seen = HashSet::new();
    for (number, block) in blocks(message).iter().enumerate() {
        let Some(id) = result_id(block) else { continue };
        if !calls.iter().any(|call| call["type"] == "tool_use" && call["id"] == id) {
            return Err(Trouble::invalid(format!(
                "messages.{index}.content.{number}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
            )));
        }
        if !seen.insert(id) {
            return Err(Trouble::invalid(format!(
                "messages.{index}.content.{number}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}"
            )));
        }
    }
    Ok(())
}

/// Each result of the service's own tools has its call before it in the same message.
fn server_results(index: usize, message: &Value) -> Check {
    let all = blocks(message);
    for (number, block) in all.iter().enumerate() {
        let kind = block["type"].as_str().unwrap_or("");
        if !kind.ends_with("_tool_result") || kind == "mcp_tool_result" {
            continue;
        }
        let id = &block["tool_use_id"];
        if !all[..number].iter().any(|call| call["type"] == "server_tool_use" && call["id"] == *id) {
            let id = id.as_str().unwrap_or("");
            return Err(Trouble::invalid(format!(
                "messages.{index}.content.{number}: unexpected `tool_use_id` found in `{kind}` blocks: {id}. Each `{kind}` block must have a corresponding `server_tool_use` block before it."
            )));
        }
    }
    Ok(())
}

fn result_id(block: &Value) -> Option<&str> {
    if block["type"] != "tool_result" {
        return None;
    }
    block["tool_use_id"].as_str()
}
