//! The turn machine from outside: courses that are written down, every crash in them, and random ones.

// The bench panics as a test does.
#![allow(clippy::unwrap_used)]

mod bounds;
mod calm;
mod course;
mod depth;
mod gaps;
mod plain;
mod prefixes;
mod random;
mod rig;
mod show;
#[cfg(mutants)]
mod teeth;
mod watch;
mod world;
