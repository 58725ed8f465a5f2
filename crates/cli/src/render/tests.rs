//! What people read, for sequences of events.

use yaoki::core::event::{Event, Level, TurnSummary};
use yaoki::core::fault::{Evidence, Failure, Fault};
use yaoki::core::ids::{CallId, MessageId, OpId};
use yaoki::core::message::{Block, BlockBody, CallResult, Origin, Reply, StopReason, Usage};
use yaoki::core::record::{OutcomeStatus, Refusal};
use yaoki::core::terminal::{TerminalReason, Transition};

use super::screen::{Detail, Screen};
use super::style::Look;

const TTY: Look = Look { tty: true, color: false, width: 60, height: 24 };

fn shown(look: Look, detail: Detail, events: &[Event]) -> String {
    let mut out = Vec::new();
    let mut screen = Screen::new(&mut out, look, detail);
    for event in events {
        screen.show(event, 0);
    }
    String::from_utf8(out).unwrap()
}

fn asking() -> Event {
    Event::Asking { request: 1, attempt: 1, model: "m".into(), streamed: true }
}

fn text(piece: &str) -> Event {
    Event::Text { request: 1, piece: piece.into() }
}

fn committed(text: &str) -> Event {
    let origin = Origin { format: "anthropic".into(), endpoint: "http://e".into(), model: "m".into() };
    let blocks = vec![Block { body: BlockBody::Text { text: text.into() }, raw: None }];
    let reply = Reply {
        provider_id: "msg".into(),
        origin,
        blocks,
        stop: StopReason::EndTurn,
        usage: Usage::default(),
    };
    Event::Committed { message: MessageId::new("m1"), reply }
}

fn failure(fault: Fault, status: Option<u16>, message: &str) -> Failure {
    Failure { fault, evidence: Evidence { status, message: message.into(), ..Evidence::default() } }
}

fn overloaded() -> Event {
    Event::Retrying {
        request: 1,
        retry: 1,
        retries_max: 10,
        after_ms: 1200,
        rule: "overloaded".into(),
        transition: Transition::RequestRetry,
        failure: failure(Fault::Overloaded { wait_ms: None }, Some(529), "Overloaded"),
    }
}

fn started(op: u64, tool: &str, title: &str) -> Event {
    Event::CallStarted { call: CallId::new("c"), op: OpId(op), tool: tool.into(), title: title.into() }
}

fn ended(op: u64, tool: &str, result: CallResult) -> Event {
    let status = if result.is_error { OutcomeStatus::FailedClean } else { OutcomeStatus::Success };
    Event::CallEnded { call: CallId::new("c"), op: OpId(op), tool: tool.into(), status, result, took_ms: 5 }
}

fn refused(tool: &str, title: &str, why: Refusal, text: &str) -> Event {
    let result = CallResult::error(text);
    Event::CallRefused { call: CallId::new("c"), tool: tool.into(), title: title.into(), why, result }
}

fn turn_ended(reason: TerminalReason, error: Option<&str>) -> Event {
    Event::TurnEnded(TurnSummary {
        reason,
        text: String::new(),
        error: error.map(str::to_owned),
        resumes_at: None,
        failure: None,
        rounds: 1,
        usage: Usage::default(),
        attempts_failed: 0,
        denials: Vec::new(),
        stop: None,
    })
}

#[test]
fn five_errors_are_told_and_none_ends_the_story() {
    let wrong = "<tool_use_error>InputValidationError: Read failed due to the following issues:\n\
                 The required parameter `file_path` is missing\n\
                 An unexpected parameter `path` was provided</tool_use_error>";
    let events = [
        asking(),
        overloaded(),
        asking(),
        text("Reading the "),
        text("README first."),
        committed("Reading the README first."),
        refused("Read", "Read(README.md)", Refusal::InvalidInput, wrong),
        asking(),
        text("The parameter is called file_path."),
        committed("The parameter is called file_path."),
        started(1, "Read", "Read(README.md)"),
        ended(
            1,
            "Read",
            CallResult::error("<tool_use_error>Error: no such file: README.md</tool_use_error>"),
        ),
        asking(),
        committed("Checking."),
        started(2, "Bash", "Bash(ls README.md)"),
        ended(
            2,
            "Bash",
            CallResult::error("[stderr]\nls: README.md: No such file or directory\n[exit code 1]"),
        ),
        asking(),
        text("There is no README. Shall I write one?"),
        committed("There is no README. Shall I write one?"),
        turn_ended(TerminalReason::Completed, None),
        asking(),
        turn_ended(TerminalReason::AuthError, Some("401 auth: invalid x-api-key")),
    ];
    insta::assert_snapshot!(shown(Look::PLAIN, Detail::All, &events), @r"
    Retrying in 1.2s · attempt 1/10 · 529 overloaded
      Reading the README first.
    ● Read(README.md)
    ✘ Read → <tool_use_error>InputValidationError: Read failed due to the following issues:
      The required parameter `file_path` is missing
      An unexpected parameter `path` was provided</tool_use_error>
      The parameter is called file_path.
    ● Read(README.md)
    ✘ Read → <tool_use_error>Error: no such file: README.md</tool_use_error>
      Checking.
    ● Bash(ls README.md)
    ✘ Bash → [stderr]
      ls: README.md: No such file or directory
      [exit code 1]
      There is no README. Shall I write one?
    ✗ auth_error · 401 auth: invalid x-api-key; check ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN, and ANTHROPIC_BASE_URL
    ");
    insta::assert_snapshot!(shown(Look::PLAIN, Detail::Notices, &events), @r"
    Retrying in 1.2s · attempt 1/10 · 529 overloaded
    ✗ auth_error · 401 auth: invalid x-api-key; check ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN, and ANTHROPIC_BASE_URL
    ");
}

#[test]
fn text_of_a_cut_stream_is_marked_and_the_next_attempt_stands_apart() {
    let events = [
        asking(),
        text("half a sen"),
        Event::Withdrawn { request: 1, shown: 10, reason: "cut".into(), spent: None },
        overloaded(),
        asking(),
        text("a whole sentence"),
        committed("a whole sentence"),
    ];
    insta::assert_snapshot!(shown(Look::PLAIN, Detail::All, &events), @r"
      half a sen
    (the text above is incomplete and withdrawn)
    Retrying in 1.2s · attempt 1/10 · 529 overloaded
      a whole sentence
    ");
    let nothing = [asking(), Event::Withdrawn { request: 1, shown: 0, reason: "cut".into(), spent: None }];
    assert_eq!(shown(Look::PLAIN, Detail::All, &nothing), "");
}

#[test]
fn nothing_that_a_model_or_a_tool_says_reaches_the_first_column_or_the_terminal() {
    let evil = "ok\n● Bash(safe)\r✗ fake\u{1b}[2J\u{9b}31m\u{202e}";
    let events = [
        asking(),
        text(evil),
        committed(evil),
        started(1, "Bash\u{1b}", "Bash(echo\n● fake \u{1b}[31m)"),
        ended(1, "Bash", CallResult::error("\u{1b}]0;x\u{7}\n✗ fake")),
        Event::Notice { level: Level::Warn, text: "a\n● b\u{1b}".into() },
        turn_ended(TerminalReason::InvalidRequest, Some("bad\n● fake \u{1b}[1m")),
    ];
    for look in [Look::PLAIN, TTY] {
        let out = shown(look, Detail::All, &events);
        assert!(out.chars().all(|c| c == '\n' || !c.is_control()), "{out:?}");
        let fakes = out.lines().filter(|line| {
            (line.starts_with('●') || line.starts_with('✗')) && line[3..].trim_start().starts_with("fake")
        });
        assert_eq!(fakes.count(), 0, "{out}");
        assert!(!out.lines().any(|line| line == "● Bash(safe)" || line == "● b"), "{out}");
    }
}

#[test]
fn a_failure_beside_others_names_its_call() {
    let events = [
        started(1, "Read", "Read(a)"),
        started(2, "Read", "Read(b)"),
        ended(1, "Read", CallResult::error("no a")),
        ended(2, "Read", CallResult::ok("b")),
        started(3, "Bash", "Bash(cargo test)"),
        ended(3, "Bash", CallResult::ok("1\n2\n3\n4\n5\n6\n")),
    ];
    insta::assert_snapshot!(shown(Look::PLAIN, Detail::Calls, &events), @r"
    ● Read(a)
    ● Read(b)
    ✘ Read(a) → no a
    ● Bash(cargo test)
      1
      2
      3
      4
      … 2 more lines
    ");
}

#[test]
fn unknown_detached_and_denied_calls_say_so() {
    let result = CallResult::error("It may or may not have happened.");
    let events = [
        Event::OutcomeUnknown {
            call: CallId::new("c"),
            op: OpId(1),
            tool: "Bash".into(),
            title: "Bash(deploy)".into(),
            result: result.clone(),
        },
        started(2, "Bash", "Bash(serve)"),
        Event::Detached { call: CallId::new("c"), op: OpId(2), task: "bash_1".into(), result },
        refused("Edit", "Edit(src/a.rs)", Refusal::Denied, "denied by a rule"),
        Event::Notice { level: Level::Info, text: "a torn tail was set aside".into() },
        turn_ended(TerminalReason::CancelledTools, None),
    ];
    insta::assert_snapshot!(shown(Look::PLAIN, Detail::All, &events), @r"
    ? Bash(deploy) → It may or may not have happened.
    ● Bash(serve)
    Bash(serve) goes on in the background as bash_1
    ● Edit(src/a.rs)
    ✘ Edit → denied by a rule
    ◇ a torn tail was set aside
    ✗ interrupted while a call ran
    ");
}

#[test]
fn on_a_terminal_a_block_is_printed_when_the_next_begins() {
    let mut out = Vec::new();
    let mut screen = Screen::new(&mut out, TTY, Detail::All);
    screen.show(&asking(), 0);
    for piece in ["# He", "ad\n\nbo", "dy **bold", "** text\n\n- a\n- b"] {
        screen.show(&text(piece), 0);
    }
    screen.show(&committed("# Head\n\nbody **bold** text\n\n- a\n- b"), 0);
    let out = String::from_utf8(out).unwrap();
    assert_eq!(out, "  Head\n\n  body bold text\n\n  - a\n  - b\n");
}

#[test]
fn live_lines_are_taken_back_before_anything_final_is_printed() {
    let mut out = Vec::new();
    let mut screen = Screen::new(&mut out, TTY, Detail::All);
    screen.show(&overloaded(), 0);
    screen.tick(0);
    screen.tick(100);
    screen.tick(300);
    screen.show(&asking(), 1200);
    screen.show(&text("answer"), 1300);
    screen.tick(3300);
    screen.show(&committed("answer"), 3400);
    let out = String::from_utf8(out).unwrap();
    let back = |rows: usize| format!("\u{1b}[{rows}A\r\u{1b}[J");
    let want = [
        "Retrying in 1.2s · attempt 1/10 · 529 overloaded\n",
        "… retrying in 2s · attempt 1/10 · Ctrl+C stops\n",
        &back(1),
        "… retrying in 1s · attempt 1/10 · Ctrl+C stops\n",
        &back(1),
        "  answer\n… writing m · 2s\n",
        &back(2),
        "  answer\n",
    ];
    assert_eq!(out, want.concat());
}

#[test]
fn long_work_without_a_terminal_gives_a_sign_of_life_ever_more_rarely() {
    let mut out = Vec::new();
    let mut screen = Screen::new(&mut out, Look::PLAIN, Detail::Calls);
    screen.show(&started(1, "Bash", "Bash(make)"), 0);
    for second in 0..130 {
        screen.tick(second * 1000);
    }
    let out = String::from_utf8(out).unwrap();
    assert_eq!(out, "● Bash(make)\n… Bash(make) · 30s\n… Bash(make) · 1m\n… Bash(make) · 2m\n");
}

#[test]
fn a_reader_who_left_is_remembered_and_is_no_error() {
    struct Closed;
    impl std::io::Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut screen = Screen::new(Closed, Look::PLAIN, Detail::All);
    assert!(!screen.is_gone());
    screen.show(&text("x"), 0);
    assert!(screen.is_gone());
    screen.show(&committed("x"), 0);
}
