//! A receipt as lines that a person reads.

use super::{Action, Receipt};
use crate::repair::RepairKind;
use serde::Serialize;

/// One line: a part of the request, or entries that are not in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// `overhead`, `summary`, `entries 5-9`, `made up`, `recall`, `pending` or `staged`.
    pub segment: String,
    /// Entries of the transcript, or messages of the running turn.
    pub entries: u64,
    pub action: &'static str,
    pub tokens: u32,
    /// Whether the tokens are part of the request; else they are what it was spared.
    pub is_shown: bool,
    pub reason: String,
}

impl Row {
    fn shown(segment: &str, entries: u64, tokens: u32, reason: &str) -> Self {
        Self {
            segment: segment.to_owned(),
            entries,
            action: "sent",
            tokens,
            is_shown: true,
            reason: reason.to_owned(),
        }
    }
}

/// The lines of a receipt in the order of the request; the shown ones add up to its tokens.
#[must_use]
pub fn rows(receipt: &Receipt) -> Vec<Row> {
    let tokens = &receipt.tokens;
    let mut rows = vec![Row::shown(
        "overhead",
        0,
        tokens.overhead,
        "system prompt and tools",
    )];
    if let Some(seq) = receipt.compaction {
        let reason = format!("compaction at entry {}", seq.0);
        rows.push(Row::shown("summary", 1, tokens.summary, &reason));
    }
    rows.extend(receipt.segments.iter().map(|segment| Row {
        segment: range(segment.from.0, segment.through.0),
        entries: segment.entries(),
        action: segment.action.name(),
        tokens: segment.tokens,
        is_shown: segment.action.is_shown(),
        reason: segment.reason.clone().into_owned(),
    }));
    rows.extend(made_up(receipt));
    if tokens.recall > 0 {
        rows.push(Row::shown("recall", 0, tokens.recall, "memory"));
    }
    let turn = [
        ("pending", receipt.pending, tokens.pending),
        ("staged", receipt.staged, tokens.staged),
    ];
    for (segment, messages, tokens) in turn {
        if messages > 0 || tokens > 0 {
            rows.push(Row::shown(segment, messages.into(), tokens, "running turn"));
        }
    }
    rows
}

/// Results that repair made up in the history: what the entries alone do not account for.
fn made_up(receipt: &Receipt) -> Option<Row> {
    let shown = receipt
        .segments
        .iter()
        .filter(|segment| segment.action.is_shown());
    let entries: u32 = shown.map(|segment| segment.tokens).sum();
    let tokens = receipt.tokens.entries.saturating_sub(entries);
    let is_made_up = |kind: RepairKind| kind == RepairKind::Synthesized;
    let results = receipt
        .repairs
        .iter()
        .filter(|repair| is_made_up(repair.kind) && repair.seq.is_some());
    (tokens > 0).then(|| {
        Row::shown(
            "made up",
            results.count() as u64,
            tokens,
            Action::Repaired.reason(),
        )
    })
}

fn range(from: i64, through: i64) -> String {
    if from == through {
        format!("entry {from}")
    } else {
        format!("entries {from}-{through}")
    }
}
