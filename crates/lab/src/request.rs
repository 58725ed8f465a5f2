//! A Messages request, as far as steps ask about it.

use serde_json::Value;

/// The body of a request and the questions that scripts have about it.
pub(crate) struct Request<'a> {
    pub body: &'a Value,
    /// Bytes of the body as sent.
    pub bytes: usize,
}

/// A tool result in the user messages at the end of a request.
pub(crate) struct LastResult<'a> {
    pub id: &'a str,
    /// The name of the call, if the call is in the request.
    pub name: Option<&'a str>,
    pub is_error: bool,
}

impl LastResult<'_> {
    /// Whether this is the result of the call with that id or tool name.
    pub fn is_for(&self, call: &str) -> bool {
        self.id == call || self.name == Some(call)
    }
}

impl<'a> Request<'a> {
    pub fn model(&self) -> &'a str {
        self.body["model"].as_str().unwrap_or("")
    }

    pub fn is_streamed(&self) -> bool {
        self.body["stream"].as_bool().unwrap_or(false)
    }

    pub fn max_tokens(&self) -> u64 {
        self.body["max_tokens"].as_u64().unwrap_or(0)
    }

    pub fn messages(&self) -> &'a [Value] {
        self.body["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    pub fn has_tool(&self, name: &str) -> bool {
        self.body["tools"].as_array().is_some_and(|tools| tools.iter().any(|t| t["name"] == name))
    }

    /// Tokens of the input, at four bytes each.
    pub fn tokens(&self) -> u64 {
        self.bytes as u64 / 4 + 1
    }

    /// Whether a string of `system` or `messages` holds `text`.
    pub fn contains(&self, text: &str) -> bool {
        holds(&self.body["system"], text) || holds(&self.body["messages"], text)
    }

    /// Whether a string of the user messages at the end holds `text`.
    pub fn last_contains(&self, text: &str) -> bool {
        self.last().iter().any(|message| holds(message, text))
    }

    /// Returns the results in the user messages at the end, in order.
    pub fn last_results(&self) -> Vec<LastResult<'a>> {
        let blocks = self.last().iter().flat_map(blocks).filter(|b| b["type"] == "tool_result");
        let result = |block: &'a Value| {
            let id = block["tool_use_id"].as_str().unwrap_or("");
            LastResult { id, name: self.name_of(id), is_error: block["is_error"].as_bool().unwrap_or(false) }
        };
        blocks.map(result).collect()
    }

    /// Whether a call in the request has this id.
    pub fn has_call(&self, id: &str) -> bool {
        self.name_of(id).is_some()
    }

    pub fn assistant_count(&self) -> usize {
        self.messages().iter().filter(|m| m["role"] == "assistant").count()
    }

    fn name_of(&self, id: &str) -> Option<&'a str> {
        let calls = self.messages().iter().rev().flat_map(blocks).filter(|b| b["type"] == "tool_use");
        calls.filter(|b| b["id"] == id).find_map(|b| b["name"].as_str())
    }

    fn last(&self) -> &'a [Value] {
        let messages = self.messages();
        let count = messages.iter().rev().take_while(|m| m["role"] == "user").count();
        &messages[messages.len() - count..]
    }
}

/// Returns the blocks of a message; none when its content is a string.
pub(crate) fn blocks(message: &Value) -> &[Value] {
    message["content"].as_array().map_or(&[], Vec::as_slice)
}

fn holds(value: &Value, text: &str) -> bool {
    match value {
        Value::String(s) => s.contains(text),
        Value::Array(list) => list.iter().any(|v| holds(v, text)),
        Value::Object(map) => map.values().any(|v| holds(v, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
