//! The REPL. With piped input: five errors of two prompts, and the process goes on after each. On a terminal: what was
//! typed is remembered.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::time::Instant;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use yaoki_lab::{Script, example};

use crate::stage::{Running, Stage, WAIT, is_ready};

#[test]
fn five_errors_do_not_end_it_and_the_counts_are_right() {
    let stage = Stage::new(Script::parse(example("five-errors").unwrap()).unwrap());
    let mut command = stage.yaoki(&[]);
    let ran = Running::start_with(&mut command, "Summarise the README\nSay it again\n/status\n");
    ran.assert_code(0);
    stage.assert_accepted();
    assert_eq!(ran.err, "");
    let session = stage.session();
    let cwd = stage.project().canonicalize().unwrap();
    let date = ran.out.lines().next().unwrap().rsplit(' ').next().unwrap().to_owned();
    assert!(date.len() == 10 && date.chars().filter(|c| *c == '-').count() == 2, "a date: {date}");
    let retry = ran.out.lines().find(|line| line.starts_with("Retrying in")).unwrap().to_owned();
    assert!(retry.ends_with("s · attempt 1/10 · 529 overloaded"), "{retry}");
    // The number of the exit code is the system's own business.
    let ls = ran.out.lines().skip_while(|line| *line != "✘ Bash → [stderr]").nth(1).unwrap().to_owned();
    assert!(ls.contains("README.md"), "{ls}");
    let code = ran.out.lines().find(|line| line.contains("[exit code ")).unwrap().to_owned();
    let want = format!(
        "◇ project notes: none · git: main, no commit yet · {date}
❯ Summarise the README
{retry}
  I will read the README first.
● Read(README.md)
✘ Read → <tool_use_error>InputValidationError: Read failed due to the following issues:
  The required parameter `file_path` is missing
  An unexpected parameter `path` was provided</tool_use_error>
  That parameter has another name; it is file_path.
● Read(README.md)
✘ Read → <tool_use_error>Error: ENOENT: no such file or directory, open '{readme}'</tool_use_error>
  The file seems not to exist; let me make sure.
● Bash(ls README.md)
✘ Bash → [stderr]
{ls}
{code}
  There is no README.md in the project root. Shall I write one?
❯ Say it again
✗ auth_error · 401 auth: invalid x-api-key; check ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN, and ANTHROPIC_BASE_URL
❯ /status
model     claude-opus-5-5
effort    medium
cwd       {cwd}
session   {session}
mode      bypassPermissions
allow     -
messages  9
context   100 tokens (input of the last answered request)
total     in 400 / out 80 / 4 requests
failed    2 attempts
",
        readme = cwd.join("README.md").display(),
        cwd = cwd.display(),
    );
    assert_eq!(ran.out, want);
    assert_eq!(stage.asks().len(), 6, "four answered, two failed attempts");
}

#[test]
fn a_line_typed_on_a_terminal_is_in_the_history_while_the_conversation_goes_on() {
    let stage = Stage::new(Script::of(Vec::new()));
    let mut terminal = Terminal::open();
    let mut command = stage.yaoki(&[]);
    command.env("TERM", "xterm").stdin(terminal.end()).stdout(terminal.end());
    let mut child = command.stderr(terminal.end()).spawn().unwrap();
    drop(command);
    terminal.wait_for("❯ ");
    terminal.write("/status\r");
    terminal.wait_for("messages  0");
    assert_eq!(stage.read("home/history"), "/status\n");
    terminal.wait_for("❯ ");
    terminal.write("/exit\r");
    terminal.wait_for("goes on here");
    assert!(child.wait().unwrap().success());
}

/// The test's end of a terminal.
struct Terminal {
    own: File,
    name: String,
    unread: Vec<u8>,
}

impl Terminal {
    fn open() -> Terminal {
        let own = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&own).unwrap();
        unlockpt(&own).unwrap();
        let name = ptsname(&own, Vec::new()).unwrap().into_string().unwrap();
        Terminal { own: own.into(), name, unread: Vec::new() }
    }

    /// The program's end.
    fn end(&self) -> File {
        OpenOptions::new().read(true).write(true).open(&self.name).unwrap()
    }

    fn write(&mut self, text: &str) {
        self.own.write_all(text.as_bytes()).unwrap();
    }

    /// Reads until the screen was told this, answering questions for the cursor's place as a terminal does.
    fn wait_for(&mut self, text: &str) {
        let deadline = Instant::now() + WAIT;
        loop {
            if let Some(at) = self.unread.windows(text.len()).position(|part| part == text.as_bytes()) {
                self.unread.drain(..at + text.len());
                return;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let shown = || String::from_utf8_lossy(&self.unread).into_owned();
            assert!(is_ready(&self.own, left), "no {text:?} in {:?}", shown());
            let mut piece = [0; 4096];
            let count = self.own.read(&mut piece).unwrap();
            let asked = piece[..count].windows(4).filter(|part| part == b"\x1b[6n").count();
            self.unread.extend_from_slice(&piece[..count]);
            for _ in 0..asked {
                self.write("\x1b[1;1R");
            }
        }
    }
}
