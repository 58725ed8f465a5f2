//! The Anthropic Messages format.

pub mod assemble;
pub mod classify;
pub mod encode;

/// The name of the wire format in an `Origin`.
pub const FORMAT: &str = "anthropic";
