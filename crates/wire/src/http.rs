//! The real network, by reqwest and rustls.
//!
//! Promises: one send is at most one request that a server has seen; no redirect, no retry of an answer, no total
//! time limit (the attempt's watchdogs are finer). A pooled connection that is found dead before a byte was
//! written to it is replaced without notice: no request was sent.
//! Deliberately not here: what an answer means.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, TryStreamExt};
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Certificate, Client, ClientBuilder};

use self::errors::{answer_error, body_error};
use crate::transport::{HttpAnswer, HttpAsk, Method, Phase, Transport, TransportError, TransportKind};

mod connects;
mod errors;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Shorter than what load balancers commonly allow, so that they rarely close first.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(50);
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(20);

/// How to reach the network.
#[derive(Debug, Clone, Default)]
pub struct HttpSettings {
    /// The endpoint; a plain-HTTP one needs no root certificates.
    pub base_url: String,
    /// PEM file of certificate authorities to trust beside the system's. `SSL_CERT_FILE` and `SSL_CERT_DIR`
    /// replace the system's.
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

/// Sends over the network. Clones are not needed: it is shared by reference.
pub struct HttpTransport {
    pooled: Client,
    /// Made when first asked for: a client without a pool.
    unpooled: OnceLock<Client>,
    trust: Trust,
    /// How many connections were begun, to tell a reused one.
    connects: Arc<AtomicU64>,
}

#[derive(Debug, Clone)]
enum Trust {
    /// Plain HTTP only: loading the system's certificates costs milliseconds and megabytes.
    Nothing,
    System(Vec<Certificate>),
}

impl HttpTransport {
    /// Sets up the client; opens no connection. Errors: [`HttpSetupError`].
    pub fn new(settings: &HttpSettings) -> Result<Self, HttpSetupError> {
        // Fails only when a provider is there already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let trust = Trust::of(settings)?;
        let connects = Arc::new(AtomicU64::new(0));
        let pooled = build(Client::builder().pool_idle_timeout(POOL_IDLE_TIMEOUT), &trust, &connects)?;
        Ok(Self { pooled, unpooled: OnceLock::new(), trust, connects })
    }

    fn client(&self, fresh: bool) -> Result<&Client, TransportError> {
        if !fresh {
            return Ok(&self.pooled);
        }
        if let Some(client) = self.unpooled.get() {
            return Ok(client);
        }
        let client = build(Client::builder().pool_max_idle_per_host(0), &self.trust, &self.connects)
            .map_err(|error| not_sent(error.to_string()))?;
        Ok(self.unpooled.get_or_init(|| client))
    }

    async fn exchange(&self, ask: HttpAsk) -> Result<HttpAnswer, TransportError> {
        let client = self.client(ask.fresh)?;
        let method = match ask.method {
            Method::Get => reqwest::Method::GET,
            Method::Post => reqwest::Method::POST,
        };
        let mut request = client.request(method, &ask.url);
        for (name, value) in &ask.headers {
            let name: HeaderName =
                name.parse().map_err(|_| not_sent(format!("{name:?} cannot be a header's name")))?;
            let mut value: HeaderValue =
                value.parse().map_err(|_| not_sent(format!("the value of header {name} cannot be sent")))?;
            value.set_sensitive(matches!(name.as_str(), "x-api-key" | "authorization"));
            request = request.header(name, value);
        }
        let connects_before = self.connects.load(Ordering::Relaxed);
        let answer = request.body(ask.body).send().await.map_err(|error| {
            let reused = !ask.fresh && self.connects.load(Ordering::Relaxed) == connects_before;
            answer_error(&error.without_url(), reused)
        })?;
        let headers = answer.headers().iter().map(|(name, value)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        });
        Ok(HttpAnswer {
            status: answer.status().as_u16(),
            headers: headers.collect(),
            body: answer.bytes_stream().map_err(|error| body_error(&error.without_url())).boxed(),
        })
    }
}

impl Transport for HttpTransport {
    fn send(&self, ask: HttpAsk) -> BoxFuture<'_, Result<HttpAnswer, TransportError>> {
        self.exchange(ask).boxed()
    }
}

impl Trust {
    fn of(settings: &HttpSettings) -> Result<Self, HttpSetupError> {
        let is_plain = settings.base_url.trim_start().to_ascii_lowercase().starts_with("http://");
        if is_plain && !has_tls_proxy() {
            return Ok(Trust::Nothing);
        }
        let Some(path) = &settings.ca_bundle else { return Ok(Trust::System(Vec::new())) };
        let pem =
            std::fs::read(path).map_err(|source| HttpSetupError::Bundle { path: path.clone(), source })?;
        let no_certificate = |reason: String| HttpSetupError::NoCertificate { path: path.clone(), reason };
        let certificates =
            Certificate::from_pem_bundle(&pem).map_err(|error| no_certificate(error.to_string()))?;
        if certificates.is_empty() {
            return Err(no_certificate("no PEM certificate in it".to_owned()));
        }
        Ok(Trust::System(certificates))
    }
}

/// Whether a proxy of the environment, which reqwest obeys, is itself reached by TLS.
fn has_tls_proxy() -> bool {
    ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"]
        .iter()
        .filter_map(|name| std::env::var(name).ok())
        .any(|value| value.trim_start().to_ascii_lowercase().starts_with("https:"))
}

fn build(builder: ClientBuilder, trust: &Trust, connects: &Arc<AtomicU64>) -> Result<Client, HttpSetupError> {
    let builder = builder
        .retry(reqwest::retry::never())
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_keepalive(KEEP_ALIVE_INTERVAL)
        .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .http2_keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .connector_layer(connects::CountConnects(connects.clone()));
    let builder = match trust {
        Trust::Nothing => builder.tls_certs_only([]),
        Trust::System(more) => builder.tls_certs_merge(more.iter().cloned()),
    };
    builder.build().map_err(|error| HttpSetupError::Client { reason: errors::causes(&error).join(": ") })
}

fn not_sent(message: String) -> TransportError {
    TransportError { phase: Phase::Connect, kind: TransportKind::Other, stale: false, message }
}
