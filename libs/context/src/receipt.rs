//! What a build did, so that it can be explained and made again.

use crate::budget::{Breakdown, Decision};
use crate::project::Format;
use crate::prune::Watermarks;
use crate::repair::RepairAction;
use colloquy_types::Seq;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Changes with every change of the bytes that the same input gives.
pub const PROJECTION_VERSION: u32 = 1;

/// What became of an entry in the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Kept,
    /// A summary stands for it.
    Summarized,
    /// Before the last user turns that the limit keeps.
    Limited,
    /// Left without its tool calls and results, or named them in a line.
    Condensed,
    /// Long tool results were cut in the middle.
    Trimmed,
    /// Tool results were replaced by a placeholder.
    Cleared,
    /// Changed by repair: calls left out or results split off.
    Repaired,
    /// Left out by repair.
    LeftOut,
    /// Not part of any model's context.
    Skipped,
}

/// Neighbouring entries with the same fate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    pub from: Seq,
    /// The last entry, included.
    pub through: Seq,
    pub action: Action,
    /// Tokens in the view for what it shows; for what it does not show, the tokens that were left out.
    pub tokens: u32,
    /// The stage or the option behind the action.
    pub reason: String,
}

impl Segment {
    /// Adds one entry to the last segment where it continues it, else as a segment of its own.
    pub(crate) fn append(segments: &mut Vec<Self>, seq: Seq, action: Action, tokens: u32, reason: &str) {
        if let Some(last) = segments.last_mut()
            && last.action == action
            && last.reason == reason
            && (last.through.0 + 1 == seq.0 || last.through == seq)
        {
            last.through = seq;
            last.tokens = last.tokens.saturating_add(tokens);
            return;
        }
        segments.push(Self {
            from: seq,
            through: seq,
            action,
            tokens,
            reason: reason.to_owned(),
        });
    }
}

/// The record of one build. With the entries it names, the same messages of the turn and the policy of that
/// version, a replay gives the same bytes; [`Receipt::matches`] says whether it did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    pub projection_version: u32,
    pub policy_version: String,
    pub format: Format,
    pub model: String,
    /// Tokens of the model's window, and what is reserved in it for the answer.
    pub window: u32,
    pub reserve: u32,
    /// The newest entry the build saw; none in an empty transcript.
    pub head: Option<Seq>,
    /// The compaction whose summary stands first.
    pub compaction: Option<Seq>,
    /// The marks this view was made with; a replay takes them as they are.
    pub watermarks: Watermarks,
    pub segments: Vec<Segment>,
    pub repairs: Vec<RepairAction>,
    /// The text of the recalled memories, empty when there are none.
    pub recalled: String,
    /// Messages of the running turn: from people, and staged.
    pub pending: u32,
    pub staged: u32,
    pub tokens: Breakdown,
    pub decision: Decision,
    /// Hex of the hash of the bytes that were sent.
    pub sha256: String,
}

impl Receipt {
    /// Whether these are the bytes the receipt was written for.
    #[must_use]
    pub fn matches(&self, bytes: &[u8]) -> bool {
        self.sha256 == sha256(bytes)
    }
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// The stage behind an action on an entry of the view.
pub(crate) fn reason_of(action: Action) -> &'static str {
    match action {
        Action::Kept => "window",
        Action::Trimmed => "soft_ratio",
        Action::Cleared => "hard_ratio",
        Action::Repaired | Action::LeftOut => "repair",
        Action::Summarized => "compaction",
        Action::Limited => "limit_turns",
        Action::Condensed => "calls_only",
        Action::Skipped => "not_context",
    }
}
