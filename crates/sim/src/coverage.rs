//! Which fault was made to happen where, and how often: a run that never hurt the agent proves nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Counts by (fault, site), of faults that really happened.
#[derive(Debug, Clone, Default)]
pub struct Coverage(Arc<Mutex<BTreeMap<(&'static str, &'static str), u64>>>);

impl Coverage {
    pub fn hit(&self, fault: &'static str, site: &'static str) {
        *self.lock().entry((fault, site)).or_default() += 1;
    }

    pub fn add(&self, other: &Coverage) {
        for (key, count) in other.lock().iter() {
            *self.lock().entry(*key).or_default() += count;
        }
    }

    pub fn rows(&self) -> Vec<(&'static str, &'static str, u64)> {
        self.lock().iter().map(|((fault, site), count)| (*fault, *site, *count)).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<(&'static str, &'static str), u64>> {
        self.0.lock().expect("nothing panics while it counts")
    }
}

/// Where a crash or an interrupt can come: every point at which the agent waits for the outside.
pub const SITES: [&str; 15] = [
    "before_send",
    "before_head",
    "in_body",
    "prepare",
    "before_run",
    "in_run",
    "after_run",
    "look",
    "ask",
    "append",
    "sync",
    "beside",
    "rename",
    "folder",
    "create",
];

/// Those of them at which a person can interrupt: not inside a call of the disk.
pub const INTERRUPT_SITES: usize = 9;

/// How much likelier a crash or an interrupt is at a site: those that come up seldom are hurt the more when they do.
pub fn weight(site: &str) -> u64 {
    match site {
        "rename" => 24,
        "beside" | "create" => 6,
        "ask" | "look" => 12,
        "before_send" | "before_head" | "before_run" | "in_run" | "after_run" | "sync" => 2,
        _ => 1,
    }
}

/// Faults of an answer.
pub const ANSWER_FAULTS: [&str; 22] = [
    "529",
    "500",
    "429",
    "429_told",
    "408",
    "html",
    "empty",
    "401",
    "400",
    "refuse",
    "reset",
    "silent",
    "cut_fin",
    "cut_rst",
    "cut_eof",
    "stall",
    "ping_only",
    "drip",
    "error_event",
    "duplicate",
    "garbage",
    "unknown_event",
];

/// Whole answers that are not good ones: cut at the cap, stopped for a call that is not there, without anything to see,
/// refused, paused.
pub const FLAWS: [&str; 5] = ["cut_text", "no_call", "void", "refusal", "pause"];

/// Faults of the disk and the calls they happen to: those that write the log, and those that open or move it.
pub const DISK_FAULTS: [(&str, &str); 16] = [
    ("eio", "append"),
    ("enospc", "append"),
    ("short", "append"),
    ("eio_after", "append"),
    ("eio", "sync"),
    ("eio_after", "sync"),
    ("eio_dropping", "sync"),
    ("eio", "beside"),
    ("eio_after", "beside"),
    ("eio_dropping", "beside"),
    ("eio", "rename"),
    ("eio_after", "rename"),
    ("eio", "folder"),
    ("eio_after", "folder"),
    ("eio", "create"),
    ("enospc", "create"),
];

/// Every pair that a full run must have made happen.
pub fn wanted() -> Vec<(&'static str, &'static str)> {
    let crashes = ["kill", "power"].into_iter().flat_map(|fault| SITES.map(|site| (fault, site)));
    let interrupts = SITES[..INTERRUPT_SITES].iter().map(|site| ("interrupt", *site));
    let answers = ANSWER_FAULTS.into_iter().chain(FLAWS).map(|fault| (fault, "answer"));
    let others = [
        ("deny", "ask"),
        ("nobody", "ask"),
        ("runner_killed", "in_run"),
        ("second_writer", "open"),
        ("clock_jump", "wall"),
        ("refold", "step"),
        ("flip", "log"),
    ];
    crashes.chain(interrupts).chain(answers).chain(DISK_FAULTS).chain(others).collect()
}
