//! The part of a transcript a model call can see: the newest summary and what was kept behind it.

use crate::error::{BuildError, Result};
use crate::item::{Count, Item, Origin};
use crate::receipt::{Action, Segment};
use colloquy_types::entry::Compaction;
use colloquy_types::message::{Message, Role, Source, Visibility};
use colloquy_types::{Entry, EntryBody, Seq};
use std::borrow::Cow;
use std::collections::HashSet;

/// Items of the window in transcript order, and the entries that are not part of it.
#[derive(Debug)]
pub struct Window<'a> {
    pub items: Vec<Item<'a>>,
    /// Entries left out, with the reason: summarised, or never in a model's context.
    pub left_out: Vec<Segment>,
}

/// The newest compaction among entries in transcript order, for callers without a stored pointer.
#[must_use]
pub fn newest_compaction(entries: &[Entry]) -> Option<&Entry> {
    entries
        .iter()
        .rev()
        .find(|entry| matches!(entry.body, EntryBody::Compaction(_)))
}

/// The summary as the model reads it.
#[must_use]
pub fn summary_message(summary: &str) -> Message {
    Message::user(format!("[Summary of the conversation so far]\n{summary}"))
}

/// What was left behind on another branch, as the model reads it.
#[must_use]
pub fn branch_summary_message(summary: &str) -> Message {
    Message::user(format!(
        "[Summary of an abandoned branch of this conversation]\n{summary}"
    ))
}

/// Selects the window from entries in ascending order. `compaction` is the entry that the branch's pointer
/// names; entries before its first kept one are summarised by it.
///
/// An interrupted entry shows no staged answer: the model would take a half-done answer for its own. What a
/// person wrote while that turn ran is shown, unless the window has the same message elsewhere.
///
/// # Errors
/// [`BuildError::Input`] when `compaction` is another kind of entry.
pub fn window<'a>(
    entries: &'a [Entry],
    compaction: Option<&'a Entry>,
    count: Count<'_>,
) -> Result<Window<'a>> {
    let summary = compaction.map(compaction_of).transpose()?;
    let start = summary.map_or(0, |summary| {
        entries.partition_point(|entry| entry.seq < summary.first_kept)
    });
    let live = &entries[start..];
    let mut window = Window {
        items: Vec::with_capacity(live.len() + 1),
        left_out: summary.into_iter().filter_map(summarized).collect(),
    };
    if let (Some(summary), Some(entry)) = (summary, compaction) {
        let message = summary_message(&summary.summary);
        let tokens = if entry.tokens > 0 {
            entry.tokens
        } else {
            count(&message)
        };
        window
            .items
            .push(Item::new(Origin::Summary, Cow::Owned(message), tokens));
    }
    let mut shown = Shown { live, seen: None };
    for entry in live {
        let before = window.items.len();
        window.show(entry, &mut shown, count);
        if window.items.len() == before {
            Segment::append(
                &mut window.left_out,
                entry.seq,
                Action::Skipped,
                0,
                entry.body.kind(),
            );
        }
    }
    Ok(window)
}

/// What a summary stands for, whether or not the caller has loaded it: a build does not depend on the length of
/// the transcript.
fn summarized(summary: &Compaction) -> Option<Segment> {
    let through = Seq(summary.first_kept.0 - 1);
    (through >= Seq(1)).then(|| Segment {
        from: Seq(1),
        through,
        action: Action::Summarized,
        tokens: summary.tokens_before.saturating_sub(summary.tokens_after),
        reason: "compaction".into(),
    })
}

impl<'a> Window<'a> {
    fn show(&mut self, entry: &'a Entry, shown: &mut Shown<'a>, count: Count<'_>) {
        match &entry.body {
            EntryBody::Message(message) | EntryBody::CustomMessage { message, .. } if is_visible(message) => {
                self.push(entry, Cow::Borrowed(message), entry.tokens);
            }
            EntryBody::BranchSummary { summary } => {
                self.push(entry, Cow::Owned(branch_summary_message(summary)), entry.tokens);
            }
            EntryBody::Interrupted { staged, .. } => {
                let from_people = |message: &&Message| message.role == Role::User && is_visible(message);
                for message in staged
                    .iter()
                    .filter(from_people)
                    .filter(|message| shown.add(message))
                {
                    self.push(entry, Cow::Borrowed(message), count(message));
                }
            }
            _ => {}
        }
    }

    fn push(&mut self, entry: &'a Entry, message: Cow<'a, Message>, tokens: u32) {
        let origin = Origin::Entry {
            seq: entry.seq,
            id: entry.id,
        };
        self.items.push(Item {
            turn: entry.turn,
            ..Item::new(origin, message, tokens)
        });
    }
}

/// The compaction in an entry's body.
///
/// # Errors
/// [`BuildError::Input`] when the entry is of another kind.
pub fn compaction_of(entry: &Entry) -> Result<&Compaction> {
    match &entry.body {
        EntryBody::Compaction(compaction) => Ok(compaction),
        _ => Err(BuildError::Input {
            field: "compaction",
            message: "the entry is not a compaction",
        }),
    }
}

/// Whether a model sees the message.
pub(crate) fn is_visible(message: &Message) -> bool {
    message.visibility != Visibility::People
}

/// The messages a window shows already, by the channel's id where there is one. Collected when first asked for:
/// few windows have an interrupted turn.
struct Shown<'a> {
    live: &'a [Entry],
    seen: Option<(HashSet<&'a Message>, HashSet<&'a Source>)>,
}

impl<'a> Shown<'a> {
    /// Whether the message is not shown yet; from then on it is.
    fn add(&mut self, message: &'a Message) -> bool {
        let (messages, sources) = self.seen.get_or_insert_with(|| {
            let messages: HashSet<&Message> = self
                .live
                .iter()
                .filter_map(|entry| entry.body.message())
                .collect();
            let sources = messages
                .iter()
                .filter_map(|message| message.source.as_ref())
                .collect();
            (messages, sources)
        });
        match &message.source {
            Some(source) => sources.insert(source),
            None => messages.insert(message),
        }
    }
}
