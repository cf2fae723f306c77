//! The canonical string: `agent:<agent>:…`, components percent-encoded, exact both ways.

use super::{ChatKind, Place, SessionKey};
use crate::error::{Error, Result};
use crate::ids::AgentId;
use crate::policy::Profile;
use percent_encoding::percent_decode_str;
use std::fmt::Write as _;

impl Place {
    /// Every component with the field that errors name.
    pub(super) fn components(&self) -> Vec<(&'static str, &str)> {
        let mut found: Vec<(&'static str, &str)> = Vec::new();
        match self {
            Self::Chat {
                channel,
                account,
                chat,
                user,
                topic,
                thread,
                ..
            } => {
                found.extend([("channel", channel.as_str()), ("chat", chat)]);
                let optional = [
                    ("account", account),
                    ("peer", user),
                    ("topic", topic),
                    ("thread", thread),
                ];
                found.extend(
                    optional
                        .into_iter()
                        .filter_map(|(name, value)| Some((name, value.as_deref()?))),
                );
            }
            Self::Person(id) => found.push(("person", id)),
            Self::Subagent(id) | Self::Hook(id) | Self::Admin(id) | Self::Api(id) => found.push(("chat", id)),
            Self::Main | Self::Heartbeat => {}
            Self::Cron { job, run } => {
                found.push(("chat", job));
                found.extend(run.as_deref().map(|run| ("run", run)));
            }
            Self::WebhookObject { kind, entity } => {
                found.extend([("type", kind.as_str()), ("entity", entity)])
            }
            Self::WebhookEvent { kind, event } => found.extend([("type", kind.as_str()), ("event", event)]),
            Self::ProcedureEvent { name, event } => found.extend([("name", name.as_str()), ("event", event)]),
            Self::ProcedureBatch { name, batch } => found.extend([("name", name.as_str()), ("batch", batch)]),
            Self::Peer { peer, subject } => {
                found.push(("chat", peer));
                found.extend(subject.as_deref().map(|subject| ("subject", subject)));
            }
            Self::Team { team, chat } => found.extend([("team", team.as_str()), ("chat", chat)]),
            Self::App { user, session } => {
                found.push(("chat", user));
                found.extend(session.as_deref().map(|session| ("session", session)));
            }
        }
        found
    }

    fn segments(&self) -> Vec<&str> {
        match self {
            Self::Chat {
                channel,
                account,
                kind,
                chat,
                user,
                topic,
                thread,
            } => {
                let mut segments = vec![channel.as_str()];
                push(&mut segments, "account", account.as_deref());
                segments.extend([kind.as_str(), chat]);
                push(&mut segments, "user", user.as_deref());
                push(&mut segments, "topic", topic.as_deref());
                push(&mut segments, "thread", thread.as_deref());
                segments
            }
            Self::Person(id) => vec!["person", id],
            Self::Main => vec!["main"],
            Self::Subagent(id) => vec!["subagent", id],
            Self::Cron { job, run } => with("cron", job, "run", run.as_deref()),
            Self::Heartbeat => vec!["heartbeat"],
            Self::Hook(id) => vec!["hook", id],
            Self::WebhookObject { kind, entity } => vec!["webhook", kind, entity],
            Self::WebhookEvent { kind, event } => vec!["webhook", kind, "event", event],
            Self::ProcedureEvent { name, event } => vec!["sop", name, "event", event],
            Self::ProcedureBatch { name, batch } => vec!["sop", name, "batch", batch],
            Self::Peer { peer, subject } => with("p2p", peer, "for", subject.as_deref()),
            Self::Admin(name) => vec!["admin", name],
            Self::Team { team, chat } => vec!["team", team, chat],
            Self::App { user, session } => {
                let mut segments = vec!["app", user.as_str()];
                segments.extend(session.as_deref());
                segments
            }
            Self::Api(principal) => vec!["api", principal],
        }
    }
}

fn push<'a>(segments: &mut Vec<&'a str>, word: &'static str, value: Option<&'a str>) {
    if let Some(value) = value {
        segments.extend([word, value]);
    }
}

fn with<'a>(word: &'static str, id: &'a str, suffix: &'static str, value: Option<&'a str>) -> Vec<&'a str> {
    let mut segments = vec![word, id];
    push(&mut segments, suffix, value);
    segments
}

impl SessionKey {
    /// For instance `agent:default:telegram:direct:386246614`.
    pub fn canonical(&self) -> String {
        let mut text = format!("agent:{}", self.agent);
        for segment in self.place.segments() {
            text.push(':');
            encode(segment, &mut text);
        }
        text
    }

    /// The key of a canonical string.
    ///
    /// # Errors
    /// `INVALID_FIELD` naming `agent`, `key`, or the part that is wrong.
    pub fn parse(text: &str) -> Result<Self> {
        let malformed = || Error::invalid("key", "is not a session key: agent:<agent>:…");
        let (agent, rest) = text
            .strip_prefix("agent:")
            .and_then(|rest| rest.split_once(':'))
            .ok_or_else(malformed)?;
        let decoded: Vec<String> = rest.split(':').map(decode).collect::<Result<_>>()?;
        let segments: Vec<&str> = decoded.iter().map(String::as_str).collect();
        let key = Self::new(AgentId::parse(agent)?, place(&segments).ok_or_else(malformed)?)?;
        // Only one spelling names a key; another one would be a second session for the same chat.
        if key.canonical() == text {
            Ok(key)
        } else {
            Err(malformed())
        }
    }

    /// As [`parse`](Self::parse), and under `openclaw` the old `dm` marker is read as `direct`.
    ///
    /// # Errors
    /// Those of [`parse`](Self::parse).
    pub fn parse_for(profile: Profile, text: &str) -> Result<Self> {
        if profile != Profile::Openclaw {
            return Self::parse(text);
        }
        let mut segments: Vec<&str> = text.split(':').collect();
        // agent:<agent>:<channel>[:account:<account>]:<kind>:…
        let at = if segments.get(3) == Some(&"account") { 5 } else { 3 };
        let names_a_chat = segments
            .get(2)
            .is_some_and(|word| *word == "ws" || !crate::ids::RESERVED_CHANNEL_NAMES.contains(word));
        if let Some(kind) = segments.get_mut(at).filter(|kind| names_a_chat && **kind == "dm") {
            *kind = "direct";
        }
        Self::parse(&segments.join(":"))
    }
}

/// `%`, `:` and `/` would be read as structure, control characters would break a log line. Letters of any script
/// stay as they are: the length limit counts them as they were written.
fn encode(segment: &str, text: &mut String) {
    for c in segment.chars() {
        if matches!(c, '%' | ':' | '/') || c.is_ascii_control() {
            write!(text, "%{:02X}", u32::from(c)).expect("a string takes every write");
        } else {
            text.push(c);
        }
    }
}

fn decode(segment: &str) -> Result<String> {
    let decoded = percent_decode_str(segment).decode_utf8();
    decoded
        .map(Into::into)
        .map_err(|_| Error::invalid("key", "a component is not UTF-8"))
}

fn place(segments: &[&str]) -> Option<Place> {
    let own = |text: &str| text.to_owned();
    Some(match segments {
        ["main"] => Place::Main,
        ["heartbeat"] => Place::Heartbeat,
        ["person", id] => Place::Person(own(id)),
        ["subagent", id] => Place::Subagent(own(id)),
        ["hook", id] => Place::Hook(own(id)),
        ["admin", name] => Place::Admin(own(name)),
        ["api", principal] => Place::Api(own(principal)),
        ["cron", job] => Place::Cron {
            job: own(job),
            run: None,
        },
        ["cron", job, "run", run] => Place::Cron {
            job: own(job),
            run: Some(own(run)),
        },
        ["webhook", kind, entity] => Place::WebhookObject {
            kind: own(kind),
            entity: own(entity),
        },
        ["webhook", kind, "event", event] => Place::WebhookEvent {
            kind: own(kind),
            event: own(event),
        },
        ["sop", name, "event", event] => Place::ProcedureEvent {
            name: own(name),
            event: own(event),
        },
        ["sop", name, "batch", batch] => Place::ProcedureBatch {
            name: own(name),
            batch: own(batch),
        },
        ["p2p", peer] => Place::Peer {
            peer: own(peer),
            subject: None,
        },
        ["p2p", peer, "for", subject] => Place::Peer {
            peer: own(peer),
            subject: Some(own(subject)),
        },
        ["team", team, chat] => Place::Team {
            team: own(team),
            chat: own(chat),
        },
        ["app", user] => Place::App {
            user: own(user),
            session: None,
        },
        ["app", user, session] => Place::App {
            user: own(user),
            session: Some(own(session)),
        },
        [channel, "account", account, rest @ ..] => chat(channel, Some(own(account)), rest)?,
        [channel, rest @ ..] => chat(channel, None, rest)?,
        [] => return None,
    })
}

fn chat(channel: &str, account: Option<String>, segments: &[&str]) -> Option<Place> {
    let [kind, id, suffixes @ ..] = segments else {
        return None;
    };
    let (mut user, mut topic, mut thread) = (None, None, None);
    let mut pairs = suffixes.chunks_exact(2);
    for pair in pairs.by_ref() {
        let value = Some(pair[1].to_owned());
        match pair[0] {
            "user" => user = value,
            "topic" => topic = value,
            "thread" => thread = value,
            _ => return None,
        }
    }
    if !pairs.remainder().is_empty() {
        return None;
    }
    let kind = ChatKind::parse(kind)?;
    Some(Place::Chat {
        channel: channel.to_owned(),
        account,
        kind,
        chat: (*id).to_owned(),
        user,
        topic,
        thread,
    })
}
