//! How the process ends: one exit code for every end, and one line that names the next thing to try.
//!
//! Promises: the codes are stable; an error always leaves as one line, without control characters from outside.
//! Deliberately not here: what a turn's end means (core) and how an end looks in JSON (`stream_json`).

use std::fmt;

use yaoki::core::terminal::TerminalReason;

use crate::render::plain::one_line;

pub const GOOD: u8 = 0;
pub const ENDED_BADLY: u8 = 1;
/// Wrong usage, unreadable configuration, no key: nothing was started.
pub const USAGE: u8 = 2;
pub const SIGHUP: u8 = 129;
pub const SIGINT: u8 = 130;
pub const SIGTERM: u8 = 143;

/// The code of each end with `--typed-exit-codes`. Released numbers never change; new ends get new ones.
pub const TYPED: &[(TerminalReason, u8)] = &[
    (TerminalReason::Completed, GOOD),
    (TerminalReason::ToolDeferred, GOOD),
    (TerminalReason::BackgroundRequested, GOOD),
    (TerminalReason::MaxTurns, 10),
    (TerminalReason::MaxOutputTokens, 11),
    (TerminalReason::PromptTooLong, 12),
    (TerminalReason::BlockingLimit, 13),
    (TerminalReason::RapidRefillBreaker, 14),
    (TerminalReason::MalformedToolUseExhausted, 15),
    (TerminalReason::ProviderUnavailable, 16),
    (TerminalReason::RateLimited, 17),
    (TerminalReason::Quota, 18),
    (TerminalReason::AuthError, 19),
    (TerminalReason::InvalidRequest, 20),
    (TerminalReason::Refusal, 21),
    (TerminalReason::ImageError, 22),
    (TerminalReason::CancelledStreaming, 23),
    (TerminalReason::CancelledTools, 24),
    (TerminalReason::HookStopped, 25),
    (TerminalReason::StopHookPrevented, 26),
    (TerminalReason::ToolLoop, 27),
    (TerminalReason::NeedsPermission, 28),
    (TerminalReason::NeedsDecision, 29),
    (TerminalReason::BudgetExceeded, 30),
    (TerminalReason::EmptyAnswer, 31),
    (TerminalReason::StructuredOutputExhausted, 32),
    (TerminalReason::Interrupted, 33),
    (TerminalReason::StorageFailed, 34),
    (TerminalReason::InternalError, 35),
];

/// A signal that asked us to leave. Its code wins over that of the turn it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// The terminal is gone.
    Hangup,
    Interrupt,
    Terminate,
}

impl Signal {
    pub fn code(self) -> u8 {
        match self {
            Signal::Hangup => SIGHUP,
            Signal::Interrupt => SIGINT,
            Signal::Terminate => SIGTERM,
        }
    }
}

/// Returns the exit code of a turn's end.
pub fn code_of(reason: TerminalReason, typed: bool, signal: Option<Signal>) -> u8 {
    if let Some(signal) = signal {
        return signal.code();
    }
    let code = TYPED.iter().find(|(known, _)| *known == reason).expect("every end has a row").1;
    if typed { code } else { code.min(ENDED_BADLY) }
}

/// Whose turn it is to do something about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The person typed something that cannot be.
    Usage,
    /// A setting, from a file or the environment.
    Config,
    /// Disk, permissions, sessions: the machine is not as needed.
    Environment,
}

impl Kind {
    pub fn code(self) -> u8 {
        match self {
            Kind::Usage | Kind::Config => USAGE,
            Kind::Environment => ENDED_BADLY,
        }
    }
}

/// An operation of the command line that cannot be done, folded into a kind, with the next thing to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CliError {
    pub kind: Kind,
    pub message: String,
    pub hint: String,
}

impl CliError {
    pub fn usage(message: impl fmt::Display, hint: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message, hint)
    }

    pub fn config(message: impl fmt::Display, hint: impl Into<String>) -> Self {
        Self::new(Kind::Config, message, hint)
    }

    pub fn environment(message: impl fmt::Display, hint: impl Into<String>) -> Self {
        Self::new(Kind::Environment, message, hint)
    }

    pub fn new(kind: Kind, message: impl fmt::Display, hint: impl Into<String>) -> Self {
        Self { kind, message: message.to_string(), hint: hint.into() }
    }
}

/// One line: what is wrong, then what to do.
impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&one_line(&self.message))?;
        if !self.hint.is_empty() {
            write!(f, "; {}", one_line(&self.hint))?;
        }
        Ok(())
    }
}

impl std::error::Error for CliError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_has_one_row_and_its_own_typed_code() {
        for reason in TerminalReason::ALL {
            let rows = TYPED.iter().filter(|(known, _)| known == reason).count();
            assert_eq!(rows, 1, "{}", reason.name());
            let code = code_of(*reason, true, None);
            assert_eq!(code == GOOD, reason.is_good(), "{}", reason.name());
            assert!(code == GOOD || code >= 10, "{} must not look like a plain code", reason.name());
        }
        let mut typed: Vec<u8> = TYPED.iter().map(|(_, code)| *code).filter(|code| *code != GOOD).collect();
        typed.sort_unstable();
        let count = typed.len();
        typed.dedup();
        assert_eq!(typed.len(), count, "no two bad ends share a typed code");
    }

    #[test]
    fn untyped_codes_are_zero_and_one_and_a_signal_wins() {
        for (reason, typed, signal, want) in [
            (TerminalReason::Completed, false, None, 0),
            (TerminalReason::BackgroundRequested, false, None, 0),
            (TerminalReason::MaxTurns, false, None, 1),
            (TerminalReason::MaxTurns, true, None, 10),
            (TerminalReason::InternalError, false, None, 1),
            (TerminalReason::CancelledTools, false, None, 1),
            (TerminalReason::CancelledTools, false, Some(Signal::Interrupt), 130),
            (TerminalReason::CancelledStreaming, true, Some(Signal::Terminate), 143),
            (TerminalReason::Completed, false, Some(Signal::Interrupt), 130),
            (TerminalReason::CancelledTools, true, Some(Signal::Hangup), 129),
        ] {
            assert_eq!(code_of(reason, typed, signal), want, "{}, {typed}, {signal:?}", reason.name());
        }
    }

    #[test]
    fn an_error_is_one_line_that_names_the_next_thing_and_hides_escapes() {
        let error = CliError::usage("cannot read \u{1b}[31mx\ny", "name a file that exists");
        assert_eq!(error.to_string(), "cannot read ^[[31mx y; name a file that exists");
        assert_eq!(error.kind.code(), 2);
        assert_eq!(CliError::environment("no space", "").to_string(), "no space");
    }
}
