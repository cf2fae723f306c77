//! Shortens old tool results. What was shortened once stays so, byte for byte, until the next compaction:
//! two watermarks say how far, and only move forward.

mod trim;

use crate::item::{Count, Item, Origin};
use crate::receipt::Action;
use colloquy_types::Seq;
use colloquy_types::message::{Message, Part, Role, ToolResult};
use colloquy_types::policy;
use serde::{Deserialize, Serialize};

pub use trim::{CLEARED, MEDIA_CHARS, MEDIA_MARKER, clear, result_chars, trim};

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
    /// Leaves the prefix alone while the provider's prompt cache is warm, unless past the hard ratio.
    pub only_when_cold: bool,
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
            only_when_cold: false,
            min_gain: 0.0,
        }
    }

    #[must_use]
    pub fn openclaw() -> Self {
        Self {
            hard_min_chars: 50_000,
            only_when_cold: true,
            ..Self::goclaw()
        }
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
            only_when_cold: rules.cache_ttl_ms.is_some(),
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
    /// Whether the provider's prompt cache has expired.
    pub cache_cold: bool,
    /// False for [`Moves::Replay`].
    pub may_move: bool,
}

/// What pruning did; the items carry their actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pruned {
    /// The marks this view was made with.
    pub watermarks: Watermarks,
    /// Results that are shortened in this view.
    pub trimmed: u32,
    pub cleared: u32,
}

/// Applies the watermarks, moves them where the ratios ask for it, and shortens the results behind them.
pub fn prune(items: &mut [Item<'_>], options: &PruneOptions, input: &PruneInput, count: Count<'_>) -> Pruned {
    let mut pruning = Pruning {
        options,
        window: input.window,
        marks: input.watermarks,
        count,
        items,
    };
    pruning.apply_marks();
    if input.may_move && options.enabled {
        pruning.move_marks(input.cache_cold);
    }
    let tally = |action: Action| -> u32 {
        let changed = pruning.items.iter().filter(|item| item.action == action);
        let results = changed.flat_map(|item| item.message.tool_results());
        let results = results.filter(|result| match action {
            Action::Cleared => trim::is_cleared(result),
            _ => trim::is_trimmed(result),
        });
        u32::try_from(results.count()).unwrap_or(u32::MAX)
    };
    Pruned {
        watermarks: pruning.marks,
        trimmed: tally(Action::Trimmed),
        cleared: tally(Action::Cleared),
    }
}

struct Pruning<'p, 'a> {
    options: &'p PruneOptions,
    window: u32,
    marks: Watermarks,
    count: Count<'p>,
    items: &'p mut [Item<'a>],
}

impl Pruning<'_, '_> {
    /// Everything up to the first user message is protected; the summary counts as one.
    fn lower(&self) -> usize {
        self.items
            .iter()
            .position(|item| item.message.role == Role::User)
            .map_or(self.items.len(), |at| at + 1)
    }

    /// The first item that the last assistant messages protect.
    fn upper(&self) -> usize {
        if self.options.keep_assistants == 0 {
            return self.items.len();
        }
        let assistants = self
            .items
            .iter()
            .enumerate()
            .rev()
            .filter(|(_, item)| item.message.role == Role::Assistant);
        assistants
            .map(|(at, _)| at)
            .nth(self.options.keep_assistants - 1)
            .unwrap_or(0)
    }

    fn apply_marks(&mut self) {
        for at in self.lower()..self.items.len() {
            let Some(seq) = self.items[at].seq() else { continue };
            if seq <= self.marks.hard {
                self.change(at, Action::Cleared);
            } else if seq <= self.marks.soft {
                self.change(at, Action::Trimmed);
            }
        }
    }

    fn move_marks(&mut self, cache_cold: bool) {
        let (lower, upper) = (self.lower(), self.upper());
        let warm = self.options.only_when_cold && !cache_cold;
        if lower >= upper || (warm && !self.is_from(self.options.hard_ratio)) {
            return;
        }
        if self.is_from(self.options.soft_ratio) {
            self.move_soft(lower, upper);
        }
        if self.is_from(self.options.hard_ratio) {
            self.move_hard(lower, upper);
        }
    }

    /// All long results at once, so that the prefix changes once.
    fn move_soft(&mut self, lower: usize, upper: usize) {
        let plan: Vec<(usize, Message)> = (lower..upper)
            .filter(|&at| self.items[at].action == Action::Kept)
            .filter_map(|at| self.shortened(at, Action::Trimmed).map(|message| (at, message)))
            .collect();
        let freed = plan.iter().map(|(at, message)| self.gain(*at, message)).sum();
        if let Some(seq) = plan.last().and_then(|(at, _)| self.items[*at].seq())
            && self.is_worth(freed)
        {
            self.marks.soft = self.marks.soft.max(seq);
            for (at, message) in plan {
                self.items[at].replace(message, self.count);
                self.items[at].action = Action::Trimmed;
            }
        }
    }

    fn move_hard(&mut self, lower: usize, upper: usize) {
        let prunable = self.items[lower..upper]
            .iter()
            .filter(|item| item.seq().is_some());
        let chars: usize = prunable
            .flat_map(|item| item.message.tool_results())
            .map(result_chars)
            .sum();
        if chars < self.options.hard_min_chars {
            return;
        }
        let mut plan = Vec::new();
        let (mut tokens, mut freed) = (self.tokens(), 0);
        for at in lower..upper {
            if !self.ratio_is_from(tokens, self.options.hard_ratio) {
                break;
            }
            if let Some(message) = self.shortened(at, Action::Cleared) {
                let gain = self.gain(at, &message);
                tokens -= gain;
                freed += gain;
                plan.push((at, message));
            }
        }
        if let Some(seq) = plan.last().and_then(|(at, _)| self.items[*at].seq())
            && self.is_worth(freed)
        {
            self.marks.hard = self.marks.hard.max(seq);
            for (at, message) in plan {
                self.items[at].replace(message, self.count);
                self.items[at].action = Action::Cleared;
            }
        }
    }

    fn change(&mut self, at: usize, action: Action) {
        if let Some(message) = self.shortened(at, action) {
            self.items[at].replace(message, self.count);
            self.items[at].action = action;
        }
    }

    /// The message with its results shortened; none when that changes nothing, and for what has no place in
    /// the transcript yet: no watermark could name it.
    fn shortened(&self, at: usize, action: Action) -> Option<Message> {
        let item = &self.items[at];
        if !matches!(item.origin, Origin::Entry { .. }) || item.message.role == Role::System {
            return None;
        }
        let shorten = |result: &ToolResult| match action {
            Action::Cleared => clear(result),
            _ => trim(result, self.options),
        };
        let replace = |part: &Part| match part {
            Part::ToolResult(result) => shorten(result).map(Part::ToolResult),
            _ => None,
        };
        let replaced: Vec<Option<Part>> = item.message.parts.iter().map(replace).collect();
        if replaced.iter().all(Option::is_none) {
            return None;
        }
        let mut message = item.message.clone().into_owned();
        for (part, replacement) in message.parts.iter_mut().zip(replaced) {
            if let Some(replacement) = replacement {
                *part = replacement;
            }
        }
        Some(message)
    }

    fn gain(&self, at: usize, message: &Message) -> i64 {
        i64::from(self.items[at].tokens) - i64::from((self.count)(message))
    }

    /// Tokens of the history; the running turn's pending messages and the recalled block are not part of it.
    fn tokens(&self) -> i64 {
        let history = self
            .items
            .iter()
            .filter(|item| !matches!(item.origin, Origin::Pending(_) | Origin::Recall));
        history.map(|item| i64::from(item.tokens)).sum()
    }

    fn is_from(&self, ratio: f64) -> bool {
        self.ratio_is_from(self.tokens(), ratio)
    }

    /// Division rather than multiplication: the quotient of whole numbers rounds to the same double as the
    /// ratio's literal, so "from 0.3" holds at exactly 0.3.
    #[allow(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
    fn ratio_is_from(&self, tokens: i64, ratio: f64) -> bool {
        self.window > 0 && tokens as f64 / f64::from(self.window) >= ratio
    }

    fn is_worth(&self, freed: i64) -> bool {
        freed > 0 && self.ratio_is_from(freed, self.options.min_gain)
    }
}
