//! Records, steps and events in one line each, for people and for comparing.

use yaoki_core::event::Event;
use yaoki_core::message::{CallResult, Reply, StopReason, ViewMessage, visible_text};
use yaoki_core::record::Record;
use yaoki_core::request::Request;
use yaoki_core::step::{RunStep, Step, StepId};
use yaoki_core::turn::{Outbox, Told};

use crate::plain::title;

/// All that one input led to: records, the barrier, events, steps.
pub fn outbox(out: &Outbox) -> Vec<String> {
    let mut lines: Vec<String> = out.records.iter().map(|one| format!("  . {}", record(one))).collect();
    if out.barrier {
        lines.push("  = barrier".into());
    }
    lines.extend(out.events.iter().map(|Told { event: one, durable }| {
        format!("  {} {}", if *durable { "!!" } else { "!" }, event(one))
    }));
    lines.extend(out.steps.iter().map(|one| format!("  > {}", step(one))));
    lines
}

fn result(result: &CallResult) -> String {
    let mark = if result.is_error { "error " } else { "" };
    format!("{mark}{:?}", result.text())
}

fn stop(stop: &StopReason) -> String {
    match stop {
        StopReason::Other(name) => name.clone(),
        known => serde_json::to_value(known).unwrap().as_str().unwrap_or("?").to_owned(),
    }
}

fn reply(reply: &Reply) -> String {
    let calls: Vec<String> = reply.calls().map(title).collect();
    let text = visible_text(&reply.blocks);
    let text = if text.is_empty() { String::new() } else { format!(" {text:?}") };
    let calls = if calls.is_empty() { String::new() } else { format!(" {}", calls.join(" ")) };
    format!("{}{text}{calls}", stop(&reply.stop))
}

pub fn record(record: &Record) -> String {
    let kind = record.kind();
    let rest = match record {
        Record::Opened(opened) => format!("epoch {}", opened.epoch),
        Record::AttemptStart(start) => {
            let way = if start.streamed { "" } else { " in one piece" };
            format!("{}.{}{way}", start.request, start.attempt)
        }
        Record::AttemptEnd(end) => {
            let how = end.failure.as_ref().map_or("ok".to_owned(), |failure| failure.fault.name().to_owned());
            format!("{}.{} {how}", end.request, end.attempt)
        }
        Record::Budget(budget) => {
            let cap = budget.max_tokens.map(|cap| format!(" cap {cap}")).unwrap_or_default();
            let model = budget.model.as_ref().map(|model| format!(" to {model}")).unwrap_or_default();
            let say = budget.say.as_ref().map(|say| format!(" saying {say:?}")).unwrap_or_default();
            let transition = budget.transition.name();
            format!("{} ({transition}) {} ms{cap}{model}{say}", budget.rule, budget.after_ms)
        }
        Record::Discarded(discarded) => format!("{} characters: {}", discarded.shown, discarded.reason),
        Record::AssistantCommitted(committed) => reply(&committed.reply),
        Record::CallRefused(refused) => format!("{:?} {}", refused.why, result(&refused.result)),
        Record::Intent(intent) => format!("{} {} {}", intent.op, intent.class.name(), intent.title),
        Record::Permission(permission) => {
            let verdict = if permission.allowed { "allowed" } else { "denied" };
            format!("{} {verdict} by {}", permission.op, permission.by)
        }
        Record::Started(started) => format!("{} attempt {}", started.op, started.attempt),
        Record::Outcome(outcome) => {
            format!("{} {:?} {}", outcome.op, outcome.status, result(&outcome.result))
        }
        Record::Unknown(unknown) => format!("{} {}", unknown.op, unknown.why),
        Record::Resolved(resolved) => format!("{} {:?} by {}", resolved.op, resolved.verdict, resolved.by),
        Record::Detached(detached) => format!("{} {}", detached.op, detached.task),
        Record::Dropped(dropped) => format!("{:?}", dropped.feature),
        Record::TurnEnd(end) => {
            let at = end.resumes_at.as_ref().map(|at| format!(", on at {at}")).unwrap_or_default();
            let error = end.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
            format!("{}{error}{at}", end.reason.name())
        }
        _ => String::new(),
    };
    if rest.is_empty() { kind.to_owned() } else { format!("{kind} {rest}") }
}

fn run(run: &RunStep) -> String {
    format!("{} {}", run.op, run.title)
}

fn step_id(id: &StepId) -> String {
    match id {
        StepId::Attempt { request, attempt } => format!("attempt {request}.{attempt}"),
        StepId::Wait { request, attempt } => format!("wait {request}.{attempt}"),
        StepId::Prepare(_) => "prepare".into(),
        StepId::Ask(op) => format!("ask {op}"),
        StepId::Run(op) => format!("run {op}"),
        StepId::Look(op) => format!("look {op}"),
    }
}

fn step(step: &Step) -> String {
    match step {
        Step::Attempt { request, attempt, ask, fresh_connection, .. } => {
            let fresh = if *fresh_connection { " on a new connection" } else { "" };
            format!("attempt {request}.{attempt}{fresh}: {}", request_line(ask))
        }
        Step::Wait { request, attempt, ms } => format!("wait {request}.{attempt} {ms} ms"),
        Step::Prepare { call } => format!("prepare {}", title(call)),
        Step::Ask { op, title, .. } => format!("ask {op} {title}"),
        Step::Run(one) => format!("run {}", run(one)),
        Step::Look { run: one, wait } => format!("look {}{}", run(one), if *wait { ", waiting" } else { "" }),
        Step::Cancel(id) => format!("cancel {}", step_id(id)),
    }
}

fn request_line(ask: &Request) -> String {
    let messages: Vec<String> = ask.messages.iter().map(|message| said(message)).collect();
    let mut dress = Vec::new();
    if ask.model != "m" {
        dress.push(format!("model {}", ask.model));
    }
    if ask.max_tokens != 32_000 {
        dress.push(format!("cap {}", ask.max_tokens));
    }
    for (is_off, name) in [
        (!ask.streamed, "in one piece"),
        (!ask.cached, "not cached"),
        (ask.thinking == yaoki_core::request::Thinking::Off, "no thinking"),
    ] {
        if is_off {
            dress.push(name.into());
        }
    }
    let dress = if dress.is_empty() { String::new() } else { format!(" [{}]", dress.join(", ")) };
    format!("{}{dress}", messages.join(" | "))
}

/// A message in a few characters: who, and how many parts, calls or results.
fn said(message: &ViewMessage) -> String {
    match message {
        ViewMessage::User { .. } => "user".into(),
        ViewMessage::Assistant { blocks, .. } => format!("model {}", blocks.len()),
        ViewMessage::Results { results, .. } => format!("results {}", results.len()),
    }
}

fn event(event: &Event) -> String {
    match event {
        Event::Accepted { .. } => "accepted".into(),
        Event::Asking { request, attempt, .. } => format!("asking {request}.{attempt}"),
        Event::Text { piece, .. } => format!("text {piece:?}"),
        Event::Thinking { piece, .. } => format!("thinking {piece:?}"),
        Event::CallForming { tool, .. } => format!("call forming: {tool}"),
        Event::Withdrawn { shown, reason, .. } => format!("withdrawn {shown}: {reason}"),
        Event::Committed { .. } => "committed".into(),
        Event::Retrying { retry, retries_max, after_ms, rule, .. } => {
            format!("retrying {retry}/{retries_max} in {after_ms} ms by {rule}")
        }
        Event::Recovering { rule, text, .. } => format!("recovering by {rule}: {text}"),
        Event::RequestFailed { attempts, failure, .. } => {
            format!("request failed: {} after {attempts}", failure.label())
        }
        Event::CallStarted { op, title, .. } => format!("started {op} {title}"),
        Event::CallOutput { op, piece } => format!("output {op} {piece:?}"),
        Event::CallEnded { op, status, .. } => format!("ended {op} {status:?}"),
        Event::CallRefused { title, why, .. } => format!("refused {title} {why:?}"),
        Event::OutcomeUnknown { op, title, .. } => format!("outcome unknown {op} {title}"),
        Event::Detached { op, task, .. } => format!("detached {op} {task}"),
        Event::Notice { text, .. } => format!("notice {text:?}"),
        Event::TurnEnded(summary) => {
            let denials = summary.denials.len();
            let denials = if denials == 0 { String::new() } else { format!(", {denials} denied") };
            format!(
                "turn ended {} {:?}, {} rounds{denials}",
                summary.reason.name(),
                summary.text,
                summary.rounds
            )
        }
    }
}
