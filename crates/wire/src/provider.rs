//! The model APIs we speak, one row each.

use crate::anthropic;

/// A wire format and where it is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Provider {
    /// The `format` of an `Origin`.
    pub format: &'static str,
    /// Where it is spoken unless an endpoint is set.
    pub base_url: &'static str,
    /// Environment variables, read by whoever owns the environment.
    pub api_key_env: &'static str,
    pub bearer_env: &'static str,
    pub base_url_env: &'static str,
    pub model_env: &'static str,
    /// The path of a request for an answer.
    pub path: &'static str,
}

pub const PROVIDERS: &[Provider] = &[Provider {
    format: anthropic::FORMAT,
    base_url: "https://api.anthropic.com",
    api_key_env: "ANTHROPIC_API_KEY",
    bearer_env: "ANTHROPIC_AUTH_TOKEN",
    base_url_env: "ANTHROPIC_BASE_URL",
    model_env: "ANTHROPIC_MODEL",
    path: anthropic::MESSAGES_PATH,
}];
