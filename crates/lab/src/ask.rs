//! What a client asked, and the plan of what it will hear.

use bytes::Bytes;

/// One HTTP request as it came in, already read whole.
#[derive(Debug, Clone, Copy)]
pub struct HttpAsk<'a> {
    pub method: &'a str,
    /// With or without a query string; the query is ignored.
    pub path: &'a str,
    /// Names in any case.
    pub headers: &'a [(String, String)],
    pub body: &'a [u8],
    /// Milliseconds since the lab began; only written to the log.
    pub at_ms: u64,
    /// Milliseconds since the Unix epoch; for the `date` header and `retry-after` dates.
    pub wall_ms: u64,
}

impl<'a> HttpAsk<'a> {
    /// Returns an ask at time zero.
    pub fn new(method: &'a str, path: &'a str, headers: &'a [(String, String)], body: &'a [u8]) -> Self {
        Self { method, path, headers, body, at_ms: 0, wall_ms: 0 }
    }

    /// Returns the same ask at another time.
    pub fn at(self, at_ms: u64, wall_ms: u64) -> Self {
        Self { at_ms, wall_ms, ..self }
    }

    /// Returns the value of a header, whatever the case of its name.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        let headers: &'a [(String, String)] = self.headers;
        headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }
}

/// What the client will hear, in order. Playing it needs no knowledge of scripts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The number of the request, from 1; the key of its log entry.
    pub ask: u64,
    /// Ends with exactly one of the pieces that [`Play::is_last`] names.
    pub plays: Vec<Play>,
}

/// One piece of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Play {
    /// The connection is taken away before any byte, as if nobody listened.
    Refuse,
    /// Nobody listens for this long: the connection is reset and new ones are refused.
    Closed { for_ms: u64 },
    /// The connection is reset after the request was read and before the head.
    Reset,
    /// The status line and headers. A `content-length` is among them when the body is not streamed.
    Head { status: u16, headers: Vec<(String, String)> },
    /// A piece of the body, to be written in one go.
    Bytes(Bytes),
    /// Nothing for this long.
    WaitMs(u64),
    /// Nothing more, with the connection open, until the client leaves.
    Stall,
    /// The body ends as it should.
    End,
    /// The connection is closed (FIN) in the middle of the body.
    Cut,
    /// The connection is reset (RST) in the middle of the body.
    Rst,
}

impl Play {
    /// Whether nothing can follow this piece.
    pub fn is_last(&self) -> bool {
        match self {
            Play::Refuse
            | Play::Closed { .. }
            | Play::Reset
            | Play::Stall
            | Play::End
            | Play::Cut
            | Play::Rst => true,
            Play::Head { .. } | Play::Bytes(_) | Play::WaitMs(_) => false,
        }
    }
}

impl Plan {
    /// Returns the status of the head, if there is one.
    pub fn status(&self) -> Option<u16> {
        self.plays.iter().find_map(|play| match play {
            Play::Head { status, .. } => Some(*status),
            _ => None,
        })
    }

    /// Returns a header of the head.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.plays.iter().find_map(|play| match play {
            Play::Head { headers, .. } => {
                headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
            }
            _ => None,
        })
    }

    /// Returns all bytes of the body, waits left out.
    pub fn body(&self) -> Vec<u8> {
        let mut all = Vec::new();
        for play in &self.plays {
            if let Play::Bytes(bytes) = play {
                all.extend_from_slice(bytes);
            }
        }
        all
    }

    /// Returns how the plan ends.
    pub fn ending(&self) -> &Play {
        self.plays.last().expect("a plan is never empty")
    }
}
