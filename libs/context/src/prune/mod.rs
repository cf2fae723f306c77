//! Shortens old tool results. What was shortened once stays so, byte for byte, until the next compaction:
//! two watermarks say how far, and only move forward.

mod marks;
mod trim;

use crate::item::{Count, Item};
use colloquy_types::{Seq, UnixMillis, policy};
use marks::Pruning;
use serde::{Deserialize, Serialize};

pub use trim::{CLEARED, MEDIA_CHARS, MEDIA_MARKER, clear, is_longer, result_chars, trim};

/// When and how far tool results are shortened. Ratios are tokens of the history over the window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PruneOptions {
    /// False: nothing new is pruned; what the watermarks name stays pruned.
    pub enabled: bool,
    /// From this ratio on, long results are cut in the middle.
    pub soft_ratio: f64,
    /// Results of more characters (Unicode scalar values) than this are long.
    pub soft_limit_chars: usize,
    /// Characters that stay at the start and at the end.
    pub head_chars: usize,
    pub tail_chars: usize,
    /// From this ratio on, whole results are cleared, oldest first, until the history is below it.
    pub hard_ratio: f64,
    /// Nothing is cleared while the prunable results have fewer characters than this.
    pub hard_min_chars: usize,
    /// The last assistant messages, and what follows the first of them, are never pruned. With fewer in the
    /// window nothing is pruned.
    pub keep_assistants: usize,
    /// How long the provider keeps the prompt cached after a call, in milliseconds: until then the prefix is left
    /// alone, unless past the hard ratio. None: the cache is not looked at.
    pub cache_ttl_ms: Option<i64>,
    /// A watermark moves only when that frees at least this share of the window.
    pub min_gain: f64,
}

impl PruneOptions {
    #[must_use]
    pub fn goclaw() -> Self {
        Self {
            enabled: true,
            soft_ratio: 0.3,
            soft_limit_chars: 4_000,
            head_chars: 1_500,
            tail_chars: 1_500,
            hard_ratio: 0.5,
            hard_min_chars: 0,
            keep_assistants: 3,
            cache_ttl_ms: None,
            min_gain: 0.0,
        }
    }

    #[must_use]
    pub fn openclaw() -> Self {
        Self {
            hard_min_chars: 50_000,
            cache_ttl_ms: Some(5 * 60_000),
            ..Self::goclaw()
        }
    }

    /// Whether the provider's prompt cache has expired at `now`, given when the last successful model call ended.
    /// Without such a call nothing is cached.
    #[must_use]
    pub fn is_cold(&self, last_call: Option<UnixMillis>, now: UnixMillis) -> bool {
        let since = last_call.map(|at| now.0.saturating_sub(at.0));
        self.cache_ttl_ms
            .is_none_or(|ttl| since.is_none_or(|since| since >= ttl))
    }
}

impl From<&policy::Prune> for PruneOptions {
    fn from(rules: &policy::Prune) -> Self {
        Self {
            enabled: rules.enabled,
            soft_ratio: rules.soft_ratio,
            soft_limit_chars: rules.soft_chars as usize,
            head_chars: rules.keep_head_chars as usize,
            tail_chars: rules.keep_tail_chars as usize,
            hard_ratio: rules.hard_ratio,
            hard_min_chars: rules.min_prunable_chars as usize,
            keep_assistants: rules.protect_assistants as usize,
            cache_ttl_ms: rules.cache_ttl_ms,
            min_gain: rules.min_gain,
        }
    }
}

impl Default for PruneOptions {
    fn default() -> Self {
        Self::goclaw()
    }
}

/// How far a branch is pruned: results of entries up to `soft` are trimmed where long, up to `hard` cleared.
/// 0 = not at all. They belong to the branch; a compaction resets them and a rewind cuts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Watermarks {
    pub soft: Seq,
    pub hard: Seq,
}

impl Watermarks {
    /// The marks after a rewind or fork at `head`.
    #[must_use]
    pub fn cut_to(self, head: Seq) -> Self {
        Self {
            soft: self.soft.min(head),
            hard: self.hard.min(head),
        }
    }
}

/// Who may move the watermarks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Moves {
    /// A build of a running turn: they move and are to be stored.
    #[default]
    Running,
    /// A look at a session: the view is the one a running turn would get, the stored marks stay.
    Preview,
    /// A build made again: the given marks hold exactly.
    Replay,
}

/// What a pruning depends on besides the items.
#[derive(Debug, Clone, Copy)]
pub struct PruneInput {
    /// Tokens of the model's window.
    pub window: u32,
    pub watermarks: Watermarks,
    /// Whether the provider's prompt cache has expired; see [`PruneOptions::is_cold`].
    pub cache_cold: bool,
    /// False for [`Moves::Replay`].
    pub may_move: bool,
}

/// Why a ratio was reached and yet nothing more was shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Held {
    /// Everything is protected: before or at the first user message, or from the last assistant messages on.
    Protected,
    /// The provider's prompt cache is warm and the hard ratio is not reached.
    WarmCache,
    /// The prunable results have fewer characters than a clearing needs.
    FewCharacters,
    /// It would have freed less than the least gain.
    LittleGain,
}

/// What pruning did; the items carry their actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pruned {
    /// The marks this view was made with.
    pub watermarks: Watermarks,
    /// Results that are shortened in this view.
    pub trimmed: u32,
    pub cleared: u32,
    /// Tokens that the shortening of this view saves.
    pub freed: i64,
    /// What kept a due mark from moving.
    pub held: Option<Held>,
}

/// Applies the watermarks, moves them where the ratios ask for it, and shortens the results behind them.
pub fn prune(items: &mut [Item<'_>], options: &PruneOptions, input: &PruneInput, count: Count<'_>) -> Pruned {
    let mut pruning = Pruning::new(items, options, input.window, input.watermarks, count);
    pruning.apply_marks();
    if input.may_move && options.enabled {
        pruning.move_marks(input.cache_cold || options.cache_ttl_ms.is_none());
    }
    pruning.report()
}
