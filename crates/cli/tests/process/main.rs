//! The promise itself: the real binary, a real lab over loopback, real processes, kills and signals.
//!
//! One program, so that it is linked once. Nothing here waits for time to pass: moments are told by pipes, by the
//! lab's progress and by the ends of processes, and every wait has a bound.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod background;
mod bad_input;
mod cuts;
mod demo;
mod kill_resume;
mod main_job;
mod network;
mod recovers;
mod repl;
mod signals;
mod stage;
mod tls;
