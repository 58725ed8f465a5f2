//! What an embedder decides before a session starts. Values only: where they come from (flags, files,
//! environment) is the caller's business.

use std::path::PathBuf;

use yaoki_core::policy::Policy;
use yaoki_core::request::Thinking;
use yaoki_wire::attempt::Limits;
use yaoki_wire::endpoint::Endpoint;

/// The model of a new session when nobody named one.
pub const DEFAULT_MODEL: &str = "claude-opus-5-5";

/// How to reach a model and how to behave; see the builder methods of [`crate::Agent`] for the ports.
#[derive(Clone)]
pub struct Config {
    pub endpoint: Endpoint,
    /// None keeps the session's, and is [`DEFAULT_MODEL`] for a new one.
    pub model: Option<String>,
    /// What `/status` shows as effort; sent only where the model knows it.
    pub effort: String,
    /// The user's own cap on output tokens; none lets the model table decide.
    pub max_tokens: Option<u32>,
    pub thinking: Thinking,
    pub limits: Limits,
    pub policy: Policy,
    pub permission_mode: PermissionMode,
    pub allow: Vec<String>,
    pub deny: Vec<String>,
    pub cwd: PathBuf,
    /// Where all sessions live.
    pub home: PathBuf,
    /// Replaces the whole built-in system prompt.
    pub system_prompt: Option<String>,
    pub append_system_prompt: Option<String>,
    pub durability: Durability,
    /// Rounds a turn may take; none means no limit.
    pub max_turns: Option<u32>,
    /// Name and value of texts that must never be written anywhere.
    pub secrets: Vec<(String, String)>,
    /// Whether commands see yaoki's own credentials in their environment.
    pub pass_credentials: bool,
    /// PEM file of certificate authorities to trust beside the system's.
    pub ca_bundle: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// Synced to disk where the barrier table says so.
    #[default]
    Disk,
    /// Survives a kill, not a power cut. For throw-away machines.
    Process,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PermissionMode {
    /// Reads run; edits and commands ask.
    #[default]
    Default,
    /// Edits inside the working folder run too, but for hooks and settings (`.git`, `.yaoki`, `.claude`).
    AcceptEdits,
    /// Nothing is changed, whatever rules allow.
    Plan,
    /// Nothing is asked.
    BypassPermissions,
    /// What would be asked is denied.
    DontAsk,
}

impl PermissionMode {
    pub const ALL: &'static [(&'static str, PermissionMode)] = &[
        ("default", PermissionMode::Default),
        ("acceptEdits", PermissionMode::AcceptEdits),
        ("plan", PermissionMode::Plan),
        ("bypassPermissions", PermissionMode::BypassPermissions),
        ("dontAsk", PermissionMode::DontAsk),
    ];

    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, mode)| *mode == self).expect("every mode has a row").0
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, mode)| *mode)
    }
}
