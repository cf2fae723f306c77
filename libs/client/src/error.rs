//! What a call can end with, for callers that branch.

use tonic::{Code, Status};
use tonic_types::StatusExt;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failed call: the stable reason, and a message for people.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{reason}: {message}")]
pub struct Error {
    /// `google.rpc.ErrorInfo.reason`, for instance `FENCED`; the status code's name when there is none.
    pub reason: String,
    pub message: String,
    pub code: Code,
    /// The offending field, when one is named.
    pub field: Option<String>,
    /// When the server wants to see a retry.
    pub retry_after: Option<std::time::Duration>,
}

impl Error {
    pub(crate) fn url(url: &str, error: &tonic::transport::Error) -> Self {
        Self::local(format!("`{url}` is not a URL: {error}"))
    }

    pub(crate) fn key() -> Self {
        Self::local("the key has characters that cannot stand in a header")
    }

    fn local(message: impl Into<String>) -> Self {
        let (message, code) = (message.into(), Code::InvalidArgument);
        Self {
            reason: "INVALID_FIELD".into(),
            message,
            code,
            field: None,
            retry_after: None,
        }
    }

    pub fn is(&self, reason: &str) -> bool {
        self.reason == reason
    }

    /// Whether the same call may succeed a moment later.
    pub fn is_transient(&self) -> bool {
        matches!(self.code, Code::Unavailable | Code::DeadlineExceeded)
            // A connection that was cut in mid-call.
            || (self.code == Code::Unknown && self.message.contains("transport"))
            || (self.code == Code::Cancelled && self.reason == "CANCELLED_CALL")
            || (self.code == Code::Internal && self.message.contains("h2 protocol error"))
    }
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        let details = status.get_error_details();
        let info = details.error_info();
        let unnamed = || match status.code() {
            Code::Cancelled => "CANCELLED_CALL".to_owned(),
            code => format!("{code:?}").to_uppercase(),
        };
        Self {
            reason: info.map_or_else(unnamed, |info| info.reason.clone()),
            field: info.and_then(|info| info.metadata.get("field").cloned()),
            retry_after: details.retry_info().and_then(|info| info.retry_delay),
            message: status.message().to_owned(),
            code: status.code(),
        }
    }
}
