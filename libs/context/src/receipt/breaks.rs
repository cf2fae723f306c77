//! Why the bytes that were sent before have changed.

use super::Receipt;
use crate::item::{Item, Origin};
use crate::receipt::Action;
use crate::repair::RepairKind;
use colloquy_types::Seq;
use colloquy_types::message::Part;
use colloquy_types::policy::HistoryMode;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;

/// A reason for other bytes than before. Up to [`RunningTurn`](Self::RunningTurn) they are the ones that the prefix
/// rule allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakReason {
    /// The request is for another provider format.
    Format,
    /// The product writes other bytes than the version that made the earlier request.
    Projection,
    /// Another branch, or an earlier head.
    Rewind,
    Compaction,
    /// A watermark moved over a result.
    Watermark,
    /// A real result took the place of one that repair had made up.
    LateResult,
    /// Another policy.
    Policy,
    /// The limit of turns moved on.
    Limit,
    /// An earlier turn's calls were condensed.
    CallsOnly,
    /// The earlier turn's recalled memories are gone, or other ones are shown.
    Recall,
    /// Thinking of a finished tool loop was left out.
    Thinking,
    /// Behind the history: the running turn shows something else, after a lost attempt or another message.
    RunningTurn,
    /// None of these: a fault of the product.
    Unexplained,
}

impl BreakReason {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Format => "format",
            Self::Projection => "projection",
            Self::Rewind => "rewind",
            Self::Compaction => "compaction",
            Self::Watermark => "watermark",
            Self::LateResult => "late_result",
            Self::Policy => "policy",
            Self::Limit => "limit",
            Self::CallsOnly => "calls_only",
            Self::Recall => "recall",
            Self::Thinking => "thinking",
            Self::RunningTurn => "running_turn",
            Self::Unexplained => "unexplained",
        }
    }
}

impl fmt::Display for BreakReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Where and why a request does not begin with the bytes of the one before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrefixBreak {
    pub reason: BreakReason,
    /// Bytes from the start that are the same for certain.
    pub kept_bytes: u64,
    /// The provider's messages of which one is the first to differ, both included. Where it is not one alone, the
    /// reason may be that of a neighbour.
    pub message: u32,
    pub last_message: u32,
    /// The first entry that may differ; none behind the history.
    pub seq: Option<Seq>,
}

/// A change of the bytes as the new request sees it.
pub(crate) struct Change<'v, 'a> {
    /// Bytes that are the same for certain.
    pub kept_bytes: u64,
    /// The provider's messages of which one is the first to differ, and the items they were made from.
    pub messages: Range<usize>,
    pub items: Vec<&'v Item<'a>>,
}

/// Names the reason of a change by what the two receipts and the changed place say.
pub(crate) fn explain(earlier: &Receipt, now: &Receipt, change: &Change<'_, '_>) -> PrefixBreak {
    PrefixBreak {
        reason: reason(earlier, now, change),
        kept_bytes: change.kept_bytes,
        message: number(change.messages.start),
        last_message: number(change.messages.end.saturating_sub(1)),
        seq: change.items.iter().find_map(|item| item.seq()),
    }
}

fn number(message: usize) -> u32 {
    u32::try_from(message).unwrap_or(u32::MAX)
}

fn reason(earlier: &Receipt, now: &Receipt, change: &Change<'_, '_>) -> BreakReason {
    let history = earlier.prefix.history_messages as usize;
    let is_in_turn = change.messages.end > history;
    let starts_turn = change.messages.contains(&history);
    let is_other_policy = earlier.policy_version != now.policy_version;
    // The limit cuts at the front: nothing can have changed before it.
    let limit_moved = limited(earlier) != limited(now);
    let condensed = is_in_turn && !is_same_turn(earlier, now) && now.history_mode == HistoryMode::CallsOnly;
    let reasons = [
        (BreakReason::Format, earlier.format != now.format),
        (
            BreakReason::Projection,
            earlier.projection_version != now.projection_version,
        ),
        (BreakReason::Rewind, is_rewound(earlier, now)),
        (BreakReason::Compaction, earlier.compaction != now.compaction),
        (BreakReason::Limit, limit_moved && !is_other_policy),
        (BreakReason::Watermark, is_newly_shortened(earlier, change)),
        (BreakReason::CallsOnly, condensed && !is_other_policy),
        (BreakReason::LateResult, has_late_result(earlier, now, change)),
        (BreakReason::Policy, is_other_policy),
        (BreakReason::Recall, starts_turn && is_other_recall(earlier, now)),
        (
            BreakReason::Thinking,
            !is_same_turn(earlier, now) && has_thinking(change),
        ),
        (BreakReason::RunningTurn, is_in_turn),
    ];
    reasons
        .into_iter()
        .find(|(_, holds)| *holds)
        .map_or(BreakReason::Unexplained, |(reason, _)| reason)
}

/// Where no turn was named, each build counts as one of its own.
fn is_same_turn(earlier: &Receipt, now: &Receipt) -> bool {
    now.turn.is_some() && earlier.turn == now.turn
}

fn is_rewound(earlier: &Receipt, now: &Receipt) -> bool {
    earlier.branch != now.branch || now.head < earlier.head
}

fn is_newly_shortened(earlier: &Receipt, change: &Change<'_, '_>) -> bool {
    let marks = earlier.watermarks;
    change.items.iter().any(|item| match (item.action, item.seq()) {
        (Action::Cleared, Some(seq)) => seq > marks.hard,
        (Action::Trimmed, Some(seq)) => seq > marks.soft,
        _ => false,
    })
}

fn has_late_result(earlier: &Receipt, now: &Receipt, change: &Change<'_, '_>) -> bool {
    let made_up = |receipt: &Receipt, id: &str| {
        let repairs = receipt.repairs.iter();
        repairs
            .filter(|repair| repair.kind == RepairKind::Synthesized && repair.call_id == id)
            .count()
    };
    let is_new = |item: &&&Item<'_>| item.seq().is_none_or(|seq| Some(seq) > earlier.head);
    let mut results = change
        .items
        .iter()
        .filter(is_new)
        .filter(|item| item.origin != Origin::Synthetic)
        .flat_map(|item| item.message.tool_results());
    results.any(|result| made_up(earlier, &result.call_id) > made_up(now, &result.call_id))
}

fn is_other_recall(earlier: &Receipt, now: &Receipt) -> bool {
    if is_same_turn(earlier, now) {
        earlier.recalled != now.recalled
    } else {
        !earlier.recalled.is_empty()
    }
}

/// The last entry that the limit leaves out.
fn limited(receipt: &Receipt) -> Option<Seq> {
    let limited = |segment: &&super::Segment| segment.action == Action::Limited;
    receipt
        .segments
        .iter()
        .rev()
        .find(limited)
        .map(|segment| segment.through)
}

fn has_thinking(change: &Change<'_, '_>) -> bool {
    let thinks = |part: &Part| matches!(part, Part::Thinking(_));
    let may_think = |item: &&Item<'_>| item.message.raw.is_some() || item.message.parts.iter().any(thinks);
    change.items.iter().any(may_think)
}
