//! What another policy, another model or a later build changes.

use super::{Action, PrefixBreak, Receipt, Segment};
use crate::budget::Decision;
use crate::repair::RepairAction;
use colloquy_types::Seq;
use serde::Serialize;

/// Tokens of a part of the request in both builds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TokenChange {
    /// `overhead`, `summary`, `entries`, `staged`, `recall`, `pending` or `total`.
    pub part: &'static str,
    pub before: u32,
    pub after: u32,
}

/// Entries with another fate. None: the build did not know the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ActionChange {
    pub from: Seq,
    /// The last entry, included.
    pub through: Seq,
    pub before: Option<Action>,
    pub after: Option<Action>,
}

/// The smallest range of entries at whose ends both builds have the border of a segment, and its tokens in the
/// requests. Within it tokens cannot be told apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BlockChange {
    pub from: Seq,
    pub through: Seq,
    pub tokens_before: u32,
    pub tokens_after: u32,
    pub changes: Vec<ActionChange>,
}

/// How a build differs from another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diff {
    pub is_same_bytes: bool,
    /// Of both builds.
    pub decision: (Decision, Decision),
    /// Every part, also those that are the same, and their sum.
    pub tokens: Vec<TokenChange>,
    /// Only what differs, in order.
    pub blocks: Vec<BlockChange>,
    /// Repairs of the first build alone, and of the second alone.
    pub repairs_gone: Vec<RepairAction>,
    pub repairs_new: Vec<RepairAction>,
    /// What the second build says of the request before it.
    pub prefix_break: Option<PrefixBreak>,
}

impl Diff {
    /// Tokens that the second build has more than the first.
    #[must_use]
    pub fn tokens_added(&self) -> i64 {
        let total = self.tokens.last();
        total.map_or(0, |total| i64::from(total.after) - i64::from(total.before))
    }
}

/// Compares two builds of one branch.
#[must_use]
pub fn diff(before: &Receipt, after: &Receipt) -> Diff {
    Diff {
        is_same_bytes: before.sha256 == after.sha256,
        decision: (before.decision, after.decision),
        tokens: tokens(before, after),
        blocks: blocks(&before.segments, &after.segments),
        repairs_gone: without(&before.repairs, &after.repairs),
        repairs_new: without(&after.repairs, &before.repairs),
        prefix_break: after.prefix_break.clone(),
    }
}

fn tokens(before: &Receipt, after: &Receipt) -> Vec<TokenChange> {
    let (b, a) = (&before.tokens, &after.tokens);
    let parts = [
        ("overhead", b.overhead, a.overhead),
        ("summary", b.summary, a.summary),
        ("entries", b.entries, a.entries),
        ("staged", b.staged, a.staged),
        ("recall", b.recall, a.recall),
        ("pending", b.pending, a.pending),
        ("total", b.total(), a.total()),
    ];
    let change = |(part, before, after)| TokenChange { part, before, after };
    parts.into_iter().map(change).collect()
}

/// The elements that `other` has not, as often as they occur more.
fn without(list: &[RepairAction], other: &[RepairAction]) -> Vec<RepairAction> {
    let mut other: Vec<&RepairAction> = other.iter().collect();
    let mut is_new = |action: &&RepairAction| match other.iter().position(|known| known == action) {
        Some(at) => {
            other.swap_remove(at);
            false
        }
        None => true,
    };
    list.iter().filter(|action| is_new(action)).cloned().collect()
}

/// Walks two lists of segments together.
struct Walk<'s> {
    rest: &'s [Segment],
}

impl<'s> Walk<'s> {
    /// The segment that an entry is in.
    fn at(&mut self, seq: Seq) -> Option<&'s Segment> {
        while let Some((first, rest)) = self.rest.split_first()
            && first.through < seq
        {
            self.rest = rest;
        }
        self.rest.first().filter(|segment| segment.from <= seq)
    }

    /// The first entry, from `seq` on, at which something begins.
    fn next_border(&self, seq: Seq) -> Option<Seq> {
        self.rest.first().map(|segment| {
            if segment.from > seq {
                segment.from
            } else {
                Seq(segment.through.0 + 1)
            }
        })
    }
}

fn blocks(before: &[Segment], after: &[Segment]) -> Vec<BlockChange> {
    let starts = before.iter().chain(after).map(|segment| segment.from).min();
    let end = before.iter().chain(after).map(|segment| segment.through).max();
    let (Some(mut seq), Some(end)) = (starts, end) else {
        return Vec::new();
    };
    let (mut old, mut new) = (Walk { rest: before }, Walk { rest: after });
    let mut blocks = Vec::new();
    let mut block: Option<BlockChange> = None;
    while seq <= end {
        let (was, is) = (old.at(seq), new.at(seq));
        let borders = [old.next_border(seq), new.next_border(seq)];
        let next = borders.into_iter().flatten().min().unwrap_or(Seq(end.0 + 1));
        let through = Seq(next.0 - 1);
        let open = block.get_or_insert_with(|| BlockChange {
            from: seq,
            through,
            tokens_before: 0,
            tokens_after: 0,
            changes: Vec::new(),
        });
        open.extend(seq, through, was, is);
        let ends = |segment: Option<&Segment>| segment.is_none_or(|segment| segment.through == through);
        if ends(was) && ends(is) {
            blocks.extend(block.take().filter(BlockChange::is_one));
        }
        seq = next;
    }
    blocks.extend(block.filter(BlockChange::is_one));
    blocks
}

impl BlockChange {
    fn is_one(&self) -> bool {
        !self.changes.is_empty() || self.tokens_before != self.tokens_after
    }

    /// Adds the range from `from` to `through`, and the tokens of the segments that end in it.
    fn extend(&mut self, from: Seq, through: Seq, was: Option<&Segment>, is: Option<&Segment>) {
        let tokens = |segment: Option<&Segment>| {
            let shown = segment.filter(|segment| segment.through == through && segment.action.is_shown());
            shown.map_or(0, |segment| segment.tokens)
        };
        self.through = through;
        self.tokens_before = self.tokens_before.saturating_add(tokens(was));
        self.tokens_after = self.tokens_after.saturating_add(tokens(is));
        let (before, after) = (
            was.map(|segment| segment.action),
            is.map(|segment| segment.action),
        );
        if before != after {
            self.changes.push(ActionChange {
                from,
                through,
                before,
                after,
            });
        }
    }
}
