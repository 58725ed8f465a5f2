//! Playing a plan on a connection.

use super::CloseFor;
use super::http::{Conn, Incoming};
use crate::ask::{Plan, Play};
use std::io;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// What becomes of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// The answer is whole.
    Next,
    /// To be closed with a FIN.
    Close,
    /// To be closed with a RST.
    Reset,
    /// The client left before the end.
    Left,
}

/// Plays a plan; `wrote` is told of each write of head or body that left.
pub(super) async fn play(
    conn: &mut Conn,
    plan: &Plan,
    incoming: &Incoming,
    close: &mpsc::Sender<CloseFor>,
    wrote: impl Fn(),
) -> After {
    let mut framing = Framing::Length;
    for play in &plan.plays {
        let written = match play {
            Play::Head { status, headers } => {
                framing = Framing::of(headers, incoming);
                write(conn, &head(*status, headers, framing, incoming.keep_alive)).await
            }
            Play::Bytes(bytes) => write(conn, &framing.frame(bytes)).await,
            Play::WaitMs(ms) => wait(conn, *ms).await,
            Play::Stall => {
                conn.until_left().await;
                return After::Close;
            }
            Play::End => return end(conn, framing).await,
            Play::Cut => return After::Close,
            Play::Rst | Play::Reset | Play::Refuse => return After::Reset,
            Play::Closed { for_ms } => {
                stop_listening(close, *for_ms).await;
                return After::Reset;
            }
        };
        match (written, play) {
            (Err(_), _) => return After::Left,
            (Ok(()), Play::Head { .. } | Play::Bytes(_)) => wrote(),
            (Ok(()), _) => {}
        }
    }
    After::Close
}

/// Answers one of the lab's own endpoints.
pub(super) async fn control(conn: &mut Conn, json: &[u8]) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        json.len()
    );
    write(conn, head.as_bytes()).await?;
    write(conn, json).await
}

/// Tells a client that what it sent is no request, and closes.
pub(super) async fn bad_request(mut conn: Conn, why: &str) {
    let body = format!("lab: {why}\n");
    let head =
        "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\nconnection: close\r\ncontent-length: ";
    // A client that sends no HTTP may well not wait for the answer.
    let _ = write(&mut conn, format!("{head}{}\r\n\r\n{body}", body.len()).as_bytes()).await;
}

/// How the length of a body is told.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length,
    Chunked,
    UntilClose,
}

impl Framing {
    fn of(headers: &[(String, String)], incoming: &Incoming) -> Self {
        if headers.iter().any(|(name, _)| name == "content-length") {
            Framing::Length
        } else if incoming.is_old {
            Framing::UntilClose
        } else {
            Framing::Chunked
        }
    }

    fn frame(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Framing::Length | Framing::UntilClose => bytes.to_vec(),
            Framing::Chunked => {
                let mut framed = format!("{:x}\r\n", bytes.len()).into_bytes();
                framed.extend_from_slice(bytes);
                framed.extend_from_slice(b"\r\n");
                framed
            }
        }
    }
}

fn head(status: u16, headers: &[(String, String)], framing: Framing, keep_alive: bool) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status));
    for (name, value) in headers {
        // A line break in a script's header would be a second header.
        let value: String = value.chars().filter(|c| !c.is_control()).collect();
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if framing == Framing::Chunked {
        head.push_str("transfer-encoding: chunked\r\n");
    }
    if !keep_alive || framing == Framing::UntilClose {
        head.push_str("connection: close\r\n");
    }
    head.push_str("\r\n");
    head.into_bytes()
}

async fn end(conn: &mut Conn, framing: Framing) -> After {
    match framing {
        Framing::Length => After::Next,
        Framing::UntilClose => After::Close,
        Framing::Chunked => match write(conn, b"0\r\n\r\n").await {
            Ok(()) => After::Next,
            Err(_) => After::Left,
        },
    }
}

async fn write(conn: &mut Conn, bytes: &[u8]) -> io::Result<()> {
    match timeout(WRITE_WAIT, conn.stream.write_all(bytes)).await {
        Ok(written) => written,
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

async fn wait(conn: &Conn, ms: u64) -> io::Result<()> {
    tokio::select! {
        () = tokio::time::sleep(Duration::from_millis(ms)) => Ok(()),
        () = conn.until_gone() => Err(io::ErrorKind::ConnectionAborted.into()),
    }
}

async fn stop_listening(close: &mpsc::Sender<CloseFor>, for_ms: u64) {
    let (closed, is_closed) = oneshot::channel();
    let request = CloseFor { wait: Duration::from_millis(for_ms), closed };
    // If the accept loop is gone, nobody listens: what was asked for.
    if close.send(request).await.is_ok() {
        let _ = is_closed.await;
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        413 => "Payload Too Large",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        529 => "Overloaded",
        _ => "Status",
    }
}

/// A client that reads nothing for so long has left.
const WRITE_WAIT: Duration = Duration::from_secs(120);
