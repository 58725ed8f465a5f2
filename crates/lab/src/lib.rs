//! A scripted model server that speaks Anthropic Messages, as strict as the real one, with a fault menu.
//!
//! Promises: the same script and the same requests give the same bytes. [`Lab::answer`] touches no socket, clock,
//! environment or dice: it returns a [`Plan`], a list of timed pieces that the real server ([`serve`]) and the
//! simulator both just play.
//!
//! Deliberately absent: a second way to answer. What the simulator hears is what a socket would carry.

mod ask;
mod catalog;
mod compose;
mod corpus;

mod deliver;
mod encode;
mod examples;
mod lab;
mod log;
mod report;
mod request;
mod script;
#[cfg(feature = "serve")]
pub mod serve;
mod sign;
mod status;
mod strict;
mod trouble;

pub use ask::{HttpAsk, Plan, Play};
pub use corpus::{CorpusStream, corpus};

pub use examples::{example, examples};
pub use lab::Lab;
pub use report::{LogEntry, Refusal, Report, StepReport, Verdict};
pub use script::{
    Answer, AtEnd, Block, Body, Chunk, Defaults, Deliver, Fault, Holds, How, Limits, ModelRow, Place, Repeat,
    RetryAfter, Script, ScriptError, ServerTool, StatusFault, Step, ToolCall, Usage, script_schema,
};
