//! Session keys: typed data whose canonical string parses back exactly.
//!
//! Ids from channels are opaque: case kept, never trimmed, may hold `:`. In the canonical string `%`, `:` and `/`
//! inside a component are percent-encoded.

mod canonical;
mod route;

pub use route::{DmScope, KeyRoute};

use crate::error::{Error, Result};
use crate::ids::AgentId;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Longest canonical string, in bytes.
pub const MAX_KEY_BYTES: usize = 1_024;

/// The bucket a message belongs to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionKey {
    agent: AgentId,
    place: Place,
}

/// Everything of a key but its agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// A chat of a channel.
    Chat {
        channel: String,
        /// Only under `per-account-channel-peer`.
        account: Option<String>,
        kind: ChatKind,
        chat: String,
        /// One session per person in a room.
        user: Option<String>,
        /// Forum topic of a group.
        topic: Option<String>,
        thread: Option<String>,
    },
    /// A person with linked accounts.
    Person(String),
    Main,
    Subagent(String),
    Cron {
        job: String,
        run: Option<String>,
    },
    Heartbeat,
    Hook(String),
    WebhookObject {
        kind: String,
        entity: String,
    },
    WebhookEvent {
        kind: String,
        event: String,
    },
    ProcedureEvent {
        name: String,
        event: String,
    },
    ProcedureBatch {
        name: String,
        batch: String,
    },
    Peer {
        peer: String,
        subject: Option<String>,
    },
    Admin(String),
    Team {
        team: String,
        chat: String,
    },
    App {
        user: String,
        session: Option<String>,
    },
    Api(String),
}

/// What kind of chat a channel says it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatKind {
    Direct,
    Group,
    Channel,
    Room,
}

impl ChatKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Group => "group",
            Self::Channel => "channel",
            Self::Room => "room",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Direct, Self::Group, Self::Channel, Self::Room]
            .into_iter()
            .find(|kind| kind.as_str() == text)
    }
}

/// Who can be in a chat, as policies tell chats apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatType {
    /// One person and the agent.
    Direct,
    /// Several people: groups, channels, rooms, teams.
    Group,
    /// Not a chat: cron, hooks, subagents, …
    Other,
}

impl ChatType {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Group => "group",
            Self::Other => "other",
        }
    }
}

impl SessionKey {
    /// # Errors
    /// `INVALID_FIELD` naming the part that is blank, holds NUL, or makes the key too long.
    pub fn new(agent: AgentId, place: Place) -> Result<Self> {
        let key = Self { agent, place };
        for (field, value) in key.place.components() {
            if value.trim().is_empty() {
                return Err(Error::invalid(field, "is blank"));
            }
            if value.contains('\0') {
                return Err(Error::invalid(field, "holds NUL"));
            }
        }
        if let Place::Chat { channel, .. } = &key.place {
            crate::ids::ChannelName::parse(channel)?;
        }
        if key.canonical().len() > MAX_KEY_BYTES {
            return Err(Error::invalid(
                "key",
                format!("is longer than {MAX_KEY_BYTES} bytes"),
            ));
        }
        Ok(key)
    }

    pub fn agent(&self) -> &AgentId {
        &self.agent
    }

    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The channel's name, for chats.
    pub fn channel(&self) -> Option<&str> {
        match &self.place {
            Place::Chat { channel, .. } => Some(channel),
            _ => None,
        }
    }

    /// The chat, peer, job or name the key is about; what list filters compare.
    pub fn chat(&self) -> Option<&str> {
        match &self.place {
            Place::Chat { chat, .. } | Place::Team { chat, .. } => Some(chat),
            Place::Person(id)
            | Place::Subagent(id)
            | Place::Hook(id)
            | Place::Admin(id)
            | Place::Api(id)
            | Place::Cron { job: id, .. }
            | Place::App { user: id, .. }
            | Place::Peer { peer: id, .. } => Some(id),
            _ => None,
        }
    }

    /// The word lists filter by: `direct`, `group`, `cron`, …
    pub fn kind(&self) -> &'static str {
        match &self.place {
            Place::Chat { kind, .. } => kind.as_str(),
            Place::Person(_) => "person",
            Place::Main => "main",
            Place::Subagent(_) => "subagent",
            Place::Cron { .. } => "cron",
            Place::Heartbeat => "heartbeat",
            Place::Hook(_) => "hook",
            Place::WebhookObject { .. } | Place::WebhookEvent { .. } => "webhook",
            Place::ProcedureEvent { .. } | Place::ProcedureBatch { .. } => "sop",
            Place::Peer { .. } => "p2p",
            Place::Admin(_) => "admin",
            Place::Team { .. } => "team",
            Place::App { .. } => "app",
            Place::Api(_) => "api",
        }
    }

    /// The thread or forum topic within the chat.
    pub fn thread(&self) -> Option<&str> {
        match &self.place {
            Place::Chat { thread, topic, .. } => thread.as_deref().or(topic.as_deref()),
            _ => None,
        }
    }

    /// One person's own chats, `main` and linked ones included, are direct; a room is a group even where each
    /// person has a session of their own in it.
    pub fn chat_type(&self) -> ChatType {
        match &self.place {
            Place::Chat {
                kind: ChatKind::Direct,
                ..
            }
            | Place::Person(_)
            | Place::Main => ChatType::Direct,
            Place::Chat { .. } | Place::Team { .. } => ChatType::Group,
            _ => ChatType::Other,
        }
    }

    /// Whether more than one person may write there by the key alone (`main` can turn out to be a group too).
    pub fn is_group(&self) -> bool {
        match &self.place {
            Place::Chat { kind, user, .. } => *kind != ChatKind::Direct && user.is_none(),
            Place::Team { .. } => true,
            _ => false,
        }
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.canonical())
    }
}

impl Serialize for SessionKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SessionKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}
