//! The real client against a bare socket that answers, breaks off, or says nothing.

#![cfg(feature = "http")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use bytes::Bytes;
use futures_util::StreamExt;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use yaoki_wire::http::{HttpSettings, HttpSetupError, HttpTransport};
use yaoki_wire::transport::{HttpAnswer, HttpAsk, Method, Phase, Transport, TransportError, TransportKind};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nok";

/// A server that handles each connection with `serve`, which gets the connection's number.
fn server(serve: impl Fn(usize, TcpStream) + Send + 'static) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    thread::spawn(move || {
        for stream in listener.incoming() {
            serve(counted.fetch_add(1, Ordering::SeqCst), stream.unwrap());
        }
    });
    (format!("http://{address}"), count)
}

/// Reads one request with a `content-length`; false at the end of the connection.
fn read_request(stream: &mut impl Read) -> bool {
    let mut bytes = Vec::new();
    let mut byte = [0; 1];
    while !bytes.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => bytes.push(byte[0]),
            _ => return false,
        }
    }
    let head = String::from_utf8(bytes).unwrap().to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).is_ok()
}

fn transport(base_url: &str) -> HttpTransport {
    HttpTransport::new(&HttpSettings { base_url: base_url.to_owned(), ca_bundle: None }).unwrap()
}

fn ask(url: &str, fresh: bool) -> HttpAsk {
    HttpAsk {
        method: Method::Post,
        url: format!("{url}/v1/messages"),
        headers: vec![("x-api-key".into(), "secret".into())],
        body: Bytes::from_static(b"{}"),
        fresh,
    }
}

async fn read(answer: HttpAnswer) -> Result<Vec<u8>, TransportError> {
    let mut all = Vec::new();
    let mut body = answer.body;
    while let Some(chunk) = body.next().await {
        all.extend_from_slice(&chunk?);
    }
    Ok(all)
}

#[tokio::test]
async fn connections_are_reused_unless_a_fresh_one_is_asked_for() {
    let (url, connections) = server(|_, mut stream| {
        thread::spawn(move || {
            while read_request(&mut stream) {
                stream.write_all(OK).unwrap();
            }
        });
    });
    let transport = transport(&url);
    for (fresh, want) in [(false, 1), (false, 1), (true, 2), (true, 3), (false, 3)] {
        let answer = transport.send(ask(&url, fresh)).await.unwrap();
        assert_eq!(answer.status, 200);
        assert_eq!(read(answer).await.unwrap(), b"ok");
        assert_eq!(connections.load(Ordering::SeqCst), want);
    }
}

#[tokio::test]
async fn a_refused_connection_was_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = transport(&url).send(ask(&url, false)).await.err().unwrap();
    assert_eq!((error.phase, error.kind, error.stale), (Phase::Connect, TransportKind::Refused, false));
    assert!(error.message.contains("refused"), "{error}");
}

#[tokio::test]
async fn a_name_that_is_not_there_is_a_dns_failure() {
    // A label this long fails without a question to anybody.
    let url = format!("http://{}.invalid", "a".repeat(70));
    let error = transport(&url).send(ask(&url, false)).await.err().unwrap();
    assert_eq!(error.phase, Phase::Dns, "{error}");
}

#[tokio::test]
async fn no_answer_on_a_new_connection_is_not_stale_and_not_sent_again() {
    let (url, connections) = server(|_, mut stream| {
        read_request(&mut stream);
    });
    let error = transport(&url).send(ask(&url, false)).await.err().unwrap();
    assert_eq!((error.phase, error.stale), (Phase::BeforeAnswer, false), "{error}");
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn no_answer_on_a_used_connection_is_stale_and_not_sent_again() {
    let (url, connections) = server(|_, mut stream| {
        read_request(&mut stream);
        stream.write_all(OK).unwrap();
        read_request(&mut stream);
    });
    let transport = transport(&url);
    read(transport.send(ask(&url, false)).await.unwrap()).await.unwrap();
    let error = transport.send(ask(&url, false)).await.err().unwrap();
    assert_eq!((error.phase, error.stale), (Phase::BeforeAnswer, true), "{error}");
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_body_that_breaks_off_is_told_from_one_that_ends() {
    for (head, want) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc", TransportKind::Ended),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n", TransportKind::Ended),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n", TransportKind::Protocol),
    ] {
        let (url, _) = server(move |_, mut stream| {
            read_request(&mut stream);
            stream.write_all(head.as_bytes()).unwrap();
        });
        let answer = transport(&url).send(ask(&url, false)).await.unwrap();
        let error = read(answer).await.unwrap_err();
        assert_eq!((error.phase, error.kind), (Phase::Body, want), "{head:?}: {error}");
    }
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    let (url, connections) = server(|_, mut stream| {
        read_request(&mut stream);
        let head = "HTTP/1.1 307 Temporary Redirect\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
    });
    let answer = transport(&url).send(ask(&url, false)).await.unwrap();
    assert_eq!(answer.status, 307);
    assert!(answer.headers.contains(&("location".into(), "/elsewhere".into())));
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_header_that_cannot_be_sent_is_named_without_its_value() {
    let mut ask = ask("http://127.0.0.1:1", false);
    ask.headers = vec![("x-api-key".into(), "two\nlines".into())];
    let error = transport("http://127.0.0.1:1").send(ask).await.err().unwrap();
    assert_eq!(error.message, "the value of header x-api-key cannot be sent");
}

fn tls_file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/tls").join(name)
}

fn tls_server(certificate: &str) -> String {
    let chain = vec![CertificateDer::from_pem_file(tls_file(certificate)).unwrap()];
    let key = PrivateKeyDer::from_pem_file(tls_file("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let config = Arc::new(config);
    let (url, _) = server(move |_, stream| {
        let connection = rustls::ServerConnection::new(config.clone()).unwrap();
        let mut stream = rustls::StreamOwned::new(connection, stream);
        if read_request(&mut stream) {
            stream.write_all(OK).unwrap();
            stream.conn.send_close_notify();
            stream.flush().unwrap();
        }
    });
    url.replace("http:", "https:")
}

#[tokio::test]
async fn tls_trusts_the_bundle_and_names_what_it_does_not_trust() {
    let bundle = Some(tls_file("ca.pem"));
    for (certificate, ca_bundle, want) in [
        ("good.pem", &bundle, None),
        ("good.pem", &None, Some("issuer is not known")),
        ("expired.pem", &bundle, Some("has expired")),
        ("elsewhere.pem", &bundle, Some("for another name")),
    ] {
        let base_url = tls_server(certificate);
        let settings = HttpSettings { base_url: base_url.clone(), ca_bundle: ca_bundle.clone() };
        let answer = match HttpTransport::new(&settings) {
            Ok(transport) => transport.send(ask(&base_url, false)).await.map(|answer| answer.status),
            // A machine without any certificate of its own says so at the start.
            Err(HttpSetupError::Client { .. }) if ca_bundle.is_none() => continue,
            Err(error) => panic!("{error}"),
        };
        match (answer, want) {
            (Ok(200), None) => {}
            (Err(error), Some(words)) => {
                assert_eq!(error.phase, Phase::Tls, "{error}");
                assert!(error.message.contains(words), "{error}");
            }
            (answer, _) => panic!("{certificate}: {answer:?}"),
        }
    }
}

#[test]
fn a_bundle_that_is_not_there_or_holds_nothing_is_an_error_of_the_set_up() {
    let settings = |path| HttpSettings { base_url: "https://a.example".into(), ca_bundle: Some(path) };
    let missing = HttpTransport::new(&settings(tls_file("missing.pem")));
    assert!(matches!(missing, Err(HttpSetupError::Bundle { .. })));
    let key = HttpTransport::new(&settings(tls_file("server.key")));
    assert!(matches!(key, Err(HttpSetupError::NoCertificate { .. })));
}
