//! What became of the entries of a branch.

use crate::item::Item;
use colloquy_types::Seq;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// What became of an entry in the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Kept,
    /// A summary stands for it.
    Summarized,
    /// Before the last user turns that the limit keeps.
    Limited,
    /// Left without its tool calls and results, or names them in a line.
    Condensed,
    /// Long tool results were cut in the middle.
    Trimmed,
    /// Tool results were replaced by a placeholder.
    Cleared,
    /// Changed by repair: calls left out or results split off.
    Repaired,
    /// Left out: by repair, or as the tool work of an earlier turn.
    LeftOut,
    /// Not part of any model's context.
    Skipped,
}

impl Action {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Summarized => "summarized",
            Self::Limited => "limited",
            Self::Condensed => "condensed",
            Self::Trimmed => "trimmed",
            Self::Cleared => "cleared",
            Self::Repaired => "repaired",
            Self::LeftOut => "left_out",
            Self::Skipped => "skipped",
        }
    }

    /// Whether the model sees something of the entry itself.
    #[must_use]
    pub fn is_shown(self) -> bool {
        matches!(
            self,
            Self::Kept | Self::Condensed | Self::Trimmed | Self::Cleared | Self::Repaired
        )
    }

    /// The stage or the option behind the action, where the action alone says so.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Kept => "window",
            Self::Trimmed => "soft_ratio",
            Self::Cleared => "hard_ratio",
            Self::Repaired | Self::LeftOut => "repair",
            Self::Summarized => "compaction",
            Self::Limited => "limit_turns",
            Self::Condensed => "calls_only",
            Self::Skipped => "not_context",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Neighbouring entries with the same fate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    pub from: Seq,
    /// The last entry, included.
    pub through: Seq,
    pub action: Action,
    /// Tokens in the view for what it shows; for what it does not show, the tokens that were left out; for what is
    /// summarized, those that the compaction saved.
    pub tokens: u32,
    /// The stage or the option behind the action.
    pub reason: Cow<'static, str>,
}

impl Segment {
    /// Entries of the segment.
    #[must_use]
    pub fn entries(&self) -> u64 {
        u64::try_from(self.through.0 - self.from.0 + 1).unwrap_or(0)
    }

    /// Adds one entry to the last segment where it continues it, else as a segment of its own.
    pub(crate) fn append(
        segments: &mut Vec<Self>,
        seq: Seq,
        action: Action,
        tokens: u32,
        reason: &'static str,
    ) {
        if let Some(last) = segments.last_mut()
            && last.action == action
            && last.reason == reason
            && (last.through.0 + 1 == seq.0 || last.through == seq)
        {
            last.through = seq;
            last.tokens = last.tokens.saturating_add(tokens);
            return;
        }
        segments.push(Self {
            from: seq,
            through: seq,
            action,
            tokens,
            reason: Cow::Borrowed(reason),
        });
    }
}

/// An entry of the view at some point of a build.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fate {
    seq: Seq,
    action: Action,
    tokens: u32,
}

/// The entries among the items, in transcript order.
pub(crate) fn fates(items: &[Item<'_>]) -> Vec<Fate> {
    let mut fates = Vec::with_capacity(items.len());
    fates.extend(items.iter().filter_map(|item| {
        Some(Fate {
            seq: item.seq()?,
            action: item.action,
            tokens: item.tokens,
        })
    }));
    if !fates.is_sorted_by_key(|fate| fate.seq) {
        fates.sort_by_key(|fate| fate.seq);
    }
    fates
}

/// Accounts for every entry: those that the stages before repair left out, those that went into repair, and those
/// that came out of it.
pub(crate) fn segments(left_out: Vec<Segment>, before: &[Fate], after: &[Fate]) -> Vec<Segment> {
    let mut segments = left_out;
    let mut after = after.iter().peekable();
    let mut before = before.iter().peekable();
    while let Some(fate) = before.next() {
        let mut is_shown = false;
        while let Some(shown) = after.next_if(|shown| shown.seq == fate.seq) {
            is_shown = true;
            let reason = shown.action.reason();
            Segment::append(&mut segments, shown.seq, shown.action, shown.tokens, reason);
        }
        // Some entries show several messages; together they are shown or not.
        let mut tokens = fate.tokens;
        while let Some(more) = before.next_if(|more| more.seq == fate.seq) {
            tokens = tokens.saturating_add(more.tokens);
        }
        if !is_shown {
            let reason = Action::LeftOut.reason();
            Segment::append(&mut segments, fate.seq, Action::LeftOut, tokens, reason);
        }
    }
    segments.sort_by_key(|segment| segment.from);
    segments
}
