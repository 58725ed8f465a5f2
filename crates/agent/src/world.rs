//! What only the outside has: the wall clock and dice. Given, so that a simulation can give its own.

use std::hash::{BuildHasher, Hasher};

/// Wall time and randomness. Monotonic time is tokio's, which tests can pause.
pub trait World: Send + Sync {
    /// Milliseconds since 1970. It may jump; nothing decides by it.
    fn wall_ms(&self) -> u64;
    /// Uniform over all of `u64`.
    fn dice(&self) -> u64;

    /// The loop has decided on one input and written what follows from it; its steps begin next. For those who hold
    /// invariants against each step: nothing can be changed from here.
    #[doc(hidden)]
    fn watch(&self, _state: &yaoki_core::state::State) {}
}

/// The machine's own.
pub struct RealWorld;

impl World for RealWorld {
    fn wall_ms(&self) -> u64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |since| since.as_millis() as u64)
    }

    fn dice(&self) -> u64 {
        // Keyed by the system's own dice, and newly for each throw: keys of sessions are made of these, and ids that
        // others see must not tell anything of them.
        std::hash::RandomState::new().build_hasher().finish()
    }
}

/// Makes a session's id: a UUID v7 of this moment.
pub(crate) fn session_id(world: &dyn World) -> String {
    let mut bytes = [0u8; 16];
    bytes[..8].copy_from_slice(&(world.wall_ms() << 16 | world.dice() & 0xffff).to_be_bytes());
    bytes[8..].copy_from_slice(&world.dice().to_be_bytes());
    bytes[6] = (bytes[6] & 0x0f) | 0x70;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    uuid::Uuid::from_bytes(bytes).to_string()
}

/// Makes a session's key: 32 hex digits that nobody outside can guess.
pub(crate) fn session_key(world: &dyn World) -> String {
    format!("{:016x}{:016x}", world.dice(), world.dice())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dice_do_not_follow_from_a_seed_that_can_be_guessed() {
        let thrown = || {
            fastrand::seed(1);
            RealWorld.dice()
        };
        assert_ne!(thrown(), thrown());
    }
}
