//! The lab: takes requests, decides what each will hear, remembers what was asked.

use crate::ask::{HttpAsk, Plan, Play};
use crate::catalog::{model, models};
use crate::compose::{Ids, compose};
use crate::deliver::{JSON, deliver_body, deliver_json, deliver_stream};
use crate::log::{Log, masked};
use crate::report::{LogEntry, Refusal, Report, StepReport, Verdict};
use crate::request::Request;
use crate::script::{Answer, AtEnd, Deliver, Fault, Repeat, Script, StatusFault, Step};
use crate::status;
use crate::strict::{self, Route};
use crate::trouble::Trouble;
use serde_json::{Value, json};
use std::sync::Arc;

/// A model server without a socket.
///
/// Holds the position in the script; whoever serves it takes one request at a time.
#[derive(Debug, Clone)]
pub struct Lab {
    script: Arc<Script>,
    known: strict::Known,
    /// How often each step may still be taken; none means always.
    left: Vec<Option<u32>>,
    /// Steps before this one are gone.
    position: usize,
    asks: u64,
    ids: Ids,
    report: Report,
    log: Log,
}

/// An answer on its way into the log.
struct Decided {
    plays: Vec<Play>,
    verdict: Verdict,
}

impl Lab {
    /// Returns a lab at the first step.
    ///
    /// A script made in code is not checked as [`Script::parse`] does; a step without an answer says `…`.
    pub fn new(script: Script) -> Self {
        let label = |(index, step): (usize, &Step)| match step.label.as_str() {
            "" => format!("step {}", index + 1),
            label => label.to_owned(),
        };
        let fault = |step: &Step| step.fault.as_ref().map(Fault::name);
        let steps = script.steps.iter().enumerate();
        let steps = steps.map(|(i, step)| StepReport {
            label: label((i, step)),
            fault: fault(step),
            ..StepReport::default()
        });
        let left = |step: &Step| match step.repeat {
            Repeat::Times(count) => Some(count),
            Repeat::Always => None,
        };
        Self {
            known: strict::Known::of(&script),
            left: script.steps.iter().map(left).collect(),
            position: 0,
            asks: 0,
            ids: Ids::default(),
            report: Report { script: script.name.clone(), steps: steps.collect(), ..Report::default() },
            log: Log::default(),
            script: Arc::new(script),
        }
    }

    /// Decides what a request will hear, and moves on in the script.
    pub fn answer(&mut self, ask: &HttpAsk) -> Plan {
        self.asks += 1;
        self.report.requests = self.asks;
        let mut body = Value::Null;
        let decided = match self.check(ask, &mut body) {
            Ok(Route::Messages) => self.step(ask, &body),
            Ok(Route::CountTokens) => {
                let tokens = Request { body: &body, bytes: ask.body.len() }.tokens();
                self.other(ask, json!({ "input_tokens": tokens }))
            }
            Ok(Route::Models) => self.other(ask, models(&self.script)),
            Ok(Route::Model(id)) => match model(&self.script, &id) {
                Some(row) => self.other(ask, row),
                None => self.refuse(ask, Trouble::of(404, format!("model: {id}"))),
            },
            Err(trouble) => self.refuse(ask, trouble),
        };
        self.remember(ask, body, &decided);
        Plan { ask: self.asks, plays: decided.plays }
    }

    /// Notes how the playing of an answer ended: whole, or left by the client.
    pub fn played(&mut self, ask: u64, whole: bool) {
        self.log.played(ask, whole);
    }

    /// Returns how the script has gone so far.
    pub fn report(&self) -> Report {
        self.report.clone()
    }

    /// Returns the requests so far, oldest first; only the last [`Lab::LOG_ENTRIES_MAX`] are kept.
    pub fn log(&self) -> Vec<LogEntry> {
        self.log.entries().cloned().collect()
    }

    /// Returns the same without a copy.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &LogEntry> {
        self.log.entries()
    }

    /// Returns the script.
    pub fn script(&self) -> &Script {
        &self.script
    }

    /// Entries that the log keeps.
    pub const LOG_ENTRIES_MAX: usize = Log::ENTRIES_MAX;

    fn check(&self, ask: &HttpAsk, body: &mut Value) -> Result<Route, Trouble> {
        let route = strict::route(ask, &self.script)?;
        if matches!(route, Route::Messages | Route::CountTokens) {
            *body = strict::body(ask, &self.script)?;
            if self.script.strict {
                strict::check(body, &route, &self.script, &self.known)?;
            }
            strict::fits(body, ask.body.len(), &route, &self.script)?;
        }
        Ok(route)
    }

    fn step(&mut self, ask: &HttpAsk, body: &Value) -> Decided {
        let request = Request { body, bytes: ask.body.len() };
        let script = Arc::clone(&self.script);
        let index = match self.take(&script, &request) {
            Some(index) => index,
            None => match (&script.at_end, script.steps.len()) {
                (AtEnd::RepeatLast, count) if count > 0 => count - 1,
                (AtEnd::Answer(answer), _) => {
                    return self.say(ask, &request, answer, None, &Deliver::default(), None);
                }
                (AtEnd::Error | AtEnd::RepeatLast, _) => return self.exhausted(ask, &script, &request),
            },
        };
        let step = &script.steps[index];
        self.report.steps[index].asked += 1;
        if let Some(why) = step.expect.as_ref().and_then(|expect| expect.why_not(&request)) {
            return self.violation(ask, index, why);
        }
        let way = step.deliver.as_ref().unwrap_or(&NO_WAY);
        if let Some(plays) = step.fault.as_ref().and_then(|fault| self.instead(ask, fault, way)) {
            return self.served(plays, true, step.fault.as_ref().map(Fault::name), Some(index));
        }
        let filler = Answer::text("…");
        let answer = step.answer.as_ref().unwrap_or(&filler);
        self.say(ask, &request, answer, step.fault.as_ref(), way, Some(index))
    }

    /// Takes the first step that is left and whose `when` holds.
    ///
    /// Steps stepped over stay, unless the script is `in_order`.
    fn take(&mut self, script: &Script, request: &Request) -> Option<usize> {
        let holds = |index: &usize| {
            self.left[*index] != Some(0)
                && script.steps[*index].when.as_ref().is_none_or(|when| when.why_not(request).is_none())
        };
        let index = (self.position..script.steps.len()).find(holds)?;
        if let Some(left) = &mut self.left[index] {
            *left -= 1;
        }
        if script.in_order {
            self.position = index;
        }
        while self.left.get(self.position) == Some(&Some(0)) {
            self.position += 1;
        }
        Some(index)
    }

    fn say(
        &mut self,
        ask: &HttpAsk,
        request: &Request,
        answer: &Answer,
        fault: Option<&Fault>,
        way: &Deliver,
        index: Option<usize>,
    ) -> Decided {
        let message = compose(answer, request, &self.script.defaults, &mut self.ids);
        let way = over(way, &self.script.defaults.deliver);
        let headers = self.headers(ask);
        let deliver = if request.is_streamed() { deliver_stream } else { deliver_json };
        let delivered = deliver(&message, &way, fault, headers);
        self.report.answered += 1;
        let name = fault.filter(|_| delivered.fired).map(Fault::name);
        self.served(delivered.plays, delivered.fired, name, index)
    }

    /// Returns the plays of a fault that stands instead of an answer; none for one that happens to an answer.
    fn instead(&self, ask: &HttpAsk, fault: &Fault, way: &Deliver) -> Option<Vec<Play>> {
        let way = over(way, &self.script.defaults.deliver);
        let play = match fault {
            Fault::Status(status) => return Some(self.status(ask, status, &way)),
            Fault::Refuse => Play::Refuse,
            Fault::Closed { for_ms } => Play::Closed { for_ms: *for_ms },
            Fault::Reset => Play::Reset,
            Fault::Silent => Play::Stall,
            Fault::Cut { .. }
            | Fault::Stall { .. }
            | Fault::PingOnly { .. }
            | Fault::Drip { .. }
            | Fault::Error { .. }
            | Fault::Duplicate { .. }
            | Fault::Drop { .. }
            | Fault::Garbage { .. }
            | Fault::Unknown { .. }
            | Fault::ContentType(_)
            | Fault::EmptyBody => return None,
        };
        Some(way.late_ms.map(Play::WaitMs).into_iter().chain([play]).collect())
    }

    fn served(
        &mut self,
        plays: Vec<Play>,
        fired: bool,
        fault: Option<&'static str>,
        index: Option<usize>,
    ) -> Decided {
        let Some(index) = index else {
            return Decided { plays, verdict: Verdict::Step { label: "at_end".into(), fault } };
        };
        let step = &mut self.report.steps[index];
        step.fired |= fired;
        Decided { plays, verdict: Verdict::Step { label: step.label.clone(), fault } }
    }

    fn status(&self, ask: &HttpAsk, fault: &StatusFault, way: &Deliver) -> Vec<Play> {
        let (body, content_type) = status::body(fault, &self.request_id());
        let mut headers = self.headers(ask);
        headers.extend(status::headers(fault, ask.wall_ms));
        deliver_body(fault.code, body, content_type, way, headers)
    }

    fn violation(&mut self, ask: &HttpAsk, index: usize, why: String) -> Decided {
        let label = self.report.steps[index].label.clone();
        self.report.steps[index].violations.push(format!("request {}: {why}", self.asks));
        let mut trouble = Trouble::invalid(format!("{label}: {why}"));
        trouble.kind = "lab_expectation".into();
        Decided { plays: self.trouble(ask, &trouble), verdict: Verdict::Violation { label, why } }
    }

    fn exhausted(&mut self, ask: &HttpAsk, script: &Script, request: &Request) -> Decided {
        self.report.unscripted += 1;
        let left =
            (0..script.steps.len()).filter(|index| self.left[*index] != Some(0) && *index >= self.position);
        let why: Vec<String> = left
            .filter_map(|i| Some((i, script.steps[i].when.as_ref()?.why_not(request)?)))
            .map(|(i, why)| format!("{}: {why}", self.report.steps[i].label))
            .collect();
        let message = match why.is_empty() {
            true => format!("the script is exhausted: all {} steps are used up", script.steps.len()),
            false => format!("the script is exhausted: no step that is left holds ({})", why.join("; ")),
        };
        let mut trouble = Trouble::invalid(message);
        trouble.kind = "lab_exhausted".into();
        Decided { plays: self.trouble(ask, &trouble), verdict: Verdict::Unscripted }
    }

    fn refuse(&mut self, ask: &HttpAsk, trouble: Trouble) -> Decided {
        if self.report.refused.len() < Log::ENTRIES_MAX {
            let message = trouble.to_note();
            self.report.refused.push(Refusal { ask: self.asks, status: trouble.status, message });
        }
        Decided { plays: self.trouble(ask, &trouble), verdict: Verdict::Refused { why: trouble.to_note() } }
    }

    fn other(&mut self, ask: &HttpAsk, body: Value) -> Decided {
        let way = over(&NO_WAY, &self.script.defaults.deliver);
        let plays = deliver_body(200, body.to_string().into_bytes(), JSON, &way, self.headers(ask));
        Decided { plays, verdict: Verdict::Other }
    }

    fn trouble(&self, ask: &HttpAsk, trouble: &Trouble) -> Vec<Play> {
        let body = trouble.to_body(&self.request_id()).to_string().into_bytes();
        deliver_body(trouble.status, body, JSON, &NO_WAY, self.headers(ask))
    }

    fn request_id(&self) -> String {
        format!("req_lab_{:04}", self.asks)
    }

    fn headers(&self, ask: &HttpAsk) -> Vec<(String, String)> {
        vec![("date".into(), status::http_date(ask.wall_ms)), ("request-id".into(), self.request_id())]
    }

    fn remember(&mut self, ask: &HttpAsk, body: Value, decided: &Decided) {
        let status = decided.plays.iter().find_map(|play| match play {
            Play::Head { status, .. } => Some(*status),
            _ => None,
        });
        self.log.push(LogEntry {
            ask: self.asks,
            at_ms: ask.at_ms,
            method: ask.method.to_owned(),
            path: ask.path.to_owned(),
            headers: masked(ask.headers),
            body,
            body_bytes: ask.body.len(),
            status,
            verdict: decided.verdict.clone(),
            played: None,
        });
    }
}

const NO_WAY: Deliver = Deliver {
    chunk: None,
    late_ms: None,
    gap_ms: None,
    delta_chars: None,
    pings: None,
    crlf: None,
    ascii: None,
};

/// Returns a step's way with the gaps filled from the defaults.
fn over(way: &Deliver, defaults: &Deliver) -> Deliver {
    Deliver {
        chunk: way.chunk.or(defaults.chunk),
        late_ms: way.late_ms.or(defaults.late_ms),
        gap_ms: way.gap_ms.or(defaults.gap_ms),
        delta_chars: way.delta_chars.or(defaults.delta_chars),
        pings: way.pings.or(defaults.pings),
        crlf: way.crlf.or(defaults.crlf),
        ascii: way.ascii.or(defaults.ascii),
    }
}
