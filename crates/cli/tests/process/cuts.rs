//! Requests that fail, streams that break, waits that are named: how often is asked, and how it ends.

use std::time::Duration;

use yaoki_lab::{Fault, How, Place, RetryAfter, Script, StatusFault, Step};

use crate::stage::Stage;

/// Runs one prompt with such variables; returns the exit code, stdout, and when each request came.
fn check(steps: Vec<Step>, env: &[(&str, &str)], code: i32, out: &str) -> (Stage, Vec<u64>) {
    let stage = Stage::new(Script::of(steps));
    let mut command = stage.yaoki(&["-p", "say it"]);
    command.envs(env.iter().copied());
    let ran = crate::stage::Running::start(&mut command).wait();
    ran.assert_code(code);
    assert_eq!(ran.out, out, "{}", ran.err);
    stage.assert_accepted();
    let at_ms = stage.asks().iter().map(|entry| entry.at_ms).collect();
    (stage, at_ms)
}

/// The first request fails so, the second is answered.
fn once(fault: Fault) -> Vec<Step> {
    let first = if fault.has_answer() { Step::text("Said.").with_fault(fault) } else { Step::fault(fault) };
    vec![first, Step::text("Said.")]
}

fn status(code: u16, retry_after: RetryAfter) -> Fault {
    Fault::Status(StatusFault { retry_after: Some(retry_after), ..StatusFault::of(code) })
}

#[test]
fn two_529_and_a_200_are_three_requests_with_two_retries_allowed() {
    let steps = || vec![Step::status(529).times(2), Step::text("Said.")];
    let (_, at_ms) = check(steps(), &[("YAOKI_MAX_RETRIES", "2")], 0, "Said.\n");
    assert_eq!(at_ms.len(), 3);
    let bodies = |stage: &Stage| stage.asks().into_iter().map(|entry| entry.body).collect::<Vec<_>>();
    let (stage, at_ms) = check(vec![Step::status(529).times(2)], &[("YAOKI_MAX_RETRIES", "1")], 1, "");
    assert_eq!(at_ms.len(), 2);
    let bodies = bodies(&stage);
    assert_eq!(bodies[0], bodies[1], "a resend is the same request");
}

#[test]
fn a_400_and_a_401_are_one_request_and_exit_1() {
    for code in [400, 401, 403, 404] {
        let (_, at_ms) = check(vec![Step::status(code)], &[], 1, "");
        assert_eq!(at_ms.len(), 1, "{code}");
    }
}

#[test]
fn the_wait_that_the_server_names_is_kept() {
    for (wait, at_least_ms) in [
        (RetryAfter::Ms(700), 700),
        (RetryAfter::Text("1".into()), 1_000),
        // A date has no fractions: one and a bit of what was asked for are left of two.
        (RetryAfter::DateInS(2), 1_000),
    ] {
        let name = format!("{wait:?}");
        let (_, at_ms) = check(once(status(529, wait)), &[], 0, "Said.\n");
        let waited_ms = at_ms[1] - at_ms[0];
        // Nonsense or a header that is not read would be half a second.
        assert!(waited_ms >= at_least_ms, "{name}: {waited_ms} ms");
        assert!(waited_ms < 10_000, "{name}: {waited_ms} ms");
    }
}

#[test]
fn a_wait_longer_than_the_cap_ends_the_turn_at_once() {
    let (_, at_ms) = check(once(status(429, RetryAfter::Text("90".into()))), &[], 1, "");
    assert_eq!(at_ms.len(), 1);
}

#[test]
fn a_stalled_stream_ends_by_the_idle_limit_and_is_asked_again() {
    let idle = [("YAOKI_STREAM_IDLE_TIMEOUT_MS", "300")];
    let (stage, at_ms) = check(once(Fault::Stall { at: Place::InText }), &idle, 0, "Said.\n");
    assert!(at_ms[1] - at_ms[0] >= 300);
    assert_eq!(stage.asks()[0].body, stage.asks()[1].body, "what was heard is withdrawn");
    let pings = Fault::PingOnly { every_ms: 20, count: 10_000 };
    check(once(pings), &idle, 0, "Said.\n");
}

#[test]
fn a_server_that_says_nothing_is_given_up_by_the_first_byte_limit() {
    let limit = [("YAOKI_FIRST_BYTE_TIMEOUT_MS", "300")];
    let (_, at_ms) = check(once(Fault::Silent), &limit, 0, "Said.\n");
    assert!(at_ms[1] - at_ms[0] >= 300);
}

#[test]
fn broken_streams_are_asked_again_and_leave_nothing() {
    for fault in [
        Fault::Reset,
        Fault::Cut { at: Place::Event(0), how: How::Fin },
        Fault::Cut { at: Place::InText, how: How::Rst },
        Fault::Cut { at: Place::BeforeMessageStop, how: How::Eof },
        Fault::Error { at: Place::InText, r#type: "overloaded_error".into(), message: None },
        Fault::EmptyBody,
    ] {
        let name = format!("{fault:?}");
        let (_, at_ms) = check(once(fault), &[], 0, "Said.\n");
        assert_eq!(at_ms.len(), 2, "{name}");
    }
}

#[test]
fn nobody_listening_for_a_moment_is_waited_out() {
    let (stage, _) = check(once(Fault::Closed { for_ms: 300 }), &[], 0, "Said.\n");
    assert!(stage.server.wait_for(Duration::ZERO, |sent| sent.len() == 2));
}
