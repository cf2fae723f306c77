//! Channel adapters: what a channel posts, verified and normalised to one shape.
//!
//! To add a channel: a module with `verify(headers, body, secret)` and `normalise(body) -> Received`, and a line
//! in the webhook handler. Pure code: bytes in, values out.

pub mod generic;
pub mod telegram;

use colloquy_types::Error;
use colloquy_types::message::{Author, Part, Provenance};
use serde::{Deserialize, Serialize};

/// Whether a chat is one person's or several people's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatKind {
    Direct,
    Group,
    Channel,
}

/// A message as every channel gives it.
#[derive(Debug, Clone, PartialEq)]
pub struct Inbound {
    pub chat_kind: ChatKind,
    /// The channel's opaque id of the chat; for a direct chat the person's.
    pub chat: String,
    /// Forum topic of a group.
    pub topic: Option<String>,
    /// Thread of a direct chat.
    pub thread: Option<String>,
    pub sender: Author,
    pub parts: Vec<Part>,
    pub provenance: Provenance,
    /// The channel's id of the message, as lists show it.
    pub message_id: String,
    /// Unique within the account: a redelivery has the same, an edit another.
    pub dedupe: String,
}

/// Chat and message id as one key. Ids are opaque and may hold any character, so the chat's length goes in front: no two
/// pairs give the same key.
pub fn dedupe(chat: &str, message: &str) -> String {
    format!("{}:{chat}:{message}", chat.len())
}

/// What a webhook body meant.
#[derive(Debug, Clone, PartialEq)]
pub enum Received {
    Message(Box<Inbound>),
    /// Authentic, but nothing a turn could answer (a join, a reaction, a poll): acknowledged and dropped.
    Ignored(&'static str),
    /// The channel's own, but lacking what a message needs: posting it again will not help.
    Unusable(Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_messages_never_share_a_key() {
        assert_ne!(dedupe("a:b", "c"), dedupe("a", "b:c"));
        assert_ne!(dedupe("", "1:x"), dedupe("1", "x"));
    }
}
