//! Renders a repaired view as a provider's JSON: the array of messages, without the system prompt and the tools,
//! which stay with the caller.
//!
//! To add a provider: a file with `project(items) -> Projected`, an arm in [`project`], and its rules in
//! [`crate::validate`]. Bytes are written, not built as values: what a provider signed is replayed as it came.
//!
//! What was written for earlier messages does not change when messages follow, but for thinking that is no
//! longer needed. So a choice of form must never depend on what comes later.

mod anthropic;
mod chat;
mod gemini;
mod ids;
mod media;
mod neutral;
mod out;
mod responses;
mod sources;
mod text;

use crate::error::{BuildError, Result};
use crate::item::{Item, is_blank};
use colloquy_types::Error;
use colloquy_types::message::{Completion, Message, Part, Thinking};
use serde::{Deserialize, Serialize};
pub use sources::Sources;
use std::fmt;
use std::str::FromStr;

/// What an empty tool result reads: providers refuse empty text.
pub const NO_OUTPUT: &str = "[no output]";
/// What stands first where a provider wants a user message and the view has none there.
pub const EARLIER_OMITTED: &str = "[earlier messages omitted]";

/// The provider format of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// The product's own messages.
    #[default]
    Neutral,
    OpenaiChat,
    /// Chat Completions for endpoints that want one system message in front and roles that alternate.
    OpenaiChatStrict,
    OpenaiResponses,
    Anthropic,
    Gemini,
    Mistral,
}

impl Format {
    pub const ALL: [Self; 7] = [
        Self::Neutral,
        Self::OpenaiChat,
        Self::OpenaiChatStrict,
        Self::OpenaiResponses,
        Self::Anthropic,
        Self::Gemini,
        Self::Mistral,
    ];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Neutral => "neutral",
            Self::OpenaiChat => "openai_chat",
            Self::OpenaiChatStrict => "openai_chat_strict",
            Self::OpenaiResponses => "openai_responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Mistral => "mistral",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = Error;

    /// # Errors
    /// `INVALID_FIELD` on `format` for a name that [`Format::name`] does not produce.
    fn from_str(name: &str) -> Result<Self, Error> {
        let known = Self::ALL.into_iter().find(|format| format.name() == name);
        known.ok_or_else(|| {
            Error::invalid(
                "format",
                format!("must be one of {}", Self::ALL.map(Self::name).join(", ")),
            )
        })
    }
}

/// A rendered request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Projected {
    /// A JSON array of the provider's messages.
    pub bytes: Vec<u8>,
    /// For each message of the array, the items it was made from.
    pub sources: Sources,
}

/// Renders a repaired view: results must directly follow their calls, and arguments must be JSON.
///
/// # Errors
/// [`BuildError::NothingToSend`] when only blank messages are left.
pub fn project(format: Format, items: &[Item<'_>]) -> Result<Projected> {
    let projected = match format {
        Format::Neutral => neutral::project(items),
        Format::OpenaiChat => chat::project(items, chat::Dialect::Plain),
        Format::OpenaiChatStrict => chat::project(items, chat::Dialect::Strict),
        Format::Mistral => chat::project(items, chat::Dialect::Mistral),
        Format::OpenaiResponses => responses::project(items),
        Format::Anthropic => anthropic::project(items),
        Format::Gemini => gemini::project(items),
    };
    if projected.sources.is_empty() {
        Err(BuildError::NothingToSend)
    } else {
        Ok(projected)
    }
}

/// Whether something of this part is sent as content: thinking is decided on by its provider, results go behind
/// their calls.
fn is_content(part: &Part) -> bool {
    match part {
        Part::Text { text } => !is_blank(text),
        Part::Media(_) | Part::ToolCall(_) => true,
        Part::ToolResult(_) | Part::Thinking(_) => false,
    }
}

/// The signature of a thinking that one of these providers has signed.
fn signature<'a>(thinking: &'a Thinking, providers: &[&str]) -> Option<&'a str> {
    let provider = thinking.provider.as_deref()?;
    let signature = thinking.signature.as_deref()?.trim();
    (providers.contains(&provider) && !signature.is_empty()).then_some(signature)
}

/// The provider's own blocks of a finished message, when it came from one of these providers.
fn own_blocks<'a>(message: &'a Message, providers: &[&str]) -> Option<&'a str> {
    let raw = message.raw.as_ref()?;
    let is_own = message.completion == Completion::Complete && providers.contains(&raw.provider.as_str());
    is_own.then_some(raw.json.trim())
}

/// A list's inside, or the one value as it is.
fn inside_list(json: &str) -> &str {
    let inner = json.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inner.unwrap_or(json).trim()
}
