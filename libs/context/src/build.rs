//! One build: window → history mode → limit → prune → repair → recall → project → validate.

use crate::budget::{Breakdown, Budget, Decision, decide, reserve};
use crate::compaction::trigger::{CompactionOptions, TriggerReason};
use crate::error::{BuildError, Result};
use crate::item::{Count, Item, Origin};
use crate::limit::limit;
use crate::project::{Format, Projected, project};
use crate::prune::{Moves, PruneInput, PruneOptions, Pruned, Watermarks, prune};
use crate::receipt::{Action, PROJECTION_VERSION, Receipt, Segment, sha256};
use crate::repair::{RepairAction, repair};
use crate::tokens::anchor::Anchor;
use crate::tokens::{Tokenizer, count_message};
use crate::validate::validate;
use crate::window::window;
use crate::{history_mode, recall, receipt};
use colloquy_types::message::Message;
use colloquy_types::policy::HistoryMode;
use colloquy_types::{Entry, EntryId, Policy, Seq, TurnId};
use std::borrow::Cow;
use std::collections::HashSet;

/// What the policy says about building.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BuildOptions {
    pub history_mode: HistoryMode,
    /// User turns of the history that are kept; 0 = all.
    pub limit_turns: u32,
    pub prune: PruneOptions,
    /// For the decision only; a build never compacts.
    pub compaction: CompactionOptions,
}

impl BuildOptions {
    #[must_use]
    pub fn goclaw() -> Self {
        Self {
            history_mode: HistoryMode::Full,
            limit_turns: 0,
            prune: PruneOptions::goclaw(),
            compaction: CompactionOptions::goclaw(),
        }
    }

    #[must_use]
    pub fn openclaw() -> Self {
        Self {
            prune: PruneOptions::openclaw(),
            compaction: CompactionOptions::openclaw(),
            ..Self::goclaw()
        }
    }
}

impl Default for BuildOptions {
    fn default() -> Self {
        Self::goclaw()
    }
}

impl From<&Policy> for BuildOptions {
    fn from(policy: &Policy) -> Self {
        Self {
            history_mode: policy.context.history_mode,
            limit_turns: policy.context.limit_turns,
            prune: PruneOptions::from(&policy.context.prune),
            compaction: CompactionOptions::from(policy),
        }
    }
}

/// Everything a build depends on. The same input gives the same bytes.
#[derive(Debug, Clone)]
pub struct BuildInput<'a> {
    /// Entries of the branch in ascending order, at least from the compaction's first kept one, with their
    /// stored token counts.
    pub entries: &'a [Entry],
    /// The compaction that the branch's pointer names.
    pub compaction: Option<&'a Entry>,
    /// The running turn: its stored entries count as running. None where no turn runs.
    pub turn: Option<TurnId>,
    /// User messages of the running turn, and what it has staged so far.
    pub pending: &'a [Message],
    pub staged: &'a [Message],
    /// The recalled memories as text, chosen once per turn; empty for none.
    pub recalled: &'a str,
    pub options: BuildOptions,
    /// Names the policy for the receipt.
    pub policy_version: &'a str,
    pub watermarks: Watermarks,
    pub moves: Moves,
    /// Whether the provider's prompt cache has expired.
    pub cache_cold: bool,
    /// Tokens of the model's window.
    pub window: u32,
    /// Tokens of it that stay free for the answer, at most half; none = [`crate::budget::default_reserve`].
    pub reserve: Option<u32>,
    /// Tokens of the system prompt and the tool schemas.
    pub overhead: u32,
    /// Real tokens per 100 counted ones; 100 = as counted.
    pub calibration_percent: u32,
    /// An earlier prompt of this branch and model whose size the provider reported, since the newest compaction.
    pub anchor: Option<Anchor>,
    pub format: Format,
    /// The model's name, for the receipt.
    pub model: &'a str,
    /// Counts what has no stored count; the one the entries were counted with.
    pub tokenizer: Tokenizer,
}

impl<'a> BuildInput<'a> {
    /// A build of these entries with the default profile; the caller sets the rest.
    #[must_use]
    pub fn new(entries: &'a [Entry], window: u32, format: Format) -> Self {
        Self {
            entries,
            compaction: None,
            turn: None,
            pending: &[],
            staged: &[],
            recalled: "",
            options: BuildOptions::goclaw(),
            policy_version: "",
            watermarks: Watermarks::default(),
            moves: Moves::Running,
            cache_cold: false,
            window,
            reserve: None,
            overhead: 0,
            calibration_percent: 100,
            anchor: None,
            format,
            model: "",
            tokenizer: Tokenizer::default(),
        }
    }
}

/// A build's result.
#[derive(Debug, Clone, PartialEq)]
pub struct Built<'a> {
    /// The provider's messages, a JSON array.
    pub bytes: Vec<u8>,
    /// The same view in the product's messages.
    pub messages: Vec<Cow<'a, Message>>,
    pub tokens: Breakdown,
    pub decision: Decision,
    /// The compaction trigger that holds, if any.
    pub trigger: Option<TriggerReason>,
    /// The marks to store: unchanged unless the build was one of a running turn.
    pub watermarks: Watermarks,
    /// Tool results shortened in this view, and repairs made.
    pub trimmed: u32,
    pub cleared: u32,
    pub repaired: u32,
    pub receipt: Receipt,
}

/// Builds what a model call sees.
///
/// # Errors
/// [`BuildError::NothingToSend`] when no message is left, [`BuildError::Unsupported`] for a format without a
/// projection, [`BuildError::Input`] for a compaction that is none, [`BuildError::Invalid`] never, unless a
/// projection is wrong.
pub fn build<'a>(input: &BuildInput<'a>) -> Result<Built<'a>> {
    let count = |message: &Message| count_message(message, input.tokenizer);
    let mut seen = window(input.entries, input.compaction, &count)?;
    let mode = input.options.history_mode;
    seen.left_out
        .extend(history_mode::apply(&mut seen.items, mode, input.turn, &count));
    seen.left_out
        .extend(limit(&mut seen.items, input.options.limit_turns));
    let mut items = seen.items;
    append_turn(&mut items, input, &count);
    let pruned = prune(&mut items, &input.options.prune, &prune_input(input), &count);
    let before = fates(&items);
    let (mut items, repairs) = repair(items, &count);
    if items.is_empty() {
        return Err(BuildError::NothingToSend);
    }
    recall::place(&mut items, input.recalled, &count);
    let projected = project(input.format, &items)?;
    check(input.format, &projected, &items)?;
    let segments = segments(seen.left_out, &before, &items);
    Ok(finish(input, projected, items, pruned, repairs, segments))
}

/// Decides on the finished view and writes its receipt.
fn finish<'a>(
    input: &BuildInput<'a>,
    projected: Projected,
    items: Vec<Item<'a>>,
    pruned: Pruned,
    repairs: Vec<RepairAction>,
    segments: Vec<Segment>,
) -> Built<'a> {
    let budget = budget(input, &items);
    let (decision, trigger) = decide(&budget, &input.options.compaction);
    let stored = if input.moves == Moves::Running {
        pruned.watermarks
    } else {
        input.watermarks
    };
    let repaired = size(&repairs);
    let receipt = Receipt {
        watermarks: pruned.watermarks,
        segments,
        repairs,
        decision,
        sha256: sha256(&projected.bytes),
        ..receipt_of(input, &budget)
    };
    Built {
        bytes: projected.bytes,
        messages: items.into_iter().map(|item| item.message).collect(),
        tokens: budget.tokens,
        decision,
        trigger,
        watermarks: stored,
        trimmed: pruned.trimmed,
        cleared: pruned.cleared,
        repaired,
        receipt,
    }
}

/// What the receipt repeats of the input; the caller adds what was done.
fn receipt_of(input: &BuildInput<'_>, budget: &Budget) -> Receipt {
    Receipt {
        projection_version: PROJECTION_VERSION,
        policy_version: input.policy_version.to_owned(),
        format: input.format,
        model: input.model.to_owned(),
        window: input.window,
        reserve: budget.reserve,
        head: input.entries.last().map(|entry| entry.seq),
        compaction: input.compaction.map(|entry| entry.seq),
        watermarks: input.watermarks,
        segments: Vec::new(),
        repairs: Vec::new(),
        recalled: input.recalled.to_owned(),
        pending: size(input.pending),
        staged: size(input.staged),
        tokens: budget.tokens,
        decision: Decision::Fits,
        sha256: String::new(),
    }
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

fn append_turn<'a>(items: &mut Vec<Item<'a>>, input: &BuildInput<'a>, count: Count<'_>) {
    let of_turn =
        |origin: Origin, message: &'a Message| Item::new(origin, Cow::Borrowed(message), count(message));
    let pending = input.pending.iter().enumerate();
    items.extend(pending.map(|(at, message)| of_turn(Origin::Pending(at), message)));
    let staged = input.staged.iter().enumerate();
    items.extend(staged.map(|(at, message)| of_turn(Origin::Staged(at), message)));
}

fn prune_input(input: &BuildInput<'_>) -> PruneInput {
    PruneInput {
        window: input.window,
        watermarks: input.watermarks,
        cache_cold: input.cache_cold,
        may_move: input.moves != Moves::Replay,
    }
}

/// A projection that breaks its provider's rules is named with the entries behind it and goes nowhere.
fn check(format: Format, projected: &Projected, items: &[Item<'_>]) -> Result<()> {
    let violations = validate(format, &projected.bytes);
    if violations.is_empty() {
        return Ok(());
    }
    let sources = violations
        .iter()
        .filter_map(|violation| projected.sources.get(violation.message))
        .flatten();
    let mut entries: Vec<EntryId> = sources
        .filter_map(|&at| match items[at].origin {
            Origin::Entry { id, .. } => Some(id),
            _ => None,
        })
        .collect();
    entries.dedup();
    Err(BuildError::Invalid { violations, entries })
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
            Origin::Pending(_) => &mut tokens.pending,
            Origin::Staged(_) => &mut tokens.staged,
            Origin::Synthetic if in_turn => &mut tokens.staged,
            Origin::Synthetic => &mut tokens.entries,
        };
        *place = place.saturating_add(item.tokens);
        in_turn |= matches!(item.origin, Origin::Pending(_) | Origin::Staged(_));
    }
    tokens
}

/// Stored and staged messages of the view; the summary and what repair made up are none.
fn history_messages(items: &[Item<'_>]) -> u32 {
    let is_history = |item: &&Item<'_>| matches!(item.origin, Origin::Entry { .. } | Origin::Staged(_));
    u32::try_from(items.iter().filter(is_history).count()).unwrap_or(u32::MAX)
}

/// What the entries of the window looked like before repair.
fn fates(items: &[Item<'_>]) -> Vec<(Seq, Action, u32)> {
    items
        .iter()
        .filter_map(|item| Some((item.seq()?, item.action, item.tokens)))
        .collect()
}

fn segments(left_out: Vec<Segment>, before: &[(Seq, Action, u32)], items: &[Item<'_>]) -> Vec<Segment> {
    let mut segments = left_out;
    let mut shown: Vec<(Seq, Action, u32)> = fates(items);
    let present: HashSet<Seq> = shown.iter().map(|(seq, ..)| *seq).collect();
    let gone = before.iter().filter(|(seq, ..)| !present.contains(seq));
    shown.extend(gone.map(|(seq, _, tokens)| (*seq, Action::LeftOut, *tokens)));
    shown.sort_by_key(|(seq, ..)| *seq);
    for (seq, action, tokens) in shown {
        Segment::append(&mut segments, seq, action, tokens, receipt::reason_of(action));
    }
    segments.sort_by_key(|segment| segment.from);
    segments
}

fn size<T>(list: &[T]) -> u32 {
    u32::try_from(list.len()).unwrap_or(u32::MAX)
}
