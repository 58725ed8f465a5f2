//! One attempt at one request: send, listen, and say how it ended. It never loops.
//!
//! Promises: exactly one HTTP exchange; every wait has a limit; time is tokio's, so that a paused clock drives
//! it; cancelling ends it at once. What was heard on the way is data for onlookers, never a result.
//! Deliberately not here: waiting before a resend, and the choice to resend.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use yaoki_core::fault::{Cut, Evidence, Failure, Fault, Silence};
use yaoki_core::message::Reply;
use yaoki_core::mutant;
use yaoki_core::record::AttemptTiming;
use yaoki_core::request::Request;
use yaoki_core::step::{AttemptReport, Delta};

use crate::anthropic::assemble::{Assembler, Broken, is_error_body, read_plain};
use crate::anthropic::classify::{self, Seen};
use crate::anthropic::encode::Encoder;
use crate::anthropic::{API_VERSION, MESSAGES_PATH};
use crate::endpoint::{Credential, Endpoint};
use crate::sse::{self, Decoder};
use crate::transport::{HttpAnswer, HttpAsk, Method, Transport, TransportError, find_header};
use crate::watch::{BodyEnd, Watch, drain};

/// Of an error's body, no more than this is read.
const ERROR_BYTES_MAX: usize = 64 << 10;

/// The watchdogs of one attempt, and the size of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Until the headers of a streamed answer.
    pub first_byte_ms: u64,
    /// Until the headers of an unstreamed answer, which come when it is complete.
    pub first_byte_unstreamed_ms: u64,
    /// Between two pieces of the body.
    pub idle_ms: u64,
    /// Between two pieces of content: pings do not count.
    pub content_idle_ms: u64,
    pub body_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            first_byte_ms: 60_000,
            first_byte_unstreamed_ms: 600_000,
            idle_ms: 90_000,
            content_idle_ms: 300_000,
            body_bytes_max: 256 << 20,
        }
    }
}

/// What one attempt sends, and how.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    pub endpoint: &'a Endpoint,
    pub ask: &'a Request,
    /// Sent as `x-client-request-id`.
    pub client_id: &'a str,
    /// Use no pooled connection.
    pub fresh: bool,
    pub limits: Limits,
    /// Seconds since 1970, for a `Retry-After` date when the answer has no `Date`.
    pub wall_s: Option<u64>,
}

/// Performs one attempt. Every way it can end is in the report; deltas go to `hear` as they come.
pub async fn attempt(
    transport: &dyn Transport,
    encoder: &Encoder,
    what: Attempt<'_>,
    hear: &mut (dyn FnMut(Delta) + Send),
    cancel: &CancellationToken,
) -> AttemptReport {
    let began = Instant::now();
    let mut run =
        Run { what, authority: what.endpoint.authority(), began, first_byte: None, request_id: None };
    let result = run.exchange(transport, encoder, hear, cancel).await;
    if let Ok(reply) = &result {
        encoder.learn_served(&what.ask.model, &reply.origin.model);
    }
    AttemptReport {
        result,
        timing: AttemptTiming {
            first_byte_ms: run.first_byte.map(|at| ms(at - began)),
            total_ms: ms(began.elapsed()),
        },
        request_id: run.request_id,
    }
}

/// One attempt under way.
struct Run<'a> {
    what: Attempt<'a>,
    authority: String,
    began: Instant,
    first_byte: Option<Instant>,
    request_id: Option<String>,
}

impl Run<'_> {
    async fn exchange(
        &mut self,
        transport: &dyn Transport,
        encoder: &Encoder,
        hear: &mut (dyn FnMut(Delta) + Send),
        cancel: &CancellationToken,
    ) -> Result<Reply, Failure> {
        if cancel.is_cancelled() {
            return Err(cancelled());
        }
        let ask = self.http_ask(encoder);
        let limit_ms = match self.what.ask.streamed {
            true => self.what.limits.first_byte_ms,
            false => self.what.limits.first_byte_unstreamed_ms,
        };
        let answer = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(cancelled()),
            answer = transport.send(ask) => answer,
            () = sleep_until(self.began + Duration::from_millis(limit_ms)) => {
                let message = format!("no answer within {limit_ms} ms");
                let evidence = Evidence { message, ..Evidence::default() };
                return Err(Failure { fault: Fault::NoAnswer { cause: Silence::Timeout }, evidence });
            }
        };
        let answer =
            answer.map_err(|error| classify::transport(&error, self.what.endpoint.credential.secret()))?;
        self.first_byte = Some(Instant::now());
        self.request_id = ["request-id", "x-request-id"]
            .iter()
            .find_map(|name| find_header(&answer.headers, name))
            .map(str::to_owned);
        match (answer.status, media_type(&answer).as_str()) {
            (200..=299, "text/event-stream") => self.read_stream(answer, hear, cancel).await,
            (200..=299, _) => self.read_whole(answer, hear, cancel).await,
            _ => self.read_error(answer, cancel).await,
        }
    }

    fn http_ask(&self, encoder: &Encoder) -> HttpAsk {
        let endpoint = self.what.endpoint;
        let (key, value) = match &endpoint.credential {
            Credential::ApiKey(secret) => ("x-api-key", secret.expose().to_owned()),
            Credential::Bearer(secret) => ("authorization", format!("Bearer {}", secret.expose())),
        };
        let accept = if self.what.ask.streamed { "text/event-stream" } else { "application/json" };
        let mut headers = vec![
            ("content-type".to_owned(), "application/json".to_owned()),
            ("accept".to_owned(), accept.to_owned()),
            ("user-agent".to_owned(), endpoint.user_agent.clone()),
            ("anthropic-version".to_owned(), API_VERSION.to_owned()),
            (key.to_owned(), value),
            ("x-client-request-id".to_owned(), self.what.client_id.to_owned()),
        ];
        if !endpoint.betas.is_empty() {
            headers.push(("anthropic-beta".to_owned(), endpoint.betas.join(",")));
        }
        headers.extend(endpoint.headers.iter().cloned());
        HttpAsk {
            method: Method::Post,
            url: endpoint.url(MESSAGES_PATH),
            headers,
            body: encoder.encode(self.what.ask, &self.authority),
            fresh: self.what.fresh,
        }
    }

    async fn read_stream(
        &self,
        mut answer: HttpAnswer,
        hear: &mut (dyn FnMut(Delta) + Send),
        cancel: &CancellationToken,
    ) -> Result<Reply, Failure> {
        let headers = std::mem::take(&mut answer.headers);
        let limits = self.what.limits;
        let mut decoder = Decoder::new(limits.body_bytes_max.min(sse::EVENT_BYTES_MAX));
        let mut assembler = Assembler::new(&self.authority, &self.what.ask.model);
        let mut clock = Watch::start(limits);
        let mut events = Vec::new();
        let mut head = Vec::new();
        let mut bytes_read = 0usize;
        loop {
            let chunk = match clock.next(&mut answer, cancel).await {
                Ok(chunk) => chunk,
                Err(_) if mutant!("wire-cut-stream-is-whole") && assembler.has_begun() => {
                    return Ok(assembler.as_it_is());
                }
                Err(end) => return Err(self.stream_failure(end, &headers, &head)),
            };
            bytes_read = bytes_read.saturating_add(chunk.len());
            if head.len() < 256 {
                head.extend_from_slice(&chunk[..chunk.len().min(256)]);
            }
            let decoded = decoder.push(&chunk, &mut events);
            // What was complete before the error counts: it may be the end of the message.
            for event in events.drain(..) {
                let progressed =
                    assembler.take(&event, hear).map_err(|broken| self.broken(broken, None, &headers))?;
                clock.progress(progressed);
                if assembler.is_complete() {
                    drain(&mut answer).await;
                    return assembler.finish().map_err(|broken| self.broken(broken, None, &headers));
                }
            }
            if let Err(error) = decoded {
                return Err(self.cut(Cut::Protocol, &error.to_string(), &headers));
            }
            if limits.body_bytes_max < bytes_read {
                return Err(self.cut(Cut::Protocol, "the stream is larger than allowed", &headers));
            }
        }
    }

    fn stream_failure(&self, end: BodyEnd, headers: &[(String, String)], head: &[u8]) -> Failure {
        let limits = self.what.limits;
        let head = String::from_utf8_lossy(head);
        match end {
            BodyEnd::Cancelled => cancelled(),
            BodyEnd::Failed(error) => self.transport_failure(&error),
            BodyEnd::Idle => self.cut(Cut::Idle, &format!("no bytes for {} ms", limits.idle_ms), headers),
            BodyEnd::OnlyPings => {
                let why = format!("nothing new for {} ms", limits.content_idle_ms);
                self.cut(Cut::OnlyPings, &why, headers)
            }
            BodyEnd::End if head.trim_start().is_empty() || head.trim_start().starts_with('<') => {
                classify::not_the_api(self.seen(Some(200), headers, &head), "a stream without events")
            }
            BodyEnd::End => self.cut(Cut::Ended, "the stream ended before message_stop", headers),
        }
    }

    async fn read_whole(
        &self,
        mut answer: HttpAnswer,
        hear: &mut (dyn FnMut(Delta) + Send),
        cancel: &CancellationToken,
    ) -> Result<Reply, Failure> {
        let media_type = media_type(&answer);
        let headers = std::mem::take(&mut answer.headers);
        let status = Some(answer.status);
        let (body, end) = self.read_body(&mut answer, self.what.limits.body_bytes_max, cancel).await;
        match end {
            BodyEnd::End => {}
            BodyEnd::Cancelled => return Err(cancelled()),
            BodyEnd::Failed(error) => return Err(self.transport_failure(&error)),
            BodyEnd::Idle | BodyEnd::OnlyPings => {
                return Err(self.cut(Cut::Idle, "the answer stalled", &headers));
            }
        }
        let text = String::from_utf8_lossy(&body);
        let seen = self.seen(status, &headers, &text);
        if text.trim().is_empty() {
            return Err(classify::not_the_api(seen, "an empty answer"));
        }
        if !media_type.is_empty() && media_type != "application/json" {
            return Err(classify::not_the_api(seen, &format!("an answer of type {media_type}")));
        }
        if body.len() > self.what.limits.body_bytes_max {
            return Err(self.cut(Cut::Protocol, "the answer is larger than allowed", &headers));
        }
        if is_error_body(&text) {
            return Err(classify::classify(seen));
        }
        if !text.trim_start().starts_with('{') {
            return Err(classify::not_the_api(seen, "an answer that is no JSON object"));
        }
        match read_plain(&self.authority, &self.what.ask.model, &text, hear) {
            Ok(reply) => Ok(reply),
            Err(Broken::Cut { cause: Cut::Protocol, why }) => Err(classify::not_the_api(seen, &why)),
            Err(broken) => Err(self.broken(broken, status, &headers)),
        }
    }

    async fn read_error(&self, mut answer: HttpAnswer, cancel: &CancellationToken) -> Result<Reply, Failure> {
        let headers = std::mem::take(&mut answer.headers);
        // An error whose body breaks off is still that error.
        let (body, end) = self.read_body(&mut answer, ERROR_BYTES_MAX, cancel).await;
        if matches!(end, BodyEnd::Cancelled) {
            return Err(cancelled());
        }
        let text = String::from_utf8_lossy(&body);
        Err(classify::classify(self.seen(Some(answer.status), &headers, &text)))
    }

    /// Reads up to a byte more than `cap`.
    async fn read_body(
        &self,
        answer: &mut HttpAnswer,
        cap: usize,
        cancel: &CancellationToken,
    ) -> (Vec<u8>, BodyEnd) {
        let mut clock = Watch::start(self.what.limits);
        let mut body = Vec::new();
        loop {
            match clock.next(answer, cancel).await {
                Ok(chunk) => {
                    clock.progress(!chunk.is_empty());
                    let room = cap.saturating_add(1).saturating_sub(body.len());
                    body.extend_from_slice(&chunk[..chunk.len().min(room)]);
                    if cap < body.len() {
                        return (body, BodyEnd::End);
                    }
                }
                Err(end) => return (body, end),
            }
        }
    }

    fn broken(&self, broken: Broken, status: Option<u16>, headers: &[(String, String)]) -> Failure {
        match broken {
            Broken::Cut { cause, why } => self.cut(cause, &why, headers),
            Broken::Error { body } => classify::classify(self.seen(status, headers, &body)),
        }
    }

    fn cut(&self, cause: Cut, why: &str, headers: &[(String, String)]) -> Failure {
        classify::cut(self.seen(None, headers, ""), cause, why)
    }

    fn transport_failure(&self, error: &TransportError) -> Failure {
        let mut failure = classify::transport(error, self.what.endpoint.credential.secret());
        failure.evidence.request_id.clone_from(&self.request_id);
        failure
    }

    fn seen<'s>(&'s self, status: Option<u16>, headers: &'s [(String, String)], body: &'s str) -> Seen<'s> {
        let secret = self.what.endpoint.credential.secret();
        Seen { status, headers, body, wall_s: self.what.wall_s, secret }
    }
}

fn cancelled() -> Failure {
    Failure { fault: Fault::Cancelled, evidence: Evidence::default() }
}

/// Returns the content type without its parameters, in lower case; empty where there is none.
fn media_type(answer: &HttpAnswer) -> String {
    let told = find_header(&answer.headers, "content-type").unwrap_or("");
    told.split(';').next().unwrap_or("").trim().to_ascii_lowercase()
}

fn ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
