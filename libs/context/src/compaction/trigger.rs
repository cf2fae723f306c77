//! When a window is compacted.

use crate::budget::default_reserve;
use colloquy_types::Policy;
use serde::{Deserialize, Serialize};

/// The flush of the policies that keep a reserve.
const FLUSH_MARGIN: u32 = 4_000;
/// What stays verbatim, at most, of the window less the reserve.
const KEEP_SHARE: f64 = 0.4;

/// What a window keeps free of history before it is compacted: the larger of both, at most half the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReserveRule {
    /// None = [`default_reserve`] of the window.
    pub tokens: Option<u32>,
    /// 0 = no floor.
    pub floor: u32,
}

impl ReserveRule {
    /// Tokens kept free in a window.
    #[must_use]
    pub fn of(&self, window: u32) -> u32 {
        let tokens = self.tokens.unwrap_or_else(|| default_reserve(window));
        tokens.max(self.floor).min(window / 2)
    }
}

/// What stays verbatim.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// At least `min` messages or this share of the messages, rounded up, whichever is more.
    Messages { min: u32, share: f64 },
    /// The last `tokens`, at most this share of the window less the reserve.
    Tokens { tokens: u32, share: f64 },
}

/// When a window is compacted and what stays of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CompactionOptions {
    /// False: nothing triggers; a view that does not fit is still reported.
    pub enabled: bool,
    /// More messages than this trigger; 0 = not by count.
    pub max_messages: u32,
    /// More tokens than this share of the window trigger; 0 = not by share.
    pub max_share: f64,
    /// More tokens than the window less this reserve trigger; none = not by reserve.
    pub reserve: Option<ReserveRule>,
    /// More bytes of transcript than this trigger; 0 = not by bytes.
    pub max_bytes: u64,
    pub keep: Keep,
    /// Tokens before the trigger at which memory is flushed, at most a tenth of the trigger; 0 = only as the
    /// first step of a compaction.
    pub flush_margin: u32,
}

impl CompactionOptions {
    #[must_use]
    pub fn goclaw() -> Self {
        Self {
            enabled: true,
            max_messages: 50,
            max_share: 0.75,
            reserve: None,
            max_bytes: 0,
            keep: Keep::Messages { min: 4, share: 0.3 },
            flush_margin: 0,
        }
    }

    #[must_use]
    pub fn openclaw() -> Self {
        Self {
            enabled: true,
            max_messages: 0,
            max_share: 0.0,
            reserve: Some(ReserveRule {
                tokens: Some(16_384),
                floor: 20_000,
            }),
            max_bytes: 0,
            keep: Keep::Tokens {
                tokens: 20_000,
                share: KEEP_SHARE,
            },
            flush_margin: FLUSH_MARGIN,
        }
    }

    /// The most tokens that do not trigger; none when tokens never do.
    #[must_use]
    pub fn trigger_tokens(&self, window: u32) -> Option<u32> {
        let by_share = (self.max_share > 0.0).then(|| share_of(window, self.max_share));
        let by_reserve = self.reserve.map(|reserve| window - reserve.of(window));
        [by_share, by_reserve]
            .into_iter()
            .flatten()
            .min()
            .filter(|_| self.enabled)
    }

    /// The tokens from which memory is flushed ahead of a compaction, where the policy asks for it.
    #[must_use]
    pub fn flush_tokens(&self, window: u32) -> Option<u32> {
        let trigger = self.trigger_tokens(window).filter(|_| self.flush_margin > 0)?;
        Some(trigger - self.flush_margin.min(trigger / 10))
    }

    /// The tokens that stay verbatim, where the policy counts them.
    #[must_use]
    pub fn keep_tokens(&self, window: u32) -> Option<u32> {
        match self.keep {
            Keep::Tokens { tokens, share } => {
                let free = window
                    - self
                        .reserve
                        .map_or(default_reserve(window), |reserve| reserve.of(window));
                Some(tokens.min(share_of(free, share)))
            }
            Keep::Messages { .. } => None,
        }
    }
}

impl From<&Policy> for CompactionOptions {
    fn from(policy: &Policy) -> Self {
        let rules = &policy.compaction;
        let reserve = ReserveRule {
            tokens: policy.context.reserve_tokens,
            floor: rules.reserve_floor,
        };
        let keep = if rules.keep_tokens > 0 {
            Keep::Tokens {
                tokens: rules.keep_tokens,
                share: KEEP_SHARE,
            }
        } else {
            Keep::Messages {
                min: rules.keep_messages,
                share: rules.keep_ratio,
            }
        };
        Self {
            enabled: rules.enabled,
            max_messages: rules.max_messages,
            max_share: rules.max_ratio,
            reserve: rules.by_reserve.then_some(reserve),
            max_bytes: 0,
            keep,
            flush_margin: if rules.by_reserve { FLUSH_MARGIN } else { 0 },
        }
    }
}

impl Default for CompactionOptions {
    fn default() -> Self {
        Self::goclaw()
    }
}

/// The size of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Messages of the window, the summary not counted.
    pub messages: u32,
    /// Tokens of the prompt: overhead where it is known, history and what is pending.
    pub tokens: u32,
    /// Tokens of the model's window; 0 = unknown, then tokens do not trigger.
    pub window: u32,
    /// Bytes of the transcript since the last compaction; 0 where they are not counted.
    pub bytes: u64,
}

/// The unit that triggered, in which progress is measured too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TriggerReason {
    Tokens,
    Messages,
    Bytes,
}

/// Whether the window is to be compacted. Tokens go first: they are what stops a model call.
#[must_use]
pub fn trigger(stats: &Stats, options: &CompactionOptions) -> Option<TriggerReason> {
    let most = options.trigger_tokens(stats.window).filter(|_| stats.window > 0);
    if !options.enabled {
        None
    } else if most.is_some_and(|most| stats.tokens > most) {
        Some(TriggerReason::Tokens)
    } else if options.max_messages > 0 && stats.messages > options.max_messages {
        Some(TriggerReason::Messages)
    } else if options.max_bytes > 0 && stats.bytes > options.max_bytes {
        Some(TriggerReason::Bytes)
    } else {
        None
    }
}

/// Whether a compaction was of use: less than 90 % is left in the unit that triggered. Without progress the
/// session is not compacted again until the window has grown by [`REGROWTH_PERCENT`].
#[must_use]
pub fn made_progress(before: u64, after: u64) -> bool {
    after.saturating_mul(100) < before.saturating_mul(90)
}

/// Growth of the window after which a compaction without progress is tried again.
pub const REGROWTH_PERCENT: u64 = 10;

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a u32 between 0 and 1"
)]
fn share_of(whole: u32, share: f64) -> u32 {
    (f64::from(whole) * share.clamp(0.0, 1.0) + 1e-6) as u32
}
