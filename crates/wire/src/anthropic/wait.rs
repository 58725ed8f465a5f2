//! How long the server asks us to wait.
//!
//! Source: spec, "faults" 2.1: `retry-after-ms`, `retry-after` in seconds, its date less the answer's `Date`, for a
//! 429 the rate limits' own resets. What is no number, negative or beyond a day is passed over.

use std::time::UNIX_EPOCH;

use yaoki_core::mutant;

use crate::transport::find_header;

const WAIT_MS_MAX: f64 = 24.0 * 3_600_000.0;

/// Returns the named wait in milliseconds. `wall_s` stands in for a missing `Date`.
pub(super) fn wait_ms(status: Option<u16>, headers: &[(String, String)], wall_s: Option<u64>) -> Option<u64> {
    if mutant!("wire-retry-after-not-read") {
        return None;
    }
    let now_s = find_header(headers, "date").and_then(http_date_s).or(wall_s.map(|s| s as f64));
    retry_after_ms(headers)
        .or_else(|| retry_after(headers, now_s))
        .or_else(|| (status == Some(429)).then(|| reset_ms(headers, now_s)).flatten())
}

fn retry_after_ms(headers: &[(String, String)]) -> Option<u64> {
    sane(number(find_header(headers, "retry-after-ms")?)?)
}

fn retry_after(headers: &[(String, String)], now_s: Option<f64>) -> Option<u64> {
    let told = find_header(headers, "retry-after")?;
    match number(told) {
        Some(seconds) => sane(seconds * 1_000.0),
        // A date that has passed asks for no wait.
        None => sane(((http_date_s(told)? - now_s?) * 1_000.0).max(0.0)),
    }
}

/// Returns the latest reset among the limits that are used up, else among all.
fn reset_ms(headers: &[(String, String)], now_s: Option<f64>) -> Option<u64> {
    let mut all = Vec::new();
    let mut used_up = Vec::new();
    for (name, value) in headers {
        let name = name.to_ascii_lowercase();
        let Some(ms) = reset_name(&name).and_then(|_| time_to(value, now_s)) else { continue };
        all.push(ms);
        if reset_name(&name)
            .and_then(|twin| find_header(headers, &twin))
            .is_some_and(|left| number(left).is_some_and(|left| left <= 0.0))
        {
            used_up.push(ms);
        }
    }
    used_up.into_iter().max().or_else(|| all.into_iter().max())
}

/// Returns the name of the `remaining` header beside a `reset` header; none for other headers.
fn reset_name(name: &str) -> Option<String> {
    let limit = name.strip_prefix("anthropic-ratelimit-").and_then(|rest| rest.strip_suffix("-reset"));
    if let Some(limit) = limit {
        return Some(format!("anthropic-ratelimit-{limit}-remaining"));
    }
    let limit = name.strip_prefix("x-ratelimit-reset")?;
    Some(format!("x-ratelimit-remaining{limit}"))
}

/// Reads an RFC 3339 time, seconds since 1970, a number of seconds, or a span such as `6m0.5s`.
fn time_to(value: &str, now_s: Option<f64>) -> Option<u64> {
    /// Larger numbers are points in time, smaller ones spans.
    const EPOCH_S_MIN: f64 = 1_000_000_000.0;
    let value = value.trim();
    if let Some(seconds) = number(value) {
        let seconds = if EPOCH_S_MIN < seconds { (seconds - now_s?).max(0.0) } else { seconds };
        return sane(seconds * 1_000.0);
    }
    match rfc3339_s(value) {
        Some(at) => sane(((at - now_s?) * 1_000.0).max(0.0)),
        None => sane(span_s(value)? * 1_000.0),
    }
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok()
}

/// NaN fails the comparison, as it should.
fn sane(ms: f64) -> Option<u64> {
    (0.0..=WAIT_MS_MAX).contains(&ms).then_some(ms.ceil() as u64)
}

fn http_date_s(text: &str) -> Option<f64> {
    let time = httpdate::parse_http_date(text.trim()).ok()?;
    Some(time.duration_since(UNIX_EPOCH).ok()?.as_secs_f64())
}

/// Reads `6m0s`, `1h2m`, `20ms`, `1.5s`.
fn span_s(text: &str) -> Option<f64> {
    let mut total = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let amount: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let (unit, scale) = [("ms", 0.001), ("h", 3_600.0), ("m", 60.0), ("s", 1.0)]
            .into_iter()
            .find(|(unit, _)| rest.starts_with(unit))?;
        total += amount * scale;
        rest = &rest[unit.len()..];
    }
    (!text.is_empty()).then_some(total)
}

/// Reads `2026-11-30T12:00:05Z`, with a fraction or an offset, as seconds since 1970.
fn rfc3339_s(text: &str) -> Option<f64> {
    if !text.is_ascii() || text.len() < 20 {
        return None;
    }
    let field = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let bytes = text.as_bytes();
    let is_shaped = bytes[4] == b'-' && bytes[7] == b'-' && bytes[13] == b':' && bytes[16] == b':';
    if !is_shaped || !matches!(bytes[10], b'T' | b't' | b' ') {
        return None;
    }
    let (clock, zone) = text[19..].split_at(text[19..].find(['Z', 'z', '+', '-'])?);
    let fraction: f64 = if clock.is_empty() { 0.0 } else { format!("0{clock}").parse().ok()? };
    let zone_s = match zone.as_bytes()[0] {
        b'Z' | b'z' => 0,
        sign => {
            let hours: i64 = zone.get(1..3)?.parse().ok()?;
            let minutes: i64 = zone.get(4..6)?.parse().ok()?;
            (hours * 3_600 + minutes * 60) * if sign == b'-' { -1 } else { 1 }
        }
    };
    let days = days_since_1970(field(0, 4)?, field(5, 7)?, field(8, 10)?);
    let seconds = days * 86_400 + field(11, 13)? * 3_600 + field(14, 16)? * 60 + field(17, 19)? - zone_s;
    Some(seconds as f64 + fraction)
}

/// Counts days by years that begin in March, so that the leap day comes last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_server_names_its_wait_in_any_of_these_forms() {
        const DATE: (&str, &str) = ("date", "Mon, 30 Nov 2026 12:00:00 GMT");
        for (status, pairs, want) in [
            (529, vec![("retry-after-ms", "1500"), ("retry-after", "9")], Some(1_500)),
            (529, vec![("Retry-After", "2.5")], Some(2_500)),
            (503, vec![("retry-after", "Mon, 30 Nov 2026 12:00:30 GMT"), DATE], Some(30_000)),
            (503, vec![("retry-after", "Mon, 30 Nov 2026 11:00:00 GMT"), DATE], Some(0)),
            (503, vec![("retry-after", "Mon, 30 Nov 2026 12:00:07 GMT")], Some(7_000)),
            (503, vec![("retry-after", "NaN")], None),
            (503, vec![("retry-after", "inf")], None),
            (503, vec![("retry-after", "-3")], None),
            (503, vec![("retry-after", "90000")], None),
            (503, vec![("retry-after", "soon")], None),
            (503, vec![("retry-after-ms", "x"), ("retry-after", "4")], Some(4_000)),
            (429, vec![("anthropic-ratelimit-requests-reset", "2026-11-30T12:00:05Z"), DATE], Some(5_000)),
            (529, vec![("anthropic-ratelimit-requests-reset", "2026-11-30T12:00:05Z"), DATE], None),
            (429, vec![("anthropic-ratelimit-unified-reset", "1796040010"), DATE], Some(10_000)),
            (
                429,
                vec![
                    ("anthropic-ratelimit-requests-reset", "2026-11-30T12:00:05+00:00"),
                    ("anthropic-ratelimit-requests-remaining", "0"),
                    ("anthropic-ratelimit-tokens-reset", "2026-11-30T12:00:50.5Z"),
                    ("anthropic-ratelimit-tokens-remaining", "100"),
                    DATE,
                ],
                Some(5_000),
            ),
            (429, vec![("x-ratelimit-reset-requests", "6m0.5s")], Some(360_500)),
            (429, vec![("x-ratelimit-reset-tokens", "20ms")], Some(20)),
            (429, vec![], None),
        ] {
            let wall = Some(1_796_040_000);
            assert_eq!(wait_ms(Some(status), &headers(&pairs), wall), want, "{status} {pairs:?}");
        }
    }

    #[test]
    fn times_are_read_with_any_offset() {
        for (text, want) in [
            ("1970-01-01T00:00:00Z", Some(0.0)),
            ("2000-02-29T00:00:00Z", Some(951_782_400.0)),
            ("2026-11-30T12:00:00Z", Some(1_796_040_000.0)),
            ("2026-11-30T14:00:00.25+02:00", Some(1_796_040_000.25)),
            ("2026-11-30 05:30:00-06:30", Some(1_796_040_000.0)),
            ("2026-11-30T12:00:00", None),
            ("soon", None),
        ] {
            assert_eq!(rfc3339_s(text), want, "{text}");
        }
    }
}
