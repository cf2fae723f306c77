//! The running turn's part of a view.

use super::BuildInput;
use crate::item::{Count, Item, Origin, is_blank};
use crate::window::is_visible;
use colloquy_types::message::{Message, Provenance};
use std::borrow::Cow;

/// A message of the running turn, with its stored count or 0.
pub(crate) type Counted<'a> = (&'a Message, u32);

/// What the running turn adds to the history.
#[derive(Debug, Clone, Default)]
pub(crate) struct TurnPart<'a> {
    pub preface: &'a str,
    pub pending: Vec<Counted<'a>>,
    pub staged: Vec<Counted<'a>>,
}

impl<'a> TurnPart<'a> {
    pub(crate) fn of(input: &BuildInput<'a>) -> Self {
        Self {
            preface: input.preface,
            pending: counted(input.pending, input.pending_tokens),
            staged: counted(input.staged, input.staged_tokens),
        }
    }

    /// Adds the turn's items. What only people may see is not for the model, here as in the transcript.
    pub(super) fn append_to(&self, items: &mut Vec<Item<'a>>, count: Count<'_>) {
        items.reserve(self.pending.len() + self.staged.len() + 2);
        if !is_blank(self.preface) {
            let message = preface_message(self.preface);
            let tokens = count(&message);
            items.push(Item::new(Origin::Preface, Cow::Owned(message), tokens));
        }
        let mut append = |list: &[Counted<'a>], origin: fn(usize) -> Origin| {
            let visible = list
                .iter()
                .enumerate()
                .filter(|(_, (message, _))| is_visible(message));
            items.extend(visible.map(|(at, &(message, tokens))| {
                let tokens = if tokens > 0 { tokens } else { count(message) };
                Item::new(origin(at), Cow::Borrowed(message), tokens)
            }));
        };
        append(&self.pending, Origin::Pending);
        append(&self.staged, Origin::Staged);
    }
}

fn counted<'a>(messages: &'a [Message], tokens: &[u32]) -> Vec<Counted<'a>> {
    let tokens = tokens.iter().copied().chain(std::iter::repeat(0));
    messages.iter().zip(tokens).collect()
}

fn preface_message(text: &str) -> Message {
    Message {
        provenance: Provenance::System,
        ..Message::user(text)
    }
}
