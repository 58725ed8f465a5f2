//! Counts of tests, read from what the test programs print.

use std::ops::AddAssign;

/// Tests that ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub passed: u64,
    pub failed: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

/// Reads `test result: ok. 3 passed; 0 failed; …`; `None` for any other line.
pub fn read(line: &str) -> Option<Tally> {
    let rest = line.trim_start().strip_prefix("test result: ")?;
    let counts = rest.split_once(". ")?.1;
    let count = |word: &str| {
        let part = counts.split(';').find_map(|part| part.trim().strip_suffix(word))?;
        part.trim().parse().ok()
    };
    Some(Tally { passed: count("passed")?, failed: count("failed")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_closing_line_of_a_test_program_counts() {
        let ok =
            "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.00s";
        let bad = "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(read(ok), Some(Tally { passed: 12, failed: 0 }));
        assert_eq!(read(bad), Some(Tally { passed: 1, failed: 2 }));
        assert_eq!(read("test a_result: ok. 12 passed ... ok"), None);
        assert_eq!(read("test result: ok"), None);
    }
}
