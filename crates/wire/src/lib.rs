//! Yaoki translates here: requests into a model API's bytes, and its answers, streams and errors back.
//!
//! Promises: one call of [`attempt::attempt`] is one HTTP exchange; nothing here loops, waits to resend, or
//! remembers a failure. Every failure is classified once, into a `Fault` of core.
//! Deliberately not here: what to do about a fault, the log, files.

pub mod anthropic;
pub mod attempt;
pub mod endpoint;
#[cfg(feature = "http")]
pub mod http;
pub mod models;
pub mod mutants;
pub mod provider;
pub mod sse;
pub mod transport;
mod watch;
