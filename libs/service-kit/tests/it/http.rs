//! Slow and stalled HTTP clients, and the ids of a call.

use crate::server;
use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use colloquy_service_kit::client::untenanted;
use colloquy_service_kit::http::{BODY_LIMIT, HEADER_LIMIT};
use colloquy_service_kit::{Parts, Running};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

async fn echoing() -> Running {
    let router = Router::new()
        .route("/echo", post(|body: Bytes| async move { body }))
        // What a handler would send on to another service.
        .route(
            "/ids",
            post(|| async {
                let request = untenanted(());
                let of = |name| request.metadata().get(name).unwrap().to_str().unwrap().to_owned();
                format!("{} {}", of("x-request-id"), of("traceparent"))
            }),
        );
    server(&[], Parts::new("test").http(router)).await
}

async fn connect(running: &Running) -> TcpStream {
    TcpStream::connect(running.http.unwrap()).await.unwrap()
}

/// Until the other side ends the connection.
async fn rest(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    // A connection that is cut off may say so.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).unwrap()
}

async fn ask(running: &Running, request: &str) -> String {
    let mut stream = connect(running).await;
    stream.write_all(request.as_bytes()).await.unwrap();
    timeout(Duration::from_secs(60), rest(&mut stream)).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_never_arrives_is_given_up() {
    let running = echoing().await;
    let start = Instant::now();
    let stalled = |sent: &'static str, limit: Duration| {
        let address = running.http.unwrap();
        async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(sent.as_bytes()).await.unwrap();
            let margin = Duration::from_secs(20);
            let answer = timeout(limit + margin, rest(&mut stream)).await;
            answer.unwrap_or_else(|_| panic!("held for longer than {limit:?}: {sent:?}"))
        }
    };
    let (nothing, head, body) = tokio::join!(
        stalled("", HEADER_LIMIT),
        stalled("POST /echo HTTP/1.1\r\nhost: x\r\n", HEADER_LIMIT),
        stalled(
            "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nx",
            BODY_LIMIT
        ),
    );
    assert!(!nothing.contains("200 OK") && !head.contains("200 OK"));
    assert!(
        body.starts_with("HTTP/1.1 408") && body.contains("DEADLINE"),
        "{body}"
    );
    assert!(start.elapsed() >= BODY_LIMIT);
}

#[tokio::test]
async fn a_stalled_client_does_not_hold_up_the_stop() {
    let running = echoing().await;
    let mut streams = Vec::new();
    for sent in [
        "",
        "POST /echo HTTP/1.1\r\n",
        "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nx",
    ] {
        let mut stream = connect(&running).await;
        stream.write_all(sent.as_bytes()).await.unwrap();
        streams.push(stream);
    }
    // The last of them has been read when the one behind it is answered.
    let answer = ask(
        &running,
        "POST /echo HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 1\r\n\r\ny",
    )
    .await;
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with('y'),
        "{answer}"
    );
    assert!(running.stop().await, "nothing is left to be cut off");
    let refused = rest(&mut streams[2]).await;
    assert!(
        refused.starts_with("HTTP/1.1 503") && refused.contains("retry-after"),
        "{refused}"
    );
}

#[tokio::test]
async fn what_has_arrived_is_answered_through_the_stop() {
    let (entered, go_on) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (here, wait) = (entered.clone(), go_on.clone());
    let slow = move || async move {
        here.add_permits(1);
        wait.acquire().await.unwrap().forget();
        "done"
    };
    let router = Router::new().route("/slow", post(slow));
    let running = server(&[], Parts::new("test").http(router)).await;
    let mut stream = connect(&running).await;
    let request = "POST /slow HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    entered.acquire().await.unwrap().forget();
    let begun = running.shutdown.clone();
    let (clean, ()) = tokio::join!(running.stop(), async {
        begun.begun().await;
        // Longer than a connection without a request is kept.
        tokio::time::sleep(Duration::from_millis(1_200)).await;
        go_on.add_permits(1);
    });
    assert!(clean);
    let answer = rest(&mut stream).await;
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("done"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let running = echoing().await;
    let length = 3 << 20;
    let head = format!("POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n");
    let answer = ask(&running, &head).await;
    assert!(
        answer.starts_with("HTTP/1.1 413") && answer.contains("TOO_LARGE"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_request_goes_on_under_its_ids() {
    let running = echoing().await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let given = format!(
        "POST /ids HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 0\r\nx-request-id: abc-1\r\n\
         traceparent: 00-{trace}-00f067aa0ba902b7-01\r\n\r\n"
    );
    let answer = ask(&running, &given).await;
    assert!(answer.contains("x-request-id: abc-1\r\n"), "{answer}");
    assert!(answer.contains(&format!("\r\n\r\nabc-1 00-{trace}-")), "{answer}");

    let fresh = "POST /ids HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    let answer = ask(&running, fresh).await;
    let id = answer
        .split("x-request-id: ")
        .nth(1)
        .expect("an id")
        .split("\r\n")
        .next()
        .unwrap();
    assert!(
        !id.is_empty() && answer.contains(&format!("\r\n\r\n{id} 00-")),
        "{answer}"
    );
    let unknown = "POST /nowhere HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    let answer = ask(&running, unknown).await;
    assert!(
        answer.starts_with("HTTP/1.1 404") && answer.contains("x-request-id: "),
        "{answer}"
    );
}
