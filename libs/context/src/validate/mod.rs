//! The rules of the providers, checked on the bytes that would be sent. One function a rule, independent of the
//! projection: a fault there is found here and never leaves the house.
//!
//! To add a provider: a file with its list of rules and an arm in [`validate`]. The bytes are read once, into
//! facts and not into values; a rule looks at the facts of all messages.

pub(crate) mod anthropic;
pub(crate) mod chat;
pub(crate) mod gemini;
mod mistral;
mod neutral;
mod read;
pub(crate) mod responses;

use crate::project::Format;
use read::{Object, shape};
use serde::Deserialize;
use std::fmt;

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

/// A rule: its name, and the index of every message that breaks it.
type Rule<M> = (&'static str, fn(&[M]) -> Vec<usize>);

/// Checks the bytes of a request against the provider's rules; empty when it may be sent.
#[must_use]
pub fn validate(format: Format, bytes: &[u8]) -> Vec<Violation> {
    match format {
        Format::Neutral => check(bytes, neutral::RULES),
        Format::OpenaiChat => check(bytes, chat::RULES),
        Format::OpenaiChatStrict => check(bytes, &[chat::RULES, chat::STRICT].concat()),
        Format::Mistral => check(bytes, mistral::RULES),
        Format::OpenaiResponses => check(bytes, responses::RULES),
        Format::Anthropic => check(bytes, anthropic::RULES),
        Format::Gemini => check(bytes, gemini::RULES),
    }
}

/// The names of a format's rules, in the order they are checked.
#[must_use]
pub fn rules(format: Format) -> Vec<&'static str> {
    fn names<M>(rules: &[Rule<M>]) -> Vec<&'static str> {
        rules.iter().map(|(name, _)| *name).collect()
    }
    let own = match format {
        Format::Neutral => names(neutral::RULES),
        Format::OpenaiChat => names(chat::RULES),
        Format::OpenaiChatStrict => names(&[chat::RULES, chat::STRICT].concat()),
        Format::Mistral => names(mistral::RULES),
        Format::OpenaiResponses => names(responses::RULES),
        Format::Anthropic => names(anthropic::RULES),
        Format::Gemini => names(gemini::RULES),
    };
    [&[IS_LIST, HAS_MESSAGE], own.as_slice()].concat()
}

const IS_LIST: &str = "a request is a list of messages";
const HAS_MESSAGE: &str = "a request has a message";

fn check<'a, M: Deserialize<'a>>(bytes: &'a [u8], rules: &[Rule<M>]) -> Vec<Violation> {
    let whole = |rule| vec![Violation { rule, message: 0 }];
    let text = std::str::from_utf8(bytes).ok();
    let Some(messages) = text.and_then(list::<M>) else {
        return whole(IS_LIST);
    };
    if messages.is_empty() {
        return whole(HAS_MESSAGE);
    }
    let mut violations = Vec::new();
    for (rule, check) in rules {
        let broken = check(&messages).into_iter();
        violations.extend(broken.map(|message| Violation { rule, message }));
    }
    violations
}

/// Whether a part of a request breaks none of the rules that a part can be held to.
fn keeps<M>(rules: &[Rule<M>], but: &[&str], messages: &[M]) -> bool {
    rules
        .iter()
        .all(|(name, check)| but.contains(name) || check(messages).is_empty())
}

/// Indexes of the messages for which `is_ok` is false.
fn failing<M>(messages: &[M], is_ok: impl Fn(&M) -> bool) -> Vec<usize> {
    let broken = messages.iter().enumerate().filter(|(_, message)| !is_ok(message));
    broken.map(|(at, _)| at).collect()
}

/// Indexes of the messages with an id that was there before; `ids` gives those of a message.
fn repeating<'m, M, I: Iterator<Item = &'m str>>(messages: &'m [M], ids: impl Fn(&'m M) -> I) -> Vec<usize> {
    let mut seen = std::collections::HashSet::new();
    let mut broken = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let is_new = |id: &'m str| id.is_empty() || seen.insert(id);
        if !ids(message).map(is_new).fold(true, |all, is_new| all & is_new) {
            broken.push(at);
        }
    }
    broken
}

/// A list of objects.
fn list<'a, M: Deserialize<'a>>(json: &'a str) -> Option<Vec<M>> {
    let objects: Vec<Object<M>> = serde_json::from_str(json).ok()?;
    objects.into_iter().map(|object| object.fields).collect()
}

/// One object.
fn one<'a, M: Deserialize<'a>>(json: &'a str) -> Option<M> {
    serde_json::from_str::<Object<M>>(json).ok()?.fields
}

/// One or several values of a provider's own block.
fn blocks<'a, T: Deserialize<'a>>(json: &'a str) -> Option<Vec<T>> {
    if shape(json)?.is_list {
        list(json)
    } else {
        Some(vec![one(json)?])
    }
}
