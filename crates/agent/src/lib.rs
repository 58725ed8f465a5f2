//! Yaoki performs here: the loop, the tools and the runner. This is the library that people embed.
//!
//! ```no_run
//! # async fn example(config: yaoki::Config) -> Result<(), Box<dyn std::error::Error>> {
//! # #[cfg(all(feature = "http", feature = "tools"))] {
//! let ports = yaoki::Ports::standard(&config)?;
//! let mut agent = yaoki::Agent::create(config, ports).await?;
//! let summary = agent.prompt(vec![yaoki::core::message::Part::text("make the tests pass")], &mut |_| {}).await;
//! println!("{}", summary.text);
//! # }
//! # Ok(())
//! # }
//! ```
//!
//! Promises: one append-only log is the only truth of a session; no step is performed before the records it rests on
//! are written. Not here: what to do (core), how bytes are kept (store), how a model is spoken to (wire).

pub mod agent;
pub mod config;
mod drive;
pub mod executor;
mod journal;
pub mod mutants;
pub mod person;
mod prompt;
#[cfg(feature = "tools")]
pub mod runner;
pub mod sessions;
#[cfg(all(feature = "http", feature = "tools"))]
mod standard;
#[cfg(feature = "tools")]
pub mod tools;
pub mod world;

pub use agent::{Agent, Found, Interrupter, OpenError, Ports, Seat, Status, VERSION};
pub use config::{Config, DEFAULT_MODEL, Durability, PermissionMode};
pub use journal::{JournalError, LineError, to_record};
pub use person::{Answer, Nobody, Person, Question};
pub use prompt::Loaded;
#[cfg(feature = "tools")]
pub use runner::main_from_args as runner_main;
#[cfg(all(feature = "http", feature = "tools"))]
pub use standard::StartError;
pub use yaoki_core as core;
pub use yaoki_store as store;
pub use yaoki_wire as wire;

/// An error and its causes in one line.
pub fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Transparent wrappers repeat their cause.
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
