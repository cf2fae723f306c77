//! The rules of the providers, checked on the bytes that would be sent. One function a rule, independent of the
//! projection: a fault there is found here and never leaves the house.
//!
//! To add a provider: a file with its list of rules and an arm in [`validate`].

mod anthropic;
mod openai_chat;

use crate::project::Format;
use serde_json::Value;
use std::fmt;

pub(crate) use anthropic::are_assistant_blocks;

/// A rule that a request breaks, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Stable name of the rule.
    pub rule: &'static str,
    /// Index of the provider's message.
    pub message: usize,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at message {}", self.rule, self.message)
    }
}

/// A rule: the index of every message that breaks it.
type Rule = (&'static str, fn(&[Value]) -> Vec<usize>);

/// Checks the bytes of a request against the provider's rules; empty when it may be sent.
#[must_use]
pub fn validate(format: Format, bytes: &[u8]) -> Vec<Violation> {
    let rules: &[Rule] = match format {
        Format::OpenaiChat => openai_chat::RULES,
        Format::Anthropic => anthropic::RULES,
        Format::Neutral | Format::OpenaiResponses | Format::Gemini | Format::Mistral => &[],
    };
    let Ok(Value::Array(messages)) = serde_json::from_slice(bytes) else {
        return vec![Violation {
            rule: "a request is a list of messages",
            message: 0,
        }];
    };
    if messages.is_empty() {
        return vec![Violation {
            rule: "a request has a message",
            message: 0,
        }];
    }
    let broken = |(rule, check): &Rule| -> Vec<Violation> {
        check(&messages)
            .into_iter()
            .map(|message| Violation { rule, message })
            .collect()
    };
    rules.iter().flat_map(broken).collect()
}

/// Indexes of the messages for which `is_ok` is false.
fn failing(messages: &[Value], is_ok: impl Fn(&Value) -> bool) -> Vec<usize> {
    messages
        .iter()
        .enumerate()
        .filter(|(_, message)| !is_ok(message))
        .map(|(at, _)| at)
        .collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn says_something(value: &Value) -> bool {
    !text(value).trim().is_empty()
}

/// `[A-Za-z0-9_-]{1,max}`.
fn is_id(value: &Value, max: usize) -> bool {
    let id = text(value);
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=max).contains(&id.len()) && id.bytes().all(legal)
}
