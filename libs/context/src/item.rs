//! One message on its way through the stages of a build.

use crate::prune::MEDIA_CHARS;
use crate::receipt::Action;
use colloquy_types::message::{Message, Part, Role};
use colloquy_types::{EntryId, Seq, TurnId};
use std::borrow::Cow;

/// Counts the tokens of a message that has no count yet.
pub type Count<'c> = &'c dyn Fn(&Message) -> u32;

/// Where a message of the view comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The newest compaction's summary.
    Summary,
    Entry {
        seq: Seq,
        id: EntryId,
    },
    /// The block of recalled memories.
    Recall,
    /// What the queue says before the running turn's messages; never stored.
    Preface,
    /// A user message of the running turn, by its place among them.
    Pending(usize),
    /// A message the running turn has staged, by its place among them.
    Staged(usize),
    /// Made by repair.
    Synthetic,
}

/// A message of the view with what the receipt says of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Item<'a> {
    pub origin: Origin,
    /// Borrowed as long as no stage has changed it.
    pub message: Cow<'a, Message>,
    pub tokens: u32,
    pub turn: Option<TurnId>,
    pub action: Action,
}

impl<'a> Item<'a> {
    #[must_use]
    pub fn new(origin: Origin, message: Cow<'a, Message>, tokens: u32) -> Self {
        Self {
            origin,
            message,
            tokens,
            turn: None,
            action: Action::Kept,
        }
    }

    #[must_use]
    pub fn seq(&self) -> Option<Seq> {
        match self.origin {
            Origin::Entry { seq, .. } => Some(seq),
            _ => None,
        }
    }

    #[must_use]
    pub fn entry(&self) -> Option<EntryId> {
        match self.origin {
            Origin::Entry { id, .. } => Some(id),
            _ => None,
        }
    }

    /// Whether the running turn has brought it, rather than the transcript.
    #[must_use]
    pub fn is_of_turn(&self) -> bool {
        matches!(
            self.origin,
            Origin::Recall | Origin::Preface | Origin::Pending(_) | Origin::Staged(_)
        )
    }

    /// The same item with other content.
    pub(crate) fn replace(&mut self, message: Message, count: Count<'_>) {
        self.tokens = rescaled(self.tokens, &self.message, &message, count);
        self.message = Cow::Owned(message);
    }
}

/// The message with other content, without the provider's own block, which would replay it as it was.
pub(crate) fn with_parts(message: &Message, role: Role, parts: Vec<Part>) -> Message {
    Message {
        role,
        parts,
        author: message.author.clone(),
        source: message.source.clone(),
        provenance: message.provenance,
        at: message.at,
        visibility: message.visibility,
        completion: message.completion,
        raw: None,
    }
}

/// Tokens of a message that a stage has shortened: its count by the share of it that stays. Counting again would
/// cost more than all stages together; a message without a count is counted.
pub(crate) fn rescaled(tokens: u32, before: &Message, after: &Message, count: Count<'_>) -> u32 {
    if tokens == 0 {
        return count(after);
    }
    let (whole, stays) = (weight(&before.parts), weight(&after.parts));
    let scaled = (u64::from(tokens) * stays as u64).div_ceil(whole as u64);
    u32::try_from(scaled).unwrap_or(u32::MAX)
}

/// Bytes that a provider's framing of a message and of a call or result weighs about.
const MESSAGE_WEIGHT: usize = 16;
const TOOL_WEIGHT: usize = 32;

/// What a message's content weighs, in bytes of text.
pub(crate) fn weight(parts: &[Part]) -> usize {
    parts.iter().map(part_weight).sum::<usize>() + MESSAGE_WEIGHT
}

fn part_weight(part: &Part) -> usize {
    match part {
        Part::Text { text } => text.len(),
        Part::Media(_) => MEDIA_CHARS,
        Part::ToolCall(call) => TOOL_WEIGHT + call.name.len() + call.arguments.len(),
        Part::ToolResult(result) => TOOL_WEIGHT + result.parts.iter().map(part_weight).sum::<usize>(),
        Part::Thinking(thinking) => thinking.text.len(),
    }
}

/// Blank text says nothing to a model, and providers refuse it.
pub(crate) fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}
