//! Yaoki decides here: the turn machine, the conversation graph, faults and the rules that answer them.
//!
//! Promises: no I/O, no clock, no environment, no randomness; inputs in, records, steps and events out.
//! State changes only by applying a record, so running and resuming are the same code.
//! Deliberately not here: any provider's format, files, processes, the network.

#[macro_use]
pub mod mutants;

pub mod effects;
pub mod event;
pub mod fault;
pub mod graph;
pub mod ids;
pub mod json;
pub mod ledger;
pub mod message;
pub mod policy;
pub mod record;
pub mod recovery;
pub mod request;
pub mod stamp;
pub mod state;
pub mod step;
pub mod terminal;
pub mod turn;
pub mod view;
