//! The command runner: one shell command, in a session of its own, which outlives the agent.
//!
//! `yaoki __runner FOLDER` is the same binary, started before anything else of the program. It executes its
//! ticket at most once, keeps what the command prints, ends the whole process tree at a time limit or on
//! request, and leaves the outcome where a later process finds it. Its files survive a process, not a power
//! cut: nothing here is synced. No pid is trusted after a restart; who holds the lock on `started` lives.
//!
//! Not here: what a command may do (permissions), how its result reads to a model (`tools::bash`).

mod children;
mod client;
mod files;
mod frame;
mod redact;
mod spool;
mod supervise;

pub use client::{
    Ending, Launch, LaunchError, Running, State, attach, cancel, is_alive, keep_whole, read_new, state,
};
pub use files::{End, Excerpt, ExitReport, RunFolder, Stop};
pub use redact::{Redactor, SECRET_BYTES_MIN};
pub use spool::News;
pub use supervise::main_from_args;

/// The argument that makes the binary a runner.
pub const RUNNER_ARG: &str = "__runner";
