//! A request as the bytes of a Messages API body.
//!
//! Promises: a message is printed once and kept, so a round costs what is new; its bytes, and those of tools and
//! system, are the same from round to round but for `cache_control`. Neighbours of one role become one
//! message, so the roles alternate whatever was left out.
//! Deliberately not here: what is in a request. Nothing is added but what the API would refuse to miss.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use yaoki_core::ids::{CallId, MessageId};
use yaoki_core::message::ViewMessage;
use yaoki_core::mutant;
use yaoki_core::request::{Context, Request, Thinking, ToolChoice};

use super::FORMAT;
use super::members::{quote, tidy};
use super::render::{Fragment, Names, Role, render};
use crate::models::{self, is_same_model};

/// The API's least budget of thought.
const THINKING_TOKENS_MIN: u32 = 1_024;
/// Fragments of messages that are no longer shown are kept up to this many, then dropped together.
const SPARE_FRAGMENTS_MAX: usize = 256;
const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// Prints requests, and keeps what it printed of each message. Shared by the agents of a process.
#[derive(Debug, Default)]
pub struct Encoder {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    context: Option<(Arc<Context>, Printed)>,
    /// With the message each was printed from: a rule may leave out a part of a message and keep its id.
    fragments: HashMap<MessageId, (Arc<ViewMessage>, Arc<Fragment>)>,
    /// Models that served where another was asked for: a gateway's own names.
    served: Vec<(String, String)>,
}

/// Tools and system, each as `"name":[…]`, with the place of its mark; empty where there are none.
#[derive(Debug, Clone)]
struct Printed {
    tools: Marked,
    system: Marked,
}

#[derive(Debug, Clone, Default)]
struct Marked {
    json: Arc<str>,
    mark_at: usize,
}

impl Encoder {
    pub fn new() -> Self {
        Self::default()
    }

    /// Learns that `served` answers where `asked` is asked for, so that its signed blocks go back there.
    pub fn learn_served(&self, asked: &str, served: &str) {
        if is_same_model(asked, served) {
            return;
        }
        let mut kept = self.kept();
        if !kept.served.iter().any(|(a, s)| a == asked && s == served) {
            kept.served.push((asked.to_owned(), served.to_owned()));
        }
    }

    /// Returns the body. `authority` is the endpoint's scheme, host and port.
    pub fn encode(&self, ask: &Request, authority: &str) -> Bytes {
        let mut kept = self.kept();
        let printed = kept.printed(&ask.context);
        let fragments = kept.fragments(ask, authority);
        kept.forget_others(&ask.messages);
        drop(kept);

        let size: usize = fragments.iter().map(|fragment| fragment.json.len() + 64).sum();
        let mut out =
            String::with_capacity(size + printed.tools.json.len() + printed.system.json.len() + 512);
        // A fallback may have a lower limit than the model that the cap was chosen for.
        let known = models::facts(&ask.model);
        let max_tokens = if known.known { ask.max_tokens.min(known.output_max) } else { ask.max_tokens };
        write!(out, r#"{{"model":{},"max_tokens":{max_tokens}"#, quote(&ask.model))
            .expect("writing to a string cannot fail");
        for part in [&printed.tools, &printed.system] {
            if !part.json.is_empty() {
                out.push(',');
                push_marked(&mut out, &part.json, ask.cached.then_some(part.mark_at));
            }
        }
        if !ask.context.tools.is_empty() {
            out.push_str(&tool_choice(&ask.tool_choice));
        }
        if !(matches!(ask.thinking, Thinking::Budget(_)) && is_turn_without_thought(&fragments)) {
            out.push_str(&thinking(ask));
        }
        if ask.streamed {
            out.push_str(r#","stream":true"#);
        }
        out.push_str(r#","messages":["#);
        push_messages(&mut out, &fragments, ask.cached);
        out.push_str("]}");
        Bytes::from(out)
    }

    /// Returns the bytes that may not change from round to round: tools, system and messages, without cache
    /// marks and without the brackets that close the last message. A later round's begin with an earlier one's.
    pub fn prefix_bytes(&self, ask: &Request, authority: &str) -> Vec<u8> {
        let mut kept = self.kept();
        let printed = kept.printed(&ask.context);
        let fragments = kept.fragments(ask, authority);
        let mut out = format!("{},{},", printed.tools.json, printed.system.json);
        push_blocks(&mut out, &fragments, None);
        out.into_bytes()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // What is kept is whole between any two statements, so a panic elsewhere has not torn it.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn printed(&mut self, context: &Arc<Context>) -> Printed {
        match &self.context {
            Some((kept, printed)) if Arc::ptr_eq(kept, context) || kept == context => printed.clone(),
            _ => {
                let printed = Printed { tools: print_tools(context), system: print_system(context) };
                self.context = Some((context.clone(), printed.clone()));
                printed
            }
        }
    }

    /// Returns one fragment a message, in order; messages with nothing to show are left out.
    fn fragments(&mut self, ask: &Request, authority: &str) -> Vec<Arc<Fragment>> {
        let names = Names::of(&ask.messages);
        let mut all = Vec::with_capacity(ask.messages.len());
        for message in &ask.messages {
            let is_home = self.is_home(message, ask, authority);
            let renamed = names.renamed(message);
            let kept = self.fragments.get(message.id());
            let is_same = |(printed, fragment): &&(Arc<ViewMessage>, Arc<Fragment>)| {
                fragment.is_home == is_home
                    && fragment.is_signed == ask.signed
                    && fragment.renamed == renamed
                    && (Arc::ptr_eq(printed, message) || printed == message)
                    || mutant!("wire-fragments-never-renewed")
            };
            let fragment = match kept.filter(is_same) {
                Some((_, fragment)) => fragment.clone(),
                None => {
                    let fragment = Arc::new(render(message, is_home, ask.signed, renamed, &names));
                    self.fragments.insert(message.id().clone(), (message.clone(), fragment.clone()));
                    fragment
                }
            };
            if !fragment.json.is_empty() {
                all.push(fragment);
            }
        }
        all
    }

    /// Whether the message goes back to where it came from.
    fn is_home(&self, message: &ViewMessage, ask: &Request, authority: &str) -> bool {
        let ViewMessage::Assistant { origin, .. } = message else { return true };
        origin.format == FORMAT
            && origin.endpoint == authority
            && (is_same_model(&ask.model, &origin.model)
                || self.served.iter().any(|(asked, served)| *asked == ask.model && *served == origin.model))
    }

    fn forget_others(&mut self, shown: &[Arc<ViewMessage>]) {
        if self.fragments.len() <= shown.len() + SPARE_FRAGMENTS_MAX {
            return;
        }
        let shown: HashSet<&MessageId> = shown.iter().map(|message| message.id()).collect();
        self.fragments.retain(|id, _| shown.contains(id));
    }
}

fn push_messages(out: &mut String, fragments: &[Arc<Fragment>], cached: bool) {
    let marked = match cached {
        true => fragments.iter().rposition(|f| f.role == Role::User && f.mark_at.is_some()),
        false => None,
    };
    push_blocks(out, fragments, marked);
    if !fragments.is_empty() {
        out.push_str("]}");
    }
}

/// Prints all messages but for the end of the last; `marked` is the one whose last block gets the cache mark.
fn push_blocks(out: &mut String, fragments: &[Arc<Fragment>], marked: Option<usize>) {
    let mut role = None;
    for (index, fragment) in fragments.iter().enumerate() {
        match role {
            Some(last) if last == fragment.role => out.push(','),
            Some(_) => out.push_str("]},"),
            None => {}
        }
        if role != Some(fragment.role) {
            out.push_str(match fragment.role {
                Role::User => r#"{"role":"user","content":["#,
                Role::Assistant => r#"{"role":"assistant","content":["#,
            });
            role = Some(fragment.role);
        }
        push_marked(out, &fragment.json, fragment.mark_at.filter(|_| marked == Some(index)));
    }
}

fn push_marked(out: &mut String, json: &str, mark_at: Option<usize>) {
    match mark_at {
        Some(at) => {
            out.push_str(&json[..at]);
            out.push_str(MARK);
            out.push_str(&json[at..]);
        }
        None => out.push_str(json),
    }
}

fn print_tools(context: &Context) -> Marked {
    let tools = context.tools.iter().map(|tool| {
        let description = match tool.description.trim().is_empty() {
            true => String::new(),
            false => format!(r#","description":{}"#, quote(&tool.description)),
        };
        format!(r#"{{"name":{}{description},"input_schema":{}}}"#, quote(&tool.name), tidy(tool.schema.get()))
    });
    print_list("tools", tools.collect())
}

fn print_system(context: &Context) -> Marked {
    let blocks = context.system.iter().filter(|text| !text.trim().is_empty());
    print_list("system", blocks.map(|text| format!(r#"{{"type":"text","text":{}}}"#, quote(text))).collect())
}

fn print_list(name: &str, objects: Vec<String>) -> Marked {
    if objects.is_empty() {
        return Marked::default();
    }
    let json = format!(r#""{name}":[{}]"#, objects.join(","));
    // Before the brace of the last object and the bracket of the list.
    let mark_at = json.len() - 2;
    Marked { json: Arc::from(json), mark_at }
}

fn tool_choice(choice: &ToolChoice) -> String {
    match choice {
        ToolChoice::Auto => String::new(),
        ToolChoice::Any => r#","tool_choice":{"type":"any"}"#.to_owned(),
        ToolChoice::None => r#","tool_choice":{"type":"none"}"#.to_owned(),
        ToolChoice::Tool(name) => format!(r#","tool_choice":{{"type":"tool","name":{}}}"#, quote(name)),
    }
}

/// Leaves thinking out where the API refuses it: with a forced tool, or with no room for the least budget.
fn thinking(ask: &Request) -> String {
    if matches!(ask.tool_choice, ToolChoice::Any | ToolChoice::Tool(_)) {
        return String::new();
    }
    match ask.thinking {
        Thinking::Off => String::new(),
        Thinking::Adaptive => r#","thinking":{"type":"adaptive"}"#.to_owned(),
        Thinking::Budget(_) if ask.max_tokens <= THINKING_TOKENS_MIN => String::new(),
        Thinking::Budget(tokens) => {
            let tokens = tokens.clamp(THINKING_TOKENS_MIN, ask.max_tokens - 1);
            format!(r#","thinking":{{"type":"enabled","budget_tokens":{tokens}}}"#)
        }
    }
}

/// Whether calls are being answered in a turn that did not begin with a thought, or whose thoughts cannot be
/// sent (another model's, refused signatures). With a budget the API refuses to think on in such a turn.
fn is_turn_without_thought(fragments: &[Arc<Fragment>]) -> bool {
    let mut first_answer = None;
    for round in fragments.chunk_by(|a, b| a.role == b.role).rev() {
        match round[0].role {
            Role::Assistant => first_answer = Some(&round[0]),
            // The person spoke last, or this is where the turn began.
            Role::User if !round.iter().any(|fragment| fragment.is_results) => break,
            Role::User => {}
        }
    }
    first_answer.is_some_and(|answer| !answer.starts_in_thought)
}

/// Returns the id by which the API will know a call whose own id is taken or not fit to send.
pub(super) fn derived_id(call: &CallId) -> String {
    let mut id = String::from("toolu_");
    id.extend(call.as_str().chars().filter(char::is_ascii_alphanumeric));
    id
}
