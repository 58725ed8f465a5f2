//! The agent's clock and dice, and the one place from which each of its steps is seen.

use std::sync::atomic::Ordering;

use yaoki::core::state::State;
use yaoki::world::World as AgentWorld;

use super::World;

/// The wall clock jumps by a day now and then; nothing may care.
pub struct Clock(pub World);

impl AgentWorld for Clock {
    fn wall_ms(&self) -> u64 {
        let wall = &self.0.inner.wall_ms;
        if self.0.dice.is(2) {
            self.0.hit("clock_jump", "wall");
            let day_ms = 86_400_000;
            if self.0.dice.is(500) {
                return wall.fetch_add(day_ms, Ordering::Relaxed);
            }
            return wall.fetch_sub(day_ms, Ordering::Relaxed);
        }
        wall.fetch_add(1, Ordering::Relaxed)
    }

    fn dice(&self) -> u64 {
        self.0.dice.roll()
    }

    /// One schedule in many folds its log anew at every step (I5).
    fn watch(&self, state: &State) {
        let world = &self.0;
        world.inner.steps.fetch_add(1, Ordering::Relaxed);
        if world.swarm.is_refolded && !world.is_dying() {
            world.hit("refold", "step");
            world.log().hold_fold(state, &world.verdicts);
        }
    }
}
