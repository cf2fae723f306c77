//! A build made again from its receipt.

use super::turn::{Counted, TurnPart};
use super::{BuildInput, BuildOptions, Built, build_with};
use crate::error::{BuildError, Result};
use crate::prune::Moves;
use crate::receipt::{PROJECTION_VERSION, Receipt};
use colloquy_types::message::{Message, Role};
use colloquy_types::{Entry, EntryBody};

/// What a build is made again from.
#[derive(Debug, Clone, Copy)]
pub struct Rebuild<'a> {
    pub receipt: &'a Receipt,
    /// Entries of the receipt's branch in ascending order, from the first that the build saw to the last of its
    /// turn at least. Later ones change nothing.
    pub entries: &'a [Entry],
    /// The options of the policy that the receipt names.
    pub options: BuildOptions,
    /// The running turn's messages, for a turn that has not ended: they are no entries yet. None: they are looked
    /// for among the entries.
    pub turn: Option<TurnMessages<'a>>,
}

/// The messages of a running turn, at least those that the build saw.
#[derive(Debug, Clone, Copy)]
pub struct TurnMessages<'a> {
    pub pending: &'a [Message],
    pub staged: &'a [Message],
}

/// A build made again.
#[derive(Debug, Clone, PartialEq)]
pub struct Rebuilt<'a> {
    pub built: Built<'a>,
    /// Whether these are the bytes of then.
    pub matches: bool,
    /// Whether the product would write other bytes today for the same input: then they cannot be expected to match.
    pub is_other_version: bool,
}

/// Makes a build again, with the watermarks, the compaction and the recalled text of then. Later entries,
/// compactions and policies change nothing.
///
/// # Errors
/// [`BuildError::Input`] when the entries lack what the receipt names; those of [`build`](super::build).
pub fn rebuild<'a>(from: &Rebuild<'a>) -> Result<Rebuilt<'a>> {
    let receipt = from.receipt;
    let input = input(from)?;
    let pending = pending(from)?;
    let candidates = staged(from)?;
    let mut last = None;
    for staged in candidates {
        let turn = TurnPart {
            preface: &receipt.preface,
            pending: pending.clone(),
            staged,
        };
        let built = build_with(&input, &turn, &mut |_| {})?;
        let matches = built.receipt.sha256 == receipt.sha256;
        last = Some(Rebuilt {
            built,
            matches,
            is_other_version: receipt.projection_version != PROJECTION_VERSION,
        });
        if matches {
            break;
        }
    }
    last.ok_or(MISSING_STAGED)
}

const MISSING_STAGED: BuildError = BuildError::Input {
    field: "entries",
    message: "what the turn had staged is not among them",
};

fn input<'a>(from: &Rebuild<'a>) -> Result<BuildInput<'a>> {
    let receipt = from.receipt;
    let head = receipt
        .head
        .map_or(0, |head| from.entries.partition_point(|entry| entry.seq <= head));
    let named = |seq| from.entries.iter().find(|entry| entry.seq == seq);
    let compaction = match receipt.compaction {
        Some(seq) => Some(named(seq).ok_or(BuildError::Input {
            field: "entries",
            message: "the compaction of the receipt is not among them",
        })?),
        None => None,
    };
    Ok(BuildInput {
        branch: receipt.branch,
        compaction,
        turn: receipt.turn,
        recalled: &receipt.recalled,
        options: from.options,
        policy_version: &receipt.policy_version,
        watermarks: receipt.watermarks,
        moves: Moves::Replay,
        cache_cold: receipt.cache_cold,
        reserve: Some(receipt.reserve),
        overhead: receipt.tokens.overhead,
        calibration_percent: receipt.calibration_percent,
        model: &receipt.model,
        tokenizer: receipt.tokenizer,
        ..BuildInput::new(&from.entries[..head], receipt.window, receipt.format)
    })
}

/// The turn's entries behind the head of then.
fn of_turn<'a>(from: &Rebuild<'a>) -> impl Iterator<Item = &'a Entry> {
    let (head, turn) = (from.receipt.head, from.receipt.turn);
    let later = from.entries.iter().filter(move |entry| Some(entry.seq) > head);
    // Where the receipt names no turn, the block behind the head is the turn's.
    let first = later.clone().find_map(|entry| entry.turn);
    let turn = turn.or(first);
    later.filter(move |entry| entry.turn.is_some() && entry.turn == turn)
}

fn pending<'a>(from: &Rebuild<'a>) -> Result<Vec<Counted<'a>>> {
    let wanted = from.receipt.pending as usize;
    let counted: Vec<Counted<'a>> = match from.turn {
        Some(turn) => turn.pending.iter().map(|message| (message, 0)).collect(),
        None => of_turn(from)
            .filter_map(|entry| match &entry.body {
                EntryBody::Message(message) if message.role == Role::User => Some((message, entry.tokens)),
                _ => None,
            })
            .collect(),
    };
    first(counted, wanted).ok_or(BuildError::Input {
        field: "entries",
        message: "the user messages of the turn are not among them",
    })
}

/// What the turn may have staged at the time: what became entries of its own, or what a lost or stopped attempt
/// left in an `interrupted` entry.
fn staged<'a>(from: &Rebuild<'a>) -> Result<Vec<Vec<Counted<'a>>>> {
    let wanted = from.receipt.staged as usize;
    let mut candidates: Vec<Vec<Counted<'a>>> = Vec::new();
    if let Some(turn) = from.turn {
        candidates.push(turn.staged.iter().map(|message| (message, 0)).collect());
    } else {
        let own = of_turn(from).filter_map(|entry| match &entry.body {
            EntryBody::Message(message) if message.role == Role::User => None,
            body => body.message().map(|message| (message, entry.tokens)),
        });
        candidates.push(own.collect());
        candidates.extend(of_turn(from).filter_map(|entry| match &entry.body {
            EntryBody::Interrupted { staged, .. } => {
                Some(staged.iter().map(|message| (message, 0)).collect())
            }
            _ => None,
        }));
    }
    let mut found: Vec<Vec<Counted<'a>>> = candidates
        .into_iter()
        .filter_map(|candidate| first(candidate, wanted))
        .collect();
    found.dedup();
    if found.is_empty() {
        return Err(MISSING_STAGED);
    }
    Ok(found)
}

/// The first `wanted` messages; none when there are fewer.
fn first<T>(mut list: Vec<T>, wanted: usize) -> Option<Vec<T>> {
    (list.len() >= wanted).then(|| {
        list.truncate(wanted);
        list
    })
}
