//! All randomness of a schedule, from its seed.

use std::sync::{Arc, Mutex};

/// Dice that every part of a schedule shares, so that one seed decides everything.
#[derive(Debug, Clone)]
pub struct Dice(Arc<Mutex<fastrand::Rng>>);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(fastrand::Rng::with_seed(seed))))
    }

    pub fn roll(&self) -> u64 {
        self.with(|rng| rng.u64(..))
    }

    /// Uniform below `bound`, which is at least 1.
    pub fn below(&self, bound: u64) -> u64 {
        self.with(|rng| rng.u64(..bound))
    }

    /// True in `per_mille` of a thousand cases.
    pub fn is(&self, per_mille: u64) -> bool {
        self.below(1_000) < per_mille
    }

    pub fn pick<'a, T>(&self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len() as u64) as usize]
    }

    fn with<T>(&self, roll: impl FnOnce(&mut fastrand::Rng) -> T) -> T {
        roll(&mut self.0.lock().expect("nothing panics while it rolls"))
    }
}
