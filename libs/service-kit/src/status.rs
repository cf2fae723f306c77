//! The closed list of errors ⇄ gRPC status with `google.rpc` details. The one place where either is mapped.

use colloquy_types::{Error, Reason};
use std::collections::HashMap;
use std::time::Duration;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// `ErrorInfo.domain` of every error.
pub const DOMAIN: &str = "colloquy.v1";

/// The status a client sees.
pub fn to_status(error: Error) -> Status {
    let code = code_of(error.reason);
    if error.reason == Reason::Internal {
        tracing::error!(message = %error.message, "internal error");
    }
    let mut info = HashMap::new();
    if let Some(field) = &error.field {
        info.insert("field".to_owned(), field.clone());
    }
    let mut details = ErrorDetails::with_error_info(error.reason.as_str(), DOMAIN, info);
    match (error.reason, &error.field) {
        (Reason::InvalidField | Reason::TooLarge, Some(field)) => {
            details.add_bad_request_violation(field, &error.message);
        }
        (Reason::NotFound, Some(kind)) => {
            details.set_resource_info(kind, "", "", &error.message);
        }
        _ => {}
    }
    if let Some(millis) = error.retry_after_ms {
        details.set_retry_info(Some(Duration::from_millis(millis)));
    }
    Status::with_error_details(code, error.message, details)
}

/// The error behind a status of another service; what carries no reason is a dependency that failed.
pub fn from_status(status: Status) -> Error {
    let details = status.get_error_details();
    let reason = details
        .error_info()
        .and_then(|info| reason_of(&info.reason))
        .unwrap_or_else(|| match status.code() {
            Code::DeadlineExceeded => Reason::Deadline,
            Code::Unimplemented => Reason::Unimplemented,
            Code::InvalidArgument => Reason::InvalidField,
            Code::NotFound => Reason::NotFound,
            Code::Unauthenticated => Reason::BadCredential,
            Code::PermissionDenied => Reason::MissingRole,
            Code::ResourceExhausted | Code::OutOfRange => Reason::TooLarge,
            // A service names its reason, an internal fault too: without one the connection was cut in mid-call.
            _ => Reason::Dependency,
        });
    let mut error = Error::new(reason, status.message());
    error.field = details
        .error_info()
        .and_then(|info| info.metadata.get("field").cloned());
    error.retry_after_ms = details
        .retry_info()
        .and_then(|info| info.retry_delay)
        .map(|delay| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX));
    error
}

/// The answer of a method that the contract has and the server does not serve yet.
pub fn unimplemented(method: &str) -> Status {
    to_status(Error::new(
        Reason::Unimplemented,
        format!("{method} is not served by this version"),
    ))
}

fn code_of(reason: Reason) -> Code {
    match reason {
        Reason::InvalidField | Reason::TooLarge => Code::InvalidArgument,
        Reason::NotFound => Code::NotFound,
        Reason::BadCredential => Code::Unauthenticated,
        Reason::MissingRole => Code::PermissionDenied,
        Reason::Fenced | Reason::Conflict | Reason::Cancelled => Code::Aborted,
        Reason::IdempotencyMismatch => Code::AlreadyExists,
        Reason::QueueFull | Reason::Quota | Reason::RateLimited | Reason::Busy => Code::ResourceExhausted,
        Reason::Erased | Reason::ContextOverBudget => Code::FailedPrecondition,
        Reason::Dependency => Code::Unavailable,
        Reason::Deadline => Code::DeadlineExceeded,
        Reason::Unimplemented => Code::Unimplemented,
        Reason::Internal => Code::Internal,
    }
}

const ALL: [Reason; 19] = [
    Reason::InvalidField,
    Reason::TooLarge,
    Reason::NotFound,
    Reason::BadCredential,
    Reason::MissingRole,
    Reason::Fenced,
    Reason::Conflict,
    Reason::Cancelled,
    Reason::IdempotencyMismatch,
    Reason::QueueFull,
    Reason::Quota,
    Reason::RateLimited,
    Reason::Busy,
    Reason::Erased,
    Reason::ContextOverBudget,
    Reason::Dependency,
    Reason::Deadline,
    Reason::Unimplemented,
    Reason::Internal,
];

fn reason_of(text: &str) -> Option<Reason> {
    ALL.into_iter().find(|reason| reason.as_str() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_survives_the_wire() {
        for reason in ALL {
            let error = Error {
                reason,
                message: "why".into(),
                field: Some("a.b".into()),
                retry_after_ms: Some(1_500),
            };
            assert_eq!(from_status(to_status(error.clone())), error, "{reason:?}");
        }
    }

    #[test]
    fn a_status_without_details_is_read_by_its_code() {
        assert_eq!(
            from_status(Status::unavailable("gone")).reason,
            Reason::Dependency
        );
    }
}
