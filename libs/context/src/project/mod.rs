//! Renders a repaired view as a provider's JSON: the array of messages, without the system prompt and the tools,
//! which stay with the caller.
//!
//! To add a provider: a file with `project(items) -> Projected`, an arm in [`project`], and its rules in
//! [`crate::validate`]. Bytes are written, not built as values: what a provider signed is replayed as it came.

mod anthropic;
mod ids;
mod json;
mod neutral;
mod openai_chat;

use crate::error::{BuildError, Result};
use crate::item::{Item, is_blank};
use colloquy_types::Error;
use colloquy_types::message::{Media, MediaKind};
use serde::{Deserialize, Serialize};
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
    OpenaiResponses,
    Anthropic,
    Gemini,
    Mistral,
}

impl Format {
    pub const ALL: [Self; 6] = [
        Self::Neutral,
        Self::OpenaiChat,
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
    pub sources: Vec<Vec<usize>>,
}

/// Renders a repaired view: results must directly follow their calls.
///
/// # Errors
/// [`BuildError::Unsupported`] for a format without a projection, [`BuildError::NothingToSend`] when only blank
/// messages are left.
pub fn project(format: Format, items: &[Item<'_>]) -> Result<Projected> {
    let projected = match format {
        Format::Neutral => neutral::project(items),
        Format::OpenaiChat => openai_chat::project(items),
        Format::Anthropic => anthropic::project(items),
        Format::OpenaiResponses | Format::Gemini | Format::Mistral => {
            return Err(BuildError::Unsupported(format));
        }
    };
    if projected.sources.is_empty() {
        Err(BuildError::NothingToSend)
    } else {
        Ok(projected)
    }
}

/// Collects the messages of a request.
#[derive(Default)]
struct Messages {
    json: Vec<String>,
    sources: Vec<Vec<usize>>,
}

impl Messages {
    fn push(&mut self, json: String, source: usize) {
        self.json.push(json);
        self.sources.push(vec![source]);
    }

    fn finish(self) -> Projected {
        Projected {
            bytes: format!("[{}]", self.json.join(",")).into_bytes(),
            sources: self.sources,
        }
    }
}

/// What stands for an attachment that the provider cannot take.
fn media_marker(media: &Media) -> String {
    let kind = match media.kind {
        MediaKind::Image => "image",
        MediaKind::Audio => "audio",
        MediaKind::File => "file",
    };
    let named = [&media.name, &media.mime]
        .into_iter()
        .find(|name| !is_blank(name));
    named.map_or_else(|| format!("[{kind}]"), |name| format!("[{kind}: {name}]"))
}

/// Image types every provider takes.
fn is_web_image(mime: &str) -> bool {
    matches!(mime, "image/jpeg" | "image/png" | "image/gif" | "image/webp")
}

/// An address a provider can fetch; a channel's file id is not.
fn is_web_url(reference: &str) -> bool {
    reference.starts_with("https://") || reference.starts_with("http://")
}
