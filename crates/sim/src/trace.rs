//! A digest of all that a schedule sent, told and wrote: equal for equal seeds, wherever it runs.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How closely a schedule is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Requests and the final log are in the digest.
    Plain,
    /// Every event too.
    Close,
    /// And each life is printed.
    Told,
}

/// The digest while it grows.
#[derive(Debug, Clone)]
pub struct Trace {
    digest: Arc<AtomicU64>,
    pub look: Look,
}

impl Trace {
    pub fn new(look: Look) -> Self {
        Self { digest: Arc::new(AtomicU64::new(0xcbf2_9ce4_8422_2325)), look }
    }

    pub fn bytes(&self, bytes: &[u8]) {
        let mut digest = mix(self.digest.load(Ordering::Relaxed), bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            digest = mix(digest, u64::from_le_bytes(word));
        }
        self.digest.store(digest, Ordering::Relaxed);
    }

    /// Takes what is worth it only for someone who looks closely.
    pub fn closely(&self, what: &dyn Debug) {
        if self.look != Look::Plain {
            self.bytes(format!("{what:?}").as_bytes());
        }
    }

    pub fn digest(&self) -> u64 {
        self.digest.load(Ordering::Relaxed)
    }
}

fn mix(digest: u64, word: u64) -> u64 {
    (digest ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_and_every_border_counts() {
        let of = |pieces: &[&str]| {
            let trace = Trace::new(Look::Plain);
            pieces.iter().for_each(|piece| trace.bytes(piece.as_bytes()));
            trace.digest()
        };
        let all = [of(&[]), of(&["a"]), of(&["b"]), of(&["ab"]), of(&["a", "b"]), of(&["a\0"]), of(&[""])];
        assert!((1..all.len()).all(|at| !all[..at].contains(&all[at])), "{all:x?}");
        assert_eq!(of(&["same"]), of(&["same"]));
    }
}
