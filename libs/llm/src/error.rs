//! Why a model gave no answer, by what a caller can do about it.

use crate::overflow::overflow;
use serde_json::Value;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// Send less. The numbers are tokens, where the provider's words name them.
    #[error("the context is too long for the model{}", tokens(*.observed, *.limit))]
    Overflow {
        observed: Option<u64>,
        limit: Option<u64>,
    },
    /// Wait, as long as the provider asks if it does.
    #[error("the provider limits the rate of calls")]
    Rate { retry_after: Option<Duration> },
    /// The key is not accepted, may not use the model, or has no credit left.
    #[error("the provider refused the key: check `model.api_key` and the account behind it")]
    Auth,
    /// Try again.
    #[error("the provider failed: {0}")]
    Transient(String),
    /// The model or a filter before it declined.
    #[error("the model refused")]
    Refused,
    /// The answer is not what was asked for.
    #[error("unusable answer: {0}")]
    Malformed(String),
    #[error("no answer in time")]
    Deadline,
    /// The request or the configuration can never work.
    #[error("{0}")]
    Unsupported(String),
}

fn tokens(observed: Option<u64>, limit: Option<u64>) -> String {
    match (observed, limit) {
        (Some(observed), Some(limit)) => format!(": {observed} tokens of {limit}"),
        (Some(observed), None) => format!(": {observed} tokens"),
        (None, Some(limit)) => format!(" of {limit} tokens"),
        (None, None) => String::new(),
    }
}

/// Providers' codes for an account that waiting does not help.
const NO_CREDIT: [&str; 3] = [
    "insufficient_quota",
    "billing_hard_limit",
    "credit balance is too low",
];
/// Providers' codes for a request that a filter stopped.
const FILTERED: [&str; 3] = [
    "content_filter",
    "content_policy_violation",
    "responsibleaipolicyviolation",
];

impl ModelError {
    /// Whether the same call may succeed later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Rate { .. } | Self::Transient(_))
    }

    /// The class of an HTTP answer that is no success. Nothing of the body but an error's code gets into the text:
    /// providers like to quote what they were sent.
    pub(crate) fn of_status(status: u16, retry_after: Option<Duration>, body: &str) -> Self {
        let lower = body.to_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        match status {
            401..=403 => Self::Auth,
            400 | 429 if says(&NO_CREDIT) => Self::Auth,
            429 => Self::Rate { retry_after },
            // A busy provider names the time as well.
            503 | 529 if retry_after.is_some() => Self::Rate { retry_after },
            400 | 413 | 422 | 500 if let Some(found) = overflow(&lower) => found,
            413 => Self::Overflow {
                observed: None,
                limit: None,
            },
            400 | 422 if says(&FILTERED) => Self::Refused,
            408 | 409 | 425 | 500..=599 => Self::Transient(format!("it answered {status}{}", code(body))),
            _ => Self::Unsupported(format!("the provider answered {status}{}", code(body))),
        }
    }
}

/// The error's code in brackets, if it is one word.
fn code(body: &str) -> String {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let error = &body["error"];
    let word = |text: &&str| {
        (1..=64).contains(&text.len())
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
    };
    [&error["code"], &error["type"]]
        .into_iter()
        .filter_map(Value::as_str)
        .find(word)
        .map(|code| format!(" ({code})"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(status: u16, body: &str) -> ModelError {
        ModelError::of_status(status, None, body)
    }

    #[test]
    fn statuses_are_classified_by_what_to_do() {
        assert_eq!(class(401, ""), ModelError::Auth);
        assert_eq!(class(403, ""), ModelError::Auth);
        assert_eq!(
            class(429, "too many tokens per minute"),
            ModelError::Rate { retry_after: None }
        );
        assert_eq!(
            class(429, r#"{"error":{"code":"insufficient_quota"}}"#),
            ModelError::Auth
        );
        assert_eq!(
            class(400, r#"{"error":{"code":"content_filter"}}"#),
            ModelError::Refused
        );
        assert!(matches!(class(529, ""), ModelError::Transient(_)));
        assert!(matches!(class(413, ""), ModelError::Overflow { .. }));
        assert!(matches!(class(404, ""), ModelError::Unsupported(_)));
    }

    #[test]
    fn an_error_shows_its_code_and_nothing_of_what_was_sent() {
        let body = r#"{"error":{"code":"model_not_found","message":"no such model for 'my secret text'"}}"#;
        assert_eq!(
            class(404, body).to_string(),
            "the provider answered 404 (model_not_found)"
        );
        assert_eq!(
            class(404, r#"{"error":{"code":"my secret text"}}"#).to_string(),
            "the provider answered 404"
        );
    }
}
