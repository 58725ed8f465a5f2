//! The same job over TLS: a server in front of the lab, whose authority is only in `SSL_CERT_FILE`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;
use yaoki_lab::{Script, Step};

use crate::stage::{Running, Stage};

const AUTHORITY: &str = include_str!("tls/ca.pem");
const SERVER: &str = include_str!("tls/server.pem");
const SERVER_KEY: &str = include_str!("tls/server.key.pem");

/// Takes TLS and hands on plain bytes. Ends when dropped.
struct Front {
    addr: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Front {
    fn before(lab: SocketAddr) -> Front {
        let certificates = vec![CertificateDer::from_pem_slice(SERVER.as_bytes()).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(SERVER_KEY.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_no_client_auth().with_single_cert(certificates, key).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));

        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let addr = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let serve = async move {
            let listener = TcpListener::from_std(listener).unwrap();
            loop {
                let (plain, _) = listener.accept().await.unwrap();
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    // A client that does not trust us leaves here.
                    let Ok(mut secure) = acceptor.accept(plain).await else { return };
                    let mut to_lab = TcpStream::connect(lab).await.unwrap();
                    let _ = copy_bidirectional(&mut secure, &mut to_lab).await;
                });
            }
        };
        let run = move || {
            runtime.block_on(async {
                tokio::select! { () = serve => {}, _ = stopped => {} }
            });
        };
        Front { addr, stop: Some(stop), thread: Some(thread::spawn(run)) }
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        drop(self.stop.take());
        self.thread.take().unwrap().join().unwrap();
    }
}

#[test]
fn a_trusted_server_is_talked_to_over_tls_and_another_one_is_not() {
    let stage = Stage::new(Script::of(vec![Step::text("Said.")]));
    let front = Front::before(stage.server.addr());
    stage.write("authority.pem", AUTHORITY);
    let ask = |authority: Option<&str>| {
        let mut command = stage.yaoki(&["-p", "say it"]);
        command.env("ANTHROPIC_BASE_URL", format!("https://{}", front.addr)).env("YAOKI_MAX_RETRIES", "0");
        command.envs(authority.map(|name| ("SSL_CERT_FILE", stage.base().join(name))));
        Running::start(&mut command).wait()
    };
    let stranger = ask(None);
    stranger.assert_code(1);
    assert!(stranger.err.contains("certificate"), "{}", stranger.err);
    assert_eq!(stage.asks().len(), 0, "nothing was sent to a stranger");

    let ran = ask(Some("authority.pem"));
    ran.assert_code(0);
    assert_eq!(ran.out, "Said.\n");
    stage.assert_accepted();
}
