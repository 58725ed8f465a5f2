//! What the API refused or broke, as a `Failure`.
//!
//! Promises: the order is local, transport, body code, status; words are searched last, and only in `WORDS`.
//! `x-should-retry` is evidence: the rules weigh it after terminal codes. No evidence holds the credential.
//! Source: spec, "faults" 2.1 and 2.2.

use serde_json::Value;
use yaoki_core::fault::{Cut, Evidence, Failure, Fault, Feature, NotSent, Silence};

use super::wait::wait_ms;
use crate::endpoint::Secret;
use crate::transport::{Phase, TransportError, TransportKind, find_header};

const MESSAGE_CHARS_MAX: usize = 2_000;

/// What is at hand when an answer is judged.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// None for an error within a stream, whose own status said that all was well.
    pub status: Option<u16>,
    pub headers: &'a [(String, String)],
    pub body: &'a str,
    /// Seconds since 1970, for a date to wait for when the answer has no `Date`.
    pub wall_s: Option<u64>,
    /// Cut out of whatever is told.
    pub secret: &'a Secret,
}

/// Classifies an answer that is not a reply: an error status, or an error told within a 200.
pub fn classify(seen: Seen<'_>) -> Failure {
    // Before anything is cut short: half a key is no longer found.
    let told = Told::read(&redact(seen.body, seen.secret));
    let wait_ms = wait_ms(seen.status, seen.headers, seen.wall_s);
    let fault = by_code(&told, seen.status, wait_ms)
        .or_else(|| by_words(&told, seen.status))
        .unwrap_or_else(|| by_status(seen, wait_ms));
    Failure { fault, evidence: evidence(seen, told) }
}

/// Classifies an answer whose status is good and whose body is not the API's.
pub fn not_the_api(seen: Seen<'_>, why: &str) -> Failure {
    let told =
        Told { message: format!("{why}: {}", excerpt(&redact(seen.body, seen.secret))), ..Told::default() };
    let wait_ms = wait_ms(seen.status, seen.headers, seen.wall_s);
    Failure { fault: Fault::NotTheApi { wait_ms }, evidence: evidence(seen, told) }
}

/// Classifies a stream or body that did not come to its end.
pub fn cut(seen: Seen<'_>, cause: Cut, why: &str) -> Failure {
    let told = Told { message: why.to_owned(), ..Told::default() };
    Failure { fault: Fault::Cut { cause }, evidence: Evidence { status: None, ..evidence(seen, told) } }
}

/// Classifies what failed below HTTP.
pub fn transport(error: &TransportError, secret: &Secret) -> Failure {
    let fault = match (error.phase, error.kind) {
        (Phase::Dns, TransportKind::Timeout) => Fault::NotSent { cause: NotSent::Timeout },
        (Phase::Dns, _) => Fault::NotSent { cause: NotSent::Dns },
        (Phase::Tls, TransportKind::Timeout) => Fault::NotSent { cause: NotSent::Timeout },
        (Phase::Tls, _) => Fault::NotSent { cause: NotSent::Tls },
        (Phase::Connect, kind) => Fault::NotSent {
            cause: match kind {
                TransportKind::Refused => NotSent::Refused,
                TransportKind::Reset | TransportKind::Ended => NotSent::Reset,
                TransportKind::Timeout => NotSent::Timeout,
                TransportKind::Protocol | TransportKind::Other => NotSent::Other,
            },
        },
        (Phase::BeforeAnswer, _) if error.stale => Fault::StaleConnection,
        (Phase::BeforeAnswer, TransportKind::Timeout) => Fault::NoAnswer { cause: Silence::Timeout },
        (Phase::BeforeAnswer, _) => Fault::NoAnswer { cause: Silence::Reset },
        (Phase::Body, kind) => Fault::Cut {
            cause: match kind {
                TransportKind::Timeout => Cut::Idle,
                TransportKind::Protocol => Cut::Protocol,
                TransportKind::Ended => Cut::Ended,
                TransportKind::Refused | TransportKind::Reset | TransportKind::Other => Cut::Reset,
            },
        },
    };
    let message = bounded(&redact(&error.message, secret));
    Failure { fault, evidence: Evidence { message, ..Evidence::default() } }
}

/// What the body says, if it is JSON of any shape that API or gateways use.
#[derive(Debug, Default)]
struct Told {
    /// `error.type`.
    kind: Option<String>,
    /// `error.details.error_code`, else `error.code`.
    code: Option<String>,
    message: String,
    request_id: Option<String>,
}

impl Told {
    fn read(body: &str) -> Self {
        let Ok(value) = serde_json::from_str::<Value>(body) else {
            return Self { message: excerpt(body), ..Self::default() };
        };
        let error = &value["error"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let message = [&error["message"], &value["message"], error, &value["detail"]]
            .into_iter()
            .find_map(text)
            .unwrap_or_else(|| excerpt(body));
        Self {
            kind: text(&error["type"]),
            code: text(&error["details"]["error_code"]).or_else(|| text(&error["code"])),
            message,
            request_id: text(&value["request_id"]),
        }
    }
}

/// Typed codes. `invalid_request_error` is none: every 400 has it.
fn by_code(told: &Told, status: Option<u16>, wait_ms: Option<u64>) -> Option<Fault> {
    let by_name = |name: &str| {
        Some(match name {
            "enforced_spend_limit_reached"
            | "billing_error"
            | "insufficient_quota"
            | "credit_balance_exhausted"
            | "organization_spend_limit_exceeded"
            | "project_spend_limit_exceeded"
            | "organization_usage_limit_exceeded" => Fault::Quota { resets_at: resets_at(&told.message) },
            "authentication_error" | "permission_error" | "invalid_api_key" => Fault::Auth,
            "model_not_found" => Fault::ModelGone,
            "context_length_exceeded" | "request_too_large" => Fault::TooLong,
            "overloaded_error" => Fault::Overloaded { wait_ms },
            "rate_limit_error" => Fault::RateLimited { wait_ms },
            "timeout_error" | "conflict_error" => Fault::Server { status, wait_ms },
            // Where the status says more (a 529), it is heard.
            "api_error" if status.is_none_or(|status| status < 400) => {
                Fault::Server { status: None, wait_ms }
            }
            _ => return None,
        })
    };
    // The finer code first: a spend cap is a `rate_limit_error` too.
    told.code.as_deref().and_then(by_name).or_else(|| told.kind.as_deref().and_then(by_name))
}

fn by_status(seen: Seen<'_>, wait_ms: Option<u64>) -> Fault {
    let status = seen.status;
    match status {
        // An error within a stream, of a type that nobody knows: the server's side failed.
        None => Fault::Server { status: None, wait_ms },
        Some(200..=299) => Fault::NotTheApi { wait_ms },
        Some(401 | 403 | 407) => Fault::Auth,
        Some(402) => Fault::Quota { resets_at: None },
        Some(408 | 409) => Fault::Server { status, wait_ms },
        Some(413) => Fault::TooLong,
        Some(429) => Fault::RateLimited { wait_ms },
        Some(529) => Fault::Overloaded { wait_ms },
        Some(500..) => Fault::Server { status, wait_ms },
        Some(_) => Fault::Invalid,
    }
}

/// What words stand for, where no code does.
#[derive(Debug, Clone, Copy)]
enum Meaning {
    Quota,
    TooLong,
    OutputCap,
    ModelGone,
    HistoryBug,
    Refused(Feature),
}

/// The one place where words are searched: statuses, words that must all be there (lower case), meaning. The
/// first row that fits counts.
#[rustfmt::skip]
const WORDS: &[(&[u16], &[&str], Meaning)] = &[
    (&[400, 403, 429], &["usage limits", "specified"],             Meaning::Quota),
    (&[400, 402, 403], &["credit balance is too low"],             Meaning::Quota),
    (&[400, 413],      &["max_tokens", "exceed context limit"],    Meaning::OutputCap),
    (&[400],           &["max_tokens:", "maximum allowed number of output tokens"], Meaning::OutputCap),
    (&[400, 413],      &["prompt is too long"],                    Meaning::TooLong),
    (&[400, 413],      &["exceed context limit"],                  Meaning::TooLong),
    (&[400, 413],      &["request exceeds the maximum size"],      Meaning::TooLong),
    (&[400],           &["maximum context length"],                Meaning::TooLong),
    (&[404],           &["model"],                                 Meaning::ModelGone),
    (&[400],           &["tool_use", "tool_result"],               Meaning::HistoryBug),
    (&[400],           &["tool_use_id"],                           Meaning::HistoryBug),
    (&[400],           &["`tool_use` ids must be unique"],         Meaning::HistoryBug),
    (&[400],           &["signature", "thinking"],                 Meaning::HistoryBug),
    (&[400],           &["thinking", "cannot be modified"],        Meaning::HistoryBug),
    (&[400],           &["expected `thinking`"],                   Meaning::HistoryBug),
    (&[400],           &["final block", "cannot be `thinking`"],   Meaning::HistoryBug),
    (&[400],           &["text content blocks must"],              Meaning::HistoryBug),
    (&[400],           &["must have non-empty content"],           Meaning::HistoryBug),
    (&[400],           &["roles must alternate"],                  Meaning::HistoryBug),
    (&[400],           &["surrogate"],                             Meaning::HistoryBug),
    (&[400, 422],      &["cache_control"],                         Meaning::Refused(Feature::CacheControl)),
    (&[400, 422],      &["anthropic-beta"],                        Meaning::Refused(Feature::Beta)),
    (&[400, 422],      &["thinking", "extra inputs"],              Meaning::Refused(Feature::Thinking)),
    (&[400, 422],      &["thinking", "not support"],               Meaning::Refused(Feature::Thinking)),
    (&[400, 422, 501], &["stream", "not support"],                 Meaning::Refused(Feature::Streaming)),
];

fn by_words(told: &Told, status: Option<u16>) -> Option<Fault> {
    // Within a stream the status would have been that of its type.
    let status = match (status, told.kind.as_deref()) {
        (Some(status), _) if 400 <= status => status,
        (_, Some("invalid_request_error")) => 400,
        (_, Some("not_found_error")) => 404,
        _ => return None,
    };
    let message = told.message.to_lowercase();
    let row = WORDS.iter().find(|(statuses, words, _)| {
        statuses.contains(&status) && words.iter().all(|word| message.contains(word))
    });
    Some(match row.map(|(_, _, meaning)| *meaning) {
        Some(Meaning::Quota) => Fault::Quota { resets_at: resets_at(&told.message) },
        Some(Meaning::TooLong) => Fault::TooLong,
        Some(Meaning::OutputCap) => output_cap(&message),
        Some(Meaning::ModelGone) => Fault::ModelGone,
        Some(Meaning::HistoryBug) => Fault::HistoryBug,
        Some(Meaning::Refused(feature)) => Fault::FeatureRefused { feature },
        None if told.kind.as_deref() == Some("invalid_request_error") && status == 400 => Fault::Invalid,
        None => return None,
    })
}

/// Reads `198500 + 32000 > 200000` (input, asked output, limit) or `64000 > 32000` (asked output, limit).
fn output_cap(message: &str) -> Fault {
    let Some((left, right)) = message.split_once('>') else { return Fault::OutputCap { room: None } };
    let Some(limit) = numbers(right).next() else { return Fault::OutputCap { room: None } };
    let input = match left.split_once('+') {
        Some((before, _)) => match numbers(before).last() {
            Some(input) => input,
            None => return Fault::OutputCap { room: None },
        },
        None => 0,
    };
    match limit.checked_sub(input) {
        Some(room) if 0 < room => Fault::OutputCap { room: Some(u32::try_from(room).unwrap_or(u32::MAX)) },
        // The input alone is over: no output cap would help.
        _ => Fault::TooLong,
    }
}

fn numbers(text: &str) -> impl Iterator<Item = u64> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok())
}

/// Returns the time that a spend limit's message names.
fn resets_at(message: &str) -> Option<String> {
    let (_, after) = message.split_once("regain access on ")?;
    let time = after.trim_end().trim_end_matches('.').trim();
    (!time.is_empty()).then(|| time.chars().take(40).collect())
}

fn evidence(seen: Seen<'_>, told: Told) -> Evidence {
    let header = |name| find_header(seen.headers, name).map(|value| redact(value, seen.secret));
    let mut message = redact(&told.message, seen.secret);
    if let (Some(300..=399), Some(place)) = (seen.status, header("location")) {
        message = format!("redirected to {place}; redirects are not followed");
    }
    Evidence {
        status: seen.status,
        code: told.code.or(told.kind).map(|code| bounded(&redact(&code, seen.secret))),
        message: bounded(&message),
        request_id: header("request-id")
            .or_else(|| header("x-request-id"))
            .or(told.request_id)
            .map(|id| bounded(&redact(&id, seen.secret))),
        should_retry: match header("x-should-retry").as_deref() {
            Some("true") => Some(true),
            Some("false") => Some(false),
            _ => None,
        },
    }
}

/// Returns a page's title, or the start of a text.
fn excerpt(body: &str) -> String {
    let body = body.trim();
    let title = body.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
    match title {
        Some((title, _)) => title.trim().chars().take(200).collect(),
        None if body.is_empty() => "empty body".to_owned(),
        None => body.chars().take(MESSAGE_CHARS_MAX).collect(),
    }
}

fn redact(text: &str, secret: &Secret) -> String {
    match secret.expose() {
        "" => text.to_owned(),
        secret => text.replace(secret, "[key]"),
    }
}

fn bounded(text: &str) -> String {
    text.chars().take(MESSAGE_CHARS_MAX).collect()
}
