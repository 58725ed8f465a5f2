//! A folder with a repository in it, a lab, and the binary between them.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::Value;
use yaoki_lab::serve::Server;
use yaoki_lab::{Lab, LogEntry, Script};

/// Longer than anything here takes, on a machine that is busy with other things.
pub const WAIT: Duration = Duration::from_secs(30);

/// A secret that must turn up nowhere.
pub const KEY: &str = "sk-ant-canary-6f1d0c9b7e";

pub struct Stage {
    dir: tempfile::TempDir,
    pub server: Server,
}

/// How a run of the binary ended.
#[derive(Debug, Clone)]
pub struct Ran {
    pub status: ExitStatus,
    pub out: String,
    pub err: String,
}

/// A run of the binary that goes on. Ended when dropped.
pub struct Running {
    child: Child,
    out: Option<thread::JoinHandle<String>>,
    err: Option<thread::JoinHandle<String>>,
}

/// A named pipe whose both ends the test holds open, so that nobody waits for an opener.
pub struct Pipe(File);

impl Stage {
    pub fn new(script: Script) -> Stage {
        let dir = tempfile::Builder::new().prefix("yaoki-test-").tempdir().unwrap();
        fs::create_dir(dir.path().join("project")).unwrap();
        let server = Server::start_on_thread(Lab::new(script), "127.0.0.1:0").unwrap();
        let stage = Stage { dir, server };
        stage.git(&["-c", "init.defaultBranch=main", "init", "--quiet"]);
        stage
    }

    /// Has another lab play another script.
    pub fn play(&mut self, script: Script) {
        self.server = Server::start_on_thread(Lab::new(script), "127.0.0.1:0").unwrap();
    }

    /// The folder that holds everything.
    pub fn base(&self) -> &Path {
        self.dir.path()
    }

    pub fn project(&self) -> PathBuf {
        self.base().join("project")
    }

    pub fn home(&self) -> PathBuf {
        self.base().join("home")
    }

    pub fn path(&self, name: &str) -> String {
        self.project().join(name).to_str().unwrap().to_owned()
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.base().join(name), text).unwrap();
    }

    /// Returns a file's text; empty if it is not there.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.base().join(name)).unwrap_or_default()
    }

    pub fn git(&self, args: &[&str]) -> String {
        let output = self.plain("git").args(args).output().unwrap();
        assert!(output.status.success(), "git {args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// A command in the project, in an environment without anything of ours.
    pub fn plain(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.project())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.base())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .stdin(Stdio::null());
        command
    }

    /// The binary, pointed at the lab. Edits and commands are not asked about.
    pub fn yaoki(&self, args: &[&str]) -> Command {
        let mut command = self.bare(args);
        command.arg("--dangerously-skip-permissions");
        command
    }

    /// The binary, pointed at the lab.
    pub fn bare(&self, args: &[&str]) -> Command {
        let mut command = self.plain(env!("CARGO_BIN_EXE_yaoki"));
        command
            .args(args)
            .env("ANTHROPIC_BASE_URL", self.server.url())
            .env("ANTHROPIC_API_KEY", KEY)
            .env("IS_SANDBOX", "1")
            .env("YAOKI_HOME", self.home());
        command
    }

    /// Runs the binary to its end.
    pub fn run(&self, args: &[&str]) -> Ran {
        Running::start(&mut self.yaoki(args)).wait()
    }

    pub fn start(&self, args: &[&str]) -> Running {
        Running::start(&mut self.yaoki(args))
    }

    /// Finishes the turn that an earlier process left open.
    pub fn resume(&self) -> Ran {
        self.run(&["resume", &self.session(), "--continue"])
    }

    /// The id of the only session.
    pub fn session(&self) -> String {
        let folder = self.session_folder();
        folder.file_name().unwrap().to_str().unwrap().to_owned()
    }

    pub fn session_folder(&self) -> PathBuf {
        let mut found = Vec::new();
        for slug in entries(&self.home().join("sessions")) {
            found.extend(entries(&slug).into_iter().filter(|path| path.is_dir()));
        }
        assert_eq!(found.len(), 1, "one session: {found:?}");
        found.remove(0)
    }

    /// The session's records, verified. Shape: one (type, data) for each.
    pub fn records(&self) -> Vec<(String, Value)> {
        let (lines, findings) =
            yaoki::store::read_only(&yaoki::store::RealDisk, &self.session_folder(), &self.session())
                .unwrap();
        assert!(findings.is_clean(), "{findings}");
        lines
            .iter()
            .map(|line| (line.kind().to_owned(), serde_json::from_str(line.data()).unwrap()))
            .collect()
    }

    /// The Messages requests so far.
    pub fn asks(&self) -> Vec<LogEntry> {
        self.server.log().into_iter().filter(|entry| entry.path.starts_with("/v1/messages")).collect()
    }

    /// Fails if the lab refused anything, or a fault that was asked for did not happen.
    pub fn assert_accepted(&self) {
        assert_eq!(self.server.report().complaints(), Vec::<String>::new());
    }

    /// Makes a named pipe in the folder.
    pub fn pipe(&self, name: &str) -> Pipe {
        let path = self.base().join(name);
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).unwrap();
        Pipe(OpenOptions::new().read(true).write(true).open(path).unwrap())
    }
}

impl Running {
    pub fn start(command: &mut Command) -> Running {
        let spawned = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = spawned.unwrap();
        let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        Running { child, out: Some(read_all(out)), err: Some(read_all(err)) }
    }

    /// Runs a command to its end, with this on its standard input.
    pub fn start_with(command: &mut Command, input: &str) -> Ran {
        let mut running = Running::start(command.stdin(Stdio::piped()));
        let mut stdin = running.child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        drop(stdin);
        running.wait()
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(self.pid(), signal).unwrap();
    }

    /// Kills it; fails if it had ended by itself.
    pub fn kill(mut self) -> Ran {
        self.child.kill().unwrap();
        let ran = self.wait();
        assert_eq!(ran.status.signal(), Some(9), "killed in time: {ran:?}");
        ran
    }

    /// Kills it, or finds that it has just ended by itself.
    pub fn kill_or_end(mut self) -> Ran {
        self.child.kill().unwrap();
        self.wait()
    }

    /// Waits for its end.
    pub fn wait(mut self) -> Ran {
        let pidfd = pidfd_open(self.pid(), PidfdFlags::empty()).unwrap();
        assert!(is_ready(&pidfd, WAIT), "the process does not end");
        let status = self.child.wait().unwrap();
        let text = |reader: &mut Option<thread::JoinHandle<String>>| reader.take().unwrap().join().unwrap();
        Ran { status, out: text(&mut self.out), err: text(&mut self.err) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.child.kill().unwrap();
            self.child.wait().unwrap();
        }
    }
}

impl Ran {
    /// Fails unless the run ended with this code.
    pub fn assert_code(&self, code: i32) -> &Self {
        assert_eq!(self.status.code(), Some(code), "out: {}\nerr: {}", self.out, self.err);
        self
    }

    pub fn err_lines(&self) -> Vec<&str> {
        self.err.lines().filter(|line| !line.trim().is_empty()).collect()
    }
}

impl Pipe {
    /// Puts a word in; whoever reads a line from the pipe goes on.
    pub fn say(&self, word: &str) {
        (&self.0).write_all(format!("{word}\n").as_bytes()).unwrap();
    }

    /// Waits for the next word.
    pub fn hear(&self) -> String {
        let deadline = Instant::now() + WAIT;
        let mut word = String::new();
        loop {
            assert!(
                is_ready(&self.0, deadline.saturating_duration_since(Instant::now())),
                "no word after {word:?}"
            );
            let mut byte = [0];
            (&self.0).read_exact(&mut byte).unwrap();
            match byte[0] {
                b'\n' => return word,
                byte => word.push(byte.into()),
            }
        }
    }
}

/// Waits until something can be read, or a process behind a pidfd has ended.
pub fn is_ready(fd: &impl std::os::fd::AsFd, within: Duration) -> bool {
    let timeout = Timespec::try_from(within).unwrap();
    poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&timeout)).unwrap() > 0
}

fn read_all(mut from: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

pub fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Skips a test aloud: it needs something this machine does not have.
#[macro_export]
macro_rules! skip {
    ($($why:tt)*) => {{
        eprintln!("SKIPPED: {}", format_args!($($why)*));
        return;
    }};
}
