//! One attempt at one request: send, listen, and say how it ended. It never loops.
//!
//! Promises: exactly one HTTP exchange; every wait has a limit; time is tokio's, so that a paused clock drives
//! it; cancelling ends it at once. What was heard on the way is data for onlookers, never a result.
//! Deliberately not here: waiting before a resend, and the choice to resend.

use tokio_util::sync::CancellationToken;
use yaoki_core::request::Request;
use yaoki_core::step::{AttemptReport, Delta};

use crate::anthropic::encode::Encoder;
use crate::endpoint::Endpoint;
use crate::transport::Transport;

/// The watchdogs of one attempt, and the size of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Until the headers of a streamed answer.
    pub first_byte_ms: u64,
    /// Until the headers of an unstreamed answer, which come when it is complete.
    pub first_byte_unstreamed_ms: u64,
    /// Between two pieces of the body.
    pub idle_ms: u64,
    /// Between two pieces of content: pings do not count.
    pub content_idle_ms: u64,
    pub body_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            first_byte_ms: 60_000,
            first_byte_unstreamed_ms: 600_000,
            idle_ms: 90_000,
            content_idle_ms: 300_000,
            body_bytes_max: 256 << 20,
        }
    }
}

/// What one attempt sends, and how.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    pub endpoint: &'a Endpoint,
    pub ask: &'a Request,
    /// Sent as `x-client-request-id`.
    pub client_id: &'a str,
    /// Use no pooled connection.
    pub fresh: bool,
    pub limits: Limits,
    /// Seconds since 1970, for a `Retry-After` date when the answer has no `Date`.
    pub wall_s: Option<u64>,
}

/// Performs one attempt. Every way it can end is in the report; deltas go to `hear` as they come.
pub async fn attempt(
    transport: &dyn Transport,
    encoder: &Encoder,
    what: Attempt<'_>,
    hear: &mut (dyn FnMut(Delta) + Send),
    cancel: &CancellationToken,
) -> AttemptReport {
    let _ = (transport, encoder, what, hear, cancel);
    todo!()
}
