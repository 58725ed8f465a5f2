//! What recovery has cost so far in a turn: for each rule, how often in a row and how often in all.
//!
//! Progress clears a streak; nothing clears a total. Rebuilt from `budget` records, so a crash refills nothing.

use std::collections::BTreeMap;

/// Counts by rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    counts: BTreeMap<String, Count>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    pub streak: u32,
    pub total: u32,
}

/// How often a rule may act: in a row, and in one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    pub streak: u32,
    pub total: u32,
}

impl Ledger {
    pub fn charge(&mut self, rule: &str) {
        let count = self.counts.entry(rule.to_owned()).or_default();
        count.streak += 1;
        if !crate::mutant!("ledger-total-not-charged") {
            count.total += 1;
        }
    }

    pub fn progress(&mut self) {
        for count in self.counts.values_mut() {
            if !crate::mutant!("ledger-streak-kept") {
                count.streak = 0;
            }
        }
    }

    pub fn count(&self, rule: &str) -> Count {
        self.counts.get(rule).copied().unwrap_or_default()
    }

    pub fn allows(&self, rule: &str, limit: Limit) -> bool {
        let count = self.count(rule);
        count.streak < limit.streak && count.total < limit.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_clears_the_streak_and_never_the_total() {
        let mut ledger = Ledger::default();
        let limit = Limit { streak: 2, total: 3 };
        for (rule, want) in [("a", true), ("a", true)] {
            assert_eq!(ledger.allows(rule, limit), want);
            ledger.charge(rule);
        }
        assert!(!ledger.allows("a", limit));
        ledger.progress();
        assert!(ledger.allows("a", limit));
        ledger.charge("a");
        ledger.progress();
        assert!(!ledger.allows("a", limit), "the total is used up");
        assert!(ledger.allows("b", limit));
    }
}
