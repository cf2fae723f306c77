//! Counts tokens per tokenizer family. Exact where the vocabulary is public, estimated elsewhere.

mod estimate;

use colloquy_types::message::{Media, MediaData, MediaKind, Message, Part};
use colloquy_types::{EntryBody, Error};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What a provider adds around every message: role and separators.
pub const MESSAGE_OVERHEAD: u32 = 4;
/// What a provider adds around a tool call or result: its id and the braces.
pub const TOOL_OVERHEAD: u32 = 8;
/// One image, whatever its size: what 8,000 characters cost, the measure pruning uses too.
pub const IMAGE_TOKENS: u32 = 2_000;
/// Bytes of an inline audio or file part that cost about one token.
const MEDIA_BYTES_PER_TOKEN: usize = 32;

/// A tokenizer family. Stored counts use the default, so that counts of one transcript add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tokenizer {
    /// GPT-4o and later.
    #[default]
    O200k,
    /// GPT-4 and GPT-3.5.
    Cl100k,
    /// No public vocabulary: by characters, within about 25 % on prose and code.
    Estimate,
}

impl Tokenizer {
    /// The family of a model by its name; unknown models are estimated.
    #[must_use]
    pub fn for_model(model: &str) -> Self {
        let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
        let is = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
        if is(&[
            "gpt-4o",
            "gpt-4.1",
            "gpt-4.5",
            "gpt-5",
            "gpt-oss",
            "chatgpt-4o",
            "o1",
            "o3",
            "o4",
        ]) {
            Self::O200k
        } else if is(&["gpt-4", "gpt-3.5", "text-embedding-"]) {
            Self::Cl100k
        } else {
            Self::Estimate
        }
    }

    /// The name stored beside a count.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::O200k => "o200k",
            Self::Cl100k => "cl100k",
            Self::Estimate => "estimate",
        }
    }

    /// Tokens of a text alone.
    #[must_use]
    pub fn count_text(self, text: &str) -> u32 {
        if text.is_empty() {
            return 0;
        }
        // Both vocabularies are parsed once per process and kept.
        let count = match self {
            Self::O200k => bpe_openai::o200k_base().count(text),
            Self::Cl100k => bpe_openai::cl100k_base().count(text),
            Self::Estimate => estimate::count(text),
        };
        u32::try_from(count).unwrap_or(u32::MAX)
    }
}

impl fmt::Display for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Tokenizer {
    type Err = Error;

    /// # Errors
    /// `INVALID_FIELD` on `tokenizer` for a name that [`Tokenizer::name`] does not produce.
    fn from_str(name: &str) -> Result<Self, Error> {
        [Self::O200k, Self::Cl100k, Self::Estimate]
            .into_iter()
            .find(|tokenizer| tokenizer.name() == name)
            .ok_or_else(|| Error::invalid("tokenizer", "must be one of o200k, cl100k, estimate"))
    }
}

/// Tokens of a message in a prompt: every part, tool arguments, results and thinking included, plus
/// [`MESSAGE_OVERHEAD`].
#[must_use]
pub fn count_message(message: &Message, tokenizer: Tokenizer) -> u32 {
    MESSAGE_OVERHEAD.saturating_add(count_parts(&message.parts, tokenizer))
}

/// Tokens of an entry in a window; 0 for what no model call sees.
#[must_use]
pub fn count_body(body: &EntryBody, tokenizer: Tokenizer) -> u32 {
    match body {
        EntryBody::Message(message) | EntryBody::CustomMessage { message, .. } => {
            count_message(message, tokenizer)
        }
        EntryBody::Compaction(compaction) => {
            count_message(&crate::window::summary_message(&compaction.summary), tokenizer)
        }
        EntryBody::BranchSummary { summary } => {
            count_message(&crate::window::branch_summary_message(summary), tokenizer)
        }
        EntryBody::Custom { .. }
        | EntryBody::Reset { .. }
        | EntryBody::Interrupted { .. }
        | EntryBody::Label { .. }
        | EntryBody::ModelChange { .. } => 0,
    }
}

fn count_parts(parts: &[Part], tokenizer: Tokenizer) -> u32 {
    parts
        .iter()
        .fold(0, |sum, part| sum.saturating_add(count_part(part, tokenizer)))
}

fn count_part(part: &Part, tokenizer: Tokenizer) -> u32 {
    match part {
        Part::Text { text } => tokenizer.count_text(text),
        Part::Media(media) => count_media(media),
        Part::ToolCall(call) => TOOL_OVERHEAD
            .saturating_add(tokenizer.count_text(&call.name))
            .saturating_add(tokenizer.count_text(&call.arguments)),
        Part::ToolResult(result) => TOOL_OVERHEAD.saturating_add(count_parts(&result.parts, tokenizer)),
        Part::Thinking(thinking) => tokenizer.count_text(&thinking.text),
    }
}

fn count_media(media: &Media) -> u32 {
    match (media.kind, &media.data) {
        (MediaKind::Audio | MediaKind::File, MediaData::Inline(base64)) => {
            let tokens = base64.len() / 4 * 3 / MEDIA_BYTES_PER_TOKEN;
            u32::try_from(tokens).unwrap_or(u32::MAX).max(IMAGE_TOKENS)
        }
        _ => IMAGE_TOKENS,
    }
}
