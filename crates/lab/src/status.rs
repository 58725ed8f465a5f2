//! The `status` fault: body and headers of an error answer.

use crate::deliver::JSON;
use crate::script::{Body, RetryAfter, StatusFault};
use crate::trouble::{Trouble, usual_kind, usual_message};
use std::time::{Duration, SystemTime};

/// Returns the body and its content type.
pub(crate) fn body<'a>(fault: &'a StatusFault, request_id: &str) -> (Vec<u8>, &'a str) {
    let kind = fault.r#type.clone().unwrap_or_else(|| usual_kind(fault.code).into());
    let message = fault.message.clone().unwrap_or_else(|| usual_message(&kind).into());
    let details = fault.details.clone().map(Box::new);
    let json =
        Trouble { status: fault.code, kind, message, details, at: None }.to_body(request_id).to_string();
    let (body, content_type) = match &fault.body {
        Body::Json => (json, JSON),
        Body::Html => (html(fault.code), "text/html"),
        Body::Empty => (String::new(), JSON),
        Body::Truncated => (json.chars().take(json.chars().count() / 2).collect(), JSON),
        Body::Text { content_type, text } => (text.clone(), content_type.as_str()),
    };
    (body.into_bytes(), content_type)
}

/// Returns the headers that the script gives.
pub(crate) fn headers(fault: &StatusFault, wall_ms: u64) -> Vec<(String, String)> {
    let told = fault.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone()));
    told.chain(fault.retry_after.as_ref().map(|wait| retry_after(wait, wall_ms))).collect()
}

fn retry_after(wait: &RetryAfter, wall_ms: u64) -> (String, String) {
    match wait {
        RetryAfter::Ms(ms) => ("retry-after-ms".into(), ms.to_string()),
        RetryAfter::S(s) => ("retry-after".into(), s.to_string()),
        RetryAfter::Text(text) => ("retry-after".into(), text.clone()),
        RetryAfter::DateInS(s) => {
            // A date has whole seconds. Rounding up keeps the wait at least as long as the script says.
            let now_s = wall_ms.div_ceil(1_000) as i64;
            ("retry-after".into(), http_date(now_s.saturating_add(*s).max(0) as u64 * 1_000))
        }
    }
}

/// Returns a time as the `date` header has it.
pub(crate) fn http_date(wall_ms: u64) -> String {
    // The format has four digits for the year.
    let wall_ms = wall_ms.min(YEAR_9999_MS);
    httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_millis(wall_ms))
}

const YEAR_9999_MS: u64 = 253_370_764_800_000;

fn html(code: u16) -> String {
    format!(
        "<html>\n<head><title>{code}</title></head>\n<body>\n<center><h1>{code}</h1></center>\n<hr><center>lab gateway</center>\n</body>\n</html>\n"
    )
}
