//! The numbers of a finished view, and its receipt.

use super::turn::TurnPart;
use super::{BuildInput, Built, Seen};
use crate::budget::{Breakdown, Budget, reserve, weigh};
use crate::item::{Item, Origin};
use crate::project::Projected;
use crate::prune::Moves;
use crate::receipt::{self, Change, PROJECTION_VERSION, Prefix, Receipt, digest};
use std::ops::Range;

/// Decides on the finished view and writes its receipt.
pub(super) fn finish<'a>(
    input: &BuildInput<'a>,
    turn: &TurnPart<'a>,
    seen: Seen<'a>,
    projected: Projected,
) -> Built<'a> {
    let budget = budget(input, &seen.items);
    let verdict = weigh(&budget, &input.options.compaction);
    let (decision, trigger) = (verdict.decision, verdict.trigger);
    let receipt = Receipt {
        watermarks: seen.pruned.watermarks,
        held: seen.pruned.held,
        segments: seen.segments,
        repairs: seen.repairs,
        decision,
        ..receipt_of(input, turn, &budget)
    };
    let receipt = with_bytes(receipt, input.previous, &seen.items, &projected);
    let stored = if input.moves == Moves::Running {
        seen.pruned.watermarks
    } else {
        input.watermarks
    };
    Built {
        bytes: projected.bytes,
        messages: seen.items.into_iter().map(|item| item.message).collect(),
        tokens: budget.tokens,
        decision,
        trigger,
        numbers: verdict.numbers,
        watermarks: stored,
        trimmed: seen.pruned.trimmed,
        cleared: seen.pruned.cleared,
        repaired: size(&receipt.repairs),
        receipt,
    }
}

/// What the receipt repeats of the input; the caller adds what was done.
fn receipt_of(input: &BuildInput<'_>, turn: &TurnPart<'_>, budget: &Budget) -> Receipt {
    Receipt {
        projection_version: PROJECTION_VERSION,
        policy_version: input.policy_version.to_owned(),
        history_mode: input.options.history_mode,
        limit_turns: input.options.limit_turns,
        format: input.format,
        model: input.model.to_owned(),
        window: input.window,
        reserve: budget.reserve,
        tokenizer: input.tokenizer,
        calibration_percent: input.calibration_percent,
        branch: input.branch,
        head: input.entries.last().map(|entry| entry.seq),
        turn: input.turn,
        compaction: input.compaction.map(|entry| entry.seq),
        watermarks: input.watermarks,
        cache_cold: input.is_cache_cold(),
        held: None,
        segments: Vec::new(),
        repairs: Vec::new(),
        recalled: input.recalled.to_owned(),
        preface: turn.preface.to_owned(),
        pending: size(&turn.pending),
        staged: size(&turn.staged),
        tokens: budget.tokens,
        decision: crate::Decision::Fits,
        sha256: String::new(),
        bytes: 0,
        prefix: receipt::Prefix::default(),
        follows: None,
        prefix_break: None,
    }
}

/// Adds what the receipt says of the bytes, and compares them with those of the build before.
fn with_bytes(
    mut receipt: Receipt,
    previous: Option<&Receipt>,
    items: &[Item<'_>],
    projected: &Projected,
) -> Receipt {
    let earlier = previous.map_or(&[][..], |previous| &previous.prefix.marks);
    let digested = digest(&projected.bytes, earlier);
    receipt.sha256 = digested.sha256;
    receipt.bytes = projected.bytes.len() as u64;
    receipt.prefix = Prefix {
        history_messages: history_messages_of(projected, items),
        marks: digested.marks,
    };
    receipt.follows = previous.map(|previous| previous.sha256.clone());
    if let (Some(previous), Some(changed)) = (previous, digested.changed) {
        let messages = receipt::messages_within(&projected.bytes, &changed);
        let change = Change {
            kept_bytes: changed.start,
            items: sources(projected, messages.clone())
                .map(|at| &items[at])
                .collect(),
            messages,
        };
        receipt.prefix_break = Some(receipt::explain(previous, &receipt, &change));
    }
    receipt
}

/// The items behind some of the provider's messages.
fn sources(projected: &Projected, messages: Range<usize>) -> impl Iterator<Item = usize> + '_ {
    messages
        .filter_map(|message| projected.sources.get(message))
        .flat_map(|items| items.iter().copied())
}

/// The provider's messages before the first one that has something of the running turn.
fn history_messages_of(projected: &Projected, items: &[Item<'_>]) -> u32 {
    let messages = projected.sources.len();
    let is_of_turn = |at: usize| sources(projected, at..at + 1).any(|item| items[item].is_of_turn());
    let first = (0..messages).find(|&at| is_of_turn(at)).unwrap_or(messages);
    u32::try_from(first).unwrap_or(u32::MAX)
}

fn budget(input: &BuildInput<'_>, items: &[Item<'_>]) -> Budget {
    Budget {
        window: input.window,
        reserve: reserve(input.window, input.reserve),
        tokens: breakdown(items, input.overhead),
        messages: history_messages(items),
        calibration_percent: input.calibration_percent,
        anchor: input.anchor,
    }
}

fn breakdown(items: &[Item<'_>], overhead: u32) -> Breakdown {
    let mut tokens = Breakdown {
        overhead,
        ..Breakdown::default()
    };
    let mut in_turn = false;
    for item in items {
        let place = match item.origin {
            Origin::Summary => &mut tokens.summary,
            Origin::Entry { .. } => &mut tokens.entries,
            Origin::Recall => &mut tokens.recall,
            Origin::Preface | Origin::Pending(_) => &mut tokens.pending,
            Origin::Staged(_) => &mut tokens.staged,
            Origin::Synthetic if in_turn => &mut tokens.staged,
            Origin::Synthetic => &mut tokens.entries,
        };
        *place = place.saturating_add(item.tokens);
        in_turn |= item.is_of_turn();
    }
    tokens
}

/// Stored and staged messages of the view; the summary and what repair made up are none.
fn history_messages(items: &[Item<'_>]) -> u32 {
    let is_history = |item: &&Item<'_>| matches!(item.origin, Origin::Entry { .. } | Origin::Staged(_));
    u32::try_from(items.iter().filter(is_history).count()).unwrap_or(u32::MAX)
}

fn size<T>(list: &[T]) -> u32 {
    u32::try_from(list.len()).unwrap_or(u32::MAX)
}
