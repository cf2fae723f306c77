//! When a window is compacted.

use serde::{Deserialize, Serialize};

/// When a window has too many tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenRule {
    /// Above this share of the window.
    Share(f64),
    /// Above the window less the larger of `tokens` and `floor` (0 = no floor), at most half the window.
    Reserve { tokens: u32, floor: u32 },
}

/// What stays verbatim.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// At least `min` messages or this share of the messages, rounded up, whichever is more.
    Messages { min: u32, share: f64 },
    /// The last `tokens`, at most this share of what the token rule leaves of the window.
    Tokens { tokens: u32, share: f64 },
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CompactionOptions {
    /// More messages than this trigger; 0 = no limit.
    pub max_messages: u32,
    pub tokens: TokenRule,
    /// More bytes of transcript than this trigger; 0 = no limit.
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
            max_messages: 50,
            tokens: TokenRule::Share(0.75),
            max_bytes: 0,
            keep: Keep::Messages { min: 4, share: 0.3 },
            flush_margin: 0,
        }
    }

    #[must_use]
    pub fn openclaw() -> Self {
        Self {
            max_messages: 0,
            tokens: TokenRule::Reserve { tokens: 16_384, floor: 20_000 },
            max_bytes: 0,
            keep: Keep::Tokens { tokens: 20_000, share: 0.4 },
            flush_margin: 4_000,
        }
    }

    /// The most tokens that do not trigger.
    #[must_use]
    pub fn trigger_tokens(&self, window: u32) -> u32 {
        match self.tokens {
            TokenRule::Share(share) => share_of(window, share),
            TokenRule::Reserve { tokens, floor } => window - tokens.max(floor).min(window / 2),
        }
    }

    /// The tokens from which memory is flushed ahead of a compaction, where the policy asks for it.
    #[must_use]
    pub fn flush_tokens(&self, window: u32) -> Option<u32> {
        let trigger = self.trigger_tokens(window);
        (self.flush_margin > 0).then(|| trigger - self.flush_margin.min(trigger / 10))
    }

    /// The tokens that stay verbatim, where the policy counts them.
    #[must_use]
    pub fn keep_tokens(&self, window: u32) -> Option<u32> {
        match self.keep {
            Keep::Tokens { tokens, share } => Some(tokens.min(share_of(self.trigger_tokens(window), share))),
            Keep::Messages { .. } => None,
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
    if stats.window > 0 && stats.tokens > options.trigger_tokens(stats.window) {
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

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a u32 between 0 and 1")]
fn share_of(whole: u32, share: f64) -> u32 {
    (f64::from(whole) * share.clamp(0.0, 1.0) + 1e-6) as u32
}
