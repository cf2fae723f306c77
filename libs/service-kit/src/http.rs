//! HTTP listeners: webhooks, and the admin port. HTTP/1.1, as every proxy in front of them speaks.
//!
//! Every wait for the other side has an end, and the stop does not wait for what has not arrived.

use crate::shutdown::Shutdown;
use crate::trace::Trace;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use colloquy_types::Reason;
use http::{StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tower::Service;
use tower_http::catch_panic::CatchPanicLayer;

/// Longest wait for the head of a request, on a new connection and on one that is kept open.
pub const HEADER_LIMIT: Duration = Duration::from_secs(10);
/// Longest wait for the body after it; then 408.
pub const BODY_LIMIT: Duration = Duration::from_secs(30);
/// Largest body, in bytes; then 413.
pub const MAX_HTTP_BODY_BYTES: usize = 2 << 20;

/// After the stop began: time for an answer to leave, and between looks whether one is still made.
const LINGER: Duration = Duration::from_millis(500);
/// Pause after the process could not take a connection, most likely for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves until the stop begins, and what has arrived by then to its end.
pub fn spawn(name: &'static str, listener: TcpListener, router: Router, shutdown: &Shutdown) {
    let router = router
        .layer(from_fn_with_state(shutdown.clone(), receive))
        .layer(CatchPanicLayer::new())
        .layer(Trace);
    let stop = shutdown.clone();
    shutdown.spawn(name, async move {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = stop.begun() => return,
            };
            match accepted {
                Ok((stream, _)) => {
                    let served = connection(stream, router.clone(), stop.clone());
                    stop.spawn("http connection", served);
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot take a connection");
                    stop.sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    });
}

async fn connection(stream: TcpStream, router: Router, shutdown: Shutdown) {
    // Only latency suffers when this fails.
    let _ = stream.set_nodelay(true);
    let mut builder = Builder::new(hyper_util::rt::TokioExecutor::new()).http1_only();
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_LIMIT);
    let running = Arc::new(());
    let service = Counted {
        inner: router,
        running: running.clone(),
    };
    let served = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    tokio::pin!(served);
    // How a connection ends is the other side's affair: it went away, or was too slow.
    tokio::select! {
        _ = served.as_mut() => return,
        () = shutdown.begun() => served.as_mut().graceful_shutdown(),
    }
    while tokio::time::timeout(LINGER, served.as_mut()).await.is_err() {
        // One handle is this function's, one the service's; each request under way has another.
        if Arc::strong_count(&running) <= 2 {
            return;
        }
    }
}

/// Takes in the whole body before the handler runs, which then waits for no client.
async fn receive(State(shutdown): State<Shutdown>, request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    // The length is announced: no need to wait for the bytes.
    if body.size_hint().lower() > MAX_HTTP_BODY_BYTES as u64 {
        return too_large();
    }
    let whole = Limited::new(body, MAX_HTTP_BODY_BYTES).collect();
    let collected = tokio::select! {
        biased;
        collected = tokio::time::timeout(BODY_LIMIT, whole) => collected,
        () = shutdown.begun() => {
            let again = [(header::RETRY_AFTER, "1")];
            return (again, refusal(StatusCode::SERVICE_UNAVAILABLE, Reason::Dependency, "the server stops")).into_response();
        }
    };
    let body: Bytes = match collected {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => return too_large(),
        Ok(Err(_)) => {
            return refusal(
                StatusCode::BAD_REQUEST,
                Reason::InvalidField,
                "the body breaks off",
            );
        }
        Err(_) => {
            let message = format!("the body did not arrive within {} s", BODY_LIMIT.as_secs());
            return refusal(StatusCode::REQUEST_TIMEOUT, Reason::Deadline, &message);
        }
    };
    next.run(Request::from_parts(head, Body::from(body))).await
}

fn too_large() -> Response {
    let message = format!("the limit is {MAX_HTTP_BODY_BYTES} bytes");
    refusal(StatusCode::PAYLOAD_TOO_LARGE, Reason::TooLarge, &message)
}

fn refusal(status: StatusCode, reason: Reason, message: &str) -> Response {
    let body = serde_json::json!({"ok": false, "reason": reason.as_str(), "message": message});
    (status, [(header::CONNECTION, "close")], Json(body)).into_response()
}

/// A service of which one can see how many requests are under way.
#[derive(Clone)]
struct Counted<S> {
    inner: S,
    running: Arc<()>,
}

impl<R, S> Service<R> for Counted<S>
where
    S: Service<R>,
    S::Future: Send + 'static,
    S::Response: 'static,
    S::Error: 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = futures::future::BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let (one, answer) = (self.running.clone(), self.inner.call(request));
        Box::pin(async move {
            let answer = answer.await;
            drop(one);
            answer
        })
    }
}
