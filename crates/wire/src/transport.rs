//! The wall to the network: one request goes out, one answer with a body stream comes back.
//!
//! Promises: an implementation sends the request at most once, follows no redirect and never retries.
//! Deliberately not here: what an answer means (`anthropic::classify`) and how long to wait for it (`attempt`).

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;

/// Sends requests. Dropping the future or the body abandons the exchange.
pub trait Transport: Send + Sync {
    fn send(&self, ask: HttpAsk) -> BoxFuture<'_, Result<HttpAnswer, TransportError>>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
}

/// One request. Headers hold credentials: they are not printed.
#[derive(Clone)]
pub struct HttpAsk {
    pub method: Method,
    pub url: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
    /// Use no pooled connection.
    pub fresh: bool,
}

impl std::fmt::Debug for HttpAsk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} {} ({} bytes, fresh: {})", self.method, self.url, self.body.len(), self.fresh)
    }
}

impl HttpAsk {
    /// Returns the value of a header; `name` in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        find_header(&self.headers, name)
    }
}

/// Status and headers, and a body that is still coming.
pub struct HttpAnswer {
    pub status: u16,
    /// Names in lower case, in the order they came.
    pub headers: Vec<(String, String)>,
    pub body: BoxStream<'static, Result<Bytes, TransportError>>,
}

/// Returns the first value of a header, whatever the case of its name.
pub fn find_header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

/// How far the exchange had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Resolving the name.
    Dns,
    /// Connecting, a proxy's tunnel included.
    Connect,
    Tls,
    /// Sent, maybe in part; no status line came.
    BeforeAnswer,
    Body,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransportKind {
    Refused,
    Reset,
    /// The other side closed in the middle.
    Ended,
    Timeout,
    /// The bytes are not HTTP, or not in the encoding they claim.
    Protocol,
    Other,
}

/// Why an exchange failed below HTTP.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TransportError {
    pub phase: Phase,
    pub kind: TransportKind,
    /// A pooled connection was found dead before any byte of the answer.
    pub stale: bool,
    pub message: String,
}
