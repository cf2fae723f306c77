//! Whether a view fits its window, and what has to happen when it does not.

use crate::compaction::trigger::{CompactionOptions, Stats, TriggerReason, trigger};
use serde::{Deserialize, Serialize};

/// What the history is taken to shrink to when everything before the pending messages is summarised.
pub const SUMMARY_TOKENS: u32 = 400;

/// Where the tokens of a view are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Breakdown {
    /// System prompt and tool schemas, as the caller said.
    pub overhead: u32,
    pub summary: u32,
    /// Stored entries as the view shows them.
    pub entries: u32,
    /// What the running turn has staged.
    pub staged: u32,
    pub recall: u32,
    /// User messages of the running turn.
    pub pending: u32,
}

impl Breakdown {
    /// What a compaction can shrink: summary, entries and what is staged.
    #[must_use]
    pub fn history(&self) -> u32 {
        self.summary
            .saturating_add(self.entries)
            .saturating_add(self.staged)
    }

    /// What no compaction can shrink, without the overhead.
    #[must_use]
    pub fn fixed(&self) -> u32 {
        self.recall.saturating_add(self.pending)
    }

    #[must_use]
    pub fn total(&self) -> u32 {
        self.overhead
            .saturating_add(self.history())
            .saturating_add(self.fixed())
    }
}

/// What the caller does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Decision {
    Fits,
    /// Send it, and compact in the background.
    CompactSoon,
    /// Compact first: it does not fit beside the reserve.
    CompactNow,
    /// Not even a summary of everything before the pending messages would make it fit.
    OverBudget,
}

/// The reserve for the answer where the policy names none: 16,384 tokens, at most a fifth of the window.
#[must_use]
pub fn default_reserve(window: u32) -> u32 {
    16_384.min(window / 5)
}

/// The numbers behind a decision.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Tokens of the model's window and of the reserve in it.
    pub window: u32,
    pub reserve: u32,
    pub tokens: Breakdown,
    /// Messages of the history, the summary not counted.
    pub messages: u32,
    /// Real tokens per 100 counted ones, from the provider's reports of past calls; 100 = as counted. Applies
    /// to all but the overhead, which the caller measures itself.
    pub calibration_percent: u32,
}

/// Decides on a view, and names the compaction trigger that holds, if any.
#[must_use]
pub fn decide(budget: &Budget, options: &CompactionOptions) -> (Decision, Option<TriggerReason>) {
    let real = |tokens: u32| -> u64 { u64::from(tokens) * u64::from(budget.calibration_percent) / 100 };
    let overhead = u64::from(budget.tokens.overhead);
    let fixed = overhead + real(budget.tokens.fixed());
    let total = fixed + real(budget.tokens.history());
    let limit = u64::from(budget.window.saturating_sub(budget.reserve));
    let stats = Stats {
        messages: budget.messages,
        tokens: u32::try_from(total).unwrap_or(u32::MAX),
        window: budget.window,
        bytes: 0,
    };
    let reason = trigger(&stats, options);
    let decision = if total > limit {
        if fixed + u64::from(SUMMARY_TOKENS) > limit {
            Decision::OverBudget
        } else {
            Decision::CompactNow
        }
    } else if reason.is_some() {
        Decision::CompactSoon
    } else {
        Decision::Fits
    };
    (decision, reason)
}
