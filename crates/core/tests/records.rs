//! The format of records: each kind reads back as it was, and prints as it always did.
//!
//! `records.jsonl` holds what format 1 looks like. A line in it never changes; new kinds and members add lines.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::value::RawValue;
use yaoki_core::effects::EffectClass;
use yaoki_core::fault::{Cut, Evidence, Failure, Fault, Feature, NotSent, Silence};
use yaoki_core::ids::{CallId, MessageId, OpId, SessionId};
use yaoki_core::json::RawJson;
use yaoki_core::message::{
    Block, BlockBody, Call, CallResult, Media, Origin, Part, Reply, StopReason, Usage, no_call_id,
};
use yaoki_core::record::*;
use yaoki_core::request::{Context, Thinking, ToolSpec};
use yaoki_core::terminal::{TerminalReason, Transition};

/// A text that parsing and printing would change.
const RAW: &str = r#"{"a": 1.0e5,"b":"\u00e9", "n":-0, "big":123456789012345678901234567890,"a":2}"#;

#[derive(serde::Serialize, serde::Deserialize)]
struct Line<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    data: &'a RawValue,
}

fn raw() -> RawJson {
    RawJson::parse(RAW).unwrap()
}

fn session() -> SessionId {
    SessionId::new("0190aaaa-0000-7000-8000-000000000001")
}

fn failure(fault: Fault) -> Failure {
    let evidence = Evidence {
        status: Some(529),
        code: Some("overloaded_error".into()),
        message: "Overloaded \u{e9} \u{2028}\n".into(),
        request_id: Some("req_1".into()),
        should_retry: Some(true),
    };
    Failure { fault, evidence }
}

fn faults() -> Vec<Fault> {
    let mut faults = vec![
        Fault::Cancelled,
        Fault::StaleConnection,
        Fault::Overloaded { wait_ms: None },
        Fault::RateLimited { wait_ms: Some(1_200) },
        Fault::Server { status: Some(503), wait_ms: Some(3_000) },
        Fault::Server { status: None, wait_ms: None },
        Fault::NotTheApi { wait_ms: None },
        Fault::Quota { resets_at: Some("2026-12-01T00:00:00Z".into()) },
        Fault::Auth,
        Fault::ModelGone,
        Fault::Invalid,
        Fault::HistoryBug,
        Fault::TooLong,
        Fault::OutputCap { room: Some(20_000) },
        Fault::OutputCap { room: None },
        Fault::OutputCut { has_calls: true },
        Fault::MalformedCall,
        Fault::PrintedCall,
        Fault::NothingVisible,
        Fault::Paused,
        Fault::Refused,
        Fault::ToolLoop { rounds: 3, are_errors: true },
    ];
    let causes =
        [NotSent::Refused, NotSent::Reset, NotSent::Dns, NotSent::Tls, NotSent::Timeout, NotSent::Other];
    faults.extend(causes.map(|cause| Fault::NotSent { cause }));
    faults.extend([Silence::Reset, Silence::Timeout].map(|cause| Fault::NoAnswer { cause }));
    let cuts = [Cut::Reset, Cut::Ended, Cut::Idle, Cut::OnlyPings, Cut::Protocol];
    faults.extend(cuts.map(|cause| Fault::Cut { cause }));
    let features = [
        Feature::CacheControl,
        Feature::Streaming,
        Feature::Thinking,
        Feature::Beta,
        Feature::SignedThinking,
    ];
    faults.extend(features.map(|feature| Fault::FeatureRefused { feature }));
    faults
}

fn reply(stop: StopReason) -> Reply {
    let origin = Origin { format: "anthropic".into(), endpoint: "https://x:1".into(), model: "m".into() };
    let call = Call {
        id: no_call_id(),
        provider_id: "toolu_1".into(),
        tool: "Bash".into(),
        input: raw(),
        broken: Some("expected `,` at line 1 column 9".into()),
    };
    let image = Media { media_type: "image/png".into(), data: "aGVq".into() };
    let bodies = [
        BlockBody::Thinking { text: "hm".into() },
        BlockBody::Text { text: "tab\there, quote \" and \u{1f600}".into() },
        BlockBody::Call(call),
        BlockBody::Media(image),
        BlockBody::Other { name: "server_tool_use".into() },
    ];
    let blocks = bodies.map(|body| Block { body, raw: Some(raw()) });
    let usage = Usage { input: 1, output: 2, cache_read: 3, cache_write: 4 };
    Reply { provider_id: "msg_1".into(), origin, blocks: blocks.into(), stop, usage }
}

/// At least one of each kind, with every member there is and with as few as there may be.
fn samples() -> Vec<Record> {
    let (op, call, message) = (OpId(17), CallId::new("c1"), MessageId::new("m1"));
    let result = CallResult {
        parts: vec![
            Part::text("out"),
            Part::Media(Media { media_type: "image/png".into(), data: "aGVq".into() }),
        ],
        is_error: true,
    };
    let parts = vec![Part::text("go"), result.parts[1].clone()];
    let header = Header {
        format: 1,
        session: session(),
        created: "2026-11-30T00:00:00.000Z".into(),
        cwd: "/repo".into(),
        yaoki: "0.1.0".into(),
        key: "00ff".into(),
        parent: Some(session()),
    };
    let tool = ToolSpec { name: "Read".into(), description: "Reads.".into(), schema: raw() };
    let start = AttemptStart {
        request: 3,
        attempt: 2,
        model: "m".into(),
        endpoint: "https://x:1".into(),
        client_id: "id".into(),
        streamed: true,
        body: Some("0011".into()),
    };
    let intent = Intent {
        op,
        call: call.clone(),
        tool: "Bash".into(),
        class: EffectClass::Unknown,
        title: "Bash(ls)".into(),
        input: raw(),
        key: "aa".into(),
        digest: "bb".into(),
        pre: Some(raw()),
    };
    let budget = Budget {
        request: 3,
        attempt: 2,
        rule: "busy".into(),
        fault: "overloaded".into(),
        transition: Transition::RequestRetry,
        after_ms: 500,
        max_tokens: Some(19_000),
        model: None,
        say: None,
    };
    let end = AttemptEnd {
        request: 3,
        attempt: 2,
        failure: None,
        timing: AttemptTiming { first_byte_ms: Some(120), total_ms: 900 },
        request_id: Some("req_1".into()),
        served: Some("m-1".into()),
        usage: Some(reply(StopReason::EndTurn).usage),
    };
    let permission = Permission { op, allowed: true, by: "rule".into(), epoch: 2, reason: None };
    let outcome =
        Outcome { op, status: OutcomeStatus::Success, result: result.clone(), post: Some(raw()), took_ms: 7 };
    let turn_end = TurnEnd { reason: TerminalReason::Completed, error: None, resumes_at: None };

    let mut all: Vec<Record> = vec![
        header.clone().into(),
        Header { parent: None, ..header }.into(),
        Opened { epoch: 2, yaoki: "0.1.0".into(), cwd: "/repo".into() }.into(),
        ContextSet { context: Context { system: vec!["Be brief.".into()], tools: vec![tool] } }.into(),
        Switched::default().into(),
        InputGiven { parts: parts.clone(), uuid: Some("u".into()), max_turns: Some(9) }.into(),
        InputGiven { parts, uuid: None, max_turns: None }.into(),
        AttemptStart { body: None, streamed: false, ..start.clone() }.into(),
        start.into(),
        AttemptEnd {
            request_id: None,
            served: None,
            usage: None,
            timing: AttemptTiming::default(),
            ..end.clone()
        }
        .into(),
        Budget { max_tokens: None, ..budget.clone() }.into(),
        budget.clone().into(),
        Discarded { request: 3, attempt: 2, shown: 40, reason: "529 overloaded".into() }.into(),
        Permission { allowed: false, reason: Some("no".into()), ..permission.clone() }.into(),
        permission.into(),
        Started { op, attempt: 1 }.into(),
        Beat { op, progress: "half".into() }.into(),
        Outcome { post: None, result: CallResult::ok(""), ..outcome.clone() }.into(),
        Unknown { op, why: "the machine lost power".into(), result: result.clone() }.into(),
        Detached { op, task: "bash_3".into(), result: result.clone() }.into(),
        Moved { leaf: Some(message.clone()), reason: "rewind".into() }.into(),
        Moved { leaf: None, reason: "rewind".into() }.into(),
        Gap { seq_from: 4, seq_to: 9 }.into(),
        Repaired { what: "a torn tail of 12 bytes was set aside".into() }.into(),
        Todo { items: raw() }.into(),
        Notice { text: "a notice".into() }.into(),
        Budget {
            rule: "continuation".into(),
            transition: Transition::MaxOutputTokensRecovery,
            max_tokens: None,
            say: Some("Go on.".into()),
            ..budget.clone()
        }
        .into(),
        Budget { rule: "fallback".into(), max_tokens: None, model: Some("b".into()), ..budget.clone() }
            .into(),
        TurnEnd {
            error: Some("why".into()),
            resumes_at: Some("2026-12-01T02:00:00.000Z".into()),
            ..turn_end.clone()
        }
        .into(),
        Intent { pre: None, ..intent.clone() }.into(),
    ];
    all.extend([Thinking::Off, Thinking::Adaptive, Thinking::Budget(1_024)].map(|thinking| {
        let name = |text: &str| Some(text.to_owned());
        let thinking = Some(thinking);
        let permission_mode = name("plan");
        Switched { model: name("m"), max_tokens: Some(8), max_tokens_model: None, thinking, permission_mode }
            .into()
    }));
    all.extend(
        faults().into_iter().map(|fault| AttemptEnd { failure: Some(failure(fault)), ..end.clone() }.into()),
    );
    let least = Failure { fault: Fault::Auth, evidence: Evidence::default() };
    all.push(AttemptEnd { failure: Some(least), ..end }.into());
    let stops = [
        StopReason::EndTurn,
        StopReason::ToolUse,
        StopReason::MaxTokens,
        StopReason::StopSequence,
        StopReason::PauseTurn,
        StopReason::Refusal,
        StopReason::ContextWindow,
        StopReason::Other("new".into()),
    ];
    all.extend(
        stops.map(|stop| {
            AssistantCommitted { message: message.clone(), request: 3, reply: reply(stop) }.into()
        }),
    );
    let refusals = [
        Refusal::UnknownTool,
        Refusal::InvalidInput,
        Refusal::Precondition,
        Refusal::Denied,
        Refusal::Truncated,
        Refusal::NotStarted,
        Refusal::Lost,
    ];
    all.extend(refusals.map(|why| CallRefused { call: call.clone(), why, result: result.clone() }.into()));
    let classes = [
        EffectClass::Pure,
        EffectClass::Idempotent,
        EffectClass::Reversible,
        EffectClass::Irreversible,
        EffectClass::Unknown,
    ];
    all.extend(classes.map(|class| Intent { class, ..intent.clone() }.into()));
    let statuses = [
        OutcomeStatus::Success,
        OutcomeStatus::FailedClean,
        OutcomeStatus::FailedPartial,
        OutcomeStatus::CancelledClean,
        OutcomeStatus::CancelledPartial,
    ];
    all.extend(statuses.map(|status| Outcome { status, ..outcome.clone() }.into()));
    let verdicts = [Verdict::Happened, Verdict::Not, Verdict::Again];
    all.extend(verdicts.map(|verdict| Resolved { op, by: "probe".into(), verdict }.into()));
    let features = faults().into_iter().filter_map(|fault| match fault {
        Fault::FeatureRefused { feature } => Some(feature),
        _ => None,
    });
    all.extend(features.map(|feature| Dropped { feature }.into()));
    all.extend(
        TerminalReason::ALL.iter().map(|reason| TurnEnd { reason: *reason, ..turn_end.clone() }.into()),
    );
    all.extend(Transition::ALL.iter().map(|way| Budget { transition: *way, ..budget.clone() }.into()));
    all
}

fn line(record: &Record) -> String {
    let data = record.data();
    let data = serde_json::from_str(&data).unwrap();
    serde_json::to_string(&Line { kind: record.kind(), data }).unwrap()
}

fn golden() -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/records.jsonl");
    if std::env::var_os("YAOKI_BLESS").is_some() {
        let lines: Vec<String> = samples().iter().map(line).collect();
        std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    }
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn every_record_of_the_format_reads_and_prints_as_it_always_did() {
    let mut kinds = BTreeSet::new();
    for text in golden().lines() {
        let Line { kind, data } = serde_json::from_str(text).unwrap();
        let record = Record::parse(kind, data.get()).unwrap().unwrap();
        assert_eq!(record.kind(), kind);
        assert_eq!(record.data(), data.get());
        kinds.insert(kind.to_owned());
    }
    let all: BTreeSet<String> = Record::KINDS.iter().map(|kind| (*kind).to_owned()).collect();
    assert_eq!(kinds, all, "a kind is missing from records.jsonl");
}

#[test]
fn every_shape_of_a_record_reads_back_equal() {
    for record in samples() {
        let data = record.data();
        assert!(!data.contains('\n'), "{data}");
        let again = Record::parse(record.kind(), &data).unwrap().unwrap();
        assert_eq!(again, record);
        assert_eq!(again.data(), data);
    }
}

#[test]
fn every_shape_of_a_record_is_in_the_golden_file() {
    let golden = golden();
    let known: BTreeSet<&str> = golden.lines().collect();
    for record in samples() {
        let line = line(&record);
        assert!(known.contains(line.as_str()), "not in records.jsonl: {line}");
    }
}

#[test]
fn raw_json_goes_through_a_record_byte_for_byte() {
    let committed =
        AssistantCommitted { message: MessageId::new("m1"), request: 1, reply: reply(StopReason::ToolUse) };
    let record = Record::from(committed);
    assert_eq!(record.data().matches(RAW).count(), 6, "five blocks and one input");
    let Some(Record::AssistantCommitted(again)) = Record::parse(record.kind(), &record.data()).unwrap()
    else {
        panic!("it is what it was");
    };
    for block in &again.reply.blocks {
        assert_eq!(block.raw.as_ref().unwrap().get(), RAW);
    }
    assert_eq!(again.reply.calls().next().unwrap().input.get(), RAW);
}

#[test]
fn unknown_members_are_allowed_and_unknown_kinds_are_not() {
    let with_more = r#"{"op":"op17","attempt":1,"new_member":{"x":[1]}}"#;
    let started = Record::parse("started", with_more).unwrap();
    assert_eq!(started, Some(Started { op: OpId(17), attempt: 1 }.into()));
    let end = r#"{"request":1,"attempt":1,"total_ms":5,"new_member":{"x":[1]}}"#;
    assert!(matches!(Record::parse("attempt_end", end), Ok(Some(Record::AttemptEnd(_)))));
    assert!(matches!(Record::parse("x_metrics", "17"), Ok(None)));
    assert!(matches!(Record::parse("sealed", "{}"), Err(RecordError::Kind(_))));
    assert!(matches!(Record::parse("started", "{}"), Err(RecordError::Body { .. })));
}
