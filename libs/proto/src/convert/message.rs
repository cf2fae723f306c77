//! Messages and their parts.

use super::{list, millis, non_empty, required, timestamp, under};
use crate::v1;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use colloquy_types::message::{
    Author, Completion, Media, MediaData, MediaKind, Message, Part, Provenance, RawBlock, Role, Route,
    Source, Thinking, ToolCall, ToolResult, Visibility,
};
use colloquy_types::{AccountId, ChannelName, Error, Result, UnixMillis};

impl From<Author> for v1::Author {
    fn from(author: Author) -> Self {
        Self {
            id: author.id,
            name: author.name,
        }
    }
}

impl From<v1::Author> for Author {
    fn from(author: v1::Author) -> Self {
        Self {
            id: author.id,
            name: author.name,
        }
    }
}

impl From<Source> for v1::Source {
    fn from(source: Source) -> Self {
        let (channel, account) = (source.channel.into_string(), source.account.into_string());
        Self {
            channel,
            account,
            message_id: source.message_id,
        }
    }
}

impl TryFrom<v1::Source> for Source {
    type Error = Error;

    fn try_from(source: v1::Source) -> Result<Self> {
        let (channel, account) = (
            ChannelName::parse(&source.channel)?,
            AccountId::parse(&source.account)?,
        );
        Ok(Self {
            channel,
            account,
            message_id: source.message_id,
        })
    }
}

impl From<Route> for v1::Route {
    fn from(route: Route) -> Self {
        Self {
            channel: route.channel.into_string(),
            account: route.account.into_string(),
            chat: route.chat,
            thread: route.thread.unwrap_or_default(),
        }
    }
}

impl TryFrom<v1::Route> for Route {
    type Error = Error;

    fn try_from(route: v1::Route) -> Result<Self> {
        let (channel, account) = (
            ChannelName::parse(&route.channel)?,
            AccountId::parse(&route.account)?,
        );
        Ok(Self {
            channel,
            account,
            chat: route.chat,
            thread: non_empty(route.thread),
        })
    }
}

impl From<Part> for v1::Part {
    fn from(part: Part) -> Self {
        use v1::part::Part as Wire;
        let part = match part {
            Part::Text { text } => Wire::Text(text),
            Part::Media(media) => Wire::Media(media.into()),
            Part::ToolCall(call) => Wire::ToolCall(v1::ToolCall {
                id: call.id,
                name: call.name,
                arguments: call.arguments,
            }),
            Part::ToolResult(result) => Wire::ToolResult(v1::ToolResult {
                call_id: result.call_id,
                name: result.name,
                parts: result.parts.into_iter().map(Into::into).collect(),
                is_error: result.is_error,
            }),
            Part::Thinking(thinking) => Wire::Thinking(v1::Thinking {
                text: thinking.text,
                signature: thinking.signature.unwrap_or_default(),
                provider: thinking.provider.unwrap_or_default(),
                redacted: thinking.redacted,
            }),
        };
        Self { part: Some(part) }
    }
}

impl TryFrom<v1::Part> for Part {
    type Error = Error;

    fn try_from(part: v1::Part) -> Result<Self> {
        use v1::part::Part as Wire;
        Ok(match required("part", part.part)? {
            Wire::Text(text) => Self::Text { text },
            Wire::Media(media) => Self::Media(media.try_into()?),
            Wire::ToolCall(call) => Self::ToolCall(ToolCall {
                id: call.id,
                name: call.name,
                arguments: call.arguments,
            }),
            Wire::ToolResult(result) => Self::ToolResult(ToolResult {
                call_id: result.call_id,
                name: result.name,
                parts: result_parts(result.parts).map_err(under("tool_result"))?,
                is_error: result.is_error,
            }),
            Wire::Thinking(thinking) => Self::Thinking(Thinking {
                text: thinking.text,
                signature: non_empty(thinking.signature),
                provider: non_empty(thinking.provider),
                redacted: thinking.redacted,
            }),
        })
    }
}

/// Parts of the wire, errors naming the index.
///
/// # Errors
/// `INVALID_FIELD` under `parts[i]`.
pub fn parts(parts: Vec<v1::Part>) -> Result<Vec<Part>> {
    list("parts", parts)
}

/// What a tool answered: text and media, so a result never holds another one.
fn result_parts(wire: Vec<v1::Part>) -> Result<Vec<Part>> {
    use v1::part::Part as Wire;
    let plain = |part: &v1::Part| matches!(part.part, None | Some(Wire::Text(_) | Wire::Media(_)));
    if let Some(index) = wire.iter().position(|part| !plain(part)) {
        return Err(Error::invalid(
            format!("parts[{index}]"),
            "a tool result holds text and media",
        ));
    }
    parts(wire)
}

impl From<Media> for v1::Media {
    fn from(media: Media) -> Self {
        use v1::media::Data;
        let kind = match media.kind {
            MediaKind::Image => v1::MediaKind::Image,
            MediaKind::Audio => v1::MediaKind::Audio,
            MediaKind::File => v1::MediaKind::File,
        };
        let data = match media.data {
            MediaData::Reference(reference) => Data::Reference(reference),
            // Stored base64 was made by us; if it ever were not, its text is still not lost.
            MediaData::Inline(text) => {
                Data::Inline(STANDARD.decode(&text).unwrap_or_else(|_| text.into_bytes()))
            }
        };
        Self {
            kind: kind.into(),
            mime: media.mime,
            name: media.name,
            data: Some(data),
        }
    }
}

impl TryFrom<v1::Media> for Media {
    type Error = Error;

    fn try_from(media: v1::Media) -> Result<Self> {
        use v1::media::Data;
        let kind = match media.kind() {
            v1::MediaKind::Image => MediaKind::Image,
            v1::MediaKind::Audio => MediaKind::Audio,
            v1::MediaKind::File => MediaKind::File,
            v1::MediaKind::Unspecified => return Err(Error::invalid("media.kind", "is required")),
        };
        let data = match required("media.data", media.data)? {
            Data::Reference(reference) => MediaData::Reference(reference),
            Data::Inline(bytes) => MediaData::Inline(STANDARD.encode(bytes)),
        };
        Ok(Self {
            kind,
            mime: media.mime,
            name: media.name,
            data,
        })
    }
}

impl From<Provenance> for v1::Provenance {
    fn from(provenance: Provenance) -> Self {
        match provenance {
            Provenance::Owner => Self::Owner,
            Provenance::Agent => Self::Agent,
            Provenance::Untrusted => Self::Untrusted,
            Provenance::System => Self::System,
        }
    }
}

impl From<Message> for v1::Message {
    fn from(message: Message) -> Self {
        let role = match message.role {
            Role::User => v1::MessageRole::User,
            Role::Assistant => v1::MessageRole::Assistant,
            Role::Tool => v1::MessageRole::Tool,
            Role::System => v1::MessageRole::System,
        };
        let visibility = match message.visibility {
            Visibility::Model => v1::Visibility::Model,
            Visibility::People => v1::Visibility::People,
            Visibility::Both => v1::Visibility::Both,
        };
        let completion = match message.completion {
            Completion::Complete => v1::Completion::Complete,
            Completion::Aborted => v1::Completion::Aborted,
            Completion::Error => v1::Completion::Error,
        };
        Self {
            role: role.into(),
            parts: message.parts.into_iter().map(Into::into).collect(),
            author: Some(message.author.into()),
            source: message.source.map(Into::into),
            provenance: v1::Provenance::from(message.provenance).into(),
            at: (message.at != UnixMillis::default()).then(|| timestamp(message.at)),
            visibility: visibility.into(),
            completion: completion.into(),
            raw: message.raw.map(|raw| v1::RawBlock {
                provider: raw.provider,
                json: raw.json,
            }),
        }
    }
}

impl TryFrom<v1::Message> for Message {
    type Error = Error;

    fn try_from(message: v1::Message) -> Result<Self> {
        let role = match message.role() {
            v1::MessageRole::User => Role::User,
            v1::MessageRole::Assistant => Role::Assistant,
            v1::MessageRole::Tool => Role::Tool,
            v1::MessageRole::System => Role::System,
            v1::MessageRole::Unspecified => return Err(Error::invalid("role", "is required")),
        };
        let mut converted = Self::new(role, Vec::new());
        converted.provenance = match message.provenance() {
            v1::Provenance::Unspecified => converted.provenance,
            v1::Provenance::Owner => Provenance::Owner,
            v1::Provenance::Agent => Provenance::Agent,
            v1::Provenance::Untrusted => Provenance::Untrusted,
            v1::Provenance::System => Provenance::System,
        };
        converted.visibility = match message.visibility() {
            v1::Visibility::Model => Visibility::Model,
            v1::Visibility::People => Visibility::People,
            v1::Visibility::Both | v1::Visibility::Unspecified => Visibility::Both,
        };
        converted.completion = match message.completion() {
            v1::Completion::Aborted => Completion::Aborted,
            v1::Completion::Error => Completion::Error,
            v1::Completion::Complete | v1::Completion::Unspecified => Completion::Complete,
        };
        converted.parts = parts(message.parts)?;
        converted.author = message.author.map(Into::into).unwrap_or_default();
        converted.source = message
            .source
            .map(Source::try_from)
            .transpose()
            .map_err(under("source"))?;
        converted.at = message.at.as_ref().map(millis).unwrap_or_default();
        converted.raw = message.raw.map(|raw| RawBlock {
            provider: raw.provider,
            json: raw.json,
        });
        Ok(converted)
    }
}
