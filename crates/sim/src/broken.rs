//! What is held against the agent, and what it looks like when it does not hold.

use std::sync::{Arc, Mutex};

/// One broken invariant, named as the list of invariants names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    pub invariant: &'static str,
    pub what: String,
}

/// Collects what broke in a schedule.
#[derive(Debug, Clone, Default)]
pub struct Verdicts(Arc<Mutex<Vec<Broken>>>);

impl Verdicts {
    pub fn broken(&self, invariant: &'static str, what: impl Into<String>) {
        let mut all = self.0.lock().expect("nothing panics while it notes");
        // The first ones tell; a broken schedule may go on to break everything.
        if all.len() < 8 {
            all.push(Broken { invariant, what: what.into() });
        }
    }

    pub fn hold(&self, invariant: &'static str, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.broken(invariant, what());
        }
    }

    pub fn take(&self) -> Vec<Broken> {
        std::mem::take(&mut self.0.lock().expect("nothing panics while it notes"))
    }

    pub fn is_empty(&self) -> bool {
        self.0.lock().expect("nothing panics while it notes").is_empty()
    }
}
