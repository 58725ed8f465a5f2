//! SIGINT and SIGTERM, as something to wait for.
//!
//! Promises: none is lost between two waits. Deliberately not here: what they mean to a turn (`turn`).

use tokio::signal::unix::{self, SignalKind};

use crate::exit::{CliError, Signal};

pub struct Signals {
    interrupt: unix::Signal,
    terminate: unix::Signal,
}

impl Signals {
    /// Takes both over from their default, which is to die.
    ///
    /// Errors: the system refuses handlers.
    pub fn new() -> Result<Self, CliError> {
        let listen = |kind| {
            unix::signal(kind)
                .map_err(|error| CliError::environment(format_args!("cannot listen to signals: {error}"), ""))
        };
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
        }
    }
}
