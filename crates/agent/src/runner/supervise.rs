//! The runner's own life: claim, execute, watch, report.
//!
//! One thread and one `poll`. The agent may die, stop reading or come back as another process at any moment;
//! none of that may hold up or end the command. Only a time limit or a request to stop does.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use super::children::{self, Signaller};
use super::files::{End, ExitReport, Hello, RunFolder, Stop, Ticket};
use super::frame::{self, Kind};
use super::redact::Redactor;
use super::spool::{Capture, Spool};

/// How long output is waited for after the shell ended while a child still holds the pipe.
const DRAIN: Duration = Duration::from_millis(200);
/// Between asking a command to end and ending it.
const TERM_GRACE: Duration = Duration::from_secs(2);
/// How long killed processes are waited for; one in the kernel's hands may not end.
const KILL_GRACE: Duration = Duration::from_secs(2);
/// How long a slow agent may take to read the report, when the file has it too.
const FLUSH: Duration = Duration::from_secs(1);
/// The same, when only the pipe has it.
const FLUSH_LAST_WAY: Duration = Duration::from_secs(600);
/// How often orphans are reaped when nothing else happens.
const TICK: Duration = Duration::from_secs(1);
/// How often the shell's end is looked for where it cannot be waited for, and children while ending them.
const TICK_SHORT: Duration = Duration::from_millis(20);
/// Bytes waiting for the agent; beyond that it misses live output, not the result.
const QUEUE_BYTES_MAX: usize = 256 << 10;
const READ_BYTES: usize = 64 << 10;
/// Names of left processes in a report.
const LEFT_MAX: usize = 8;
const SHELLS: [&str; 2] = ["/bin/bash", "/bin/sh"];
/// A request to stop, over the inherited pipe or the bell.
pub(super) const STOP_BYTE: u8 = b'k';

/// Runs the ticket in `folder` and returns when nothing of the command is left.
///
/// To be called before anything else of a program: it takes standard input and output for the agent's pipes.
pub fn main_from_args(folder: &OsStr) -> ExitCode {
    match run(&RunFolder::new(folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn run(folder: &RunFolder) -> io::Result<()> {
    // Fails only for the leader of a group, which then has a session of its own, or a shell's job control.
    let _ = rustix::process::setsid();
    let mut from_agent = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut to_agent = Uplink::new(io::stdout().as_fd().try_clone_to_owned()?)?;
    let hello = read_hello(&mut from_agent)?;
    let claimed = hello.ticket.clone().map_or_else(|| folder.read_ticket(), Ok).and_then(|ticket| {
        let note = format!("ran\npid {}\n", std::process::id());
        Ok((ticket, folder.claim(&note)?))
    });
    let (ticket, lock) = match claimed {
        Ok(claimed) => claimed,
        Err(error) => {
            to_agent.send(Kind::Refused, error.to_string().as_bytes());
            to_agent.flush_for(FLUSH);
            return Err(error);
        }
    };
    let bell = open_bell(folder);
    children::adopt_orphans();
    let begun = Instant::now();
    match start(&ticket) {
        Ok(command) => {
            to_agent.send(Kind::Ready, b"");
            let streams = [
                Stream::new(Kind::Out, command.out, folder.out(), &hello, &ticket),
                Stream::new(Kind::Err, command.err, folder.err(), &hello, &ticket),
            ];
            Supervisor {
                folder,
                ticket: &ticket,
                begun,
                shell: command.shell,
                exit_watch: watch_exit(command.shell),
                status: None,
                exited_at: None,
                nobody_left: false,
                streams,
                to_agent,
                from_agent: Some(from_agent),
                bell,
                stopping: None,
                reported: false,
            }
            .watch();
        }
        Err(error) => report_not_started(folder, &mut to_agent, begun, error),
    }
    drop(lock);
    Ok(())
}

fn read_hello(from: &mut File) -> io::Result<Hello> {
    let mut line = Vec::new();
    let mut byte = [0];
    // Byte by byte: what follows the line are requests. It is some hundred bytes long.
    loop {
        match from.read(&mut byte)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            _ if byte[0] == b'\n' => break,
            _ => line.push(byte[0]),
        }
    }
    set_nonblocking(from)?;
    Ok(serde_json::from_slice(&line)?)
}

#[cfg(target_os = "linux")]
fn open_bell(folder: &RunFolder) -> Option<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let path = folder.bell();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).ok()?;
    // Open for writing too, or the last visitor's leaving would end the stream.
    let nonblocking = i32::try_from(OFlags::NONBLOCK.bits()).expect("a small flag");
    File::options().read(true).write(true).custom_flags(nonblocking).open(path).ok()
}

#[cfg(not(target_os = "linux"))]
fn open_bell(_folder: &RunFolder) -> Option<File> {
    None
}

struct Started {
    shell: Pid,
    out: OwnedFd,
    err: OwnedFd,
}

/// Executes the command in a process group of its own, with nothing to read.
fn start(ticket: &Ticket) -> io::Result<Started> {
    let mut last = io::ErrorKind::NotFound.into();
    for shell in SHELLS {
        let spawned = Command::new(shell)
            .arg("-c")
            .arg(&ticket.command)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn();
        match spawned {
            Ok(mut child) => {
                let out = child.stdout.take().expect("piped above").into();
                let err = child.stderr.take().expect("piped above").into();
                return Ok(Started { shell: Pid::from_child(&child), out, err });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

fn report_not_started(folder: &RunFolder, to_agent: &mut Uplink, begun: Instant, error: io::Error) {
    let report = ExitReport {
        end: End::NotStarted(error.to_string()),
        stop: None,
        took_ms: millis(begun.elapsed()),
        out: Default::default(),
        err: Default::default(),
        left: Vec::new(),
        spool_error: None,
        digest: blake3::hash(b"").to_hex().to_string(),
    };
    publish(folder, to_agent, &report);
}

fn publish(folder: &RunFolder, to_agent: &mut Uplink, report: &ExitReport) {
    let text = serde_json::to_string(report).expect("a report is plain data");
    let is_kept = folder.write_exit(&text).is_ok();
    to_agent.send(Kind::Exit, text.as_bytes());
    to_agent.flush_for(if is_kept { FLUSH } else { FLUSH_LAST_WAY });
}

#[cfg(target_os = "linux")]
fn watch_exit(shell: Pid) -> Option<OwnedFd> {
    rustix::process::pidfd_open(shell, rustix::process::PidfdFlags::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
fn watch_exit(_shell: Pid) -> Option<OwnedFd> {
    None
}

struct Supervisor<'a> {
    folder: &'a RunFolder,
    ticket: &'a Ticket,
    begun: Instant,
    shell: Pid,
    /// Becomes readable when the shell ends; none where the system cannot tell.
    exit_watch: Option<OwnedFd>,
    status: Option<WaitStatus>,
    exited_at: Option<Instant>,
    nobody_left: bool,
    streams: [Stream; 2],
    to_agent: Uplink,
    /// None once the agent is gone, which is no reason to stop.
    from_agent: Option<File>,
    bell: Option<File>,
    stopping: Option<Stopping>,
    reported: bool,
}

struct Stopping {
    why: Stop,
    since: Instant,
    signaller: Signaller,
    is_killing: bool,
}

impl Supervisor<'_> {
    fn watch(mut self) {
        if self.folder.cancel().exists() {
            self.stop(Stop::Cancelled);
        }
        loop {
            self.wait();
            for stream in &mut self.streams {
                stream.take(&mut self.to_agent);
            }
            self.reap();
            self.hear();
            self.to_agent.flush();
            if self.status.is_none() && self.is_overdue() {
                self.stop(Stop::TimedOut { after_ms: self.ticket.timeout_ms.unwrap_or_default() });
            }
            self.press();
            if !self.reported && self.is_settled() {
                self.report();
            }
            if self.reported && !self.are_others_left() {
                break;
            }
        }
        for stream in &mut self.streams {
            stream.take(&mut self.to_agent);
            stream.finish(&mut self.to_agent);
        }
    }

    /// Sleeps until something happens or something is due.
    fn wait(&mut self) {
        let timeout = self.next_due();
        let timeout = Timespec::try_from(timeout).expect("at most some seconds");
        let mut fds = Vec::with_capacity(6);
        for pipe in self.streams.iter().filter_map(|stream| stream.pipe.as_ref()) {
            fds.push(PollFd::new(pipe, PollFlags::IN));
        }
        for file in [&self.from_agent, &self.bell].into_iter().flatten() {
            fds.push(PollFd::new(file, PollFlags::IN));
        }
        if let Some(watch) = &self.exit_watch {
            fds.push(PollFd::new(watch, PollFlags::IN));
        }
        if self.to_agent.is_waiting() {
            fds.push(PollFd::new(&self.to_agent.pipe, PollFlags::OUT));
        }
        // An interrupted or failed poll only means looking sooner; the ticks bound how often.
        if poll(&mut fds, Some(&timeout)).is_err() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn next_due(&self) -> Duration {
        let mut due = TICK;
        if self.stopping.is_some() || (self.status.is_none() && self.exit_watch.is_none()) {
            due = TICK_SHORT;
        }
        if self.status.is_none()
            && let Some(limit) = self.limit()
        {
            due = due.min(limit.saturating_sub(self.begun.elapsed()));
        }
        if !self.reported
            && let Some(exited_at) = self.exited_at
        {
            due = due.min(DRAIN.saturating_sub(exited_at.elapsed()));
        }
        // A hair more, so that what is due is past when we look.
        due + Duration::from_micros(200)
    }

    fn limit(&self) -> Option<Duration> {
        self.ticket.timeout_ms.map(Duration::from_millis)
    }

    fn is_overdue(&self) -> bool {
        self.limit().is_some_and(|limit| self.begun.elapsed() >= limit)
    }

    fn reap(&mut self) {
        self.nobody_left = loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.shell => {
                    self.status = Some(status);
                    self.exited_at = Some(Instant::now());
                    self.exit_watch = None;
                }
                Ok(Some(_)) => {}
                Ok(None) => break false,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => break true,
            }
        };
    }

    /// Requests of the agent, by its pipe or by the bell.
    fn hear(&mut self) {
        let mut asked = false;
        for source in [&mut self.from_agent, &mut self.bell] {
            let Some(file) = source else { continue };
            let mut bytes = [0; 64];
            match file.read(&mut bytes) {
                Ok(0) => *source = None,
                Ok(count) => asked |= bytes[..count].contains(&STOP_BYTE),
                Err(error) if is_later(&error) => {}
                Err(_) => *source = None,
            }
        }
        if asked || (self.bell.is_none() && self.folder.cancel().exists()) {
            self.stop(Stop::Cancelled);
        }
    }

    fn stop(&mut self, why: Stop) {
        // A command that came to its end by itself was not stopped.
        let is_there = self.status.is_none() || self.are_others_left();
        if self.stopping.is_none() && is_there {
            let since = Instant::now();
            self.stopping = Some(Stopping { why, since, signaller: Signaller::default(), is_killing: false });
        }
    }

    /// Ends what is to be ended: asks first, insists after the grace.
    fn press(&mut self) {
        let Some(stopping) = &mut self.stopping else { return };
        let is_held = self.status.is_none();
        if stopping.since.elapsed() < TERM_GRACE {
            stopping.signaller.send(self.shell, is_held, Signal::TERM);
            return;
        }
        stopping.is_killing = true;
        // Each round meets the children of those that died in the last one.
        stopping.signaller.again();
        stopping.signaller.send(self.shell, is_held, Signal::KILL);
    }

    fn are_others_left(&self) -> bool {
        let is_given_up = |stopping: &Stopping| stopping.since.elapsed() > TERM_GRACE + KILL_GRACE;
        children::are_left(self.shell, self.nobody_left) && !self.stopping.as_ref().is_some_and(is_given_up)
    }

    /// Whether the call has come to its end.
    fn is_settled(&self) -> bool {
        let Some(exited_at) = self.exited_at else { return false };
        if self.stopping.is_some() && self.are_others_left() {
            return false;
        }
        self.streams.iter().all(|stream| stream.pipe.is_none()) || exited_at.elapsed() >= DRAIN
    }

    fn report(&mut self) {
        for stream in &mut self.streams {
            stream.settle(&mut self.to_agent);
        }
        let status = self.status.expect("settled after the shell ended");
        let [out, err] = &self.streams;
        let mut digest = blake3::Hasher::new();
        digest.update(out.digest.finalize().as_bytes());
        digest.update(err.digest.finalize().as_bytes());
        let report = ExitReport {
            end: match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => End::Code(code),
                (None, signal) => End::Signal(signal.unwrap_or_default()),
            },
            stop: self.stopping.as_ref().map(|stopping| stopping.why),
            took_ms: millis(self.begun.elapsed()),
            out: out.capture.excerpt(),
            err: err.capture.excerpt(),
            left: self.left(),
            spool_error: out.spool.error.clone().or_else(|| err.spool.error.clone()),
            digest: digest.finalize().to_hex().to_string(),
        };
        publish(self.folder, &mut self.to_agent, &report);
        self.reported = true;
    }

    fn left(&self) -> Vec<String> {
        if !self.are_others_left() {
            return Vec::new();
        }
        let children = children::list().unwrap_or_default();
        let named = children.iter().filter(|child| !child.is_zombie);
        named.take(LEFT_MAX).map(|child| format!("{} ({})", child.name, child.pid.as_raw_nonzero())).collect()
    }
}

/// One of the command's two streams, on its way to the disk, the excerpt and the agent.
struct Stream {
    kind: Kind,
    /// None at its end.
    pipe: Option<File>,
    redactor: Redactor,
    spool: Spool,
    capture: Capture,
    digest: blake3::Hasher,
}

impl Stream {
    fn new(kind: Kind, pipe: OwnedFd, base: std::path::PathBuf, hello: &Hello, ticket: &Ticket) -> Self {
        let pipe = File::from(pipe);
        // A pipe we made ourselves takes the flag.
        let pipe = set_nonblocking(&pipe).is_ok().then_some(pipe);
        let secrets = hello.secrets.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        Self {
            kind,
            pipe,
            redactor: Redactor::new(secrets),
            spool: Spool::new(base, ticket.spool_bytes_max),
            capture: Capture::default(),
            digest: blake3::Hasher::new(),
        }
    }

    /// Takes what is there, at most so much that the other stream has its turn.
    fn take(&mut self, to_agent: &mut Uplink) {
        let mut bytes = [0; READ_BYTES];
        for _ in 0..4 {
            let Some(pipe) = &mut self.pipe else { return };
            match pipe.read(&mut bytes) {
                Ok(0) => self.finish(to_agent),
                Ok(count) => {
                    let clean = self.redactor.push(&bytes[..count]);
                    self.keep(&clean, to_agent);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_later(&error) => return,
                Err(_) => self.finish(to_agent),
            }
        }
    }

    /// The end of the stream, or of our interest in it.
    fn finish(&mut self, to_agent: &mut Uplink) {
        self.pipe = None;
        self.settle(to_agent);
    }

    /// What was held back in case a secret went on is certain now.
    fn settle(&mut self, to_agent: &mut Uplink) {
        let rest = self.redactor.finish();
        self.keep(&rest, to_agent);
    }

    fn keep(&mut self, clean: &[u8], to_agent: &mut Uplink) {
        if clean.is_empty() {
            return;
        }
        self.spool.write(clean);
        self.capture.push(clean);
        self.digest.update(clean);
        to_agent.send(self.kind, clean);
    }
}

/// The pipe to the agent. Never blocks; a dead or sleeping agent misses output, nothing more.
struct Uplink {
    pipe: File,
    queue: VecDeque<u8>,
    is_broken: bool,
}

impl Uplink {
    fn new(pipe: OwnedFd) -> io::Result<Self> {
        let pipe = File::from(pipe);
        set_nonblocking(&pipe)?;
        Ok(Self { pipe, queue: VecDeque::new(), is_broken: false })
    }

    fn is_waiting(&self) -> bool {
        !self.queue.is_empty()
    }

    fn send(&mut self, kind: Kind, body: &[u8]) {
        let is_live_output = matches!(kind, Kind::Out | Kind::Err);
        if self.is_broken || (is_live_output && self.queue.len() > QUEUE_BYTES_MAX) {
            return;
        }
        let mut bytes = Vec::with_capacity(body.len() + 5);
        frame::write(kind, body, &mut bytes);
        self.queue.extend(bytes);
        self.flush();
    }

    fn flush(&mut self) {
        while !self.queue.is_empty() {
            match self.pipe.write(self.queue.as_slices().0) {
                Ok(count) => drop(self.queue.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_later(&error) => return,
                Err(_) => {
                    self.is_broken = true;
                    self.queue.clear();
                }
            }
        }
    }

    fn flush_for(&mut self, at_most: Duration) {
        let since = Instant::now();
        loop {
            self.flush();
            let left = at_most.saturating_sub(since.elapsed());
            if !self.is_waiting() || left.is_zero() {
                return;
            }
            let Ok(timeout) = Timespec::try_from(left) else { return };
            let _ = poll(&mut [PollFd::new(&self.pipe, PollFlags::OUT)], Some(&timeout));
        }
    }
}

fn set_nonblocking(file: &File) -> io::Result<()> {
    let flags = fcntl_getfl(file)?;
    Ok(fcntl_setfl(file, flags | OFlags::NONBLOCK)?)
}

fn is_later(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
