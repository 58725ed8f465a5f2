//! Things of the domain, made with few words.

use yaoki_core::effects::EffectClass;
use yaoki_core::fault::{Cut, Evidence, Failure, Fault, Feature, NotSent, Silence};
use yaoki_core::json::RawJson;
use yaoki_core::message::{Block, BlockBody, Call, CallResult, Origin, Reply, StopReason, Usage, no_call_id};
use yaoki_core::record::{AttemptTiming, OutcomeStatus, Refusal};
use yaoki_core::step::{AttemptReport, Judgement, Plan, PrepareVerdict, RunReport};

pub fn reply(stop: StopReason, blocks: Vec<Block>) -> Reply {
    Reply {
        provider_id: "msg".into(),
        origin: Origin { format: "anthropic".into(), endpoint: "http://lab".into(), model: "m".into() },
        blocks,
        stop,
        usage: Usage { input: 100, output: 20, ..Usage::default() },
    }
}

pub fn text(words: &str) -> Block {
    Block { body: BlockBody::Text { text: words.into() }, raw: None }
}

pub fn thought() -> Block {
    Block { body: BlockBody::Thinking { text: "hm".into() }, raw: None }
}

/// A call of `tool` whose input is `{"x": arg}`.
pub fn call(tool: &str, arg: &str, is_broken: bool) -> Block {
    let call = Call {
        id: no_call_id(),
        provider_id: format!("toolu_{tool}_{arg}"),
        tool: tool.into(),
        input: if is_broken { RawJson::empty_object() } else { RawJson::of(&Input { x: arg }) },
        broken: is_broken.then(|| "expected `}` at column 9".into()),
    };
    Block { body: BlockBody::Call(call), raw: None }
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Input<'a> {
    #[serde(borrow)]
    x: &'a str,
}

/// `Bash(ls)`.
pub fn title(call: &Call) -> String {
    let arg = serde_json::from_str::<Input>(call.input.get()).map_or("?", |input| input.x);
    format!("{}({arg})", call.tool)
}

pub fn answered(reply: Reply) -> AttemptReport {
    AttemptReport { result: Ok(reply), timing: AttemptTiming::default(), request_id: None }
}

pub fn failed(fault: Fault, should_retry: Option<bool>) -> AttemptReport {
    let failure = Failure { fault, evidence: Evidence { should_retry, ..Evidence::default() } };
    AttemptReport { result: Err(failure), timing: AttemptTiming::default(), request_id: None }
}

/// The fault of a short name, with the wait the server named.
pub fn fault(name: &str, wait_ms: Option<u64>) -> Fault {
    match name {
        "cancelled" => Fault::Cancelled,
        "refused" => Fault::NotSent { cause: NotSent::Refused },
        "stale" => Fault::StaleConnection,
        "silent" => Fault::NoAnswer { cause: Silence::Timeout },
        "cut" => Fault::Cut { cause: Cut::Reset },
        "529" => Fault::Overloaded { wait_ms },
        "429" => Fault::RateLimited { wait_ms },
        "500" => Fault::Server { status: Some(500), wait_ms },
        "html" => Fault::NotTheApi { wait_ms },
        "quota" => Fault::Quota { resets_at: None },
        "401" => Fault::Auth,
        "404" => Fault::ModelGone,
        "400" => Fault::Invalid,
        "history" => Fault::HistoryBug,
        "too_long" => Fault::TooLong,
        "cap" => Fault::OutputCap { room: Some(20_000) },
        "cap?" => Fault::OutputCap { room: None },
        "cache" => Fault::FeatureRefused { feature: Feature::CacheControl },
        "stream" => Fault::FeatureRefused { feature: Feature::Streaming },
        "thinking" => Fault::FeatureRefused { feature: Feature::Thinking },
        "beta" => Fault::FeatureRefused { feature: Feature::Beta },
        other => panic!("no fault is called {other:?}"),
    }
}

/// So many of the first of them do not end a turn.
pub const CURABLE: usize = 13;

/// All names that `fault` knows.
pub const FAULTS: &[&str] = &[
    "529",
    "cut",
    "stale",
    "429",
    "refused",
    "silent",
    "500",
    "html",
    "cap",
    "cache",
    "stream",
    "thinking",
    "beta",
    "cancelled",
    "quota",
    "401",
    "404",
    "400",
    "history",
    "too_long",
    "cap?",
];

pub fn ready(call: &Call, class: EffectClass, permission: Judgement, version: u64) -> PrepareVerdict {
    PrepareVerdict::Ready(Plan {
        class,
        title: title(call),
        input: call.input.clone(),
        canonical: call.input.get().to_owned(),
        pre: Some(RawJson::of(&version)),
        permission,
    })
}

pub fn refused(call: &Call, why: Refusal, words: &str, version: u64) -> PrepareVerdict {
    PrepareVerdict::Refused {
        why,
        title: title(call),
        result: CallResult::error(format!("{words} @{version}")),
    }
}

pub fn ended(status: OutcomeStatus, words: String) -> RunReport {
    let is_error = status != OutcomeStatus::Success;
    let result = if is_error { CallResult::error(words) } else { CallResult::ok(words) };
    RunReport::Ended { status, result, post: None, took_ms: 7 }
}
