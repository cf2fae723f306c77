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
    /// Whether the server named the reason itself.
    pub named: bool,
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
            named: true,
            field: None,
            retry_after: None,
        }
    }

    pub fn is(&self, reason: &str) -> bool {
        self.reason == reason
    }

    /// Whether the same call may succeed a moment later.
    pub fn is_transient(&self) -> bool {
        match self.code {
            Code::Unavailable | Code::DeadlineExceeded => true,
            // A server names its reason, an internal fault too: without one the connection was cut in mid-call.
            Code::Unknown | Code::Internal | Code::Cancelled => !self.named,
            _ => false,
        }
    }
}

/// `NotFound` as the wire writes it: `NOT_FOUND`.
fn snake(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(c.to_ascii_uppercase());
    }
    text
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        let details = status.get_error_details();
        let info = details.error_info();
        let unnamed = || match status.code() {
            Code::Cancelled => "CANCELLED_CALL".to_owned(),
            code => snake(&format!("{code:?}")),
        };
        Self {
            reason: info.map_or_else(unnamed, |info| info.reason.clone()),
            named: info.is_some(),
            field: info.and_then(|info| info.metadata.get("field").cloned()),
            retry_after: details.retry_info().and_then(|info| info.retry_delay),
            message: status.message().to_owned(),
            code: status.code(),
        }
    }
}
