//! Why a model gave no answer, by what a caller can do about it.

use std::time::Duration;

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// Send less. The numbers are the provider's, where its words name them.
    #[error("the context is too long: {observed:?} tokens of {limit:?}")]
    Overflow {
        observed: Option<u64>,
        limit: Option<u64>,
    },
    /// Wait.
    #[error("rate limited")]
    Rate { retry_after: Option<Duration> },
    /// Fix the key.
    #[error("the provider refused the key")]
    Auth,
    /// Try again.
    #[error("the provider failed: {0}")]
    Transient(String),
    /// The model declined.
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

impl ModelError {
    /// Whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Rate { .. } | Self::Transient(_))
    }

    /// The class of an HTTP answer that is no success.
    pub(crate) fn of_status(status: u16, retry_after: Option<Duration>, body: &str) -> Self {
        if is_overflow(body) {
            let mut numbers = numbers(body);
            numbers.sort_unstable();
            let (limit, observed) = match numbers.as_slice() {
                [] => (None, None),
                [only] => (Some(*only), None),
                [limit, .., observed] => (Some(*limit), Some(*observed)),
            };
            return Self::Overflow { observed, limit };
        }
        match status {
            401 | 403 => Self::Auth,
            429 => Self::Rate { retry_after },
            408 | 409 | 500..=599 => Self::Transient(format!("status {status}")),
            _ => Self::Unsupported(format!("the provider answered {status}")),
        }
    }
}

/// The providers' words for a context that is too long.
fn is_overflow(body: &str) -> bool {
    let body = body.to_ascii_lowercase();
    [
        "context_length_exceeded",
        "maximum context length",
        "prompt is too long",
        "context window",
        "too many tokens",
    ]
    .into_iter()
    .any(|words| body.contains(words))
}

/// Numbers of at least four digits; thousands separators are read.
fn numbers(body: &str) -> Vec<u64> {
    body.split(|c: char| !(c.is_ascii_digit() || c == ','))
        .map(|text| text.replace(',', ""))
        .filter(|digits| digits.len() >= 4)
        .filter_map(|digits| digits.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_that_is_too_long_is_read_out_of_the_words() {
        let openai = "{\"error\":{\"message\":\"This model's maximum context length is 8192 tokens. However, your messages resulted in 9,001 tokens.\",\"code\":\"context_length_exceeded\"}}";
        let anthropic = "{\"error\":{\"message\":\"prompt is too long: 209761 tokens > 200000 maximum\"}}";
        assert_eq!(
            ModelError::of_status(400, None, openai),
            ModelError::Overflow {
                observed: Some(9_001),
                limit: Some(8_192)
            }
        );
        assert_eq!(
            ModelError::of_status(400, None, anthropic),
            ModelError::Overflow {
                observed: Some(209_761),
                limit: Some(200_000)
            }
        );
    }
}
