//! Typed ids. Row ids are UUIDv7 rendered with a prefix (`ses_0190…`, 32 hex digits), so that an id in a
//! log or an error says what it names and ids of one kind cannot be passed for another.

use crate::error::{Error, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

macro_rules! row_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $noun:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub Uuid);

        impl $name {
            pub const PREFIX: &'static str = $prefix;

            /// A new id; ids made later sort later (UUIDv7).
            #[must_use]
            #[allow(clippy::new_without_default)]
            pub fn new() -> Self {
                Self(Uuid::now_v7())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "_{}"), self.0.simple())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self> {
                text.strip_prefix(concat!($prefix, "_"))
                    .filter(|hex| hex.len() == 32)
                    .and_then(|hex| Uuid::try_parse(hex).ok())
                    .map(Self)
                    .ok_or_else(|| Error::not_found($noun, text))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

row_id!(/** A customer of the SaaS team; the first column of every key. */ TenantId, "ten", "tenant");
row_id!(/** One conversation bucket, named by its key. */ SessionId, "ses", "session");
row_id!(/** The log behind a session; a reset starts a new one. */ TranscriptId, "tsc", "transcript");
row_id!(/** A line of descent within a transcript; a rewind starts a new one. */ BranchId, "brn", "branch");
row_id!(/** One line of a transcript. */ EntryId, "ent", "entry");
row_id!(/** From one or more user messages to the committed answer. */ TurnId, "trn", "turn");
row_id!(/** An accepted inbound message. */ MessageId, "msg", "message");
row_id!(/** One part of a reply on its way to a route. */ DeliveryId, "dlv", "delivery");
row_id!(/** A piece of background work. */ JobId, "job", "job");
row_id!(/** Something remembered. */ MemoryId, "mem", "memory");
row_id!(/** An API key's public part. */ KeyId, "key", "key");

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }

            pub fn into_string(self) -> String {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id!(/** An agent's id within its tenant: `[a-z0-9][a-z0-9_-]{0,63}`. */ AgentId);
text_id!(/** A channel's name: `[a-z][a-z0-9_-]{0,31}`, none of the words session keys use themselves. */ ChannelName);
text_id!(/** The unguessable id of a channel account, unique across tenants: `[A-Za-z0-9_-]{1,64}`. */ AccountId);

/// Words that a session key uses itself; a channel cannot be named like one.
pub const RESERVED_CHANNEL_NAMES: [&str; 19] = [
    "main",
    "person",
    "subagent",
    "cron",
    "heartbeat",
    "hook",
    "webhook",
    "sop",
    "p2p",
    "admin",
    "team",
    "app",
    "api",
    "direct",
    "group",
    "channel",
    "room",
    "account",
    "ws",
];

impl AgentId {
    /// # Errors
    /// `INVALID_FIELD` on `agent` when the text is not an agent id.
    pub fn parse(text: &str) -> Result<Self> {
        let mut bytes = text.bytes();
        let first = bytes
            .next()
            .is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        let rest = bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-');
        if first && rest && text.len() <= 64 {
            return Ok(Self(text.to_owned()));
        }
        Err(Error::invalid("agent", "must match [a-z0-9][a-z0-9_-]{0,63}"))
    }
}

impl ChannelName {
    /// `ws` is accepted here: it is the name of the web channel. [`RESERVED_CHANNEL_NAMES`] forbids it to others.
    ///
    /// # Errors
    /// `INVALID_FIELD` on `channel` when the text is not a channel name or is reserved.
    pub fn parse(text: &str) -> Result<Self> {
        let mut bytes = text.bytes();
        let first = bytes.next().is_some_and(|b| b.is_ascii_lowercase());
        let rest = bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-');
        if !(first && rest && text.len() <= 32) {
            return Err(Error::invalid("channel", "must match [a-z][a-z0-9_-]{0,31}"));
        }
        if text != "ws" && RESERVED_CHANNEL_NAMES.contains(&text) {
            return Err(Error::invalid("channel", format!("`{text}` is a reserved word")));
        }
        Ok(Self(text.to_owned()))
    }
}

impl AccountId {
    /// # Errors
    /// `INVALID_FIELD` on `account` when the text is not an account id.
    pub fn parse(text: &str) -> Result<Self> {
        let legal = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        if !text.is_empty() && text.len() <= 64 && text.bytes().all(legal) {
            return Ok(Self(text.to_owned()));
        }
        Err(Error::invalid("account", "must match [A-Za-z0-9_-]{1,64}"))
    }

    /// A new unguessable id (122 random bits).
    #[must_use]
    pub fn random() -> Self {
        Self(format!("acc_{}", Uuid::new_v4().simple()))
    }
}

macro_rules! number_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub i64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

number_id!(/** The number a claim draws from its session's counter; writes that carry a stale one are refused. */ Fence);
number_id!(/** Place of an entry in its branch, from 1 without gaps. */ Seq);
number_id!(/** Grows with every change that makes plans and caches stale; never zeroed. */ Epoch);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_malformed_id_answers_like_an_unknown_one() {
        for text in ["nonsense", "", "ses_1", "trn_00000000000000000000000000000000"] {
            let error = text.parse::<SessionId>().unwrap_err();
            assert_eq!(error, Error::not_found("session", text));
        }
        let error = "ses_x".parse::<SessionId>().unwrap_err();
        assert_eq!(error.message, "session ses_x does not exist");
    }
}
