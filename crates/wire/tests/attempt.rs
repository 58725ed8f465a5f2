//! One attempt over a scripted transport and a paused clock.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use yaoki_core::fault::{Cut, Fault, NotSent, Silence};
use yaoki_core::ids::MessageId;
use yaoki_core::message::{Part, ViewMessage};
use yaoki_core::request::{Context, Request, Thinking, ToolChoice};
use yaoki_core::step::{AttemptReport, Delta};
use yaoki_wire::anthropic::encode::Encoder;
use yaoki_wire::attempt::{Attempt, Limits, attempt};
use yaoki_wire::endpoint::{Credential, Endpoint, Secret};
use yaoki_wire::transport::{HttpAnswer, HttpAsk, Phase, Transport, TransportError, TransportKind};

const KEY: &str = "sk-ant-very-secret";

/// What the other side does next.
#[derive(Clone)]
enum Act {
    Wait(u64),
    Head(u16, &'static str),
    /// A head with further headers.
    HeadWith(u16, Vec<(&'static str, &'static str)>),
    Say(String),
    Fail(Phase, TransportKind, bool),
    /// Says it again every so many milliseconds, for ever.
    Forever(u64, &'static str),
    Hang,
}

struct Scripted {
    acts: Vec<Act>,
    asks: Arc<Mutex<Vec<HttpAsk>>>,
}

fn failure(phase: Phase, kind: TransportKind, stale: bool) -> TransportError {
    TransportError { phase, kind, stale, message: format!("broke, key {KEY}") }
}

impl Transport for Scripted {
    fn send(&self, ask: HttpAsk) -> BoxFuture<'_, Result<HttpAnswer, TransportError>> {
        self.asks.lock().unwrap().push(ask);
        let mut acts: VecDeque<Act> = self.acts.clone().into();
        async move {
            loop {
                let (status, pairs) = match acts.pop_front() {
                    Some(Act::Wait(ms)) => {
                        sleep(Duration::from_millis(ms)).await;
                        continue;
                    }
                    Some(Act::Fail(phase, kind, stale)) => return Err(failure(phase, kind, stale)),
                    Some(Act::Head(status, media)) => (status, vec![("content-type", media)]),
                    Some(Act::HeadWith(status, pairs)) => (status, pairs),
                    _ => std::future::pending().await,
                };
                let mut headers: Vec<(String, String)> =
                    pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
                headers.push(("request-id".into(), "req_1".into()));
                return Ok(HttpAnswer { status, headers, body: stream::unfold(acts, play).boxed() });
            }
        }
        .boxed()
    }
}

async fn play(mut acts: VecDeque<Act>) -> Option<(Result<Bytes, TransportError>, VecDeque<Act>)> {
    loop {
        match acts.pop_front()? {
            Act::Wait(ms) => sleep(Duration::from_millis(ms)).await,
            Act::Say(text) => return Some((Ok(Bytes::from(text)), acts)),
            Act::Fail(phase, kind, stale) => return Some((Err(failure(phase, kind, stale)), acts)),
            Act::Forever(ms, text) => {
                if 0 < ms {
                    sleep(Duration::from_millis(ms)).await;
                }
                acts.push_front(Act::Forever(ms, text));
                return Some((Ok(Bytes::from_static(text.as_bytes())), acts));
            }
            Act::Hang | Act::Head(..) | Act::HeadWith(..) => std::future::pending().await,
        }
    }
}

struct Heard {
    report: AttemptReport,
    deltas: Vec<Delta>,
    asks: Vec<HttpAsk>,
    took_ms: u128,
}

impl Heard {
    fn fault(&self) -> &Fault {
        &self.report.result.as_ref().expect_err("the attempt fails").fault
    }

    fn message(&self) -> &str {
        &self.report.result.as_ref().expect_err("the attempt fails").evidence.message
    }
}

fn request(streamed: bool) -> Request {
    Request {
        model: "claude-test-1".into(),
        context: Arc::new(Context { system: vec![], tools: vec![] }),
        messages: vec![Arc::new(ViewMessage::User {
            id: MessageId::new("m1"),
            parts: vec![Part::text("Hi")],
        })],
        max_tokens: 100,
        thinking: Thinking::Off,
        tool_choice: ToolChoice::Auto,
        streamed,
        cached: true,
        signed: true,
    }
}

async fn run(streamed: bool, acts: Vec<Act>) -> Heard {
    run_with(streamed, acts, &CancellationToken::new(), &endpoint()).await
}

fn endpoint() -> Endpoint {
    Endpoint::new("https://api.anthropic.com", Credential::ApiKey(Secret::new(KEY)))
}

/// An attempt can be a task of its own.
fn must_send<F: Future + Send>(future: F) -> F {
    future
}

async fn run_with(streamed: bool, acts: Vec<Act>, cancel: &CancellationToken, endpoint: &Endpoint) -> Heard {
    let asks = Arc::new(Mutex::new(Vec::new()));
    let transport = Scripted { acts, asks: asks.clone() };
    let ask = request(streamed);
    let what = Attempt {
        endpoint,
        ask: &ask,
        client_id: "client-1",
        fresh: false,
        limits: Limits::default(),
        wall_s: None,
    };
    let mut deltas = Vec::new();
    let began = Instant::now();
    let encoder = Encoder::new();
    let mut hear = |delta| deltas.push(delta);
    let report = must_send(attempt(&transport, &encoder, what, &mut hear, cancel)).await;
    let took_ms = began.elapsed().as_millis();
    let asks = std::mem::take(&mut *asks.lock().unwrap());
    assert!(!format!("{report:?}").contains(KEY), "no report holds the key");
    assert!(asks.len() <= 1, "one attempt sends once");
    Heard { report, deltas, asks, took_ms }
}

const SSE: &str = "text/event-stream; charset=utf-8";
const JSON: &str = "application/json";
const PING: &str = "event: ping\ndata: {\"type\":\"ping\"}\n\n";

fn event(kind: &str, members: &str) -> String {
    format!("event: {kind}\ndata: {{\"type\":\"{kind}\"{members}}}\n\n")
}

fn start() -> String {
    event(
        "message_start",
        r#","message":{"id":"msg_1","type":"message","model":"claude-test-1","content":[],"usage":{"input_tokens":7,"output_tokens":1}}"#,
    )
}

fn text_block() -> String {
    [
        event("content_block_start", r#","index":0,"content_block":{"type":"text","text":""}"#),
        event("content_block_delta", r#","index":0,"delta":{"type":"text_delta","text":"Hello"}"#),
        event("content_block_stop", r#","index":0"#),
    ]
    .concat()
}

fn end() -> String {
    event("message_delta", r#","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}"#)
        + &event("message_stop", "")
}

fn whole() -> String {
    start() + &text_block() + &end()
}

#[tokio::test(start_paused = true)]
async fn a_streamed_answer_is_heard_and_returned() {
    let acts = vec![Act::Wait(250), Act::Head(200, SSE), Act::Wait(50), Act::Say(whole())];
    let heard = run(true, acts).await;
    let reply = heard.report.result.as_ref().unwrap();
    assert_eq!(reply.text(), "Hello");
    assert_eq!((reply.usage.input, reply.usage.output), (7, 5));
    assert_eq!(reply.origin.endpoint, "https://api.anthropic.com");
    assert_eq!(heard.deltas, [Delta::Text("Hello".into())]);
    assert_eq!(heard.report.timing.first_byte_ms, Some(250));
    assert_eq!(heard.report.timing.total_ms, 300);
    assert_eq!(heard.report.request_id.as_deref(), Some("req_1"));
    let ask = &heard.asks[0];
    assert_eq!(ask.url, "https://api.anthropic.com/v1/messages");
    for (name, want) in [
        ("content-type", Some("application/json")),
        ("accept", Some("text/event-stream")),
        ("anthropic-version", Some("2023-06-01")),
        ("x-api-key", Some(KEY)),
        ("authorization", None),
        ("anthropic-beta", None),
        ("x-client-request-id", Some("client-1")),
    ] {
        assert_eq!(ask.header(name), want, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_bearer_token_betas_and_headers_of_a_gateway_are_sent() {
    let endpoint = Endpoint {
        betas: vec!["one".into(), "two".into()],
        headers: vec![("x-team".into(), "blue".into())],
        ..Endpoint::new("http://127.0.0.1:9/api/", Credential::Bearer(Secret::new(KEY)))
    };
    let acts = vec![Act::Head(200, SSE), Act::Say(whole())];
    let heard = run_with(true, acts, &CancellationToken::new(), &endpoint).await;
    let ask = &heard.asks[0];
    assert_eq!(ask.url, "http://127.0.0.1:9/api/v1/messages");
    assert_eq!(ask.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(ask.header("x-api-key"), None);
    assert_eq!(ask.header("anthropic-beta"), Some("one,two"));
    assert_eq!(ask.header("x-team"), Some("blue"));
}

#[tokio::test(start_paused = true)]
async fn a_plain_answer_is_taken_whether_or_not_a_stream_was_asked_for() {
    let body = r#"{"type":"message","id":"msg_1","content":[{"type":"text","text":"Hello"}],"stop_reason":"end_turn","usage":{"input_tokens":7,"output_tokens":5}}"#;
    for streamed in [false, true] {
        let heard = run(streamed, vec![Act::Head(200, JSON), Act::Say(body.into())]).await;
        assert_eq!(heard.report.result.unwrap().text(), "Hello");
        assert_eq!(heard.deltas, [Delta::Text("Hello".into())]);
        let sent: serde_json::Value = serde_json::from_slice(&heard.asks[0].body).unwrap();
        assert_eq!(sent.get("stream").is_some(), streamed);
    }
}

#[tokio::test(start_paused = true)]
async fn each_silence_has_its_limit() {
    let some = || start() + PING;
    for (streamed, acts, want, ms) in [
        (true, vec![Act::Hang], Fault::NoAnswer { cause: Silence::Timeout }, 60_000),
        (false, vec![Act::Hang], Fault::NoAnswer { cause: Silence::Timeout }, 600_000),
        (true, vec![Act::Head(200, SSE), Act::Hang], Fault::Cut { cause: Cut::Idle }, 90_000),
        (
            true,
            vec![Act::Head(200, SSE), Act::Wait(80_000), Act::Say(some()), Act::Hang],
            Fault::Cut { cause: Cut::Idle },
            170_000,
        ),
        (
            true,
            vec![Act::Head(200, SSE), Act::Say(some()), Act::Forever(10_000, PING)],
            Fault::Cut { cause: Cut::OnlyPings },
            300_000,
        ),
        (
            true,
            vec![Act::Head(200, SSE), Act::Say(some()), Act::Forever(10_000, ": still here\n\n")],
            Fault::Cut { cause: Cut::OnlyPings },
            300_000,
        ),
        (false, vec![Act::Head(200, JSON), Act::Hang], Fault::Cut { cause: Cut::Idle }, 90_000),
    ] {
        let heard = run(streamed, acts).await;
        assert_eq!(heard.fault(), &want);
        assert_eq!(heard.took_ms, ms, "{want:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_stream_that_makes_progress_has_no_limit() {
    let mut acts = vec![Act::Head(200, SSE), Act::Say(start())];
    acts.push(Act::Say(event(
        "content_block_start",
        r#","index":0,"content_block":{"type":"text","text":""}"#,
    )));
    for _ in 0..100 {
        acts.push(Act::Wait(89_000));
        acts.push(Act::Say(event(
            "content_block_delta",
            r#","index":0,"delta":{"type":"text_delta","text":"a"}"#,
        )));
    }
    acts.push(Act::Say(event("content_block_stop", r#","index":0"#) + &end()));
    let heard = run(true, acts).await;
    assert_eq!(heard.report.result.unwrap().text(), "a".repeat(100));
}

#[tokio::test(start_paused = true)]
async fn what_fails_below_http_is_told_by_its_phase() {
    use Phase::*;
    use TransportKind::*;
    for (phase, kind, stale, want) in [
        (Connect, Refused, false, Fault::NotSent { cause: NotSent::Refused }),
        (Connect, Reset, false, Fault::NotSent { cause: NotSent::Reset }),
        (Connect, Timeout, false, Fault::NotSent { cause: NotSent::Timeout }),
        (Connect, Other, false, Fault::NotSent { cause: NotSent::Other }),
        (Dns, Other, false, Fault::NotSent { cause: NotSent::Dns }),
        (Tls, Protocol, false, Fault::NotSent { cause: NotSent::Tls }),
        (BeforeAnswer, Reset, true, Fault::StaleConnection),
        (BeforeAnswer, Reset, false, Fault::NoAnswer { cause: Silence::Reset }),
        (BeforeAnswer, Timeout, false, Fault::NoAnswer { cause: Silence::Timeout }),
    ] {
        let heard = run(true, vec![Act::Fail(phase, kind, stale)]).await;
        assert_eq!(heard.fault(), &want);
        assert_eq!(heard.message(), "broke, key [key]");
    }
    for (kind, want) in
        [(Reset, Cut::Reset), (Ended, Cut::Ended), (Protocol, Cut::Protocol), (Timeout, Cut::Idle)]
    {
        let acts = vec![Act::Head(200, SSE), Act::Say(start()), Act::Fail(Body, kind, false)];
        assert_eq!(run(true, acts).await.fault(), &Fault::Cut { cause: want });
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_not_whole_or_not_in_order_is_cut() {
    let block = |index: u32| {
        event(
            "content_block_start",
            &format!(r#","index":{index},"content_block":{{"type":"text","text":""}}"#),
        )
    };
    let stop = |index: u32| event("content_block_stop", &format!(r#","index":{index}"#));
    let delta =
        |kind: &str| event("content_block_delta", &format!(r#","index":0,"delta":{{"type":{kind}}}"#));
    for (body, want) in [
        (start() + &text_block(), Cut::Ended),
        (start() + &text_block() + end().trim_end(), Cut::Ended),
        (start() + &start(), Cut::Protocol),
        (text_block(), Cut::Protocol),
        (end(), Cut::Protocol),
        (start() + &event("message_stop", ""), Cut::Protocol),
        (start() + &block(0) + &end(), Cut::Protocol),
        (start() + &block(1), Cut::Protocol),
        (start() + &block(0) + &block(0), Cut::Protocol),
        (start() + &block(0) + &block(1), Cut::Protocol),
        (start() + &block(0) + &stop(1), Cut::Protocol),
        (start() + &block(0) + &stop(0) + &stop(0), Cut::Protocol),
        (start() + &block(0) + &stop(0) + &block(0), Cut::Protocol),
        (start() + &block(0) + &stop(0) + &delta(r#""text_delta","text":"late""#), Cut::Protocol),
        (start() + &block(0) + &delta(r#""input_json_delta","partial_json":"{}""#), Cut::Protocol),
        (start() + "event: content_block_start\ndata: {nonsense\n\n", Cut::Protocol),
        (start() + "data: \u{0}\n\n", Cut::Protocol),
    ] {
        let heard = run(true, vec![Act::Head(200, SSE), Act::Say(body.clone())]).await;
        assert_eq!(heard.fault(), &Fault::Cut { cause: want }, "{body}");
        assert_eq!(heard.report.request_id.as_deref(), Some("req_1"));
    }
}

#[tokio::test(start_paused = true)]
async fn events_and_words_not_known_yet_are_passed_over() {
    let body = start()
        + "event: novelty\ndata: not json\n\n"
        + &event("novelty", r#","index":"none""#)
        + &text_block()
        + &end()
        + "event: message_stop\ndata: {twice\n\n";
    let heard = run(true, vec![Act::Head(200, SSE), Act::Say(body)]).await;
    assert_eq!(heard.report.result.unwrap().text(), "Hello");
}

#[tokio::test(start_paused = true)]
async fn an_error_within_a_stream_is_classified_like_a_status() {
    for (kind, want) in [
        ("overloaded_error", Fault::Overloaded { wait_ms: Some(2_000) }),
        ("rate_limit_error", Fault::RateLimited { wait_ms: Some(2_000) }),
        ("api_error", Fault::Server { status: None, wait_ms: Some(2_000) }),
        ("timeout_error", Fault::Server { status: None, wait_ms: Some(2_000) }),
        ("novel_error", Fault::Server { status: None, wait_ms: Some(2_000) }),
        ("authentication_error", Fault::Auth),
        ("invalid_request_error", Fault::Invalid),
    ] {
        let error = format!(r#","error":{{"type":"{kind}","message":"no, {KEY}"}}"#);
        let head = vec![("content-type", SSE), ("retry-after", "2")];
        let acts = vec![Act::HeadWith(200, head), Act::Say(start() + &event("error", &error))];
        let heard = run(true, acts).await;
        assert_eq!(heard.fault(), &want, "{kind}");
        let evidence = &heard.report.result.as_ref().unwrap_err().evidence;
        assert_eq!((evidence.status, evidence.code.as_deref()), (None, Some(kind)));
        assert_eq!(evidence.message, "no, [key]");
    }
}

#[tokio::test(start_paused = true)]
async fn a_good_status_with_a_body_that_is_not_the_apis_is_not_the_api() {
    let html = "<html><title>Please log in</title></html>";
    for (streamed, media, body) in [
        (true, "text/html", html),
        (true, SSE, html),
        (true, SSE, ""),
        (true, "text/plain", "event: ping\n\n"),
        (false, "text/html", html),
        (false, JSON, html),
        (false, JSON, ""),
        (false, JSON, "[]"),
        (false, JSON, r#"{"ok":true}"#),
    ] {
        let heard = run(streamed, vec![Act::Head(200, media), Act::Say(body.into())]).await;
        assert_eq!(heard.fault(), &Fault::NotTheApi { wait_ms: None }, "{media} {body}");
    }
    let heard = run(true, vec![Act::Head(200, "text/html"), Act::Say(html.into())]).await;
    assert_eq!(heard.message(), "an answer of type text/html: Please log in");
}

#[tokio::test(start_paused = true)]
async fn a_plain_answer_that_breaks_off_is_cut_and_an_error_in_it_is_that_error() {
    let body = r#"{"type":"message","id":"msg_1","content":[{"type":"te"#;
    let heard = run(false, vec![Act::Head(200, JSON), Act::Say(body.into())]).await;
    assert_eq!(heard.fault(), &Fault::Cut { cause: Cut::Ended });
    let body = r#"{"type":"error","error":{"type":"overloaded_error","message":"later"}}"#;
    let heard = run(false, vec![Act::Head(200, JSON), Act::Say(body.into())]).await;
    assert_eq!(heard.fault(), &Fault::Overloaded { wait_ms: None });
}

#[tokio::test(start_paused = true)]
async fn an_error_status_is_told_even_if_its_body_breaks_off_or_stalls() {
    let some = Act::Say(r#"{"type":"error","error":{"ty"#.into());
    for rest in [Act::Fail(Phase::Body, TransportKind::Reset, false), Act::Hang] {
        let heard = run(true, vec![Act::Head(529, JSON), some.clone(), rest]).await;
        assert_eq!(heard.fault(), &Fault::Overloaded { wait_ms: None });
    }
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_the_attempt_at_once_wherever_it_is() {
    let text = || start() + &text_block();
    for acts in [
        vec![Act::Hang],
        vec![Act::Head(200, SSE), Act::Hang],
        vec![Act::Head(200, SSE), Act::Say(text()), Act::Forever(10, PING)],
        vec![Act::Head(200, JSON), Act::Hang],
        vec![Act::Head(500, JSON), Act::Hang],
    ] {
        let cancel = CancellationToken::new();
        let token = cancel.clone();
        let timer = async {
            sleep(Duration::from_millis(1_234)).await;
            token.cancel();
        };
        let endpoint = endpoint();
        let (heard, ()) = tokio::join!(run_with(true, acts, &cancel, &endpoint), timer);
        assert_eq!(heard.fault(), &Fault::Cancelled);
        assert_eq!(heard.took_ms, 1_234);
    }
    let cancel = CancellationToken::new();
    cancel.cancel();
    let heard = run_with(true, vec![Act::Head(200, SSE), Act::Say(whole())], &cancel, &endpoint()).await;
    assert_eq!(heard.fault(), &Fault::Cancelled);
    assert!(heard.asks.is_empty(), "what was cancelled before is not sent");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_stays_open_after_the_end_costs_a_moment_only() {
    let heard = run(true, vec![Act::Head(200, SSE), Act::Say(whole()), Act::Hang]).await;
    assert_eq!(heard.report.result.unwrap().text(), "Hello");
    assert!(heard.took_ms <= 20, "{}", heard.took_ms);
    let heard = run(true, vec![Act::Head(200, SSE), Act::Say(whole()), Act::Forever(0, PING)]).await;
    assert_eq!(heard.report.result.unwrap().text(), "Hello");
}
