//! The closed list of errors. `service-kit` maps it to gRPC once; libraries only say what happened.

use serde::{Deserialize, Serialize};
use std::fmt;

/// `Result` with [`Error`] unless said otherwise.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The stable reason a client branches on (`google.rpc.ErrorInfo.reason` on the wire).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Reason {
    InvalidField,
    TooLarge,
    NotFound,
    BadCredential,
    MissingRole,
    Fenced,
    Conflict,
    Cancelled,
    IdempotencyMismatch,
    QueueFull,
    Quota,
    RateLimited,
    Busy,
    Erased,
    ContextOverBudget,
    Dependency,
    Deadline,
    Unimplemented,
    Internal,
}

impl Reason {
    /// The wire form, for instance `QUEUE_FULL`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidField => "INVALID_FIELD",
            Self::TooLarge => "TOO_LARGE",
            Self::NotFound => "NOT_FOUND",
            Self::BadCredential => "BAD_CREDENTIAL",
            Self::MissingRole => "MISSING_ROLE",
            Self::Fenced => "FENCED",
            Self::Conflict => "CONFLICT",
            Self::Cancelled => "CANCELLED",
            Self::IdempotencyMismatch => "IDEMPOTENCY_MISMATCH",
            Self::QueueFull => "QUEUE_FULL",
            Self::Quota => "QUOTA",
            Self::RateLimited => "RATE_LIMITED",
            Self::Busy => "BUSY",
            Self::Erased => "ERASED",
            Self::ContextOverBudget => "CONTEXT_OVER_BUDGET",
            Self::Dependency => "DEPENDENCY",
            Self::Deadline => "DEADLINE",
            Self::Unimplemented => "UNIMPLEMENTED",
            Self::Internal => "INTERNAL",
        }
    }
}

/// What went wrong, for a caller that branches (`reason`, `field`) and for a person (`message`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub reason: Reason,
    /// Says what to do where there is something to do. Never contains message text or secrets.
    pub message: String,
    /// Path of the offending field for `InvalidField` and `TooLarge`; kind of resource for `NotFound`.
    pub field: Option<String>,
    /// When a retry makes sense, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

impl Error {
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            field: None,
            retry_after_ms: None,
        }
    }

    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            field: Some(field.into()),
            ..Self::new(Reason::InvalidField, message)
        }
    }

    pub fn too_large(field: impl Into<String>, limit: impl fmt::Display) -> Self {
        Self {
            field: Some(field.into()),
            ..Self::new(Reason::TooLarge, format!("the limit is {limit}"))
        }
    }

    /// A foreign id answers exactly like one that does not exist, so the message names only what was asked.
    pub fn not_found(kind: impl Into<String>, id: impl fmt::Display) -> Self {
        let kind = kind.into();
        Self {
            message: format!("{kind} {id} does not exist"),
            field: Some(kind),
            ..Self::new(Reason::NotFound, "")
        }
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Reason::Internal, message)
    }

    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(Reason::Dependency, message).retry_after(1_000)
    }

    pub fn fenced() -> Self {
        Self::new(
            Reason::Fenced,
            "the turn was given to another attempt; drop this one and acquire again",
        )
    }

    #[must_use]
    pub fn retry_after(mut self, millis: u64) -> Self {
        self.retry_after_ms = Some(millis);
        self
    }

    /// The same error with `prefix.` in front of its field path.
    #[must_use]
    pub fn within(mut self, prefix: &str) -> Self {
        self.field = self.field.map(|field| format!("{prefix}.{field}"));
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason.as_str())?;
        if let (Some(field), Reason::InvalidField | Reason::TooLarge) = (&self.field, self.reason) {
            write!(f, " {field}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for Error {}
