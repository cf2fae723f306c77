//! Whether a view fits its window, and what has to happen when it does not.

use crate::compaction::trigger::{CompactionOptions, Stats, TriggerReason, trigger};
use crate::tokens::anchor::Anchor;
use crate::tokens::calibrate::Calibration;
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

/// The reserve that holds in a window: what was asked for, or [`default_reserve`], and never over half of the window.
#[must_use]
pub fn reserve(window: u32, asked: Option<u32>) -> u32 {
    asked.unwrap_or_else(|| default_reserve(window)).min(window / 2)
}

/// What a decision is made on.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Tokens of the model's window and of the reserve in it. Over half of the window counts as half.
    pub window: u32,
    pub reserve: u32,
    /// As counted, without correction.
    pub tokens: Breakdown,
    /// Messages of the history, the summary not counted.
    pub messages: u32,
    /// Real tokens per 100 counted ones, from the provider's reports of past calls; 100 = as counted. Applies
    /// to all but the overhead, which the caller measures itself.
    pub calibration_percent: u32,
    /// An earlier prompt of the same conversation and model whose size the provider reported. Where there is one, only
    /// what came since is counted and corrected.
    pub anchor: Option<Anchor>,
}

/// The numbers behind a decision, in real tokens as far as they are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Numbers {
    pub window: u32,
    /// What holds, at most half of the window.
    pub reserve: u32,
    /// Whether more had been asked for.
    pub reserve_clamped: bool,
    /// The whole prompt: overhead, history, recall and pending.
    pub expected: u32,
    /// Whether a reported prompt is behind that, not the count alone.
    pub anchored: bool,
    /// System prompt and tool schemas within it.
    pub overhead: u32,
    /// More than this is compacted in the background; none = not by tokens.
    pub soon_above: Option<u32>,
    /// More than this is compacted first: window − reserve.
    pub now_above: u32,
    /// The least that a compaction can leave: all but the history, and its summary. More than `now_above` is over budget.
    pub least: u32,
}

/// A decision and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    pub decision: Decision,
    /// The compaction trigger that holds, if any.
    pub trigger: Option<TriggerReason>,
    pub numbers: Numbers,
}

/// Decides on a view: over budget, where even all but the pending messages summarised would not fit beside the reserve;
/// compact now, where it does not fit as it is; compact soon, where the policy's trigger holds; else it fits.
///
/// A history that is no longer than its summary would be does not trigger by tokens: with a large system prompt in a small
/// window the first message would.
#[must_use]
pub fn weigh(budget: &Budget, options: &CompactionOptions) -> Verdict {
    let numbers = numbers(budget, options);
    let stats = Stats {
        messages: budget.messages,
        tokens: numbers.expected,
        window: budget.window,
        bytes: 0,
    };
    let gains = budget.tokens.history() > SUMMARY_TOKENS;
    let reason = trigger(&stats, options).filter(|&reason| gains || reason != TriggerReason::Tokens);
    let decision = if numbers.expected <= numbers.now_above {
        reason.map_or(Decision::Fits, |_| Decision::CompactSoon)
    } else if numbers.least > numbers.now_above {
        Decision::OverBudget
    } else {
        Decision::CompactNow
    };
    Verdict {
        decision,
        trigger: reason,
        numbers,
    }
}

/// Decides on a view, and names the compaction trigger that holds, if any; see [`weigh`].
#[must_use]
pub fn decide(budget: &Budget, options: &CompactionOptions) -> (Decision, Option<TriggerReason>) {
    let verdict = weigh(budget, options);
    (verdict.decision, verdict.trigger)
}

fn numbers(budget: &Budget, options: &CompactionOptions) -> Numbers {
    let tokens = &budget.tokens;
    let percent = u64::from(budget.calibration_percent);
    let real = |tokens: u32| u32::try_from(u64::from(tokens) * percent / 100).unwrap_or(u32::MAX);
    let fixed = tokens.overhead.saturating_add(real(tokens.fixed()));
    let expected = match budget.anchor {
        Some(anchor) => anchor.estimate(tokens.total(), &Calibration::new(budget.calibration_percent)),
        None => fixed.saturating_add(real(tokens.history())),
    };
    let held = reserve(budget.window, Some(budget.reserve));
    Numbers {
        window: budget.window,
        reserve: held,
        reserve_clamped: held < budget.reserve,
        expected,
        anchored: budget.anchor.is_some(),
        overhead: tokens.overhead,
        soon_above: options
            .trigger_tokens(budget.window)
            .filter(|_| budget.window > 0),
        now_above: budget.window - held,
        least: fixed.saturating_add(SUMMARY_TOKENS),
    }
}
