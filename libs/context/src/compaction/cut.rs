//! Where a window is cut: what lies before is summarised, what lies behind stays verbatim.

use super::trigger::{CompactionOptions, Keep};
use crate::item::{Item, Origin};
use crate::limit::starts_turn;
use crate::repair::pairs;
use colloquy_types::message::Role;
use std::ops::Range;

/// A planned cut, in indexes of the window's items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// What the summary replaces, an earlier summary included.
    pub summarize: Range<usize>,
    /// First item that stays.
    pub first_kept: usize,
    pub kept_messages: usize,
    pub kept_tokens: u32,
    /// Where the cut goes through a turn: the turn's head, the last part of `summarize`, to be summarised
    /// separately so that the answer that stays is understood.
    pub split_turn: Option<Range<usize>>,
}

/// Plans a cut of a window, before prune and repair. None = nothing to compact: everything would stay.
///
/// A cut never comes between a call and its result; where the keep rule points between them it moves back.
#[must_use]
pub fn plan_cut(items: &[Item<'_>], window: u32, options: &CompactionOptions) -> Option<Cut> {
    let start = items
        .iter()
        .take_while(|item| item.origin == Origin::Summary)
        .count();
    let wanted = match options.keep {
        Keep::Messages { min, share } => {
            keep_messages(items.len() - start, min, share).map(|kept| items.len() - kept)
        }
        Keep::Tokens { .. } => keep_tokens(items, start, options.keep_tokens(window).unwrap_or(0)),
    }?;
    let legal = legal_boundaries(items);
    let first_kept = (start + 1..=wanted).rev().find(|&at| legal[at])?;
    Some(Cut {
        summarize: 0..first_kept,
        first_kept,
        kept_messages: items.len() - first_kept,
        kept_tokens: items[first_kept..]
            .iter()
            .fold(0, |sum: u32, item| sum.saturating_add(item.tokens)),
        split_turn: split_turn(items, start, first_kept),
    })
}

/// Messages to keep; none when that is all of them.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a share of a message count"
)]
fn keep_messages(messages: usize, min: u32, share: f64) -> Option<usize> {
    // 30 % of 50 is 15 and not 16, whatever the binary fraction says.
    let part = (messages as f64 * share.clamp(0.0, 1.0) - 1e-9).ceil() as usize;
    let kept = part.max(min as usize);
    (kept < messages).then_some(kept)
}

/// Index from which on there are at least `tokens`; none when there are fewer in all.
fn keep_tokens(items: &[Item<'_>], start: usize, tokens: u32) -> Option<usize> {
    let mut kept = 0_u32;
    let mut at = items.len();
    while kept < tokens {
        if at <= start {
            return None;
        }
        at -= 1;
        kept = kept.saturating_add(items[at].tokens);
    }
    Some(at)
}

/// For every index (and the end) whether a cut before it separates no result from its call.
fn legal_boundaries(items: &[Item<'_>]) -> Vec<bool> {
    let mut opened = vec![0_i64; items.len() + 2];
    for (call, result) in pairs(items) {
        opened[call + 1] += 1;
        opened[result + 1] -= 1;
    }
    let mut depth = 0;
    (0..=items.len())
        .map(|at| {
            depth += opened[at];
            depth == 0 && items.get(at).is_none_or(|item| item.message.role != Role::Tool)
        })
        .collect()
}

fn split_turn(items: &[Item<'_>], start: usize, first_kept: usize) -> Option<Range<usize>> {
    if first_kept == items.len() || starts_turn(items, first_kept) {
        return None;
    }
    let head = (start..first_kept).rev().find(|&at| starts_turn(items, at))?;
    Some(head..first_kept)
}
