//! A request as the bytes of a Messages API body.

use bytes::Bytes;
use yaoki_core::request::Request;

/// Prints requests, and keeps what it printed of each message.
#[derive(Debug, Default)]
pub struct Encoder {}

impl Encoder {
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the body. `authority` is the endpoint's scheme, host and port.
    pub fn encode(&self, ask: &Request, authority: &str) -> Bytes {
        let _ = (ask, authority);
        todo!()
    }
}
