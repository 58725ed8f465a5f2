//! What was asked and what came of it.

use serde::Serialize;
use serde_json::Value;

/// How the script has gone so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    pub script: String,
    /// All requests, of any kind.
    pub requests: u64,
    /// Messages requests that were answered with a whole or cut 200.
    pub answered: u64,
    /// One for each step, in order.
    pub steps: Vec<StepReport>,
    /// Requests that the strict checks refused.
    pub refused: Vec<Refusal>,
    /// Requests that found no step.
    pub unscripted: u64,
}

impl Report {
    /// Returns what a test should complain about, in words: refusals, violations, requests without a step, faults
    /// that were asked for and did not fire. Empty when all is well.
    pub fn complaints(&self) -> Vec<String> {
        let mut all: Vec<String> =
            self.refused.iter().map(|r| format!("request {}: {}: {}", r.ask, r.status, r.message)).collect();
        for step in &self.steps {
            all.extend(step.violations.iter().map(|v| format!("{}: {v}", step.label)));
            if step.asked > 0 && step.fault.is_some() && !step.fired {
                all.push(format!("{}: the fault did not fire", step.label));
            }
        }
        if self.unscripted > 0 {
            all.push(format!("{} requests found no step", self.unscripted));
        }
        all
    }
}

/// How one step has gone so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct StepReport {
    pub label: String,
    /// Requests that took the step.
    pub asked: u64,
    /// The name of its fault.
    pub fault: Option<&'static str>,
    /// Whether its fault was in an answer, at least once.
    pub fired: bool,
    /// What its requests failed to be.
    pub violations: Vec<String>,
}

/// A request that the strict checks refused.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Refusal {
    pub ask: u64,
    pub status: u16,
    pub message: String,
}

/// One request and what was decided about it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LogEntry {
    /// The number of the request, from 1.
    pub ask: u64,
    pub at_ms: u64,
    pub method: String,
    pub path: String,
    /// In the order sent; keys are masked.
    pub headers: Vec<(String, String)>,
    /// The body as JSON; null when it is not JSON or no longer kept.
    pub body: Value,
    pub body_bytes: usize,
    /// The status of the answer; none when the connection was taken away.
    pub status: Option<u16>,
    pub verdict: Verdict,
    /// Whether the answer was played to its end; none while it is being played, false when the client left.
    pub played: Option<bool>,
}

/// What was decided about a request.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Verdict {
    /// A step served it. `fault` names a fault that fired.
    Step { label: String, fault: Option<&'static str> },
    /// The step's `expect` did not hold.
    Violation { label: String, why: String },
    /// The strict checks refused it.
    Refused { why: String },
    /// No step was left.
    Unscripted,
    /// Another endpoint: models, token counts.
    Other,
}
