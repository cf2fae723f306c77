//! Shortening the items of a view, by the watermarks and by the ratios that move them.

use super::{Held, PruneOptions, Pruned, Watermarks, clear, is_longer, result_chars, trim};
use crate::item::{Count, Item, Origin, rescaled, with_parts};
use crate::receipt::Action;
use colloquy_types::message::{Message, Part, Role, ToolResult};
use std::borrow::Cow;

/// A message with shortened results.
struct Shortened {
    message: Message,
    results: u32,
    tokens: u32,
}

/// A view while it is pruned.
pub(super) struct Pruning<'p, 'a> {
    options: &'p PruneOptions,
    window: u32,
    count: Count<'p>,
    items: &'p mut [Item<'a>],
    /// The first item that may be pruned: everything up to the first user message is protected, and the summary
    /// counts as one.
    lower: usize,
    /// Tokens of the history; the running turn's pending messages are not part of it.
    history: i64,
    /// Items with trimmed results, and how many.
    trimmed: Vec<(usize, u32)>,
    report: Pruned,
}

impl<'p, 'a> Pruning<'p, 'a> {
    pub(super) fn new(
        items: &'p mut [Item<'a>],
        options: &'p PruneOptions,
        window: u32,
        marks: Watermarks,
        count: Count<'p>,
    ) -> Self {
        let is_history = |item: &&Item<'_>| matches!(item.origin, Origin::Staged(_)) || !item.is_of_turn();
        let first_user = items.iter().position(|item| item.message.role == Role::User);
        Self {
            lower: first_user.map_or(items.len(), |at| at + 1),
            history: items
                .iter()
                .filter(is_history)
                .map(|item| i64::from(item.tokens))
                .sum(),
            report: Pruned {
                watermarks: marks,
                ..Pruned::default()
            },
            trimmed: Vec::new(),
            options,
            window,
            count,
            items,
        }
    }

    pub(super) fn report(self) -> Pruned {
        // A trimmed result may have been cleared since.
        let still = self
            .trimmed
            .iter()
            .filter(|(at, _)| self.items[*at].action == Action::Trimmed);
        Pruned {
            trimmed: still.map(|(_, results)| results).sum(),
            ..self.report
        }
    }

    /// What was shortened once stays so.
    pub(super) fn apply_marks(&mut self) {
        let marks = self.report.watermarks;
        for at in self.lower..self.items.len() {
            let Some(seq) = self.items[at].seq() else { continue };
            let action = match seq {
                seq if seq <= marks.hard => Action::Cleared,
                seq if seq <= marks.soft => Action::Trimmed,
                _ => break,
            };
            if let Some(shortened) = self.shortened(at, action) {
                self.put(at, action, shortened);
            }
        }
    }

    pub(super) fn move_marks(&mut self, cache_cold: bool) {
        if !self.is_from(self.options.soft_ratio) {
            return;
        }
        let upper = self.upper();
        if self.lower >= upper {
            self.report.held = Some(Held::Protected);
        } else if !cache_cold && !self.is_from(self.options.hard_ratio) {
            self.report.held = Some(Held::WarmCache);
        } else {
            self.move_soft(upper);
            if self.is_from(self.options.hard_ratio) {
                self.move_hard(upper);
            }
        }
    }

    /// The first item that the last assistant messages protect.
    fn upper(&self) -> usize {
        let Some(others) = self.options.keep_assistants.checked_sub(1) else {
            return self.items.len();
        };
        let is_assistant = |&at: &usize| self.items[at].message.role == Role::Assistant;
        (0..self.items.len())
            .rev()
            .filter(is_assistant)
            .nth(others)
            .unwrap_or(0)
    }

    /// All long results at once, so that the prefix changes once.
    fn move_soft(&mut self, upper: usize) {
        let plan: Vec<(usize, Shortened)> = (self.lower..upper)
            .filter(|&at| self.items[at].action == Action::Kept)
            .filter_map(|at| Some((at, self.shortened(at, Action::Trimmed)?)))
            .collect();
        self.carry_out(plan, Action::Trimmed);
    }

    /// Whole results, oldest first, until the history is below the ratio.
    fn move_hard(&mut self, upper: usize) {
        if !self.has_enough_chars(upper) {
            self.report.held = Some(Held::FewCharacters);
            return;
        }
        let mut plan = Vec::new();
        let mut tokens = self.history;
        for at in self.lower..upper {
            if !self.ratio_is_from(tokens, self.options.hard_ratio) {
                break;
            }
            if let Some(shortened) = self.shortened(at, Action::Cleared) {
                tokens -= self.gain(at, &shortened);
                plan.push((at, shortened));
            }
        }
        self.carry_out(plan, Action::Cleared);
    }

    /// Whether the prunable results have the characters that a clearing needs.
    fn has_enough_chars(&self, upper: usize) -> bool {
        let stored = self.items[self.lower..upper]
            .iter()
            .filter(|item| item.seq().is_some());
        let mut results = stored.flat_map(|item| item.message.tool_results());
        let mut wanted = self.options.hard_min_chars;
        while wanted > 0 {
            let Some(result) = results.next() else {
                return false;
            };
            wanted = wanted.saturating_sub(result_chars(result));
        }
        true
    }

    /// Moves the mark to the plan's last item where it is worth it.
    fn carry_out(&mut self, plan: Vec<(usize, Shortened)>, action: Action) {
        let freed: i64 = plan.iter().map(|(at, shortened)| self.gain(*at, shortened)).sum();
        let Some(seq) = plan.last().and_then(|(at, _)| self.items[*at].seq()) else {
            return;
        };
        if freed <= 0 || !self.ratio_is_from(freed, self.options.min_gain) {
            self.report.held = Some(Held::LittleGain);
            return;
        }
        let marks = &mut self.report.watermarks;
        let mark = if action == Action::Cleared {
            &mut marks.hard
        } else {
            &mut marks.soft
        };
        *mark = seq.max(*mark);
        for (at, shortened) in plan {
            self.put(at, action, shortened);
        }
    }

    fn put(&mut self, at: usize, action: Action, shortened: Shortened) {
        let freed = self.gain(at, &shortened);
        match action {
            Action::Cleared => self.report.cleared += shortened.results,
            _ => self.trimmed.push((at, shortened.results)),
        }
        self.history -= freed;
        self.report.freed += freed;
        let item = &mut self.items[at];
        item.tokens = shortened.tokens;
        item.message = Cow::Owned(shortened.message);
        item.action = action;
    }

    /// The message with its results shortened; none when that changes nothing, and for what has no place in
    /// the transcript yet: no watermark could name it.
    fn shortened(&self, at: usize, action: Action) -> Option<Shortened> {
        let item = &self.items[at];
        if item.seq().is_none() || item.message.role == Role::System {
            return None;
        }
        let parts = &item.message.parts;
        let changes = |part: &Part| match part {
            Part::ToolResult(result) => self.is_changed(result, action),
            _ => false,
        };
        let first = parts.iter().position(changes)?;
        let mut results = 0;
        let mut shown = Vec::with_capacity(parts.len());
        shown.extend_from_slice(&parts[..first]);
        shown.extend(parts[first..].iter().map(|part| match part {
            Part::ToolResult(result) => self.shorten(result, action).map_or_else(
                || part.clone(),
                |result| {
                    results += 1;
                    Part::ToolResult(result)
                },
            ),
            _ => part.clone(),
        }));
        let message = with_parts(&item.message, item.message.role, shown);
        Some(Shortened {
            tokens: rescaled(item.tokens, &item.message, &message, self.count),
            results,
            message,
        })
        .filter(|shortened| shortened.results > 0)
    }

    fn is_changed(&self, result: &ToolResult, action: Action) -> bool {
        let limit = match action {
            Action::Cleared => super::CLEARED.len(),
            _ => self.options.soft_limit_chars,
        };
        is_longer(result, limit)
    }

    fn shorten(&self, result: &ToolResult, action: Action) -> Option<ToolResult> {
        match action {
            Action::Cleared => clear(result),
            _ => trim(result, self.options),
        }
    }

    fn gain(&self, at: usize, shortened: &Shortened) -> i64 {
        i64::from(self.items[at].tokens) - i64::from(shortened.tokens)
    }

    fn is_from(&self, ratio: f64) -> bool {
        self.ratio_is_from(self.history, ratio)
    }

    /// Division rather than multiplication: the quotient of whole numbers rounds to the same double as the
    /// ratio's literal, so "from 0.3" holds at exactly 0.3.
    #[allow(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
    fn ratio_is_from(&self, tokens: i64, ratio: f64) -> bool {
        self.window > 0 && tokens as f64 / f64::from(self.window) >= ratio
    }
}
