//! The lab on a real socket: HTTP/1.1 over TCP, written by hand so that it can break off anywhere.
//!
//! Promises: requests take their steps under one lock, in the order in which they were read whole; a plan is played as
//! it is, one write for each piece. Not here: TLS, HTTP/2, other machines' requests (bind to loopback).
//!
//! `GET /__lab/report` and `GET /__lab/log` tell other processes what [`Server::report`] and [`Server::log`] tell ours.

mod http;
mod play;
mod sent;

pub use sent::Sent;

use crate::ask::HttpAsk;
use crate::lab::Lab;
use crate::report::{LogEntry, Report};
use http::{Conn, Incoming, ReadError};
use sent::Progress;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};

/// A lab that listens. Ends when dropped.
#[derive(Debug)]
pub struct Server {
    addr: SocketAddr,
    lab: Shared,
    host: Option<Host>,
}

#[derive(Debug)]
enum Host {
    Task(JoinHandle<()>),
    Thread { stop: oneshot::Sender<()>, thread: thread::JoinHandle<()> },
}

impl Server {
    /// Starts a lab as a task of the runtime that calls this.
    ///
    /// `addr` may have port 0; [`Server::url`] has the one that was found.
    /// Errors: the address cannot be bound.
    pub async fn start(lab: Lab, addr: &str) -> io::Result<Server> {
        let listener = bind(addr)?;
        let (addr, lab) = (listener.local_addr()?, Shared::of(lab));
        let task = tokio::spawn(serve(TcpListener::from_std(listener)?, addr, lab.clone()));
        Ok(Server { addr, lab, host: Some(Host::Task(task)) })
    }

    /// Starts a lab on a thread of its own, for callers without a runtime or with one that is busy.
    ///
    /// Errors: the address cannot be bound, or there is no thread to be had.
    pub fn start_on_thread(lab: Lab, addr: &str) -> io::Result<Server> {
        let listener = bind(addr)?;
        let (addr, lab) = (listener.local_addr()?, Shared::of(lab));
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let shared = lab.clone();
        let run = move || {
            runtime.block_on(async {
                let Ok(listener) = TcpListener::from_std(listener) else { return };
                tokio::select! {
                    _ = serve(listener, addr, shared) => {}
                    _ = stopped => {}
                }
            });
        };
        let thread = thread::Builder::new().name("yaoki-lab".into()).spawn(run)?;
        Ok(Server { addr, lab, host: Some(Host::Thread { stop, thread }) })
    }

    /// Returns the base URL, without a slash at its end.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns how the script has gone so far.
    pub fn report(&self) -> Report {
        self.lab.lock().report()
    }

    /// Returns the requests so far, oldest first.
    pub fn log(&self) -> Vec<LogEntry> {
        self.lab.lock().log()
    }

    /// Waits until something holds of how far the answers have been sent, one row for each request, in order.
    ///
    /// Blocks the thread: for servers that run on another one. False: it did not hold within that time.
    pub fn wait_for(&self, within: Duration, is_so: impl FnMut(&[Sent]) -> bool) -> bool {
        self.lab.progress.wait_for(within, is_so)
    }

    /// Stops listening and closes all connections.
    pub async fn shutdown(mut self) {
        if let Some(Host::Task(task)) = self.host.take_if(|host| matches!(host, Host::Task(_))) {
            task.abort();
            // An aborted task ends as cancelled; there is nothing to learn from it.
            let _ = task.await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        match self.host.take() {
            Some(Host::Task(task)) => task.abort(),
            Some(Host::Thread { stop, thread }) => {
                // Either may be over already, which is what we want.
                let _ = stop.send(());
                let _ = thread.join();
            }
            None => {}
        }
    }
}

/// The lab, the time it began, and the lock under which steps are taken.
#[derive(Debug, Clone)]
struct Shared {
    lab: Arc<Mutex<Lab>>,
    progress: Arc<Progress>,
    began: Instant,
}

impl Shared {
    fn of(lab: Lab) -> Self {
        Self { lab: Arc::new(Mutex::new(lab)), progress: Arc::default(), began: Instant::now() }
    }

    fn lock(&self) -> MutexGuard<'_, Lab> {
        // A panic in one connection leaves counters at worst one behind.
        self.lab.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, incoming: &Incoming) -> crate::ask::Plan {
        let at_ms = self.began.elapsed().as_millis() as u64;
        let wall_ms =
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64);
        let Incoming { method, path, headers, body, .. } = incoming;
        self.lock().answer(&HttpAsk::new(method, path, headers, body).at(at_ms, wall_ms))
    }

    /// Answers the lab's own endpoints.
    fn control(&self, incoming: &Incoming) -> Option<Vec<u8>> {
        let json = match incoming.path.as_str() {
            "/__lab/report" => serde_json::to_vec_pretty(&self.lock().report()),
            "/__lab/log" => serde_json::to_vec_pretty(&self.lock().log()),
            _ => return None,
        };
        Some(json.expect("reports are plain data"))
    }
}

/// Asks the accept loop to stop listening; it tells when it has.
struct CloseFor {
    wait: Duration,
    closed: oneshot::Sender<()>,
}

fn bind(addr: &str) -> io::Result<std::net::TcpListener> {
    let addrs: Vec<SocketAddr> = addr.to_socket_addrs()?.collect();
    let listener = std::net::TcpListener::bind(&addrs[..])?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

async fn serve(mut listener: TcpListener, addr: SocketAddr, lab: Shared) {
    let mut conns = JoinSet::new();
    let (close, mut closes) = mpsc::channel::<CloseFor>(1);
    loop {
        while conns.try_join_next().is_some() {}
        let accepted = tokio::select! {
            request = closes.recv() => {
                let request = request.expect("this task holds a sender");
                drop(listener);
                // The connection that asked may be gone.
                let _ = request.closed.send(());
                tokio::time::sleep(request.wait).await;
                listener = listen_again(addr).await;
                continue;
            }
            _ = conns.join_next(), if conns.len() >= CONNS_MAX => continue,
            accepted = listener.accept(), if conns.len() < CONNS_MAX => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                conns.spawn(converse(stream, lab.clone(), close.clone()));
            }
            // Out of descriptors, or the client left already: neither is worth an end.
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn listen_again(addr: SocketAddr) -> TcpListener {
    loop {
        match TcpListener::bind(addr).await {
            Ok(listener) => return listener,
            // Someone took the port meanwhile; only that one can give it back.
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Answers the requests of one connection, one after the other.
async fn converse(stream: TcpStream, lab: Shared, close: mpsc::Sender<CloseFor>) {
    // Small writes must leave as they are; Nagle would glue them together.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let mut conn = Conn::new(stream);
    loop {
        let body_bytes_max = lab.lock().script().limits.body_bytes_max as usize;
        let incoming = match conn.read_request(body_bytes_max).await {
            Ok(incoming) => incoming,
            Err(ReadError::Gone) => return,
            Err(ReadError::Bad(why)) => return play::bad_request(conn, why).await,
        };
        if let Some(json) = lab.control(&incoming) {
            if play::control(&mut conn, &json).await.is_err() || !incoming.keep_alive {
                return;
            }
            continue;
        }
        let plan = lab.answer(&incoming);
        lab.progress.note(plan.ask, |_| {});
        let wrote = || lab.progress.note(plan.ask, |row| row.writes += 1);
        let after = play::play(&mut conn, &plan, &incoming, &close, wrote).await;
        lab.lock().played(plan.ask, after != play::After::Left);
        lab.progress.note(plan.ask, |row| row.is_over = true);
        match after {
            play::After::Next if incoming.keep_alive => {}
            play::After::Next | play::After::Close | play::After::Left => return,
            play::After::Reset => return conn.reset().await,
        }
    }
}

const CONNS_MAX: usize = 1_024;
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);
