//! The envelope of a request: path, method, headers, size, JSON.

use crate::ask::HttpAsk;
use crate::request::Request;
use crate::script::Script;
use crate::trouble::Trouble;
use serde_json::Value;

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    Messages,
    CountTokens,
    Models,
    Model(String),
}

/// Finds the route of a request and checks its headers.
pub(crate) fn route(ask: &HttpAsk, script: &Script) -> Result<Route, Trouble> {
    let path = ask.path.split(['?', '#']).next().unwrap_or("").trim_end_matches('/');
    let (route, method) = match path {
        "/v1/messages" => (Route::Messages, "POST"),
        "/v1/messages/count_tokens" => (Route::CountTokens, "POST"),
        "/v1/models" => (Route::Models, "GET"),
        _ => match path.strip_prefix("/v1/models/") {
            Some(id) => (Route::Model(id.to_owned()), "GET"),
            None => return Err(Trouble::of(404, "Not Found")),
        },
    };
    if ask.method != method {
        return Err(Trouble::of(405, "Method Not Allowed"));
    }
    key(ask, script)?;
    if script.strict && ask.header("anthropic-version").is_none() {
        return Err(Trouble::invalid("anthropic-version: header is required"));
    }
    Ok(route)
}

fn key(ask: &HttpAsk, script: &Script) -> Result<(), Trouble> {
    let bearer = ask.header("authorization").and_then(|v| v.strip_prefix("Bearer "));
    let key = ask.header("x-api-key").or(bearer).filter(|key| !key.trim().is_empty());
    match key {
        None if script.strict || !script.keys.is_empty() => {
            Err(Trouble::of(401, "x-api-key header is required"))
        }
        Some(key) if !script.keys.is_empty() && !script.keys.iter().any(|k| k == key) => {
            let message =
                if ask.header("x-api-key").is_some() { "invalid x-api-key" } else { "Invalid bearer token" };
            Err(Trouble::of(401, message))
        }
        _ => Ok(()),
    }
}

/// Reads the body as strict JSON: one object, UTF-8, no half of a surrogate pair.
pub(crate) fn body(ask: &HttpAsk, script: &Script) -> Result<Value, Trouble> {
    if ask.body.len() as u64 > script.limits.body_bytes_max {
        return Err(Trouble::of(413, "Request exceeds the maximum size"));
    }
    if script.strict && !ask.header("content-type").is_some_and(|kind| kind.starts_with("application/json")) {
        return Err(Trouble::invalid("Content-Type: must be application/json"));
    }
    let body: Value = serde_json::from_slice(ask.body).map_err(|e| not_json(&e))?;
    match body {
        Value::Object(_) => Ok(body),
        _ => Err(Trouble::invalid("Input should be a valid dictionary")),
    }
}

fn not_json(error: &serde_json::Error) -> Trouble {
    let what = error.to_string();
    let (line, column) = (error.line(), error.column());
    let why = match what.rsplit_once(" at line ") {
        // serde_json's words for the two halves; the API has these.
        Some((why, _)) if why.contains("surrogate") || why.contains("hex escape") => {
            "no low surrogate in string"
        }
        Some((why, _)) => why,
        None => &what,
    };
    Trouble::invalid(format!(
        "The request body is not valid JSON: {why}: line {line} column {column} (char {})",
        column.saturating_sub(1)
    ))
}

/// Whether model, input and output fit together.
pub(crate) fn fits(body: &Value, bytes: usize, route: &Route, script: &Script) -> Result<(), Trouble> {
    let request = Request { body, bytes };
    let model = request.model();
    if !script.models.is_empty() && !script.models.iter().any(|row| row.id == model) {
        return Err(Trouble::of(404, format!("model: {model}")));
    }
    let limits = &script.limits;
    let (input, output) = (request.tokens(), request.max_tokens());
    if limits.input_tokens_max > 0 && input > limits.input_tokens_max {
        return Err(Trouble::invalid(format!(
            "prompt is too long: {input} tokens > {} maximum",
            limits.input_tokens_max
        )));
    }
    if *route == Route::CountTokens {
        return Ok(());
    }
    if output > limits.output_tokens_max {
        return Err(Trouble::invalid(format!(
            "max_tokens: {output} > {}, which is the maximum allowed number of output tokens for {model}",
            limits.output_tokens_max
        )));
    }
    if limits.window_tokens_max > 0 && input + output > limits.window_tokens_max {
        return Err(Trouble::invalid(format!(
            "input length and `max_tokens` exceed context limit: {input} + {output} > {}, decrease input length or `max_tokens` and try again",
            limits.window_tokens_max
        )));
    }
    Ok(())
}
