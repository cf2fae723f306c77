//! One build: window → history mode → limit → prune → repair → recall → project → validate.
//!
//! Each stage is a pure function of a module of its own and reports what it did; the reports make the receipt.

mod account;
mod input;
mod rebuild;
mod turn;

use crate::budget::{Breakdown, Decision, Numbers};
use crate::compaction::trigger::TriggerReason;
use crate::error::{BuildError, Result};
use crate::item::Item;
use crate::limit::limit;
use crate::project::{Format, Projected, project};
use crate::prune::{Moves, PruneInput, Pruned, Watermarks, prune};
use crate::receipt::{Receipt, Segment, fates, segments};
use crate::repair::{RepairAction, repair};
use crate::tokens::count_message;
use crate::validate::validate;
use crate::window::window;
use crate::{history_mode, recall};
use account::finish;
use colloquy_types::EntryId;
use colloquy_types::message::Message;
use std::borrow::Cow;
use turn::TurnPart;

pub use input::{BuildInput, BuildOptions, LastCall};
pub use rebuild::{Rebuild, Rebuilt, TurnMessages, rebuild};

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
    /// What the decision was made on.
    pub numbers: Numbers,
    /// The marks to store: unchanged unless the build was one of a running turn.
    pub watermarks: Watermarks,
    /// Tool results shortened in this view, and repairs made.
    pub trimmed: u32,
    pub cleared: u32,
    pub repaired: u32,
    pub receipt: Receipt,
}

/// A part of a build, for those who measure them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    Window,
    HistoryMode,
    Limit,
    Prune,
    Repair,
    Recall,
    Project,
    Validate,
    Receipt,
}

/// What the stages before the projection made of an input.
struct Seen<'a> {
    items: Vec<Item<'a>>,
    pruned: Pruned,
    repairs: Vec<RepairAction>,
    segments: Vec<Segment>,
}

/// Builds what a model call sees.
///
/// # Errors
/// [`BuildError::NothingToSend`] when no message is left, [`BuildError::Input`] for a compaction that is none,
/// [`BuildError::Invalid`] never, unless a projection is wrong.
pub fn build<'a>(input: &BuildInput<'a>) -> Result<Built<'a>> {
    build_observed(input, &mut |_| {})
}

/// As [`build`]; `ended` is called after each stage.
///
/// # Errors
/// Those of [`build`].
pub fn build_observed<'a>(input: &BuildInput<'a>, ended: &mut dyn FnMut(Stage)) -> Result<Built<'a>> {
    build_with(input, &TurnPart::of(input), ended)
}

fn build_with<'a>(
    input: &BuildInput<'a>,
    turn: &TurnPart<'a>,
    ended: &mut dyn FnMut(Stage),
) -> Result<Built<'a>> {
    let seen = see(input, turn, ended)?;
    let projected = project(input.format, &seen.items)?;
    ended(Stage::Project);
    check(input.format, &projected, &seen.items)?;
    ended(Stage::Validate);
    let built = finish(input, turn, seen, projected);
    ended(Stage::Receipt);
    Ok(built)
}

/// All stages before the projection.
fn see<'a>(input: &BuildInput<'a>, turn: &TurnPart<'a>, ended: &mut dyn FnMut(Stage)) -> Result<Seen<'a>> {
    let count = |message: &Message| count_message(message, input.tokenizer);
    let window = window(input.entries, input.compaction, &count)?;
    ended(Stage::Window);
    let (mut items, mut left_out) = (window.items, window.left_out);
    let mode = input.options.history_mode;
    left_out.extend(history_mode::apply(&mut items, mode, input.turn, &count));
    ended(Stage::HistoryMode);
    left_out.extend(limit(&mut items, input.options.limit_turns));
    ended(Stage::Limit);
    turn.append_to(&mut items, &count);
    let pruned = prune(&mut items, &input.options.prune, &prune_input(input), &count);
    ended(Stage::Prune);
    let before = fates(&items);
    let (mut items, repairs) = repair(items, &count);
    ended(Stage::Repair);
    if items.is_empty() {
        return Err(BuildError::NothingToSend);
    }
    let segments = segments(left_out, &before, &fates(&items));
    recall::place(&mut items, input.recalled, &count);
    ended(Stage::Recall);
    Ok(Seen {
        items,
        pruned,
        repairs,
        segments,
    })
}

fn prune_input(input: &BuildInput<'_>) -> PruneInput {
    PruneInput {
        window: counted_window(input.window, input.calibration_percent),
        watermarks: input.watermarks,
        cache_cold: input.is_cache_cold(),
        may_move: input.moves != Moves::Replay,
    }
}

/// The window in counted tokens, for the ratios of pruning are of real ones.
fn counted_window(window: u32, calibration_percent: u32) -> u32 {
    let counted = u64::from(window) * 100 / u64::from(calibration_percent.max(1));
    u32::try_from(counted).unwrap_or(u32::MAX)
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
    let mut entries: Vec<EntryId> = sources.filter_map(|&at| items[at].entry()).collect();
    entries.dedup();
    Err(BuildError::Invalid { violations, entries })
}
