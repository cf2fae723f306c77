//! One message on its way through the stages of a build.

use crate::receipt::Action;
use colloquy_types::message::Message;
use colloquy_types::{EntryId, Seq, TurnId};
use std::borrow::Cow;

/// Counts the tokens of a message that a stage made or changed.
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

    /// The same item with other content: counted anew, and without the provider's own block, which would
    /// replay the content as it was.
    pub(crate) fn replace(&mut self, mut message: Message, count: Count<'_>) {
        message.raw = None;
        self.tokens = count(&message);
        self.message = Cow::Owned(message);
    }
}

/// Blank text says nothing to a model, and providers refuse it.
pub(crate) fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}
