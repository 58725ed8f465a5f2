//! How a command's end reads to a model: stdout, `[stderr]`, stderr, what ended it.
//!
//! Made from the exit report alone, so a result that is read after a restart is the very same text.

use std::path::PathBuf;

use yaoki_core::effects::EffectClass;
use yaoki_core::message::CallResult;
use yaoki_core::record::OutcomeStatus;

use super::bash::stopped_status;
use super::text::{self, RESULT_CHARS_MAX, first_chars, last_chars};
use crate::runner::{End, Excerpt, ExitReport, Stop};

/// One of a command's streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamName {
    Out,
    Err,
}

pub(super) fn status(report: &ExitReport, class: EffectClass) -> OutcomeStatus {
    match (&report.stop, &report.end) {
        (Some(Stop::Cancelled), _) => stopped_status(class),
        (Some(Stop::TimedOut { .. }), _) | (None, End::Signal(_)) => {
            if class.is_pure() {
                OutcomeStatus::FailedClean
            } else {
                OutcomeStatus::FailedPartial
            }
        }
        (None, End::Code(0)) => OutcomeStatus::Success,
        // The command says so itself.
        (None, End::Code(_) | End::NotStarted(_)) => OutcomeStatus::FailedClean,
    }
}

/// The result of a command known in the background as `task`. `keep` keeps a whole stream and names its file.
pub(super) fn result(
    report: &ExitReport,
    task: &str,
    keep: impl Fn(StreamName) -> Option<PathBuf>,
) -> CallResult {
    if let End::NotStarted(why) = &report.end {
        return text::call_error(format!("Error: the shell could not be started: {why}"));
    }
    let mut parts = streams(&report.out, &report.err, &keep);
    match report.stop {
        Some(Stop::TimedOut { after_ms }) => parts.push(format!("[timed out after {}]", seconds(after_ms))),
        Some(Stop::Cancelled) => parts.push("[stopped by the user before it finished]".to_owned()),
        None => {}
    }
    match (&report.end, &report.stop) {
        (End::Code(0), None) => {}
        (End::Code(code), _) => parts.push(format!("[exit code {code}]")),
        (End::Signal(signal), None) => parts.push(format!("[ended by signal {signal}{}]", name_of(*signal))),
        (End::Signal(_) | End::NotStarted(_), _) => {}
    }
    if !report.left.is_empty() {
        parts.push(format!("[still running in the background as {task}: {}]", report.left.join(", ")));
    }
    if let Some(error) = &report.spool_error {
        parts.push(format!(
            "[warning: the output could not be kept in its file, this is from memory: {error}]"
        ));
    }
    if parts.is_empty() {
        parts.push("(no output)".to_owned());
    }
    let is_error = report.end != End::Code(0) || report.stop.is_some();
    let text = parts.join("\n");
    if is_error { CallResult::error(text) } else { CallResult::ok(text) }
}

/// Both streams within the bound of one result; empty ones are left out.
pub(super) fn streams(
    out: &Excerpt,
    err: &Excerpt,
    keep: &impl Fn(StreamName) -> Option<PathBuf>,
) -> Vec<String> {
    let chars = |excerpt: &Excerpt| usize::try_from(excerpt.chars).unwrap_or(usize::MAX);
    // The errors may take a third, or what the output leaves of it.
    let err_max = (RESULT_CHARS_MAX / 3).max(RESULT_CHARS_MAX.saturating_sub(chars(out)));
    let out_max = RESULT_CHARS_MAX - err_max.min(chars(err));
    let mut parts = Vec::new();
    if out.bytes > 0 {
        parts.push(cut(out, out_max, || keep(StreamName::Out)));
    }
    if err.bytes > 0 {
        parts.push("[stderr]".to_owned());
        parts.push(cut(err, err_max, || keep(StreamName::Err)));
    }
    parts
}

fn cut(excerpt: &Excerpt, chars_max: usize, keep: impl Fn() -> Option<PathBuf>) -> String {
    if excerpt.chars <= chars_max as u64 && excerpt.tail.is_empty() {
        return excerpt.head.trim_end_matches('\n').to_owned();
    }
    let tail_max = chars_max / 3;
    let head = first_chars(&excerpt.head, chars_max - tail_max);
    let tail_of = if excerpt.tail.is_empty() { &excerpt.head } else { &excerpt.tail };
    let tail = last_chars(tail_of, tail_max);
    let shown = (head.chars().count() + tail.chars().count()) as u64;
    let left_out = excerpt.chars.saturating_sub(shown);
    let place = match keep() {
        Some(path) => format!("the whole output, {} bytes, is in {}", excerpt.bytes, path.display()),
        None => format!("the whole output was {} bytes and is not kept", excerpt.bytes),
    };
    format!("{head}\n\n[{left_out} characters left out here; {place}]\n\n{}", tail.trim_end_matches('\n'))
}

fn seconds(ms: u64) -> String {
    if ms.is_multiple_of(1000) {
        format!("{}s", ms / 1000)
    } else {
        format!("{}.{:03}s", ms / 1000, ms % 1000)
    }
}

fn name_of(signal: i32) -> String {
    let name = match signal {
        1 => "HUP",
        2 => "INT",
        3 => "QUIT",
        4 => "ILL",
        6 => "ABRT",
        8 => "FPE",
        9 => "KILL",
        11 => "SEGV",
        13 => "PIPE",
        15 => "TERM",
        _ => return String::new(),
    };
    format!(", SIG{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt(text: &str) -> Excerpt {
        let (bytes, chars) = (text.len() as u64, text.chars().count() as u64);
        Excerpt { bytes, chars, head: text.to_owned(), tail: String::new() }
    }

    fn report(end: End, stop: Option<Stop>, out: &str, err: &str) -> ExitReport {
        let (left, spool_error, digest) = Default::default();
        ExitReport { end, stop, took_ms: 1, out: excerpt(out), err: excerpt(err), left, spool_error, digest }
    }

    #[test]
    fn a_result_reads_as_the_model_knows_it() {
        let timed_out = Some(Stop::TimedOut { after_ms: 2000 });
        for (report, want, is_error) in [
            (report(End::Code(0), None, "done\n", ""), "done", false),
            (report(End::Code(0), None, "", ""), "(no output)", false),
            (report(End::Code(0), None, "a\n", "b\n"), "a\n[stderr]\nb", false),
            (
                report(End::Code(1), None, "", "ls: README.md: No such file or directory\n"),
                "[stderr]\nls: README.md: No such file or directory\n[exit code 1]",
                true,
            ),
            (report(End::Signal(15), timed_out, "x\n", ""), "x\n[timed out after 2s]", true),
            (report(End::Code(7), timed_out, "", ""), "[timed out after 2s]\n[exit code 7]", true),
            (report(End::Signal(11), None, "", ""), "[ended by signal 11, SIGSEGV]", true),
            (
                report(End::Signal(15), Some(Stop::Cancelled), "x", ""),
                "x\n[stopped by the user before it finished]",
                true,
            ),
        ] {
            let result = result(&report, "bash_7", |_| None);
            assert_eq!((result.text().as_str(), result.is_error), (want, is_error));
        }
    }

    #[test]
    fn what_is_left_running_is_named() {
        let mut report = report(End::Code(0), None, "done\n", "");
        report.left = vec!["sleep (42)".to_owned()];
        let text = result(&report, "bash_7", |_| None).text();
        assert_eq!(text, "done\n[still running in the background as bash_7: sleep (42)]");
    }

    #[test]
    fn long_output_keeps_its_beginning_and_end_within_the_bound() {
        let mut long = excerpt(&"a".repeat(20_000));
        long.tail = "é".repeat(10_000);
        (long.bytes, long.chars) = (9_000_000, 9_000_000);
        let mut report = report(End::Code(1), None, "", "oops");
        report.out = long;
        let text = result(&report, "bash_7", |_| Some("/s/output/op7.out".into())).text();
        assert!(text.chars().count() < RESULT_CHARS_MAX + 300);
        assert!(
            text.contains(
                "characters left out here; the whole output, 9000000 bytes, is in /s/output/op7.out]"
            )
        );
        assert!(text.ends_with("éé\n[stderr]\noops\n[exit code 1]"));
    }
}
