//! Reading requests: HTTP/1.1 with `content-length` or chunked bodies, `expect: 100-continue`, keep-alive.

use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A connection and the bytes of it that were read but not yet used.
pub(super) struct Conn {
    pub stream: TcpStream,
    buffer: Vec<u8>,
}

/// A request, read whole.
pub(super) struct Incoming {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    /// At most one byte more than the limit; the rest was read and thrown away.
    pub body: Vec<u8>,
    pub keep_alive: bool,
    /// HTTP/1.0 knows no chunks.
    pub is_old: bool,
}

/// Why there is no request.
pub(super) enum ReadError {
    /// The client left, or said nothing for too long.
    Gone,
    /// This is no HTTP.
    Bad(&'static str),
}

impl From<io::Error> for ReadError {
    fn from(_: io::Error) -> Self {
        ReadError::Gone
    }
}

impl Conn {
    pub fn new(stream: TcpStream) -> Self {
        Self { stream, buffer: Vec::new() }
    }

    /// Reads the next request.
    pub async fn read_request(&mut self, body_bytes_max: usize) -> Result<Incoming, ReadError> {
        match timeout(REQUEST_WAIT, self.read(body_bytes_max)).await {
            Ok(result) => result,
            Err(_) => Err(ReadError::Gone),
        }
    }

    /// Waits until the client closes its end; what it says meanwhile is thrown away.
    pub async fn until_left(&mut self) {
        let mut waste = [0; 1_024];
        while matches!(self.stream.read(&mut waste).await, Ok(n) if n > 0) {}
    }

    /// Waits until the client closes its end, without taking any byte it sends; for ever if it has sent one.
    pub async fn until_gone(&self) {
        let mut byte = [0];
        if matches!(self.stream.peek(&mut byte).await, Ok(n) if n > 0) {
            std::future::pending::<()>().await;
        }
    }

    /// Closes the connection with a reset.
    pub async fn reset(self) {
        // A reset throws away what is still on its way out; on loopback that is gone in no time.
        tokio::time::sleep(RESET_WAIT).await;
        // Without the option the close is a FIN: less than was asked, and nothing can be done.
        let _ = self.stream.set_zero_linger();
    }

    async fn read(&mut self, body_bytes_max: usize) -> Result<Incoming, ReadError> {
        let head = self.read_head().await?;
        let mut incoming = parse(&head).ok_or(ReadError::Bad("malformed request head"))?;
        let length = match incoming.header("content-length") {
            Some(length) => {
                Some(length.trim().parse::<usize>().map_err(|_| ReadError::Bad("bad content-length"))?)
            }
            None => None,
        };
        let is_chunked = incoming
            .header("transfer-encoding")
            .is_some_and(|coding| coding.trim().eq_ignore_ascii_case("chunked"));
        if is_chunked && length.is_some() {
            return Err(ReadError::Bad("both content-length and chunked"));
        }
        let waits = incoming.header("expect").is_some_and(|what| what.eq_ignore_ascii_case("100-continue"));
        if waits && (is_chunked || length.is_some_and(|n| n > 0)) {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        let kept_max = body_bytes_max.saturating_add(1);
        incoming.body = match length {
            _ if is_chunked => self.read_chunks(kept_max).await?,
            Some(length) => {
                let mut body = Vec::new();
                self.read_exact(length, kept_max, &mut body).await?;
                body
            }
            None => Vec::new(),
        };
        Ok(incoming)
    }

    async fn read_head(&mut self) -> Result<Vec<u8>, ReadError> {
        let mut seen = 0;
        loop {
            // Empty lines before a request are allowed.
            while self.buffer.starts_with(b"\r\n") {
                self.buffer.drain(..2);
            }
            if let Some(at) = find(&self.buffer, b"\r\n\r\n", seen) {
                let head = self.buffer[..at].to_vec();
                self.buffer.drain(..at + 4);
                return Ok(head);
            }
            if self.buffer.len() > HEAD_BYTES_MAX {
                return Err(ReadError::Bad("request head too large"));
            }
            seen = self.buffer.len().saturating_sub(3);
            self.more().await?;
        }
    }

    async fn read_chunks(&mut self, kept_max: usize) -> Result<Vec<u8>, ReadError> {
        let mut body = Vec::new();
        loop {
            let line = self.read_line().await?;
            let digits = line.split(';').next().unwrap_or("").trim();
            let size = usize::from_str_radix(digits, 16).map_err(|_| ReadError::Bad("bad chunk size"))?;
            if size == 0 {
                while !self.read_line().await?.is_empty() {}
                return Ok(body);
            }
            self.read_exact(size, kept_max, &mut body).await?;
            if !self.read_line().await?.is_empty() {
                return Err(ReadError::Bad("chunk without end"));
            }
        }
    }

    async fn read_line(&mut self) -> Result<String, ReadError> {
        loop {
            if let Some(at) = find(&self.buffer, b"\r\n", 0) {
                let line = String::from_utf8_lossy(&self.buffer[..at]).into_owned();
                self.buffer.drain(..at + 2);
                return Ok(line);
            }
            if self.buffer.len() > LINE_BYTES_MAX {
                return Err(ReadError::Bad("line too long"));
            }
            self.more().await?;
        }
    }

    /// Reads so many bytes, of which `body` takes what fits into `kept_max`.
    async fn read_exact(
        &mut self,
        mut count: usize,
        kept_max: usize,
        body: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        while count > 0 {
            if self.buffer.is_empty() {
                self.more().await?;
            }
            let taken = count.min(self.buffer.len());
            let kept = taken.min(kept_max.saturating_sub(body.len()));
            body.extend_from_slice(&self.buffer[..kept]);
            self.buffer.drain(..taken);
            count -= taken;
        }
        Ok(())
    }

    async fn more(&mut self) -> Result<(), ReadError> {
        self.buffer.reserve(READ_BYTES);
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(ReadError::Gone),
            _ => Ok(()),
        }
    }
}

impl Incoming {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }
}

fn parse(head: &[u8]) -> Option<Incoming> {
    let head = std::str::from_utf8(head).ok()?;
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, path, version) = (first.next()?, first.next()?, first.next()?);
    if first.next().is_some() || !version.starts_with("HTTP/1.") || !path.starts_with('/') {
        return None;
    }
    let mut headers = Vec::new();
    for line in lines {
        let (name, value) = line.split_once(':')?;
        if name.is_empty() || name.contains(char::is_whitespace) {
            return None;
        }
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let is_old = version == "HTTP/1.0";
    let mut incoming = Incoming {
        method: method.to_owned(),
        path: path.to_owned(),
        headers,
        body: Vec::new(),
        keep_alive: !is_old,
        is_old,
    };
    if incoming.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
        incoming.keep_alive = false;
    }
    Some(incoming)
}

fn find(bytes: &[u8], what: &[u8], from: usize) -> Option<usize> {
    bytes.get(from..)?.windows(what.len()).position(|window| window == what).map(|at| at + from)
}

/// From the end of one answer to the end of the next request.
const REQUEST_WAIT: Duration = Duration::from_secs(120);
const RESET_WAIT: Duration = Duration::from_millis(10);
const HEAD_BYTES_MAX: usize = 64 * 1024;
const LINE_BYTES_MAX: usize = 8 * 1024;
const READ_BYTES: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_or_refused() {
        for (head, want) in [
            ("POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-Api-Key:  k ", Some(("POST", "/v1/messages", true))),
            ("GET / HTTP/1.1\r\nConnection: Close", Some(("GET", "/", false))),
            ("GET / HTTP/1.0", Some(("GET", "/", false))),
            ("GET / HTTP/2", None),
            ("GET http://x/ HTTP/1.1", None),
            ("GET / HTTP/1.1\r\nno colon", None),
            ("GET / HTTP/1.1\r\nspace : x", None),
            ("", None),
        ] {
            let got = parse(head.as_bytes());
            assert_eq!(
                got.as_ref().map(|i| (i.method.as_str(), i.path.as_str(), i.keep_alive)),
                want,
                "{head}"
            );
        }
    }
}
