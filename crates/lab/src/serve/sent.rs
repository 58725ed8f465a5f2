//! How far each answer has been sent, and waiting until it is so far.
//!
//! For tests that do something at a certain moment of a stream, such as killing its reader.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How far one answer has been sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sent {
    /// Writes that left so far: the head, then the pieces of the body.
    pub writes: u32,
    /// Nothing more will come: it is whole, was broken off, or the client left.
    pub is_over: bool,
}

/// One [`Sent`] for each request, in order.
#[derive(Debug, Default)]
pub(super) struct Progress {
    sent: Mutex<Vec<Sent>>,
    changed: Condvar,
}

impl Progress {
    /// Changes the row of a request, which is made if it is new.
    pub fn note(&self, ask: u64, change: impl FnOnce(&mut Sent)) {
        let mut sent = self.lock();
        // A server that runs for days keeps no row for each request it ever had.
        let Some(index) = usize::try_from(ask).ok().and_then(|n| n.checked_sub(1)).filter(|n| *n < ROWS_MAX)
        else {
            return;
        };
        if sent.len() <= index {
            sent.resize(index + 1, Sent::default());
        }
        change(&mut sent[index]);
        drop(sent);
        self.changed.notify_all();
    }

    pub fn wait_for(&self, within: Duration, mut is_so: impl FnMut(&[Sent]) -> bool) -> bool {
        let (sent, _) = self
            .changed
            .wait_timeout_while(self.lock(), within, |sent| !is_so(sent))
            .unwrap_or_else(PoisonError::into_inner);
        is_so(&sent)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Sent>> {
        // Rows are changed in one step; a panic leaves none half-way.
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const ROWS_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiter_is_woken_by_the_row_it_waits_for_and_gives_up_in_time() {
        let progress = Progress::default();
        assert!(!progress.wait_for(Duration::ZERO, |sent| !sent.is_empty()));
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                progress
                    .wait_for(Duration::from_secs(10), |sent| sent.get(1).is_some_and(|row| row.writes == 2))
            });
            progress.note(2, |_| {});
            progress.note(2, |row| row.writes += 1);
            progress.note(2, |row| row.writes += 1);
            assert!(waiter.join().unwrap());
        });
        progress.note(1, |row| row.is_over = true);
        let want = [Sent { writes: 0, is_over: true }, Sent { writes: 2, is_over: false }];
        assert!(progress.wait_for(Duration::ZERO, |sent| sent == want));
    }
}
