//! The real network, by reqwest and rustls.

use std::path::PathBuf;

use futures_util::future::BoxFuture;

use crate::transport::{HttpAnswer, HttpAsk, Transport, TransportError};

/// How to reach the network.
#[derive(Debug, Clone, Default)]
pub struct HttpSettings {
    /// The endpoint; a plain-HTTP one needs no root certificates.
    pub base_url: String,
    /// PEM file of further certificate authorities. `SSL_CERT_FILE` is read by the caller, who owns the environment.
    pub ca_bundle: Option<PathBuf>,
}

/// The network could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum HttpSetupError {
    #[error("cannot read the CA bundle {path}")]
    Bundle {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{path} holds no usable certificate: {reason}")]
    NoCertificate { path: PathBuf, reason: String },
    #[error("cannot set up the HTTP client: {reason}")]
    Client { reason: String },
}

pub struct HttpTransport {}

impl HttpTransport {
    pub fn new(settings: &HttpSettings) -> Result<Self, HttpSetupError> {
        let _ = settings;
        todo!()
    }
}

impl Transport for HttpTransport {
    fn send(&self, ask: HttpAsk) -> BoxFuture<'_, Result<HttpAnswer, TransportError>> {
        let _ = ask;
        todo!()
    }
}
