//! What people, agents and tools say. The JSON of these types is what the stores keep.

use crate::clock::UnixMillis;
use crate::ids::{AccountId, ChannelName};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    User,
    Assistant,
    Tool,
    System,
}

/// How far content may be trusted. Memory from `Untrusted` content is quarantined, and messages merge into
/// one turn only within one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provenance {
    Owner,
    Agent,
    #[default]
    Untrusted,
    System,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    Model,
    People,
    #[default]
    Both,
}

/// How an assistant message ended. Results are never invented for a message that did not complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Completion {
    #[default]
    Complete,
    Aborted,
    Error,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Author {
    /// The person's id on the channel, the agent's id, or the tool's name.
    pub id: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// Where a message came from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Source {
    pub channel: ChannelName,
    pub account: AccountId,
    /// The channel's own id of the message, unique within `chat` at least.
    pub message_id: String,
}

/// Where a reply goes: back to where the message came from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Route {
    pub channel: ChannelName,
    pub account: AccountId,
    pub chat: String,
    /// The thread or topic within the chat: the reply target. Messages to different targets never merge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MediaKind {
    Image,
    Audio,
    File,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MediaData {
    /// A URL or a channel's file id; opaque to the product.
    Reference(String),
    /// Base64 of the bytes, at most the inline limit.
    Inline(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Media {
    pub kind: MediaKind,
    /// For instance `image/png`; empty when unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub mime: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    pub data: MediaData,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// JSON as the model wrote it; may be malformed, repair decides.
    pub arguments: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ToolResult {
    pub call_id: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Text and media only.
    pub parts: Vec<Part>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Thinking {
    pub text: String,
    /// As the provider gave it: Anthropic's signature, or data where it is redacted; Gemini's signature of the
    /// part behind; the JSON of the reasoning item of OpenAI Responses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// The provider that signed it; a signature is worthless to any other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    Text { text: String },
    Media(Media),
    ToolCall(ToolCall),
    ToolResult(ToolResult),
    Thinking(Thinking),
}

impl Part {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// A provider's own block, replayed byte for byte to that provider (`anthropic`, `openai`, `openai_chat`, `gemini`):
/// one of, or a list of, Anthropic's content blocks, Responses' output items or Gemini's parts; the whole message
/// of Chat Completions.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RawBlock {
    pub provider: String,
    pub json: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Message {
    pub role: Role,
    pub parts: Vec<Part>,
    #[serde(default)]
    pub author: Author,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    #[serde(default)]
    pub provenance: Provenance,
    /// When it arrived or was made.
    #[serde(default)]
    pub at: UnixMillis,
    #[serde(default)]
    pub visibility: Visibility,
    #[serde(default)]
    pub completion: Completion,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<RawBlock>,
}

impl Message {
    pub fn new(role: Role, parts: Vec<Part>) -> Self {
        let provenance = match role {
            Role::User => Provenance::Owner,
            Role::Assistant => Provenance::Agent,
            Role::Tool => Provenance::Untrusted,
            Role::System => Provenance::System,
        };
        Self {
            role,
            parts,
            author: Author::default(),
            source: None,
            provenance,
            at: UnixMillis::default(),
            visibility: Visibility::default(),
            completion: Completion::default(),
            raw: None,
        }
    }

    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, vec![Part::text(text)])
    }

    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(Role::Assistant, vec![Part::text(text)])
    }

    pub fn tool_result(call_id: impl Into<String>, name: impl Into<String>, text: impl Into<String>) -> Self {
        let result = ToolResult {
            call_id: call_id.into(),
            name: name.into(),
            parts: vec![Part::text(text)],
            is_error: false,
        };
        Self::new(Role::Tool, vec![Part::ToolResult(result)])
    }

    /// All text parts joined by newline; tool results and thinking are not text of the message.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::Text { text } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        texts.join("\n")
    }

    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    pub fn tool_results(&self) -> impl Iterator<Item = &ToolResult> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolResult(result) => Some(result),
            _ => None,
        })
    }
}

/// Largest sizes of what is stored; configurable, these are the defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Bytes of a message's JSON without inline media.
    pub message_bytes: usize,
    /// Bytes of one inline media part.
    pub inline_media_bytes: usize,
    /// Unicode scalar values of one tool result.
    pub tool_result_chars: usize,
    pub parts: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: 1 << 20,
            inline_media_bytes: 256 << 10,
            tool_result_chars: 400_000,
            parts: 128,
        }
    }
}

impl Limits {
    /// # Errors
    /// `TOO_LARGE` naming the part and its limit; nothing may be stored then.
    pub fn check(&self, message: &Message) -> crate::Result<()> {
        use crate::Error;
        if message.parts.len() > self.parts {
            return Err(Error::too_large("parts", format_args!("{} parts", self.parts)));
        }
        let mut bytes = 0;
        for (index, part) in message.parts.iter().enumerate() {
            bytes += self
                .check_part(part)
                .map_err(|error| error.within(&format!("parts[{index}]")))?;
        }
        if bytes > self.message_bytes {
            return Err(Error::too_large(
                "message",
                format_args!("{} bytes", self.message_bytes),
            ));
        }
        Ok(())
    }

    fn check_part(&self, part: &Part) -> crate::Result<usize> {
        use crate::Error;
        match part {
            Part::Text { text } => Ok(text.len()),
            Part::Thinking(thinking) => Ok(thinking.text.len()),
            Part::ToolCall(call) => Ok(call.arguments.len() + call.name.len() + call.id.len()),
            Part::Media(media) => match &media.data {
                MediaData::Reference(reference) => Ok(reference.len()),
                MediaData::Inline(base64) if base64.len() / 4 * 3 > self.inline_media_bytes => Err(
                    Error::too_large("media", format_args!("{} bytes", self.inline_media_bytes)),
                ),
                MediaData::Inline(_) => Ok(0),
            },
            Part::ToolResult(result) => {
                let text_of = |part: &Part| match part {
                    Part::Text { text } => text.chars().count(),
                    _ => 0,
                };
                if result.parts.iter().map(text_of).sum::<usize>() > self.tool_result_chars {
                    return Err(Error::too_large(
                        "tool_result",
                        format_args!("{} characters", self.tool_result_chars),
                    ));
                }
                let nested: Vec<usize> = result
                    .parts
                    .iter()
                    .map(|part| self.check_part(part))
                    .collect::<crate::Result<_>>()?;
                // A tool result has its own limit in characters; it does not count against the message's.
                let text: usize = result
                    .parts
                    .iter()
                    .map(|part| {
                        if let Part::Text { text } = part {
                            text.len()
                        } else {
                            0
                        }
                    })
                    .sum();
                Ok(nested.iter().sum::<usize>() - text)
            }
        }
    }
}
