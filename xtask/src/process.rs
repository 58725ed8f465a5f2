//! Runs one child to its end or its limit, showing what it prints and counting the tests in it.
//!
//! Promises: a child that overstays is killed with its group, by id. A grandchild that keeps the
//! child's output open does not hold us up.
//! Not here: input; a chore never asks anything.

use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::tally::{self, Tally};

/// How long a killed child may take to go, and the rest of an output to arrive.
const GRACE: Duration = Duration::from_secs(10);

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Passed,
    /// The exit status; `None` when a signal ended it.
    Failed(Option<i32>),
    TimedOut,
}

/// Runs the command; its standard output passes through.
///
/// Errors: the program cannot be started, or its end cannot be learnt.
pub fn run(command: &mut Command, limit: Duration) -> io::Result<(End, Tally)> {
    // A reader that has gone away is no reason to stop the tests.
    run_into(command, limit, |line| drop(io::stdout().lock().write_all(line)))
}

fn run_into(command: &mut Command, limit: Duration, print: fn(&[u8])) -> io::Result<(End, Tally)> {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    // At a terminal the child stays in our group, so that Ctrl+C reaches it.
    let has_own_group = !io::stdin().is_terminal();
    if has_own_group {
        command.process_group(0);
    }
    let mut child = command.spawn()?;
    let id = child.id();
    let seen = Arc::new(Mutex::new(Tally::default()));
    let all_read = show(&mut child, Arc::clone(&seen), print);
    let ended = wait(child);
    let end = match ended.recv_timeout(limit) {
        Ok(status) => to_end(status?),
        Err(RecvTimeoutError::Timeout) => {
            kill(id, has_own_group)?;
            match ended.recv_timeout(GRACE) {
                Ok(_) => End::TimedOut,
                Err(_) => {
                    return Err(io::Error::other(format!("process {id} was killed and is still there")));
                }
            }
        }
        Err(RecvTimeoutError::Disconnected) => return Err(io::Error::other("the waiting thread is gone")),
    };
    let _ = all_read.recv_timeout(GRACE);
    let tally = *seen.lock().unwrap_or_else(PoisonError::into_inner);
    Ok((end, tally))
}

fn to_end(status: ExitStatus) -> End {
    if status.success() { End::Passed } else { End::Failed(status.code()) }
}

/// Passes the child's output on, line by line; the receiver hears when it ends.
fn show(child: &mut Child, seen: Arc<Mutex<Tally>>, print: fn(&[u8])) -> Receiver<()> {
    let out = child.stdout.take().expect("stdout was piped above");
    let (done, all_read) = mpsc::channel();
    thread::spawn(move || {
        let mut lines = BufReader::new(out);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
            print(&line);
            if let Some(found) = tally::read(&String::from_utf8_lossy(&line)) {
                *seen.lock().unwrap_or_else(PoisonError::into_inner) += found;
            }
            line.clear();
        }
        let _ = done.send(());
    });
    all_read
}

fn wait(mut child: Child) -> Receiver<io::Result<ExitStatus>> {
    let (done, ended) = mpsc::channel();
    thread::spawn(move || done.send(child.wait()));
    ended
}

/// The standard library can kill a child but not a group; every shell can.
fn kill(id: u32, is_group: bool) -> io::Result<()> {
    let target = if is_group { format!("-{id}") } else { id.to_string() };
    let killed = Command::new("sh").args(["-c", "kill -KILL \"$1\"", "sh", &target]).status()?;
    if killed.success() { Ok(()) } else { Err(io::Error::other(format!("cannot kill {target}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn sh(script: &str) -> Command {
        let mut sh = Command::new("sh");
        sh.args(["-c", script]);
        sh
    }

    #[test]
    fn the_status_and_the_counts_of_a_child_are_told() {
        let limit = Duration::from_secs(60);
        let ok =
            run_into(&mut sh("printf 'test result: ok. 2 passed; 0 failed; 0 ignored\\n'"), limit, |_| {})
                .unwrap();
        assert_eq!(ok, (End::Passed, Tally { passed: 2, failed: 0 }));
        let bad = run_into(&mut sh("exit 3"), limit, |_| {}).unwrap();
        assert_eq!(bad, (End::Failed(Some(3)), Tally::default()));
    }

    #[test]
    fn a_child_that_overstays_is_killed_with_its_children() {
        // The pipe closes only when everyone who holds it is gone.
        let started = Instant::now();
        let (end, _) =
            run_into(&mut sh("sleep 1000 & sleep 1000; wait"), Duration::from_millis(50), |_| {}).unwrap();
        assert_eq!(end, End::TimedOut);
        assert!(started.elapsed() < GRACE, "a grandchild lived on");
    }
}
