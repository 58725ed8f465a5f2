//! Events as Claude Code's stream-json lines, so that its clients can drive Yaoki.
//!
//! Promises: one `assistant` line for each block, one `user` line for each result, one `result` for each turn, with
//! the fields that clients need; what is ours is a `system` line whose subtype begins with `yaoki_`.
//! Deliberately not here: printing (`line` makes the text, `print` writes it) and reading stdin.

pub mod line;
pub mod names;
pub mod result;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use yaoki::core::event::{Event, TurnSummary};
use yaoki::core::ids::CallId;
use yaoki::core::message::{Block, BlockBody, CallResult, Part, Reply, Usage};
use yaoki::core::record::Refusal;
use yaoki::core::terminal::TerminalReason;

use self::names::{error_class, retry_class, wire_end};
use crate::background::Alive;

/// The version that clients look for. Ours is beside it.
pub const CLAUDE_VERSION: &str = "2.1.300";
/// A picture of more base64 than this would make the line too long.
const MEDIA_BYTES_MAX: usize = 600_000;

/// What `system/init` tells of a session.
#[derive(Debug, Clone, Default)]
pub struct Init {
    pub cwd: String,
    pub tools: Vec<String>,
    pub model: String,
    pub mode: String,
    pub slash_commands: Vec<String>,
    pub api_key_source: String,
}

/// Makes lines. Ids and times come from outside.
pub struct Wire {
    session: String,
    uuid: Box<dyn FnMut() -> String + Send>,
    stamp: Box<dyn FnMut() -> String + Send>,
    /// Our calls by the provider's id, which is what clients know.
    calls: HashMap<CallId, String>,
    /// Over the life of the process, as clients expect it.
    pub(self) usage: Vec<(String, Usage)>,
    began_ms: u64,
    asked_ms: Option<u64>,
    api_ms: u64,
}

impl Wire {
    pub fn new(
        session: impl Into<String>,
        uuid: impl FnMut() -> String + Send + 'static,
        stamp: impl FnMut() -> String + Send + 'static,
    ) -> Self {
        Self {
            session: session.into(),
            uuid: Box::new(uuid),
            stamp: Box::new(stamp),
            calls: HashMap::new(),
            usage: Vec::new(),
            began_ms: 0,
            asked_ms: None,
            api_ms: 0,
        }
    }

    /// Opens a turn: the line that tells what the session is.
    pub fn init(&mut self, init: &Init, now_ms: u64) -> Value {
        self.began_ms = now_ms;
        self.asked_ms = None;
        self.api_ms = 0;
        self.system(
            "init",
            json!({
                "cwd": init.cwd,
                "tools": init.tools,
                "mcp_servers": [],
                "model": init.model,
                "permissionMode": init.mode,
                "slash_commands": init.slash_commands,
                "apiKeySource": init.api_key_source,
                "claude_code_version": CLAUDE_VERSION,
                "yaoki_version": env!("CARGO_PKG_VERSION"),
                "output_style": "default",
                "agents": [],
                "skills": [],
                "plugins": [],
                "capabilities": [],
            }),
        )
    }

    /// The lines of one event, in order.
    pub fn lines(&mut self, event: &Event, now_ms: u64) -> Vec<Value> {
        match event {
            Event::Asking { .. } => {
                self.asked_ms = Some(now_ms);
                Vec::new()
            }
            Event::Withdrawn { request, shown, reason, spent } => {
                self.answered(now_ms);
                if let Some(spent) = spent {
                    self.count(&spent.model, spent.usage);
                }
                if *shown == 0 {
                    return Vec::new();
                }
                vec![self.system(
                    "yaoki_withdrawn",
                    json!({ "request": request, "shown_chars": shown, "reason": reason }),
                )]
            }
            Event::Committed { reply, .. } => {
                self.answered(now_ms);
                self.count(&reply.origin.model, reply.usage);
                reply.blocks.iter().filter_map(|block| self.assistant(reply, block)).collect()
            }
            Event::Retrying { request, retry, retries_max, after_ms, rule, transition, failure } => {
                self.answered(now_ms);
                vec![
                    self.system(
                        "api_retry",
                        json!({
                            "attempt": retry,
                            "max_retries": retries_max,
                            "retry_delay_ms": after_ms,
                            "error_status": failure.evidence.status,
                            "error": retry_class(&failure.fault),
                        }),
                    ),
                    self.system(
                        "yaoki_retry",
                        json!({
                            "request": request,
                            "rule": rule,
                            "transition": transition.name(),
                            "fault": failure.fault.name(),
                            "label": failure.label(),
                            "message": failure.evidence.message,
                            "request_id": failure.evidence.request_id,
                        }),
                    ),
                ]
            }
            Event::Recovering { request, rule, transition, text } => vec![self.system(
                "yaoki_recovery",
                json!({ "request": request, "rule": rule, "transition": transition.name(), "text": text }),
            )],
            Event::RequestFailed { .. } => {
                self.answered(now_ms);
                Vec::new()
            }
            Event::CallStarted { call, op, tool, title } => {
                let id = self.provider_id(call);
                vec![self.system(
                    "yaoki_effect",
                    json!({ "op": op, "tool_use_id": id, "tool_name": tool, "title": title, "state": "started" }),
                )]
            }
            Event::CallEnded { call, op, tool, status, result, took_ms } => {
                let id = self.provider_id(call);
                let effect = json!({
                    "op": op, "tool_use_id": id, "tool_name": tool, "state": "settled", "status": status, "took_ms": took_ms,
                });
                vec![self.system("yaoki_effect", effect), self.tool_result(call, Some(tool.as_str()), result)]
            }
            Event::CallRefused { call, tool, why, result, .. } => {
                let mut lines = Vec::new();
                if *why == Refusal::Denied {
                    let id = self.provider_id(call);
                    let denied = json!({ "tool_name": tool, "tool_use_id": id, "message": result.text() });
                    lines.push(self.system("permission_denied", denied));
                }
                lines.push(self.tool_result(call, None, result));
                lines
            }
            Event::OutcomeUnknown { call, op, tool, title, result } => {
                let id = self.provider_id(call);
                let what = json!({
                    "op": op, "tool_use_id": id, "tool_name": tool, "title": title, "found": "outcome_unknown",
                });
                vec![self.system("yaoki_recovery", what), self.tool_result(call, None, result)]
            }
            Event::Detached { call, task, result, .. } => {
                let id = self.provider_id(call);
                let started = json!({
                    "task_id": task, "tool_use_id": id, "description": task, "task_type": "local_bash",
                });
                vec![self.system("task_started", started), self.tool_result(call, None, result)]
            }
            Event::Notice { level, text } => {
                let level = format!("{level:?}").to_lowercase();
                vec![self.system("yaoki_notice", json!({ "level": level, "text": text }))]
            }
            Event::TurnEnded(summary) => {
                self.answered(now_ms);
                self.ended(summary)
            }
            Event::Accepted { .. } | Event::Text { .. } | Event::Thinking { .. } => Vec::new(),
            Event::CallForming { .. } | Event::CallOutput { .. } => Vec::new(),
        }
    }

    /// Something that was found when the session was opened.
    pub fn recovery(&mut self, text: &str) -> Value {
        self.system("yaoki_recovery", json!({ "text": text }))
    }

    /// What still runs when the process ends.
    pub fn background(&mut self, alive: &[Alive], text: &str) -> Value {
        let tasks = alive.iter().map(|alive| json!({ "task_id": alive.task, "processes": alive.what }));
        let tasks: Vec<Value> = tasks.collect();
        self.system("yaoki_background", json!({ "tasks": tasks, "text": text }))
    }

    /// Lets results of an earlier process's calls be told by the ids that clients know.
    pub fn knows(&mut self, call: &CallId, provider_id: &str) {
        self.calls.insert(call.clone(), provider_id.to_owned());
    }

    /// What stands between the last message and the result.
    fn ended(&mut self, summary: &TurnSummary) -> Vec<Value> {
        match summary.reason {
            TerminalReason::CancelledStreaming => vec![self.user_text("[Request interrupted by user]")],
            TerminalReason::CancelledTools => {
                vec![self.user_text("[Request interrupted by user for tool use]")]
            }
            reason if wire_end(reason).as_answer => vec![self.synthetic(summary)],
            _ => Vec::new(),
        }
    }

    fn assistant(&mut self, reply: &Reply, block: &Block) -> Option<Value> {
        if let BlockBody::Call(call) = &block.body {
            self.calls.insert(call.id.clone(), call.provider_id.clone());
        }
        let content = block_json(block)?;
        let message = json!({
            "id": reply.provider_id,
            "type": "message",
            "role": "assistant",
            "model": reply.origin.model,
            "content": [content],
            "stop_reason": null,
            "stop_sequence": null,
            "usage": result::usage_json(&reply.usage),
        });
        Some(self.line("assistant", json!({ "message": message, "parent_tool_use_id": null })))
    }

    /// The message that tells a failed request.
    fn synthetic(&mut self, summary: &TurnSummary) -> Value {
        let class = match (&summary.failure, summary.reason) {
            (_, TerminalReason::MaxOutputTokens) => "max_output_tokens",
            (Some(failure), _) => error_class(&failure.fault),
            (None, _) => "unknown",
        };
        let message = json!({
            "id": (self.uuid)(),
            "type": "message",
            "role": "assistant",
            "model": "<synthetic>",
            "content": [{ "type": "text", "text": result::prose(summary) }],
            "stop_reason": "stop_sequence",
            "stop_sequence": "",
            "usage": result::usage_json(&Usage::default()),
        });
        self.line(
            "assistant",
            json!({
                "message": message, "parent_tool_use_id": null, "error": class, "is_api_error_message": true,
            }),
        )
    }

    fn tool_result(&mut self, call: &CallId, tool: Option<&str>, result: &CallResult) -> Value {
        let content = json!([{
            "tool_use_id": self.provider_id(call),
            "type": "tool_result",
            "content": content_json(&result.parts),
            "is_error": result.is_error,
        }]);
        let text = result.text();
        let structured = match tool {
            _ if result.is_error => Value::from(format!("Error: {text}")),
            Some("Bash") => json!({
                "stdout": text, "stderr": "", "interrupted": false, "isImage": false, "noOutputExpected": false,
            }),
            _ => Value::from(text),
        };
        let message = json!({ "role": "user", "content": content });
        self.line(
            "user",
            json!({ "message": message, "parent_tool_use_id": null, "tool_use_result": structured }),
        )
    }

    fn user_text(&mut self, text: &str) -> Value {
        let message = json!({ "role": "user", "content": [{ "type": "text", "text": text }] });
        self.line("user", json!({ "message": message, "parent_tool_use_id": null }))
    }

    fn provider_id(&self, call: &CallId) -> String {
        self.calls.get(call).cloned().unwrap_or_else(|| call.as_str().to_owned())
    }

    fn count(&mut self, model: &str, spent: Usage) {
        match self.usage.iter_mut().find(|(known, _)| known == model) {
            Some((_, usage)) => usage.add(spent),
            None => self.usage.push((model.to_owned(), spent)),
        }
    }

    fn answered(&mut self, now_ms: u64) {
        if let Some(asked_ms) = self.asked_ms.take() {
            self.api_ms += now_ms.saturating_sub(asked_ms);
        }
    }

    pub(self) fn system(&mut self, subtype: &str, members: Value) -> Value {
        let mut line = json!({ "type": "system", "subtype": subtype });
        merge(&mut line, members);
        merge(&mut line, json!({ "session_id": self.session, "uuid": (self.uuid)() }));
        line
    }

    fn line(&mut self, kind: &str, members: Value) -> Value {
        let mut line = json!({ "type": kind });
        merge(&mut line, members);
        merge(
            &mut line,
            json!({ "session_id": self.session, "uuid": (self.uuid)(), "timestamp": (self.stamp)() }),
        );
        line
    }
}

fn merge(line: &mut Value, members: Value) {
    if let (Value::Object(line), Value::Object(members)) = (line, members) {
        line.extend(members);
    }
}

/// A block as the API would have sent it; none where only its sender could print it.
fn block_json(block: &Block) -> Option<Value> {
    let raw = || block.raw.as_ref().map(|raw| raw.value()).filter(Value::is_object);
    match &block.body {
        BlockBody::Text { text } => Some(json!({ "type": "text", "text": text })),
        BlockBody::Call(call) => Some(json!({
            "type": "tool_use", "id": call.provider_id, "name": call.tool, "input": call.input.value(),
        })),
        BlockBody::Thinking { text } => {
            let mut thinking = raw().unwrap_or_else(|| json!({ "type": "thinking" }));
            let members: &mut Map<String, Value> = thinking.as_object_mut()?;
            // Clients fail over a thinking block without these.
            members.entry("thinking").or_insert_with(|| Value::from(text.clone()));
            members.entry("signature").or_insert_with(|| Value::from(""));
            Some(thinking)
        }
        BlockBody::Media(_) | BlockBody::Other { .. } => raw(),
    }
}

fn content_json(parts: &[Part]) -> Value {
    if let [Part::Text { text }] = parts {
        return Value::from(text.clone());
    }
    let items = parts.iter().map(|part| match part {
        Part::Text { text } => json!({ "type": "text", "text": text }),
        Part::Media(media) if media.data.len() > MEDIA_BYTES_MAX => {
            let text = format!("[{} of {} bytes, too large for a line]", media.media_type, media.data.len());
            json!({ "type": "text", "text": text })
        }
        Part::Media(media) => json!({
            "type": if media.media_type.starts_with("image/") { "image" } else { "document" },
            "source": { "type": "base64", "media_type": media.media_type, "data": &*media.data },
        }),
    });
    Value::Array(items.collect())
}
