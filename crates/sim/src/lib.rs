//! Yaoki broken on purpose: the whole agent on a simulated network, disk, clock, person and set of tools, by seed.
//!
//! A schedule is one seed: a session of a few turns, in which the model's answers, every fault, every crash and every
//! answer of the person follow from the seed alone. The agent is the real one; only its ports are ours. The world
//! keeps its own count of what happened, and after each step and each life of the process the invariants are held
//! against it. A seed that fails replays to the same end.

pub mod broken;
pub mod coverage;
pub mod dice;
pub mod disk;
pub mod hands;
pub mod life;
pub mod log;
pub mod model;
pub mod onlooker;
pub mod plan;
pub mod requests;
pub mod schedule;
pub mod story;
pub mod trace;
pub mod world;
