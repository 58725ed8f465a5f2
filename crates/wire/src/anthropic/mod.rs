//! The Anthropic Messages format.

pub mod assemble;
pub mod classify;
pub mod encode;
mod forming;
mod members;
mod render;
mod wait;

/// The name of the wire format in an `Origin`.
pub const FORMAT: &str = "anthropic";
/// The version of the API whose shapes are spoken here.
pub const API_VERSION: &str = "2023-06-01";
pub const MESSAGES_PATH: &str = "/v1/messages";
