//! The requests that are remembered: bounded in number and in bytes, without keys.

use crate::report::LogEntry;
use serde_json::Value;
use std::collections::VecDeque;

/// The last requests, oldest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log {
    entries: VecDeque<LogEntry>,
    /// The sum over entries whose body is still kept.
    body_bytes: usize,
}

impl Log {
    pub const ENTRIES_MAX: usize = 4_096;
    /// Bytes of bodies, as sent. Older bodies become null.
    pub const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

    /// Adds an entry; forgets the oldest where there are too many.
    pub fn push(&mut self, entry: LogEntry) {
        self.body_bytes += kept(&entry);
        self.entries.push_back(entry);
        if self.entries.len() > Self::ENTRIES_MAX
            && let Some(oldest) = self.entries.pop_front()
        {
            self.body_bytes -= kept(&oldest);
        }
        let older = self.entries.len() - 1;
        for entry in self.entries.iter_mut().take(older) {
            if self.body_bytes <= Self::BODY_BYTES_MAX {
                return;
            }
            self.body_bytes -= kept(entry);
            entry.body = Value::Null;
        }
    }

    pub fn played(&mut self, ask: u64, whole: bool) {
        if let Some(entry) = self.entries.iter_mut().rev().find(|entry| entry.ask == ask) {
            entry.played = Some(whole);
        }
    }

    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &LogEntry> {
        self.entries.iter()
    }
}

/// Returns headers with the values of those that carry keys replaced.
pub(crate) fn masked(headers: &[(String, String)]) -> Vec<(String, String)> {
    let secrets = ["x-api-key", "authorization", "proxy-authorization", "cookie"];
    let mask = |(name, value): &(String, String)| {
        let is_secret = secrets.iter().any(|secret| name.eq_ignore_ascii_case(secret));
        (name.clone(), if is_secret { "***".to_owned() } else { value.clone() })
    };
    headers.iter().map(mask).collect()
}

fn kept(entry: &LogEntry) -> usize {
    if entry.body.is_null() { 0 } else { entry.body_bytes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verdict;

    #[test]
    fn older_bodies_are_forgotten_before_entries_are() {
        let mut log = Log::default();
        for ask in 1..=3 {
            log.push(LogEntry {
                ask,
                at_ms: 0,
                method: "POST".into(),
                path: "/".into(),
                headers: Vec::new(),
                body: Value::Bool(true),
                body_bytes: Log::BODY_BYTES_MAX / 2,
                status: None,
                verdict: Verdict::Other,
                played: None,
            });
        }
        let kept: Vec<(u64, bool)> = log.entries().map(|entry| (entry.ask, !entry.body.is_null())).collect();
        assert_eq!(kept, [(1, false), (2, true), (3, true)]);
    }
}
