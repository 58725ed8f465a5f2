//! Asking the model: one request, its attempts, its waits.

use std::sync::Arc;

use super::Turn;
use crate::event::{Event, Level};
use crate::fault::{Failure, Feature};
use crate::ids::derive_uuid;
use crate::message::Reply;
use crate::record::{AssistantCommitted, AttemptEnd, AttemptStart, Budget, Discarded, Dropped};
use crate::recovery::{self, Facts, Remedy, Rule};
use crate::state::OpenRequest;
use crate::step::{AttemptReport, Step, StepId};
use crate::terminal::TerminalReason;
use crate::view;

impl Turn {
    /// Asks for the turn's next message, unless the turn may have no more rounds.
    pub(super) fn ask(&mut self) {
        let Some(turn) = &self.state.turn else { return };
        if turn.max_turns.is_some_and(|limit| turn.rounds >= limit) {
            let rounds = turn.rounds;
            return self.end(
                TerminalReason::MaxTurns,
                Some(format!("reached the limit of {rounds} turns")),
                None,
            );
        }
        self.attempt(self.state.requests + 1, 1, false);
    }

    /// Goes on with the request that is open: waits out what is left of a wait, then sends the next attempt.
    pub(super) fn ask_on(&mut self) {
        let Some(request) = self.state.turn.as_ref().and_then(|turn| turn.request.as_ref()) else { return };
        let (number, next) = (request.number, request.attempts + 1);
        let in_flight = StepId::Attempt { request: number, attempt: request.attempts };
        let waiting = StepId::Wait { request: number, attempt: next };
        if self.performing.contains(&in_flight) || self.performing.contains(&waiting) {
            return;
        }
        // The process died before the table had answered the last failure: it does now, so that nothing is refilled.
        if let Some(failure) = request.unanswered.clone()
            && !crate::mutant!("failure-before-a-crash-is-forgotten")
        {
            return self.recover(number, request.attempts, failure);
        }
        let clock_ms = self.state.clock_at(self.now.ms);
        let left_ms = request
            .wait
            .as_ref()
            .map_or(0, |wait| wait.since_ms.saturating_add(wait.after_ms).saturating_sub(clock_ms));
        if left_ms > 0 {
            let step = Step::Wait { request: number, attempt: next, ms: left_ms };
            return self.perform(waiting, step);
        }
        let fresh = request.wait.as_ref().is_some_and(|wait| wait.rule == "stale-connection");
        self.attempt(number, next, fresh);
    }

    fn attempt(&mut self, request: u64, attempt: u32, fresh_connection: bool) {
        self.shown = 0;
        let ask = Arc::new(view::request(&self.state));
        let session = self.state.session().cloned().unwrap_or_else(|| crate::ids::SessionId::new(""));
        let client_id = derive_uuid(&session, self.seq_next(), 0);
        self.write(AttemptStart {
            request,
            attempt,
            model: ask.model.clone(),
            endpoint: self.endpoint.clone(),
            client_id: client_id.clone(),
            streamed: ask.streamed,
            body: None,
        });
        // The model is about to read results: they must not be lost after it has.
        if self.is_dirty && !crate::mutant!("no-barrier-before-results-are-read") {
            self.barrier();
        }
        self.tell(Event::Asking { request, attempt, model: ask.model.clone(), streamed: ask.streamed });
        let step = Step::Attempt { request, attempt, ask, client_id, fresh_connection };
        self.perform(StepId::Attempt { request, attempt }, step);
    }

    pub(super) fn attempt_ended(&mut self, request: u64, attempt: u32, end: AttemptReport) {
        if !self.close(&StepId::Attempt { request, attempt }) {
            return;
        }
        let failure = end.result.as_ref().err().cloned();
        let reply = end.result.ok();
        self.write(AttemptEnd {
            request,
            attempt,
            failure: failure.clone(),
            timing: end.timing,
            request_id: end.request_id,
            served: reply.as_ref().map(|reply| reply.origin.model.clone()),
            usage: reply.as_ref().map(|reply| reply.usage),
        });
        if let Some(reply) = reply {
            if self.stopping.is_some() {
                if self.withdraws_when_stopping(request, attempt, &reply) {
                    return self.go_on();
                }
            } else if self.withdraws_answer(request, attempt, &reply) {
                return;
            }
            let message = self.state.message_id(self.seq_next());
            self.write(AssistantCommitted { message: message.clone(), request, reply: reply.clone() });
            // Its calls have their ids now: results are told by them.
            let blocks = self.state.turn.as_ref().map_or(reply.blocks, |turn| turn.last_blocks.clone());
            self.tell(Event::Committed { message, reply: Reply { blocks, ..reply } });
        }
        if let Some(failure) = failure {
            self.withdraw(request, attempt, &failure);
            if self.stopping.is_none() {
                return self.recover(request, attempt, failure);
            }
        }
        self.go_on();
    }

    /// Takes back what was shown of an attempt that did not complete.
    fn withdraw(&mut self, request: u64, attempt: u32, failure: &Failure) {
        let shown = std::mem::take(&mut self.shown);
        if shown == 0 || crate::mutant!("cut-text-not-withdrawn") {
            return;
        }
        let reason = failure.label();
        self.write(Discarded { request, attempt, shown, reason: reason.clone() });
        self.tell(Event::Withdrawn { request, shown, reason, spent: None });
    }

    /// Lets the table answer a failed attempt.
    fn recover(&mut self, request: u64, attempt: u32, failure: Failure) {
        let Some((rule, remedy)) = self.decide(&failure, true) else { return };
        if let Remedy::GiveUp { reason, resumes_in_ms } = remedy {
            let attempts = self.open_request().map_or(attempt, |open| open.attempts);
            return self.give_up(request, attempts, failure, reason, resumes_in_ms);
        }
        if let Remedy::Drop { feature } = remedy {
            self.write(Dropped { feature });
            self.notice(
                Level::Warn,
                format!("{} is not known there; left out from here on", feature_name(feature)),
            );
        }
        self.charge(request, attempt, rule, &failure, &remedy);
        if !matches!(remedy, Remedy::Switch { .. }) {
            let retry = self.open_request().map_or(0, |open| open.retries);
            self.tell(Event::Retrying {
                request,
                retry,
                retries_max: self.policy.max_retries,
                after_ms: remedy.after_ms(),
                rule: rule.name.to_owned(),
                transition: remedy.transition(),
                failure,
            });
        }
        self.ask_on();
    }

    /// Asks the tables, with the facts of now. `may_raise`: whether the answer can still be withdrawn.
    pub(super) fn decide(&self, failure: &Failure, may_raise: bool) -> Option<(&'static Rule, Remedy)> {
        let turn = self.state.turn.as_ref()?;
        let open = turn.request.as_ref();
        let clock_ms = self.state.clock_at(self.now.ms);
        let mut max_tokens_model = self.state.max_tokens_model;
        if crate::mutant!("users-cap-is-raised") {
            max_tokens_model = max_tokens_model.max(64_000);
        }
        let failing_since_ms = open.and_then(|open| open.failing_since_ms);
        let facts = Facts {
            policy: &self.policy,
            streak: 0,
            retries: open.map_or(0, |open| open.retries),
            streams_broken: open.map_or(0, |open| open.streams_broken),
            is_streamed: open.is_none_or(|open| open.is_streamed),
            elapsed_ms: failing_since_ms.map_or(0, |since_ms| clock_ms.saturating_sub(since_ms)),
            max_tokens: open.and_then(|open| open.max_tokens).unwrap_or(self.state.max_tokens),
            max_tokens_model: Some(max_tokens_model).filter(|limit| {
                // Neither a cap that a rule has set for this request, nor the limit of a model that isn't asked.
                let is_ours = open.is_none_or(|open| open.max_tokens.is_none()) && turn.model.is_none();
                may_raise && is_ours && *limit > 0
            }),
            overloads: open.map_or(0, |open| open.overloads),
            model_next: self.model_next(),
            dice: self.now.dice,
        };
        Some(recovery::decide(failure, &facts, &turn.ledger))
    }

    /// Writes that a rule acts, durably: a crash must not refill a budget.
    pub(super) fn charge(
        &mut self,
        request: u64,
        attempt: u32,
        rule: &Rule,
        failure: &Failure,
        remedy: &Remedy,
    ) {
        self.tell_recovery(request, rule, failure, remedy);
        let max_tokens = match remedy {
            Remedy::LowerCap { max_tokens } | Remedy::RaiseCap { max_tokens } => Some(*max_tokens),
            _ => None,
        };
        let model = match remedy {
            Remedy::Switch { model } => Some(model.clone()),
            _ => None,
        };
        let say = match remedy {
            Remedy::Correct { say }
            | Remedy::Continue { say }
            | Remedy::Nudge { say }
            | Remedy::Warn { say } => {
                Some((*say).to_owned()).filter(|_| !crate::mutant!("correction-is-not-said"))
            }
            _ => None,
        };
        self.write(Budget {
            request,
            attempt,
            rule: rule.name.to_owned(),
            fault: failure.fault.name().to_owned(),
            transition: remedy.transition(),
            after_ms: remedy.after_ms(),
            max_tokens,
            model,
            say,
        });
        if !crate::mutant!("budget-not-synced") {
            self.barrier();
        }
    }

    fn open_request(&self) -> Option<&OpenRequest> {
        self.state.turn.as_ref()?.request.as_ref()
    }

    /// The model behind the one that is asked now: the session's own is first, then the chain in order.
    fn model_next(&self) -> Option<&str> {
        let chain = &self.policy.fallback_models;
        let switched = self.state.turn.as_ref().and_then(|turn| turn.model.as_ref());
        let from = switched
            .map_or(0, |now| chain.iter().position(|model| model == now).map_or(chain.len(), |at| at + 1));
        // Each is asked once in a turn, however often the chain names it.
        let (asked, left) = chain.split_at(from);
        left.iter().find(|model| **model != self.state.model && !asked.contains(model)).map(String::as_str)
    }

    fn give_up(
        &mut self,
        request: u64,
        attempts: u32,
        failure: Failure,
        reason: TerminalReason,
        resumes_in_ms: Option<u64>,
    ) {
        let tried = if attempts > 1 { format!(" (after {attempts} attempts)") } else { String::new() };
        let words = if failure.evidence.message.is_empty() {
            String::new()
        } else {
            format!(": {}", failure.evidence.message)
        };
        let error = format!("{}{words}{tried}", failure.label());
        self.tell(Event::RequestFailed { request, attempts, failure });
        let resumes_at = resumes_in_ms
            .filter(|_| {
                reason == TerminalReason::RateLimited || reason == TerminalReason::ProviderUnavailable
            })
            .map(|ms| crate::stamp::rfc3339(self.now.wall_ms.saturating_add(ms)));
        self.end(reason, Some(error), resumes_at);
    }
}

fn feature_name(feature: Feature) -> &'static str {
    match feature {
        Feature::CacheControl => "cache_control",
        Feature::Streaming => "streaming",
        Feature::Thinking => "thinking",
        Feature::Beta => "a beta",
        Feature::SignedThinking => "thinking of earlier messages",
    }
}
