//! The `result` object: how a turn ended, for programs.
//!
//! Promises: all members that Claude's clients require, and ours beside them.
//! Deliberately not here: the exit code (`crate::exit`).

use serde_json::{Map, Value, json};
use yaoki::core::event::TurnSummary;
use yaoki::core::message::{StopReason, Usage};

use super::Wire;
use super::names::wire_end;
use crate::render::words;

impl Wire {
    /// Ends a turn. `cost` in dollars is over the whole session; none where prices are not known.
    pub fn result(&mut self, summary: &TurnSummary, cost: Option<f64>, now_ms: u64) -> Value {
        let end = wire_end(summary.reason);
        let is_error = !summary.reason.is_good();
        let denials: Vec<Value> = summary
            .denials
            .iter()
            .map(|denial| {
                json!({
                    "tool_name": denial.tool,
                    "tool_use_id": self.provider_id(&denial.call),
                    "tool_input": denial.input.value(),
                })
            })
            .collect();
        let mut result = json!({
            "type": "result",
            "subtype": end.subtype,
            "is_error": is_error,
            "duration_ms": now_ms.saturating_sub(self.began_ms),
            "duration_api_ms": self.api_ms,
            "num_turns": summary.rounds,
            "stop_reason": summary.stop.as_ref().map(stop_name),
            "session_id": self.session,
            "total_cost_usd": cost,
            "usage": usage_json(&summary.usage),
            "modelUsage": self.model_usage(),
            "permission_denials": denials,
            "terminal_reason": end.terminal_reason,
            "yaoki_terminal_reason": summary.reason.name(),
            "api_error_status": summary.failure.as_ref().and_then(|failure| failure.evidence.status).filter(|_| is_error),
            "yaoki_attempts_failed": summary.attempts_failed,
        });
        let text = if is_error { prose(summary) } else { summary.text.clone() };
        if end.subtype == "success" {
            result["result"] = Value::from(text);
        } else {
            result["errors"] = json!([text]);
        }
        if let Some(at) = &summary.resumes_at {
            result["yaoki_resumes_at"] = Value::from(at.clone());
        }
        result["uuid"] = Value::from((self.uuid)());
        result
    }

    fn model_usage(&self) -> Value {
        let models = self.usage.iter().map(|(model, usage)| {
            let usage = json!({
                "inputTokens": usage.input,
                "outputTokens": usage.output,
                "cacheReadInputTokens": usage.cache_read,
                "cacheCreationInputTokens": usage.cache_write,
                "webSearchRequests": 0,
            });
            (model.clone(), usage)
        });
        Value::Object(models.collect::<Map<String, Value>>())
    }
}

/// The `result` of a start that failed, so that a program that reads only stdout learns why.
pub fn failed_start(session: Option<&str>, error: &str, uuid: String) -> Value {
    json!({
        "type": "result",
        "subtype": "error_during_execution",
        "is_error": true,
        "duration_ms": 0,
        "duration_api_ms": 0,
        "num_turns": 0,
        "stop_reason": null,
        "session_id": session.unwrap_or_default(),
        "total_cost_usd": 0,
        "usage": usage_json(&Usage::default()),
        "modelUsage": {},
        "permission_denials": [],
        "errors": [error],
        "uuid": uuid,
    })
}

/// What a person would be told about a bad end.
pub fn prose(summary: &TurnSummary) -> String {
    let end = words::end_of(summary.reason);
    match (&summary.error, wire_end(summary.reason).as_answer) {
        (Some(error), true) => format!("API Error: {error}"),
        (Some(error), false) => error.clone(),
        (None, _) => end.words.to_owned(),
    }
}

pub fn usage_json(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    })
}

fn stop_name(stop: &StopReason) -> &str {
    match stop {
        StopReason::EndTurn => "end_turn",
        StopReason::ToolUse => "tool_use",
        StopReason::MaxTokens => "max_tokens",
        StopReason::StopSequence => "stop_sequence",
        StopReason::PauseTurn => "pause_turn",
        StopReason::Refusal => "refusal",
        StopReason::ContextWindow => "model_context_window_exceeded",
        StopReason::Other(name) => name,
    }
}
