//! From what a channel or client names to a key.

use super::{ChatKind, Place, SessionKey};
use crate::error::{Error, Result};
use crate::ids::AgentId;
use serde::{Deserialize, Serialize};

/// Which direct chats share a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DmScope {
    /// All of the agent's.
    Main,
    /// Linked accounts of a person; unlinked ones as in `per-channel-peer`.
    PerPeer,
    #[default]
    PerChannelPeer,
    PerAccountChannelPeer,
}

/// Where a message came from, before a policy makes a key of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KeyRoute {
    pub agent: String,
    pub channel: Option<String>,
    pub account: Option<String>,
    /// `direct`, `group`, `channel`, `room`, or a kind without a channel (`cron`, `subagent`, …).
    pub kind: String,
    pub chat: Option<String>,
    /// One session per person in a room.
    pub peer: Option<String>,
    pub topic: Option<String>,
    pub thread: Option<String>,
    /// The linked person behind the chat, when there is one.
    pub person: Option<String>,
    pub run: Option<String>,
    pub subject: Option<String>,
    pub session: Option<String>,
    pub r#type: Option<String>,
    pub entity: Option<String>,
    pub event: Option<String>,
    pub batch: Option<String>,
    pub team: Option<String>,
}

impl KeyRoute {
    /// # Errors
    /// `INVALID_FIELD` naming the part that is missing, blank or malformed.
    pub fn resolve(&self, scope: DmScope) -> Result<SessionKey> {
        let agent = AgentId::parse(&self.agent)?;
        let place = match ChatKind::parse(&self.kind) {
            Some(kind) if self.channel.is_some() => self.chat_place(kind, scope)?,
            _ => self.named_place()?,
        };
        SessionKey::new(agent, place)
    }

    fn chat_place(&self, kind: ChatKind, scope: DmScope) -> Result<Place> {
        // Checked before the scope can drop it: a blank peer never falls back to a shared session.
        let chat = need("chat", self.chat.as_ref())?;
        if chat.trim().is_empty() {
            return Err(Error::invalid("chat", "is blank"));
        }
        if kind == ChatKind::Direct {
            match (scope, &self.person) {
                (DmScope::Main, _) => return Ok(Place::Main),
                (DmScope::PerPeer, Some(person)) => return Ok(Place::Person(person.clone())),
                _ => {}
            }
        }
        let by_account = kind == ChatKind::Direct && scope == DmScope::PerAccountChannelPeer;
        Ok(Place::Chat {
            channel: need("channel", self.channel.as_ref())?,
            account: if by_account {
                Some(need("account", self.account.as_ref())?)
            } else {
                None
            },
            kind,
            chat,
            user: self.peer.clone(),
            topic: self.topic.clone(),
            thread: self.thread.clone(),
        })
    }

    fn named_place(&self) -> Result<Place> {
        let chat = || need("chat", self.chat.as_ref());
        Ok(match self.kind.as_str() {
            "main" => Place::Main,
            "heartbeat" => Place::Heartbeat,
            "person" => Place::Person(chat()?),
            "subagent" => Place::Subagent(chat()?),
            "cron" => Place::Cron {
                job: chat()?,
                run: self.run.clone(),
            },
            "hook" => Place::Hook(chat()?),
            "webhook" => self.webhook()?,
            "sop" => match (&self.event, &self.batch) {
                (Some(event), _) => Place::ProcedureEvent {
                    name: chat()?,
                    event: event.clone(),
                },
                (None, batch) => Place::ProcedureBatch {
                    name: chat()?,
                    batch: need("batch", batch.as_ref())?,
                },
            },
            "p2p" => Place::Peer {
                peer: chat()?,
                subject: self.subject.clone(),
            },
            "admin" => Place::Admin(chat()?),
            "team" => Place::Team {
                team: need("team", self.team.as_ref())?,
                chat: chat()?,
            },
            "app" => Place::App {
                user: chat()?,
                session: self.session.clone(),
            },
            "api" => Place::Api(chat()?),
            "direct" | "group" | "channel" | "room" => return Err(Error::invalid("channel", "is required")),
            _ => {
                return Err(Error::invalid(
                    "kind",
                    format!("`{}` is not a kind of session", self.kind),
                ));
            }
        })
    }

    fn webhook(&self) -> Result<Place> {
        let kind = need("type", self.r#type.as_ref())?;
        Ok(match (&self.entity, &self.event) {
            (Some(entity), _) => Place::WebhookObject {
                kind,
                entity: entity.clone(),
            },
            (None, event) => Place::WebhookEvent {
                kind,
                event: need("event", event.as_ref())?,
            },
        })
    }
}

fn need(field: &str, value: Option<&String>) -> Result<String> {
    value.cloned().ok_or_else(|| Error::invalid(field, "is required"))
}
