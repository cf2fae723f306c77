//! Strings, by what rules ask of them.

use super::{Leaf, is_json, leaf};
use serde::Deserialize;
use serde::de::Deserializer;
use std::borrow::Cow;

/// A string of any length, by what rules ask of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Text {
    /// It is there and a string.
    pub is_text: bool,
    /// It is there in any form, null but for.
    pub is_there: bool,
    pub says_something: bool,
    pub ends_in_space: bool,
}

impl<'a> Leaf<'a> for Text {
    fn other() -> Self {
        Self {
            is_there: true,
            ..Self::default()
        }
    }

    fn null() -> Self {
        Self::default()
    }

    fn text(text: &str) -> Self {
        Self {
            is_text: true,
            is_there: true,
            says_something: !text.trim().is_empty(),
            ends_in_space: text.ends_with(char::is_whitespace),
        }
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        leaf(deserializer)
    }
}

/// A short string: an id, a name, a type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Word<'a> {
    #[default]
    Absent,
    Other,
    Is(Cow<'a, str>),
}

impl<'a> Leaf<'a> for Word<'a> {
    fn other() -> Self {
        Self::Other
    }

    fn null() -> Self {
        Self::Absent
    }

    fn text(text: &str) -> Self {
        Self::Is(Cow::Owned(text.to_owned()))
    }

    fn borrowed(text: &'a str) -> Self {
        Self::Is(Cow::Borrowed(text))
    }
}

impl<'a> Word<'a> {
    /// The string, empty where there is none.
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Is(text) => text,
            _ => "",
        }
    }

    pub(crate) fn is(&self, text: &str) -> bool {
        matches!(self, Self::Is(is) if is == text)
    }

    pub(crate) fn is_there(&self) -> bool {
        *self != Self::Absent
    }

    /// `[A-Za-z0-9_-]{1,max}`.
    pub(crate) fn is_id(&self, max: usize) -> bool {
        let id = self.as_str();
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        (1..=max).contains(&id.len()) && id.bytes().all(legal)
    }

    pub(crate) fn into_string(self) -> Cow<'a, str> {
        match self {
            Self::Is(text) => text,
            _ => Cow::Borrowed(""),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Word<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        leaf(deserializer)
    }
}

/// Where media lies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Address {
    #[default]
    Absent,
    Other,
    Https,
    Http,
    /// `data:TYPE;base64,DATA` with a type and base64.
    Data,
    Base64,
}

impl<'a> Leaf<'a> for Address {
    fn other() -> Self {
        Self::Other
    }

    fn null() -> Self {
        Self::Absent
    }

    fn text(text: &str) -> Self {
        let is_data = |rest: &str| {
            let parts = rest.split_once(";base64,");
            parts.is_some_and(|(mime, data)| mime.contains('/') && is_base64(data))
        };
        match text.split_once(':') {
            Some(("https", rest)) if rest.len() > 2 => Self::Https,
            Some(("http", rest)) if rest.len() > 2 => Self::Http,
            Some(("data", rest)) if is_data(rest) => Self::Data,
            None if is_base64(text) => Self::Base64,
            _ => Self::Other,
        }
    }
}

impl Address {
    pub(crate) fn is_web(self) -> bool {
        matches!(self, Self::Https | Self::Http)
    }
}

fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    !digits.is_empty() && text.len().is_multiple_of(4) && digits.bytes().all(legal)
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        leaf(deserializer)
    }
}

/// A string that holds JSON itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct JsonText {
    pub is_json: bool,
}

impl<'a> Leaf<'a> for JsonText {
    fn other() -> Self {
        Self::default()
    }

    fn text(text: &str) -> Self {
        Self {
            is_json: is_json(text),
        }
    }
}

impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        leaf(deserializer)
    }
}
