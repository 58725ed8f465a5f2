//! The sentences about what happens: retries, ends, failed calls.
//!
//! Promises: each returns one line, or lines that are indented; everything from outside is cleaned.
//! Deliberately not here: colours, and when a sentence is due.

use yaoki::core::event::TurnSummary;
use yaoki::core::fault::{Failure, Fault};
use yaoki::core::terminal::TerminalReason;

use super::plain::{clean, clip, one_line};

/// What is shown of a failed call's result.
const ERROR_CHARS_MAX: usize = 600;
const ERROR_LINES_MAX: usize = 6;

/// `4s`, `0.5s`, `1m 30s`, `2h 5m`.
pub fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..10 if ms % 1000 >= 50 => format!("{}.{}s", seconds, (ms % 1000) / 100),
        0..60 => format!("{seconds}s"),
        60..3600 if seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        _ => format!("{}h {}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// `Retrying in 4s · attempt 2/10 · 529 overloaded`.
pub fn retrying(after_ms: u64, retry: u32, retries_max: u32, failure: &Failure) -> String {
    let when = if after_ms == 0 { "now".to_owned() } else { format!("in {}", duration(after_ms)) };
    format!("Retrying {when} · attempt {retry}/{retries_max} · {}", one_line(&failure.label()))
}

/// The start of an error, its further lines indented.
pub fn error_start(text: &str) -> String {
    let text = clean(text);
    let text = clip(text.trim(), ERROR_CHARS_MAX);
    let mut lines: Vec<&str> = text.lines().collect();
    let left = lines.len().saturating_sub(ERROR_LINES_MAX);
    lines.truncate(ERROR_LINES_MAX);
    let mut out = lines.join("\n  ");
    if left > 0 {
        out.push_str(&format!("\n  … {left} more lines"));
    }
    out
}

/// What one end means to a person, and what to try next.
pub struct End {
    pub reason: TerminalReason,
    pub words: &'static str,
    /// Empty where the error says it all.
    pub hint: &'static str,
}

const fn end(reason: TerminalReason, words: &'static str, hint: &'static str) -> End {
    End { reason, words, hint }
}

const SHORTER: &str = "give less at once, or begin a new session (in a conversation with /clear)";

/// What to try where it seems that somebody else answers than the API.
const ADDRESS: &str = "check ANTHROPIC_BASE_URL: it is the address without /v1";

pub const ENDS: &[End] = &[
    end(TerminalReason::Completed, "the turn is done", ""),
    end(TerminalReason::MaxTurns, "the limit of rounds is reached", "go on with a higher --max-turns"),
    end(
        TerminalReason::MaxOutputTokens,
        "the answer was cut at its limit",
        "raise maxTokens, or ask for smaller pieces",
    ),
    end(TerminalReason::PromptTooLong, "the conversation is too long for the model", SHORTER),
    end(TerminalReason::BlockingLimit, "the conversation is over the model's limit", SHORTER),
    end(
        TerminalReason::RapidRefillBreaker,
        "the context fills up as fast as it is emptied",
        "ask for less at once",
    ),
    end(
        TerminalReason::MalformedToolUseExhausted,
        "the model's calls cannot be read",
        "ask again, or another model",
    ),
    end(
        TerminalReason::ProviderUnavailable,
        "the service cannot be reached or does not answer",
        "check the network and ANTHROPIC_BASE_URL, or try later: nothing is lost",
    ),
    end(TerminalReason::RateLimited, "the service asks to wait", "go on later: nothing is lost"),
    end(TerminalReason::Quota, "a spending limit or quota is used up", "see your account with the provider"),
    end(
        TerminalReason::AuthError,
        "the service did not accept the key",
        "check ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN, and ANTHROPIC_BASE_URL",
    ),
    end(TerminalReason::InvalidRequest, "the service did not accept the request", "check model and settings"),
    end(TerminalReason::Refusal, "the model refused", "ask in other words"),
    end(TerminalReason::ImageError, "an image cannot be used", "take a smaller one, or another format"),
    end(TerminalReason::CancelledStreaming, "interrupted", ""),
    end(TerminalReason::CancelledTools, "interrupted while a call ran", ""),
    end(TerminalReason::HookStopped, "a hook stopped the turn", "see the hook's reason"),
    end(TerminalReason::StopHookPrevented, "a Stop hook stopped the turn", "see the hook's reason"),
    end(TerminalReason::ToolLoop, "the same call failed again and again", "say what to do differently"),
    end(
        TerminalReason::NeedsPermission,
        "a call needs permission",
        "allow it in permissions.allow or --allowedTools, or run on a terminal",
    ),
    end(
        TerminalReason::NeedsDecision,
        "nobody knows whether an earlier call had its effect",
        "look what it should have changed, then say what to do",
    ),
    end(TerminalReason::BackgroundRequested, "work goes on in the background", ""),
    end(TerminalReason::ToolDeferred, "a call was put off", ""),
    end(TerminalReason::BudgetExceeded, "the budget is used up", "go on with a larger one"),
    end(TerminalReason::EmptyAnswer, "the model's answer was empty", "ask again"),
    end(
        TerminalReason::StructuredOutputExhausted,
        "the answer does not fit its schema",
        "simplify the schema",
    ),
    end(
        TerminalReason::Interrupted,
        "the process died in this turn",
        "finish it with yaoki resume --continue",
    ),
    end(
        TerminalReason::StorageFailed,
        "the session cannot be written",
        "check disk space and permissions; what is on disk is good",
    ),
    end(
        TerminalReason::InternalError,
        "an internal error of yaoki",
        "please report it, with the session's id",
    ),
];

/// Returns the row of an end.
pub fn end_of(reason: TerminalReason) -> &'static End {
    ENDS.iter().find(|end| end.reason == reason).expect("every end has a row")
}

/// Says how a turn ended that did not end well: the error, or what the reason means; then what to try.
pub fn ended(summary: &TurnSummary) -> (String, String) {
    let end = end_of(summary.reason);
    let mut message = match &summary.error {
        Some(error) => format!("{} · {}", summary.reason.name(), clip(&one_line(error), ERROR_CHARS_MAX)),
        None => end.words.to_owned(),
    };
    if let Some(at) = &summary.resumes_at {
        message.push_str(&format!(" · may go on at {}", one_line(at)));
    }
    let hint = if summary.failure.as_ref().is_some_and(is_elsewhere) { ADDRESS } else { end.hint };
    (message, hint.to_owned())
}

/// Whether an answer looks as if the address were wrong.
fn is_elsewhere(failure: &Failure) -> bool {
    match failure.fault {
        Fault::ModelGone => false,
        Fault::NotTheApi { .. } => true,
        _ => matches!(failure.evidence.status, Some(300..=399 | 404 | 405)),
    }
}

/// `1 line`, `3 lines`.
pub fn plural(count: u64, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

#[cfg(test)]
mod tests {
    use yaoki::core::fault::Evidence;
    use yaoki::core::message::Usage;

    use super::*;

    #[test]
    fn durations_read_as_people_say_them() {
        for (ms, want) in [
            (0, "0s"),
            (500, "0.5s"),
            (1_000, "1s"),
            (1_249, "1.2s"),
            (4_000, "4s"),
            (12_900, "12s"),
            (60_000, "1m"),
            (90_000, "1m 30s"),
            (7_500_000, "2h 5m"),
        ] {
            assert_eq!(duration(ms), want, "{ms}");
        }
    }

    #[test]
    fn a_retry_is_told_in_one_line() {
        let failure = Failure {
            fault: Fault::Overloaded { wait_ms: None },
            evidence: Evidence { status: Some(529), message: "\u{1b}x".into(), ..Evidence::default() },
        };
        assert_eq!(retrying(4_000, 2, 10, &failure), "Retrying in 4s · attempt 2/10 · 529 overloaded");
        let stale = Failure { fault: Fault::StaleConnection, evidence: Evidence::default() };
        assert_eq!(retrying(0, 1, 10, &stale), "Retrying now · attempt 1/10 · stale connection");
    }

    #[test]
    fn only_the_start_of_an_error_is_shown() {
        assert_eq!(error_start("one\ntwo\r\n"), "one\n  two");
        let long = "line\n".repeat(10);
        assert_eq!(error_start(&long), "line\n  line\n  line\n  line\n  line\n  line\n  … 4 more lines");
        assert_eq!(error_start(&"x".repeat(1000)).chars().count(), ERROR_CHARS_MAX);
    }

    #[test]
    fn an_answer_of_somebody_else_points_at_the_address() {
        let hint = |reason, fault, status| {
            let evidence = Evidence { status, message: "x".into(), ..Evidence::default() };
            ended(&TurnSummary {
                reason,
                text: String::new(),
                error: Some("x".into()),
                resumes_at: None,
                failure: Some(Failure { fault, evidence }),
                rounds: 0,
                usage: Usage::default(),
                attempts_failed: 0,
                denials: Vec::new(),
                stop: None,
            })
            .1
        };
        let invalid = TerminalReason::InvalidRequest;
        for status in [301, 308, 404, 405] {
            let hint = hint(invalid, Fault::Invalid, Some(status));
            assert!(hint.contains("ANTHROPIC_BASE_URL"), "{status}: {hint}");
        }
        assert_eq!(hint(invalid, Fault::Invalid, Some(400)), "check model and settings");
        assert_eq!(hint(invalid, Fault::ModelGone, Some(404)), "check model and settings");
        let long = hint(TerminalReason::PromptTooLong, Fault::TooLong, Some(413));
        assert!(long.starts_with("give less at once"), "{long}");
    }

    #[test]
    fn every_end_has_words_and_every_bad_one_but_cancelling_a_hint() {
        for reason in TerminalReason::ALL {
            let end = end_of(*reason);
            let needs_none = reason.is_good()
                || matches!(reason, TerminalReason::CancelledStreaming | TerminalReason::CancelledTools);
            assert_eq!(end.hint.is_empty(), needs_none, "{}", reason.name());
        }
    }
}
