//! The lab on a real loopback socket, heard by a client that only knows TCP.
#![cfg(feature = "serve")]
#![allow(clippy::unwrap_used)]

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

/// Hears the answer of a one-step script. The connection is kept, so that only a fault can end it.
async fn hear_step(step: &str, body: &str) -> (String, Result<(), ErrorKind>, Server) {
    let server = serve(&format!("{{\"steps\": [{step}]}}")).await;
    let (heard, ended) = hear(&mut connect(&server).await, &post(body)).await;
    (heard, ended, server)
}

const LONG: &str = r#"{"text": "Once upon a time there was a text that was long enough for more than one delta, three in fact."}"#;

fn cut(at: &str, how: &str) -> String {
    format!(r#"{{"answer": [{LONG}], "fault": {{"cut": {{"at": {at}, "how": "{how}"}}}}}}"#)
}

#[tokio::test]
async fn a_fin_comes_in_the_middle_of_the_body() {
    let (heard, ended, server) = hear_step(&cut(r#""in_text""#, "fin"), ASK).await;
    assert_eq!(ended, Ok(()));
    assert!(heard.ends_with("for more than one delta, \"}}\n\n\r\n"), "no last chunk: {heard}");
    assert_eq!(server.report().complaints(), Vec::<String>::new());
}

#[tokio::test]
async fn a_reset_comes_in_the_middle_of_the_body() {
    let (heard, ended, _server) = hear_step(&cut(r#""in_text""#, "rst"), ASK).await;
    assert_eq!(ended, Err(ErrorKind::ConnectionReset));
    assert!(heard.ends_with("for more than one delta, \"}}\n\n\r\n"), "{heard}");
}

#[tokio::test]
async fn an_early_end_is_a_proper_end() {
    let server =
        serve(&format!(r#"{{"steps": [{}, {{"answer": "next"}}]}}"#, cut(r#""in_text""#, "eof"))).await;
    let (heard, ended) = hear(&mut connect(&server).await, &(post(ASK) + &last(ASK))).await;
    assert_eq!(ended, Ok(()));
    assert!(heard.contains("for more than one delta, \"}}\n\n\r\n0\r\n\r\nHTTP/1.1 200 OK"), "{heard}");
}

#[tokio::test]
async fn a_cut_by_length_is_shorter_than_told() {
    let plain = ASK.replace("\"stream\":true", "\"stream\":false");
    let (heard, ended, _server) = hear_step(&cut(r#"{"byte": 10}"#, "fin"), &plain).await;
    assert_eq!(ended, Ok(()));
    let (head, body) = heard.split_once("\r\n\r\n").unwrap();
    assert!(
        body.len() == 10 && !head.contains("content-length: 10\r\n") && head.contains("content-length: "),
        "{heard}"
    );
}

#[tokio::test]
async fn a_reset_before_the_head_leaves_nothing() {
    for fault in ["reset", "refuse"] {
        let (heard, ended, server) = hear_step(&format!(r#"{{"fault": "{fault}"}}"#), ASK).await;
        assert_eq!((heard.as_str(), ended), ("", Err(ErrorKind::ConnectionReset)), "{fault}");
        assert!(server.report().steps[0].fired);
    }
}

#[tokio::test]
async fn nobody_listens_for_a_while() {
    let server = serve(r#"{"steps": [{"fault": {"closed": {"for_ms": 150}}}, {"answer": "back"}]}"#).await;
    let (heard, ended) = hear(&mut connect(&server).await, &post(ASK)).await;
    assert_eq!((heard.as_str(), ended), ("", Err(ErrorKind::ConnectionReset)));
    let mut refused = 0;
    let mut conn = loop {
        match TcpStream::connect(server.addr()).await {
            Ok(conn) => break conn,
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::ConnectionRefused);
                refused += 1;
                tokio::task::yield_now().await;
            }
        }
    };
    assert!(refused > 0);
    assert!(hear(&mut conn, &last(ASK)).await.0.contains("back"));
}

#[tokio::test]
async fn a_stall_lasts_until_the_client_leaves() {
    let server =
        serve(&format!(r#"{{"steps": [{}, {{"fault": "silent"}}]}}"#, cut(r#"{"event": 1}"#, "stall"))).await;
    for want in ["message_start", ""] {
        let mut conn = connect(&server).await;
        conn.write_all(post(ASK).as_bytes()).await.unwrap();
        let mut heard = Vec::new();
        if !want.is_empty() {
            while !String::from_utf8_lossy(&heard).contains("\n\n\r\n") {
                assert!(conn.read_buf(&mut heard).await.unwrap() > 0, "the server closed");
            }
        }
        assert!(String::from_utf8_lossy(&heard).contains(want));
        // That nothing comes can only be seen by waiting for it.
        let more =
            tokio::time::timeout(std::time::Duration::from_millis(50), conn.read_buf(&mut heard)).await;
        assert!(more.is_err(), "{more:?}");
        conn.shutdown().await.unwrap();
        assert_eq!(conn.read_buf(&mut heard).await.unwrap(), 0, "the server closes after us");
    }
}

#[tokio::test]
async fn a_connection_serves_one_request_after_the_other() {
    let server =
        serve(r#"{"steps": [{"answer": "one"}, {"fault": {"status": 529}}, {"answer": "three"}]}"#).await;
    let (heard, ended) = hear(&mut connect(&server).await, &(post(ASK) + &post(ASK) + &last(ASK))).await;
    assert_eq!(ended, Ok(()));
    let parts = [
        "HTTP/1.1 200 OK",
        "\"one\"",
        "HTTP/1.1 529 Overloaded",
        "overloaded_error",
        "HTTP/1.1 200 OK",
        "\"three\"",
    ];
    let mut rest = heard.as_str();
    for part in parts {
        rest = rest.split_once(part).unwrap_or_else(|| panic!("no {part} in {heard}")).1;
    }
}

#[tokio::test]
async fn bodies_come_in_chunks_and_after_a_hundred() {
    let server = serve(r#"{"steps": [{"answer": "one"}]}"#).await;
    let mut conn = connect(&server).await;
    let head = last(ASK).split_once("content-length").unwrap().0.to_owned();
    let head = head + "transfer-encoding: chunked\r\nexpect: 100-continue\r\n\r\n";
    conn.write_all(head.as_bytes()).await.unwrap();
    let mut go = [0; 25];
    conn.read_exact(&mut go).await.unwrap();
    assert_eq!(&go, b"HTTP/1.1 100 Continue\r\n\r\n");
    let (first, second) = ASK.split_at(30);
    let chunks = format!(
        "{:x}\r\n{first}\r\n{:X};x=1\r\n{second}\r\n0\r\ntrailer: t\r\n\r\n",
        first.len(),
        second.len()
    );
    assert!(hear(&mut conn, &chunks).await.0.contains("\"one\""));
}

#[tokio::test]
async fn a_body_over_the_limit_is_a_413() {
    let server = serve(r#"{"limits": {"body_bytes_max": 200}, "steps": [{"answer": "one"}]}"#).await;
    let big = ASK.replace("hi", &"x".repeat(100_000));
    let (heard, ended) = hear(&mut connect(&server).await, &last(&big)).await;
    assert_eq!(ended, Ok(()));
    assert!(heard.starts_with("HTTP/1.1 413 ") && heard.contains("request_too_large"), "{heard}");
}

#[tokio::test]
async fn what_is_not_http_is_told_so() {
    let server = serve(r#"{"steps": [{"answer": "one"}]}"#).await;
    for bytes in ["hello\r\n\r\n", "POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n"] {
        let (heard, ended) = hear(&mut connect(&server).await, bytes).await;
        assert_eq!(ended, Ok(()));
        assert!(heard.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{heard}");
    }
    assert_eq!(server.report().requests, 0);
}

#[tokio::test]
async fn another_process_can_ask_for_report_and_log() {
    let server = serve(r#"{"steps": [{"label": "one", "answer": "x"}]}"#).await;
    assert_eq!(hear(&mut connect(&server).await, &last(ASK)).await.1, Ok(()));
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nconnection: close\r\n\r\n");
    for (path, want) in [
        ("/__lab/report", serde_json::to_value(server.report())),
        ("/__lab/log", serde_json::to_value(server.log())),
    ] {
        let (heard, _) = hear(&mut connect(&server).await, &get(path)).await;
        let body: serde_json::Value = serde_json::from_str(heard.split_once("\r\n\r\n").unwrap().1).unwrap();
        assert_eq!(body, want.unwrap());
    }
    assert_eq!(server.log()[0].played, Some(true));
}

#[test]
fn a_lab_on_its_own_thread_needs_no_runtime() {
    use std::io::{Read, Write};
    let lab = Lab::new(Script::parse(example("hello").unwrap()).unwrap());
    let server = Server::start_on_thread(lab, "127.0.0.1:0").unwrap();
    let mut conn = std::net::TcpStream::connect(server.addr()).unwrap();
    conn.write_all(last(ASK).as_bytes()).unwrap();
    let mut heard = String::new();
    conn.read_to_string(&mut heard).unwrap();
    assert!(heard.contains("Hello!"), "{heard}");
    let addr = server.addr();
    drop(server);
    assert!(std::net::TcpStream::connect(addr).is_err());
}

#[test]
fn an_address_that_is_taken_is_an_error() {
    let lab = || Lab::new(Script::parse(example("hello").unwrap()).unwrap());
    let server = Server::start_on_thread(lab(), "127.0.0.1:0").unwrap();
    let again = Server::start_on_thread(lab(), &server.addr().to_string());
    assert_eq!(again.map(|_| ()).unwrap_err().kind(), ErrorKind::AddrInUse);
}
