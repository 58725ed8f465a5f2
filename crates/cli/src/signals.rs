//! SIGHUP, SIGINT and SIGTERM, as something to wait for.
//!
//! Promises: none is lost between two waits; a SIGHUP that is ignored, as nohup wants it, stays so. Deliberately not here: what they mean to a turn (`turn`).

use tokio::signal::unix::{self, SignalKind};

use crate::exit::{CliError, Signal};

pub struct Signals {
    hangup: Option<unix::Signal>,
    interrupt: unix::Signal,
    terminate: unix::Signal,
}

impl Signals {
    /// Takes them over from their default, which is to die.
    ///
    /// Errors: the system refuses handlers.
    pub fn new() -> Result<Self, CliError> {
        let listen = |kind| {
            unix::signal(kind)
                .map_err(|error| CliError::environment(format_args!("cannot listen to signals: {error}"), ""))
        };
        let hangup = if is_hangup_ignored() { None } else { Some(listen(SignalKind::hangup())?) };
        let (interrupt, terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
        Ok(Self { hangup, interrupt, terminate })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) -> Signal {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = hangup => Signal::Hangup,
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
        }
    }
}

/// Whether this process was started with SIGHUP ignored. Where the system does not tell, it was not.
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    // SIGHUP is number 1, the lowest bit.
    mask & 1 == 1
}
