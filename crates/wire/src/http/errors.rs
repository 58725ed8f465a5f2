//! What reqwest's errors are, by the kinds of the errors they carry.

use std::error::Error;
use std::io;

use rustls::CertificateError;

use crate::transport::{Phase, TransportError, TransportKind};

/// Reads an error that came before the status line. `reused`: no connection was begun for the request.
pub(super) fn answer_error(error: &reqwest::Error, reused: bool) -> TransportError {
    let kind = kind_of(error);
    let tls = find::<rustls::Error>(error);
    let phase = match () {
        () if error.is_dns() => Phase::Dns,
        () if tls.is_some() => Phase::Tls,
        // An error of the builder is one of what we asked for: nothing was sent.
        () if error.is_connect() || error.is_builder() => Phase::Connect,
        () => Phase::BeforeAnswer,
    };
    let last = causes(error).pop().unwrap_or_default();
    let message = match (phase, tls) {
        (Phase::Tls, Some(tls)) => format!("TLS failed: {}", tls_cause(tls)),
        (Phase::Dns, _) => format!("the host's name was not resolved: {last}"),
        (Phase::Connect, _) => format!("not connected: {last}"),
        (Phase::BeforeAnswer | Phase::Tls | Phase::Body, _) => format!("no answer: {last}"),
    };
    // With a time-out the other side was slow, not gone.
    let stale = phase == Phase::BeforeAnswer && reused && kind != TransportKind::Timeout;
    TransportError { phase, kind, stale, message }
}

pub(super) fn body_error(error: &reqwest::Error) -> TransportError {
    let kind = match kind_of(error) {
        // The body had begun; what else ends it is the connection's end.
        TransportKind::Other => TransportKind::Reset,
        kind => kind,
    };
    let message = causes(error).pop().unwrap_or_default();
    TransportError { phase: Phase::Body, kind, stale: false, message }
}

fn kind_of(error: &reqwest::Error) -> TransportKind {
    if error.is_timeout() {
        return TransportKind::Timeout;
    }
    match find::<io::Error>(error).map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionRefused) => TransportKind::Refused,
        Some(
            io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted | io::ErrorKind::BrokenPipe,
        ) => TransportKind::Reset,
        Some(io::ErrorKind::UnexpectedEof) => TransportKind::Ended,
        Some(io::ErrorKind::TimedOut) => TransportKind::Timeout,
        Some(io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) => TransportKind::Protocol,
        _ => TransportKind::Other,
    }
}

/// Returns the innermost error of a type, also where an `io::Error` hides it.
fn find<'e, T: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e T> {
    let mut found = None;
    walk(error, &mut |error| found = error.downcast_ref::<T>().or(found));
    found
}

/// Returns what each error of the chain says, the outermost first, without repeats.
pub(super) fn causes(error: &(dyn Error + 'static)) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    walk(error, &mut |error| {
        let text = error.to_string();
        if all.last() != Some(&text) {
            all.push(text);
        }
    });
    all
}

fn walk<'e>(error: &'e (dyn Error + 'static), see: &mut dyn FnMut(&'e (dyn Error + 'static))) {
    /// A chain is short; one that is not is a circle.
    const CHAIN_LEN_MAX: usize = 32;
    let mut next = Some(error);
    for _ in 0..CHAIN_LEN_MAX {
        let Some(error) = next else { return };
        see(error);
        // `source` of an `io::Error` passes over the error it wraps.
        let wrapped = error.downcast_ref::<io::Error>().and_then(|error| error.get_ref());
        next = match wrapped {
            Some(wrapped) => Some(wrapped as &(dyn Error + 'static)),
            None => error.source(),
        };
    }
}

fn tls_cause(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(error) => match error {
            CertificateError::UnknownIssuer => {
                "the certificate's issuer is not known here (a CA bundle may be missing)".to_owned()
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                format!("the certificate has expired ({error})")
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                format!("the certificate is not valid yet ({error}); is the clock right?")
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                format!("the certificate is for another name ({error})")
            }
            other => format!("the certificate was refused: {other}"),
        },
        other => other.to_string(),
    }
}
