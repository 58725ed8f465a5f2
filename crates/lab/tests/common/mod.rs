//! Asking a lab without a socket.
#![allow(dead_code, clippy::unwrap_used)]

use serde_json::{Value, json};
use yaoki_lab::{HttpAsk, Lab, Plan, Play, Script, Step};

/// Some day in 2026.
pub const WALL_MS: u64 = 1_790_000_000_500;

pub fn lab(script: &str) -> Lab {
    Lab::new(Script::parse(script).unwrap_or_else(|e| panic!("{e}\n{script}")))
}

/// A lab of steps given as JSON.
pub fn steps(steps: &str) -> Lab {
    lab(&format!("{{\"steps\": [{steps}]}}"))
}

pub fn of(steps: Vec<Step>) -> Lab {
    Lab::new(Script::of(steps))
}

pub fn headers() -> Vec<(String, String)> {
    [("x-api-key", "sk-secret"), ("anthropic-version", "2023-06-01"), ("content-type", "application/json")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
}

/// A prompt.
pub fn request(prompt: &str) -> Value {
    json!({ "model": "claude-lab-1", "max_tokens": 1000, "stream": true, "messages": [{ "role": "user", "content": prompt }] })
}

pub fn ask(lab: &mut Lab, body: &Value) -> Plan {
    let plan = lab.answer(
        &HttpAsk::new("POST", "/v1/messages", &headers(), body.to_string().as_bytes()).at(7, WALL_MS),
    );
    assert!(plan.ending().is_last(), "{plan:?}");
    assert!(plan.plays.iter().filter(|play| play.is_last()).count() == 1, "{plan:?}");
    plan
}

pub fn get(lab: &mut Lab, path: &str) -> (u16, Value) {
    let plan = lab.answer(&HttpAsk::new("GET", path, &headers(), b"").at(7, WALL_MS));
    (plan.status().unwrap(), serde_json::from_slice(&plan.body()).unwrap())
}

/// The body as text.
pub fn body(plan: &Plan) -> String {
    String::from_utf8(plan.body()).unwrap()
}

/// The error type and message of a JSON body.
pub fn error(plan: &Plan) -> (u16, String, String) {
    let body: Value = serde_json::from_slice(&plan.body()).unwrap();
    let member = |name: &str| body["error"][name].as_str().unwrap_or("").to_owned();
    (plan.status().unwrap(), member("type"), member("message"))
}

/// The sizes of the writes.
pub fn writes(plan: &Plan) -> Vec<usize> {
    let size = |play: &Play| match play {
        Play::Bytes(bytes) => Some(bytes.len()),
        _ => None,
    };
    plan.plays.iter().filter_map(size).collect()
}

/// The texts of a streamed answer, joined.
pub fn text(plan: &Plan) -> String {
    let body = body(plan);
    let data = body.lines().filter_map(|line| line.strip_prefix("data: "));
    let parsed = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    parsed.filter_map(|event| event["delta"]["text"].as_str().map(str::to_owned)).collect()
}
