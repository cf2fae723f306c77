//! Request id and W3C trace context: taken from the caller or made here, on every log line of the call, on the
//! answer, and on the calls that it leads to.

use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Request, Response};
use std::task::{Context, Poll};
use tower::{Layer, Service};
use tracing::Instrument;
use uuid::Uuid;

/// Names a call in logs of all services; returned with every answer.
pub const REQUEST_ID: &str = "x-request-id";
/// <https://www.w3.org/TR/trace-context/>
pub const TRACEPARENT: &str = "traceparent";

/// Longest request id that is taken over, in bytes.
const MAX_ID_BYTES: usize = 128;

tokio::task_local! {
    static CURRENT: CallContext;
}

/// What identifies a call on its way through the services.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallContext {
    request_id: HeaderValue,
    /// 32 hex digits, the same in all spans of a trace.
    trace_id: String,
    /// Whether the caller asked for the trace to be recorded.
    sampled: bool,
}

impl CallContext {
    /// Of the caller's headers; what is missing or malformed is made anew.
    pub fn of(headers: &HeaderMap) -> Self {
        let given = headers
            .get(REQUEST_ID)
            .filter(|id| !id.is_empty() && id.len() <= MAX_ID_BYTES);
        let fresh = || {
            HeaderValue::from_str(&Uuid::now_v7().simple().to_string())
                .expect("hex digits can stand in a header")
        };
        let parent = headers
            .get(TRACEPARENT)
            .and_then(|value| parse(value.to_str().ok()?));
        let (trace_id, sampled) = parent.unwrap_or_else(|| (Uuid::new_v4().simple().to_string(), false));
        Self {
            request_id: given.cloned().unwrap_or_else(fresh),
            trace_id,
            sampled,
        }
    }

    /// For a call to another service: the same trace, a span of its own.
    fn traceparent(&self) -> String {
        let span = rand::random::<u64>().max(1);
        format!("00-{}-{span:016x}-{:02x}", self.trace_id, u8::from(self.sampled))
    }
}

/// Trace id and the sampled flag of a `traceparent`.
fn parse(text: &str) -> Option<(String, bool)> {
    let mut parts = text.split('-');
    let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let hex = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    let set = |text: &str| text.bytes().any(|b| b != b'0');
    let legal =
        hex(version, 2) && version != "ff" && hex(trace, 32) && set(trace) && hex(span, 16) && set(span);
    let flags = u8::from_str_radix(flags, 16)
        .ok()
        .filter(|_| legal && flags.len() == 2)?;
    Some((trace.to_owned(), flags & 1 == 1))
}

/// Puts the current call's ids on a request to another service; outside a call it does nothing.
pub fn propagate<T>(request: &mut tonic::Request<T>) {
    let _ = CURRENT.try_with(|context| {
        if let Some(id) = context.request_id.to_str().ok().and_then(|id| id.parse().ok()) {
            request.metadata_mut().insert(REQUEST_ID, id);
        }
        if let Ok(parent) = context.traceparent().parse() {
            request.metadata_mut().insert(TRACEPARENT, parent);
        }
    });
}

/// The layer in front of every gRPC method and every HTTP route.
#[derive(Debug, Clone, Copy, Default)]
pub struct Trace;

impl<S> Layer<S> for Trace {
    type Service = TraceService<S>;

    fn layer(&self, inner: S) -> TraceService<S> {
        TraceService { inner }
    }
}

/// [`Trace`] in front of a service.
#[derive(Debug, Clone)]
pub struct TraceService<S> {
    inner: S,
}

impl<S, A, B> Service<Request<A>> for TraceService<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<B>, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let context = CallContext::of(request.headers());
        let span = tracing::info_span!(
            "call",
            method = request.uri().path(),
            request_id = ?context.request_id,
            trace_id = %context.trace_id,
        );
        let request_id = context.request_id.clone();
        let answer = CURRENT.scope(context, self.inner.call(request));
        let answer = async move {
            let mut response = answer.await?;
            response.headers_mut().insert(REQUEST_ID, request_id);
            Ok(response)
        };
        Box::pin(answer.instrument(span))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)))
            .collect()
    }

    #[tokio::test]
    async fn a_call_goes_on_under_its_ids() {
        let context = CallContext::of(&headers(&[(REQUEST_ID, "abc"), (TRACEPARENT, PARENT)]));
        let request = CURRENT
            .scope(context, async {
                let mut request = tonic::Request::new(());
                propagate(&mut request);
                request
            })
            .await;
        assert_eq!(request.metadata().get(REQUEST_ID).unwrap(), "abc");
        let parent = request.metadata().get(TRACEPARENT).unwrap().to_str().unwrap();
        assert!(
            parent.starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-") && parent.ends_with("-01"),
            "{parent}"
        );
        assert!(
            !parent.contains("00f067aa0ba902b7"),
            "a span of its own: {parent}"
        );
    }

    #[test]
    fn what_is_malformed_is_made_anew() {
        let zero = "00-00000000000000000000000000000000-00f067aa0ba902b7-01";
        for given in [
            "",
            "nonsense",
            "00-XYZ-00f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            zero,
        ] {
            assert_eq!(parse(given), None, "{given}");
        }
        let (one, other) = (
            CallContext::of(&HeaderMap::new()),
            CallContext::of(&HeaderMap::new()),
        );
        assert_ne!(one.request_id, other.request_id);
        assert_ne!(one.trace_id, other.trace_id);
    }

    #[test]
    fn outside_a_call_nothing_is_added() {
        let mut request = tonic::Request::new(());
        propagate(&mut request);
        assert!(request.metadata().is_empty());
    }
}
