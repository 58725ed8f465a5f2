//! Every recovery, as two ordered tables and the one walker that reads them.
//!
//! `TURN` rows change the request; `ATTEMPT` rows send the same one again, or give up. A rule proposes; the
//! walker holds it to its own limit and to the bounds all rules share: retries, elapsed time, and the server's
//! `x-should-retry: false`. Nothing here sleeps, logs or counts.

mod busy;
mod continuation;
mod cut;
mod drop_feature;
mod escalate;
mod fallback;
mod give_up;
mod malformed_call;
mod nudge;
mod output_cap;
mod pause;
mod permitted;
mod rate_limited;
mod rule;
mod stale_connection;
pub(crate) mod tool_loop;
mod transport;
mod unsign;
mod unstreamed;

pub use rule::{Facts, Remedy, Rule};

use crate::fault::Failure;
use crate::ledger::{Ledger, Limit};

/// A limit that other bounds reach first: the retries of one request, and the length of a turn.
const OFTEN: Limit = Limit { streak: 100, total: 400 };
const ONCE: Limit = Limit { streak: 1, total: 20 };

/// What to change in the request. First match wins; before `ATTEMPT`.
pub const TURN: &[Rule] = &[
    Rule {
        name: "output-cap",
        limit: ONCE,
        is_free: true,
        what: "lowers the cap on output to what is left and sends again",
        propose: output_cap::propose,
    },
    Rule {
        name: "drop-feature",
        limit: Limit { streak: 4, total: 8 },
        is_free: true,
        what: "leaves the refused optional part out, for the session, and sends again",
        propose: drop_feature::propose,
    },
    Rule {
        name: "unsign",
        limit: ONCE,
        is_free: true,
        what: "leaves signed thinking out of what is sent, for the session, and sends again",
        propose: unsign::propose,
    },
    Rule {
        name: "fallback",
        limit: Limit { streak: 4, total: 8 },
        is_free: true,
        what: "asks the next model of the chain, for the rest of the turn",
        propose: fallback::propose,
    },
    Rule {
        name: "escalate",
        limit: ONCE,
        is_free: true,
        what: "withdraws the cut answer and asks again with the model's own output limit",
        propose: escalate::propose,
    },
    Rule {
        name: "continuation",
        limit: Limit { streak: 3, total: 20 },
        is_free: true,
        what: "keeps the cut answer and asks for the rest",
        propose: continuation::propose,
    },
    Rule {
        name: "malformed-call",
        limit: ONCE,
        is_free: true,
        what: "withdraws an answer whose call did not arrive and asks again with a correcting line",
        propose: malformed_call::propose,
    },
    Rule {
        name: "nudge",
        limit: ONCE,
        is_free: true,
        what: "asks once for something to see",
        propose: nudge::propose,
    },
    Rule {
        name: "pause",
        limit: Limit { streak: 8, total: 80 },
        is_free: true,
        what: "sends a paused answer back as it is",
        propose: pause::propose,
    },
    Rule {
        name: "tool-loop",
        limit: Limit { streak: 2, total: 2 },
        is_free: true,
        what: "tells the model that it repeats itself",
        propose: tool_loop::propose,
    },
];

/// What to do about one request. First match wins.
pub const ATTEMPT: &[Rule] = &[
    Rule {
        name: "stale-connection",
        limit: ONCE,
        is_free: true,
        what: "sends the same bytes at once on a new connection",
        propose: stale_connection::propose,
    },
    Rule {
        name: "transport",
        limit: OFTEN,
        is_free: false,
        what: "waits and sends the same bytes",
        propose: transport::propose,
    },
    Rule {
        name: "unstreamed",
        limit: ONCE,
        is_free: false,
        what: "asks for the same answer in one piece, once",
        propose: unstreamed::propose,
    },
    Rule {
        name: "cut",
        limit: OFTEN,
        is_free: false,
        what: "withdraws what was heard, waits and sends the same bytes",
        propose: cut::propose,
    },
    Rule {
        name: "rate-limited",
        limit: OFTEN,
        is_free: false,
        what: "waits as told, or with backoff, and sends the same bytes",
        propose: rate_limited::propose,
    },
    Rule {
        name: "busy",
        limit: OFTEN,
        is_free: false,
        what: "waits as told, or with backoff, and sends the same bytes",
        propose: busy::propose,
    },
    Rule {
        name: "permitted",
        limit: Limit { streak: 3, total: 20 },
        is_free: false,
        what: "sends the same bytes because the server said it may help",
        propose: permitted::propose,
    },
    Rule {
        name: "give-up",
        limit: Limit { streak: u32::MAX, total: u32::MAX },
        is_free: true,
        what: "ends the turn and says why",
        propose: give_up::propose,
    },
];

/// Both tables, in the order they are asked.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    TURN.iter().chain(ATTEMPT)
}

/// Whether a rule of this name costs one of the request's retries.
pub fn costs_retry(name: &str) -> bool {
    rules().find(|rule| rule.name == name).is_none_or(|rule| !rule.is_free)
}

/// Walks the tables and returns the first remedy that is within every bound, with its rule.
pub fn decide(failure: &Failure, facts: &Facts<'_>, ledger: &Ledger) -> (&'static Rule, Remedy) {
    for rule in rules() {
        if !ledger.allows(rule.name, rule.limit) {
            continue;
        }
        let facts = Facts { streak: ledger.count(rule.name).streak, ..*facts };
        let Some(remedy) = (rule.propose)(failure, &facts) else { continue };
        if is_within_bounds(rule, &remedy, failure, &facts) {
            return (rule, remedy);
        }
    }
    unreachable!("the last row always proposes and has no limit")
}

fn is_within_bounds(rule: &Rule, remedy: &Remedy, failure: &Failure, facts: &Facts<'_>) -> bool {
    match remedy {
        Remedy::Resend { after_ms } | Remedy::Unstreamed { after_ms } => {
            let is_forbidden = failure.evidence.should_retry == Some(false);
            let has_retries = rule.is_free
                || facts.retries < facts.policy.max_retries
                || crate::mutant!("walker-ignores-max-retries");
            let has_time = facts.elapsed_ms.saturating_add(*after_ms) <= facts.policy.max_elapsed_ms;
            !is_forbidden && has_retries && has_time
        }
        Remedy::ResendFresh
        | Remedy::LowerCap { .. }
        | Remedy::Drop { .. }
        | Remedy::Switch { .. }
        | Remedy::RaiseCap { .. }
        | Remedy::Correct { .. }
        | Remedy::Continue { .. }
        | Remedy::Nudge { .. }
        | Remedy::GoOn
        | Remedy::Warn { .. }
        | Remedy::GiveUp { .. } => true,
    }
}

#[cfg(test)]
mod tests {
    use super::rule::failure;
    use super::*;
    use crate::fault::{Cut, Evidence, Fault};
    use crate::terminal::TerminalReason;

    #[test]
    fn the_last_row_is_total_and_every_other_limit_is_finite() {
        let last = ATTEMPT.last().unwrap();
        assert_eq!(last.name, "give-up");
        for rule in rules().filter(|rule| rule.name != last.name) {
            assert!(rule.limit.total < 1_000 && rule.limit.streak <= rule.limit.total, "{}", rule.name);
        }
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> = rules().map(|rule| rule.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn retries_elapsed_time_and_the_server_bound_every_resend() {
        let busy = Fault::Overloaded { wait_ms: None };
        let forbidden = Evidence { should_retry: Some(false), ..Evidence::default() };
        for (failure, facts, want) in [
            (failure(busy.clone()), Facts { retries: 9, ..Facts::calm() }, "busy"),
            (failure(busy.clone()), Facts { retries: 10, ..Facts::calm() }, "give-up"),
            (failure(busy.clone()), Facts { elapsed_ms: 599_600, ..Facts::calm() }, "give-up"),
            (Failure { fault: busy, evidence: forbidden }, Facts::calm(), "give-up"),
        ] {
            assert_eq!(decide(&failure, &facts, &Ledger::default()).0.name, want, "{failure:?}");
        }
    }

    #[test]
    fn broken_streams_go_stream_then_whole_then_stream_until_retries_end() {
        let mut ledger = Ledger::default();
        let mut seen = Vec::new();
        let mut is_streamed = true;
        let mut streams_broken = 0;
        for retries in 0..=10 {
            streams_broken += u32::from(is_streamed);
            let facts = Facts { retries, is_streamed, streams_broken, ..Facts::calm() };
            let (rule, remedy) = decide(&failure(Fault::Cut { cause: Cut::Ended }), &facts, &ledger);
            ledger.charge(rule.name);
            is_streamed = !matches!(remedy, Remedy::Unstreamed { .. });
            seen.push(rule.name);
        }
        assert_eq!(seen[..4], ["cut", "unstreamed", "cut", "cut"]);
        assert_eq!(seen.iter().filter(|name| **name == "unstreamed").count(), 1);
        assert_eq!(seen.last(), Some(&"give-up"));
    }

    #[test]
    fn a_wait_over_the_cap_ends_typed_with_the_time_to_go_on() {
        let (_, remedy) = decide(
            &failure(Fault::RateLimited { wait_ms: Some(7_200_000) }),
            &Facts::calm(),
            &Ledger::default(),
        );
        assert_eq!(
            remedy,
            Remedy::GiveUp { reason: TerminalReason::RateLimited, resumes_in_ms: Some(7_200_000) }
        );
    }
}
