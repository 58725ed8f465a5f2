//! A model server that answers at once, tells when a request arrived, and holds the last event of the last
//! answer until the measurer has looked at the process that waits for it.
//!
//! Knows as much HTTP/1.1 as one client of ours needs. Not here: strictness and faults; the lab has both.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::canned;

/// A request larger than this is not ours.
const BODY_BYTES_MAX: usize = 64 << 20;
/// The measurer has died when it does not let go within this time.
const HOLD_MAX: Duration = Duration::from_secs(30);

/// What the server tells the measurer.
pub enum Told {
    /// The head of a request for an answer has been read.
    Arrived(Instant),
    /// The last answer is out but for its last event; [`Server::let_go`] sends it.
    Held,
}

/// A running server; it stops when dropped.
pub struct Server {
    pub address: SocketAddr,
    pub told: Receiver<Told>,
    let_go: Sender<()>,
    shared: Arc<Shared>,
}

struct Shared {
    /// Answers that ask for a command, before the one that ends the turn.
    rounds: usize,
    answered: AtomicUsize,
    is_closed: AtomicBool,
    tell: Mutex<Sender<Told>>,
    may_go: Mutex<Receiver<()>>,
}

impl Server {
    /// Listens on a free port of the loopback address.
    pub fn start(rounds: usize) -> io::Result<Server> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let (tell, told) = mpsc::channel();
        let (let_go, may_go) = mpsc::channel();
        let shared = Arc::new(Shared {
            rounds,
            answered: AtomicUsize::new(0),
            is_closed: AtomicBool::new(false),
            tell: Mutex::new(tell),
            may_go: Mutex::new(may_go),
        });
        let ours = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if ours.is_closed.load(Ordering::Relaxed) {
                    return;
                }
                let ours = Arc::clone(&ours);
                // A client that hangs up ends its connection, no more.
                thread::spawn(move || ours.serve(stream));
            }
        });
        Ok(Server { address, told, let_go, shared })
    }

    /// Sends the event that was held.
    pub fn let_go(&self) {
        // Nobody waits any more when the client has gone.
        let _ = self.let_go.send(());
    }

    /// Returns how many requests for an answer there were.
    pub fn answered(&self) -> usize {
        self.shared.answered.load(Ordering::Relaxed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.is_closed.store(true, Ordering::Relaxed);
        // Wakes the listener, which looks at the flag.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut out = stream.try_clone()?;
        let mut lines = BufReader::new(stream);
        while let Some(head) = read_head(&mut lines)? {
            let arrived = Instant::now();
            io::copy(&mut (&mut lines).take(head.body_bytes as u64), &mut io::sink())?;
            if head.wants_an_answer {
                self.tell(Told::Arrived(arrived));
                self.answer(&mut out)?;
            } else {
                out.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")?;
            }
        }
        Ok(())
    }

    fn answer(&self, out: &mut TcpStream) -> io::Result<()> {
        let round = self.answered.fetch_add(1, Ordering::Relaxed);
        let is_last = round >= self.rounds;
        let body = if is_last { canned::says_done(round) } else { canned::asks_for_a_command(round) };
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nrequest-id: req_bench{round:04}\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        if !is_last {
            return out.write_all(format!("{head}{body}").as_bytes());
        }
        let held_from = body.rfind("event:").unwrap_or(body.len());
        out.write_all(format!("{head}{}", &body[..held_from]).as_bytes())?;
        self.tell(Told::Held);
        let may_go = self.may_go.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = may_go.recv_timeout(HOLD_MAX);
        out.write_all(&body.as_bytes()[held_from..])
    }

    fn tell(&self, what: Told) {
        let _ = self.tell.lock().unwrap_or_else(PoisonError::into_inner).send(what);
    }
}

/// What matters of a request's head.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    wants_an_answer: bool,
    body_bytes: usize,
}

/// Reads a head; `None` when the client is done.
fn read_head(lines: &mut impl BufRead) -> io::Result<Option<Head>> {
    let mut line = String::new();
    if lines.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.strip_prefix("POST ").and_then(|rest| rest.split_whitespace().next());
    let wants_an_answer = path.is_some_and(|path| path.split('?').next() == Some("/v1/messages"));
    let mut body_bytes = 0;
    loop {
        line.clear();
        if lines.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let Some((name, value)) = line.trim_end().split_once(':') else {
            return Ok(Some(Head { wants_an_answer, body_bytes }));
        };
        if name.eq_ignore_ascii_case("content-length") {
            body_bytes = value.trim().parse().unwrap_or(usize::MAX);
        }
        if name.eq_ignore_ascii_case("transfer-encoding") || body_bytes > BODY_BYTES_MAX {
            return Err(io::Error::other("a body of unknown or absurd length"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_tells_the_length_and_whether_an_answer_is_wanted() {
        let head = |text: &str| read_head(&mut text.as_bytes()).unwrap();
        let ask = Head { wants_an_answer: true, body_bytes: 7 };
        assert_eq!(head("POST /v1/messages?beta=true HTTP/1.1\r\nContent-Length: 7\r\n\r\n"), Some(ask));
        let other = Head { wants_an_answer: false, body_bytes: 0 };
        assert_eq!(head("GET /v1/models HTTP/1.1\r\n\r\n"), Some(other));
        assert_eq!(head(""), None);
        assert!(read_head(&mut "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n".as_bytes()).is_err());
    }

    #[test]
    fn the_last_event_waits_for_the_measurer() {
        let server = Server::start(1).unwrap();
        let mut client = TcpStream::connect(server.address).unwrap();
        let ask = b"POST /v1/messages HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}";
        client.write_all(ask).unwrap();
        let mut answer = vec![0; 1 << 16];
        let count = client.read(&mut answer).unwrap();
        assert!(String::from_utf8_lossy(&answer[..count]).starts_with("HTTP/1.1 200 OK\r\n"));
        client.write_all(ask).unwrap();
        let told: Vec<Told> = server.told.iter().take(3).collect();
        assert!(matches!(told[..], [Told::Arrived(_), Told::Arrived(_), Told::Held]));
        server.let_go();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        let mut rest = String::new();
        client.read_to_string(&mut rest).unwrap();
        assert!(rest.ends_with("\"message_stop\"}\n\n"), "{rest}");
        assert_eq!(server.answered(), 2);
    }
}
