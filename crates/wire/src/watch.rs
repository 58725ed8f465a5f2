//! Reading a body under its idle limits.
//!
//! Promises: a read ends with bytes, with the end, or with the first limit that passes; cancelling comes first.

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use yaoki_core::mutant;

use crate::attempt::Limits;
use crate::transport::{HttpAnswer, TransportError};

/// After the last event the end of the body is awaited this long, so that the connection can be used again.
const DRAIN_MS: u64 = 20;
const DRAIN_BYTES_MAX: usize = 64 << 10;
/// Why no further bytes come.
pub(crate) enum BodyEnd {
    Cancelled,
    Idle,
    OnlyPings,
    Failed(TransportError),
    End,
}

/// The idle limits of a body.
pub(crate) struct Watch {
    limits: Limits,
    bytes_at: Instant,
    content_at: Instant,
}

impl Watch {
    pub(crate) fn start(limits: Limits) -> Self {
        let now = Instant::now();
        Self { limits, bytes_at: now, content_at: now }
    }

    pub(crate) fn progress(&mut self, is_new: bool) {
        if is_new {
            self.content_at = Instant::now();
        }
    }

    pub(crate) async fn next(
        &mut self,
        answer: &mut HttpAnswer,
        cancel: &CancellationToken,
    ) -> Result<Bytes, BodyEnd> {
        let idle_at = self.bytes_at + Duration::from_millis(self.limits.idle_ms);
        let content_at = self.content_at + Duration::from_millis(self.limits.content_idle_ms);
        // A stream of pings is always ready, and would never let the timer have its turn.
        if content_at <= Instant::now() {
            return Err(BodyEnd::OnlyPings);
        }
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(BodyEnd::Cancelled),
            chunk = answer.body.next() => match chunk {
                Some(Ok(chunk)) => {
                    if !chunk.is_empty() {
                        self.bytes_at = Instant::now();
                    }
                    Ok(chunk)
                }
                Some(Err(error)) => Err(BodyEnd::Failed(error)),
                None => Err(BodyEnd::End),
            },
            () = sleep_until(idle_at.min(content_at)), if !mutant!("wire-stall-has-no-limit") => {
                Err(if idle_at <= content_at { BodyEnd::Idle } else { BodyEnd::OnlyPings })
            }
        }
    }
}

/// Awaits the end of a body whose message is complete, for a moment.
pub(crate) async fn drain(answer: &mut HttpAnswer) {
    let rest = async {
        let mut left = DRAIN_BYTES_MAX;
        while let Some(Ok(chunk)) = answer.body.next().await {
            match left.checked_sub(chunk.len().max(1)) {
                Some(less) => left = less,
                None => return,
            }
        }
    };
    // Whatever comes after the end of the message changes nothing, nor does its not coming.
    let _ = timeout(Duration::from_millis(DRAIN_MS), rest).await;
}
