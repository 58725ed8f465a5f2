//! The outside as it usually is: the real disk and network, the standard tools, nobody at the keyboard.

use std::path::PathBuf;
use std::sync::Arc;

use yaoki_store::{Blobs, RealDisk};
use yaoki_wire::http::{HttpSettings, HttpSetupError, HttpTransport};

use crate::agent::{Ports, Seat};
use crate::config::Config;
use crate::executor::Executor;
use crate::person::Nobody;
use crate::tools::{RuleError, RuleSet, StandardTools, ToolEnv};
use crate::world::RealWorld;

/// The usual ports cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Http(#[from] HttpSetupError),
    #[error("a permission rule cannot be read")]
    Rule(#[from] RuleError),
    #[error("the program's own file cannot be found, so commands have no runner")]
    Runner(#[source] std::io::Error),
}

impl Ports {
    /// The real network, disk and tools; commands run under this very program as `__runner FOLDER`, which must call
    /// [`crate::runner_main`]. Nobody answers questions: set `person` to change that.
    ///
    /// Errors: [`StartError`], before anything is written.
    pub fn standard(config: &Config) -> Result<Ports, StartError> {
        let settings =
            HttpSettings { base_url: config.endpoint.base_url.clone(), ca_bundle: config.ca_bundle.clone() };
        let transport = HttpTransport::new(&settings)?;
        let rules = RuleSet::new(config.permission_mode, &config.cwd);
        let rules = rules.with_rules(&config.allow, &[], &config.deny)?;
        let runner = runner_exe().map_err(StartError::Runner)?;
        Ok(Ports {
            disk: Arc::new(RealDisk),
            transport: Arc::new(transport),
            person: Arc::new(Nobody),
            world: Arc::new(RealWorld),
            executor: Box::new(move |config, seat| tools(config, seat, rules, runner)),
        })
    }
}

fn tools(config: &Config, seat: &Seat, rules: RuleSet, runner: PathBuf) -> Arc<dyn Executor> {
    // What a command spilled is in the session's folder, and may be read back.
    let rules = rules.with_folder(&seat.folder);
    let mut env = ToolEnv::new(&config.cwd, &seat.folder, runner, Arc::new(rules));
    env.secrets = config.secrets.clone();
    env.pass_credentials = config.pass_credentials;
    // Which commands only read is for the effect rules to say, once they can prove it; until then all may change things.
    env.classify_commands = false;
    let folder = seat.folder.clone();
    env.save_blob = Some(Arc::new(move |bytes| {
        let stored = Blobs::of(Arc::new(RealDisk), &folder).put(bytes);
        stored.map(|blob| blob.blob).map_err(std::io::Error::other)
    }));
    Arc::new(StandardTools::new(env))
}

/// The program that is running, even if its file was replaced since.
fn runner_exe() -> std::io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok(PathBuf::from("/proc/self/exe")) } else { std::env::current_exe() }
}
