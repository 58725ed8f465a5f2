//! The lab on a real loopback socket, heard by a client that only knows TCP.
#![cfg(feature = "serve")]

use std::io::ErrorKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use yaoki_lab::serve::Server;
use yaoki_lab::{Lab, Script, example};

const ASK: &str =
    r#"{"model":"claude-lab-1","max_tokens":1000,"stream":true,"messages":[{"role":"user","content":"hi"}]}"#;

async fn serve(script: &str) -> Server {
    Server::start(Lab::new(Script::parse(script).unwrap()), "127.0.0.1:0").await.unwrap()
}

async fn connect(server: &Server) -> TcpStream {
    TcpStream::connect(server.addr()).await.unwrap()
}

fn post(body: &str) -> String {
    format!(
        "POST /v1/messages HTTP/1.1\r\nhost: lab\r\nx-api-key: k\r\nanthropic-version: 2023-06-01\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Sends bytes and reads until the server closes. Returns what came and how it ended.
async fn hear(conn: &mut TcpStream, bytes: &str) -> (String, Result<(), ErrorKind>) {
    let mut heard = Vec::new();
    let ended = match conn.write_all(bytes.as_bytes()).await {
        Ok(()) => conn.read_to_end(&mut heard).await.map(|_| ()).map_err(|e| e.kind()),
        Err(e) => Err(e.kind()),
    };
    (String::from_utf8(heard).unwrap(), ended)
}

fn last(body: &str) -> String {
    post(body).replace("host: lab\r\n", "host: lab\r\nconnection: close\r\n")
}

#[tokio::test]
async fn hello_is_streamed_whole() {
    let server = serve(example("hello").unwrap()).await;
    let (heard, ended) = hear(&mut connect(&server).await, &last(ASK)).await;
    assert_eq!(ended, Ok(()));
    assert!(
        heard.starts_with("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"),
        "{heard}"
    );
    assert!(heard.contains("transfer-encoding: chunked"), "{heard}");
    assert!(heard.contains("\"text\":\"Hello! What shall we build?\""), "{heard}");
    assert!(heard.ends_with("data: {\"type\":\"message_stop\"}\n\n\r\n0\r\n\r\n"), "{heard}");
    assert_eq!(server.report().complaints(), Vec::<String>::new());
    server.shutdown().await;
}
