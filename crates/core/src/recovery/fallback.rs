//! The model that is asked cannot serve: ask the next one of the chain, for the rest of the turn.
//!
//! Overload three times before an answer, a model that is not there, or errors of the service that may not be retried any
//! more: the retries are used up, or the server forbids them or asks for too long a wait. Never for credentials, money, rate limits, size or the network: another model has the same. The messages stay as they are;
//! thinking that another model signed is left out of what is sent, not of history. The next turn asks the first model
//! again. What it cannot undo: the other model reads the whole conversation anew, and that costs.

use super::rule::{Facts, Remedy, backoff};
use crate::fault::{Failure, Fault};

pub(super) fn propose(failure: &Failure, facts: &Facts<'_>) -> Option<Remedy> {
    let is_due = match failure.fault {
        Fault::Overloaded { .. } => {
            facts.overloads >= facts.policy.overloads_before_fallback || is_out_of_retries(failure, facts)
        }
        Fault::ModelGone => true,
        Fault::Server { status, .. } => {
            status.is_none_or(|status| status >= 500) && is_out_of_retries(failure, facts)
        }
        Fault::RateLimited { .. } if crate::mutant!("fallback-cures-a-rate-limit") => {
            is_out_of_retries(failure, facts)
        }
        _ => false,
    };
    let model = facts.model_next.filter(|_| is_due)?;
    Some(Remedy::Switch { model: model.to_owned() })
}

/// Another model is a route, not a retry: what forbids to ask this one again does not forbid it.
fn is_out_of_retries(failure: &Failure, facts: &Facts<'_>) -> bool {
    let after_ms = backoff(&failure.fault, facts);
    failure.evidence.should_retry == Some(false)
        || facts.retries >= facts.policy.max_retries
        || failure.fault.wait_ms().is_some_and(|told| told > facts.policy.retry_after_cap_ms)
        || facts.elapsed_ms.saturating_add(after_ms) > facts.policy.max_elapsed_ms
}

#[cfg(test)]
mod tests {
    use super::super::rule::failure;
    use super::*;

    #[test]
    fn three_overloads_a_missing_model_and_lasting_errors_lead_on() {
        let switch = Some(Remedy::Switch { model: "b".into() });
        let server = Fault::Server { status: Some(500), wait_ms: None };
        let busy = Fault::Overloaded { wait_ms: None };
        for (fault, overloads, retries, next, want) in [
            (busy.clone(), 2, 2, Some("b"), None),
            (busy.clone(), 3, 2, Some("b"), switch.clone()),
            (busy, 3, 2, None, None),
            (Fault::ModelGone, 0, 0, Some("b"), switch.clone()),
            (server.clone(), 0, 9, Some("b"), None),
            (Fault::Overloaded { wait_ms: Some(90_000) }, 1, 0, Some("b"), switch.clone()),
            (Fault::Server { status: Some(409), wait_ms: None }, 0, 10, Some("b"), None),
            (server, 0, 10, Some("b"), switch),
            (Fault::RateLimited { wait_ms: None }, 3, 10, Some("b"), None),
            (Fault::Auth, 3, 10, Some("b"), None),
            (Fault::Quota { resets_at: None }, 3, 10, Some("b"), None),
            (Fault::TooLong, 3, 10, Some("b"), None),
        ] {
            let facts = Facts { overloads, retries, model_next: next, ..Facts::calm() };
            assert_eq!(
                propose(&failure(fault.clone()), &facts),
                want,
                "{fault:?}, {overloads} overloads, {retries} retries"
            );
        }
    }
}
