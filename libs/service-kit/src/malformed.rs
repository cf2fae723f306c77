//! A request that cannot be decoded, or is larger than the limit, is the caller's mistake. The codec itself answers
//! `INTERNAL` and `OUT_OF_RANGE` without a reason, before any method sees the call.

use crate::status::to_status;
use colloquy_types::Error;
use futures::future::BoxFuture;
use http::{Request, Response};
use std::task::{Context, Poll};
use tonic::body::Body;
use tonic::{Code, Status};
use tower::{Layer, Service};

/// What the codec's answers begin with.
const UNDECODABLE: &str = "failed to decode Protobuf message";
const OVERSIZED: &str = "Error, decoded message length too large";

/// The layer next to the methods.
#[derive(Debug, Clone, Copy, Default)]
pub struct Malformed;

impl<S> Layer<S> for Malformed {
    type Service = MalformedService<S>;

    fn layer(&self, inner: S) -> MalformedService<S> {
        MalformedService { inner }
    }
}

/// [`Malformed`] in front of a service.
#[derive(Debug, Clone)]
pub struct MalformedService<S> {
    inner: S,
}

impl<S> Service<Request<Body>> for MalformedService<S>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let answer = self.inner.call(request);
        Box::pin(async move {
            let response = answer.await?;
            Ok(
                match Status::from_header_map(response.headers())
                    .as_ref()
                    .and_then(mistake)
                {
                    Some(error) => to_status(error).into_http(),
                    None => response,
                },
            )
        })
    }
}

/// The caller's mistake behind an answer of the codec.
fn mistake(status: &Status) -> Option<Error> {
    let message = status.message();
    match status.code() {
        Code::Internal if message.starts_with(UNDECODABLE) => {
            let what = message[UNDECODABLE.len()..].trim_start_matches(": ");
            Some(Error::invalid("message", format!("cannot be decoded: {what}")))
        }
        Code::OutOfRange if message.starts_with(OVERSIZED) => {
            let limit = message.split("the limit is: ").nth(1).unwrap_or("the limit");
            Some(Error::too_large("message", format_args!("{limit}")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use colloquy_types::Reason;

    #[test]
    fn only_the_codecs_own_answers_are_changed() {
        let reason = |status| mistake(&status).map(|error| error.reason);
        let undecodable = Status::internal(format!("{UNDECODABLE}: text: not UTF-8"));
        assert_eq!(reason(undecodable), Some(Reason::InvalidField));
        let oversized = Status::out_of_range(format!("{OVERSIZED}: found 9 bytes, the limit is: 8 bytes"));
        assert_eq!(reason(oversized), Some(Reason::TooLarge));
        assert_eq!(reason(Status::internal("a fault")), None);
        assert_eq!(reason(Status::out_of_range("seq")), None);
    }
}
