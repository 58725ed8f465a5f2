//! One turn, with somebody looking on and signals that may end it.
//!
//! Promises: the first signal asks the turn to stop and waits for it to settle; a second SIGINT leaves at once, which is
//! what a kill is: nothing acknowledged is lost. An onlooker who left stops the turn too.
//! Deliberately not here: what onlookers show.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use yaoki::Agent;
use yaoki::core::event::{Event, TurnSummary};
use yaoki::core::message::Part;

use crate::exit::Signal;
use crate::signals::Signals;

/// How often a terminal's live lines are redrawn.
const TICK_TTY: Duration = Duration::from_millis(100);
const TICK_PLAIN: Duration = Duration::from_secs(1);

/// Somebody who is told what happens.
pub trait Onlooker: Send {
    fn event(&mut self, event: &Event, now_ms: u64);
    fn tick(&mut self, now_ms: u64);
    /// Nobody is there any more.
    fn is_gone(&self) -> bool;
    /// Live lines are drawn: tick often.
    fn is_live(&self) -> bool;
    /// We leave at once: put the terminal in order.
    fn leave(&mut self);
}

/// What a turn is to do.
pub enum Work {
    Prompt(Vec<Part>),
    /// Finish what an earlier process left open.
    Finish,
}

/// How a turn went.
pub struct Ran {
    /// None if there was nothing to finish.
    pub summary: Option<TurnSummary>,
    pub signal: Option<Signal>,
}

/// Milliseconds since this program began to count.
#[derive(Debug, Clone, Copy)]
pub struct Clock(Instant);

impl Clock {
    pub fn start() -> Self {
        Self(Instant::now())
    }

    pub fn ms(self) -> u64 {
        self.0.elapsed().as_millis() as u64
    }
}

/// Runs one turn to its end.
pub async fn run(
    agent: &mut Agent,
    work: Work,
    onlooker: &Arc<Mutex<dyn Onlooker>>,
    signals: &mut Signals,
    clock: Clock,
) -> Ran {
    let interrupter = agent.interrupter();
    let stop = interrupter.clone();
    let told = Arc::clone(onlooker);
    let mut on = move |event: &Event| {
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        told.event(event, clock.ms());
        if told.is_gone() {
            stop.interrupt();
        }
    };
    let turn = async {
        match work {
            Work::Prompt(parts) => Some(agent.prompt(parts, &mut on).await),
            Work::Finish => agent.finish(&mut on).await,
        }
    };
    tokio::pin!(turn);
    let live = lock(onlooker, |onlooker| onlooker.is_live());
    let mut tick = tokio::time::interval(if live { TICK_TTY } else { TICK_PLAIN });
    let mut signal = None;
    loop {
        tokio::select! {
            biased;
            summary = &mut turn => return Ran { summary, signal },
            came = signals.next() => {
                if came == Signal::Interrupt && signal == Some(Signal::Interrupt) {
                    lock(onlooker, |onlooker| onlooker.leave());
                    std::process::exit(came.code().into());
                }
                signal = signal.or(Some(came));
                interrupter.interrupt();
            }
            _ = tick.tick() => lock(onlooker, |onlooker| onlooker.tick(clock.ms())),
        }
    }
}

fn lock<R>(onlooker: &Arc<Mutex<dyn Onlooker>>, with: impl FnOnce(&mut dyn Onlooker) -> R) -> R {
    with(&mut *onlooker.lock().unwrap_or_else(PoisonError::into_inner))
}
