//! The API's error object.

use serde_json::{Value, json};

/// A refusal of a request, before it becomes bytes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Trouble {
    pub status: u16,
    pub kind: String,
    pub message: String,
    pub details: Option<Box<Value>>,
    /// The place, where the message does not tell it; for the report and the log only.
    pub at: Option<String>,
}

impl Trouble {
    /// Returns the refusal of a request that is not valid.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::of(400, message)
    }

    /// Returns the refusal with the usual type of a status.
    pub fn of(status: u16, message: impl Into<String>) -> Self {
        Self { status, kind: usual_kind(status).into(), message: message.into(), details: None, at: None }
    }

    /// Returns the refusal with its place.
    pub fn at(self, place: impl Into<String>) -> Self {
        Self { at: Some(place.into()), ..self }
    }

    /// Returns the message with its place, for people.
    pub fn to_note(&self) -> String {
        match &self.at {
            Some(at) => format!("{} ({at})", self.message),
            None => self.message.clone(),
        }
    }

    /// Returns the body. Shape: `{"type":"error","error":{"type","message"},"request_id"}`.
    pub fn to_body(&self, request_id: &str) -> Value {
        let mut error = json!({ "type": self.kind, "message": self.message });
        if let Some(details) = &self.details {
            error["details"] = (**details).clone();
        }
        json!({ "type": "error", "error": error, "request_id": request_id })
    }
}

/// Returns the error type that goes with a status.
pub(crate) fn usual_kind(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        409 => "conflict_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        500..=599 => "api_error",
        _ => "invalid_request_error",
    }
}

/// Returns the message that goes with an error type.
pub(crate) fn usual_message(kind: &str) -> &'static str {
    match kind {
        "authentication_error" => "invalid x-api-key",
        "billing_error" => "Your credit balance is too low to access the Anthropic API.",
        "permission_error" => "Your API key does not have permission to use the specified resource.",
        "not_found_error" => "Not found",
        "conflict_error" => "Conflict",
        "request_too_large" => "Request exceeds the maximum size",
        "rate_limit_error" => "Number of requests has exceeded your rate limit.",
        "timeout_error" => "Request timed out",
        "overloaded_error" => "Overloaded",
        "api_error" => "Internal server error",
        _ => "Invalid request",
    }
}
