//! Where requests go, and as whom.

use std::fmt;

/// The model API to talk to.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// `https://api.anthropic.com`, or a gateway's, with its path if it has one.
    pub base_url: String,
    pub credential: Credential,
    /// Values of `anthropic-beta`.
    pub betas: Vec<String>,
    pub user_agent: String,
    /// Sent as they are, after ours.
    pub headers: Vec<(String, String)>,
}

impl Endpoint {
    pub fn new(base_url: impl Into<String>, credential: Credential) -> Self {
        Self {
            base_url: base_url.into(),
            credential,
            betas: Vec::new(),
            user_agent: concat!("yaoki/", env!("CARGO_PKG_VERSION")).to_owned(),
            headers: Vec::new(),
        }
    }

    /// Returns scheme, host and port: what an `Origin` calls its endpoint. Never a path or a user name.
    pub fn authority(&self) -> String {
        let (scheme, rest) = self.base_url.split_once("://").unwrap_or(("https", &self.base_url));
        let host = rest.split(['/', '?', '#']).next().unwrap_or(rest);
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        format!("{}://{}", scheme.to_ascii_lowercase(), host.to_ascii_lowercase())
    }

    /// Returns the URL of an API path such as `/v1/messages`.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base_url.trim_end_matches('/'))
    }
}

#[derive(Debug, Clone)]
pub enum Credential {
    /// `x-api-key`.
    ApiKey(Secret),
    /// `authorization: Bearer`.
    Bearer(Secret),
}

impl Credential {
    pub fn secret(&self) -> &Secret {
        match self {
            Credential::ApiKey(secret) | Credential::Bearer(secret) => secret,
        }
    }
}

/// A text that no debug print shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text itself, for a header.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<secret>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authority_has_no_path_and_no_credential() {
        for (base, want) in [
            ("https://api.anthropic.com", "https://api.anthropic.com"),
            ("HTTP://User:pw@127.0.0.1:8080/v9/", "http://127.0.0.1:8080"),
            ("gateway.example/api", "https://gateway.example"),
        ] {
            let endpoint = Endpoint::new(base, Credential::ApiKey(Secret::new("k")));
            assert_eq!(endpoint.authority(), want);
        }
    }

    #[test]
    fn url_joins_with_one_slash() {
        let endpoint = Endpoint::new("https://gateway.example/api/", Credential::ApiKey(Secret::new("k")));
        assert_eq!(endpoint.url("/v1/messages"), "https://gateway.example/api/v1/messages");
    }

    #[test]
    fn a_debug_print_shows_no_secret() {
        let endpoint = Endpoint::new("https://a.example", Credential::Bearer(Secret::new("hunter2")));
        assert!(!format!("{endpoint:?}").contains("hunter2"));
    }
}
