//! What a build did, so that it can be explained, compared and made again.

mod breaks;
mod diff;
mod prefix;
mod segment;
mod table;

use crate::budget::{Breakdown, Decision};
use crate::project::Format;
use crate::prune::{Held, Watermarks};
use crate::repair::RepairAction;
use crate::tokens::Tokenizer;
use colloquy_types::policy::HistoryMode;
use colloquy_types::{BranchId, Seq, TurnId};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use breaks::{BreakReason, PrefixBreak};
pub(crate) use breaks::{Change, explain};
pub use diff::{ActionChange, BlockChange, Diff, TokenChange, diff};
pub use prefix::{Mark, Prefix};
pub(crate) use prefix::{digest, messages_within};
pub use segment::{Action, Segment};
pub(crate) use segment::{fates, segments};
pub use table::{Row, rows};

/// Changes with every change of the bytes that the same input gives.
pub const PROJECTION_VERSION: u32 = 2;

/// The record of one build. With the entries it names and the policy of that version, [`rebuild`](crate::rebuild)
/// gives the same bytes; [`Receipt::matches`] says whether it did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    pub projection_version: u32,
    pub policy_version: String,
    /// Of the policy, for they excuse other bytes than before.
    pub history_mode: HistoryMode,
    pub limit_turns: u32,
    pub format: Format,
    pub model: String,
    /// Tokens of the model's window, and what is reserved in it for the answer.
    pub window: u32,
    pub reserve: u32,
    /// What the messages were counted with, and the real tokens per 100 counted ones.
    pub tokenizer: Tokenizer,
    pub calibration_percent: u32,
    /// The branch, where the caller named it, and the newest entry the build saw; none in an empty transcript.
    #[serde(default)]
    pub branch: Option<BranchId>,
    pub head: Option<Seq>,
    /// The running turn, where there is one.
    #[serde(default)]
    pub turn: Option<TurnId>,
    /// The compaction whose summary stands first.
    pub compaction: Option<Seq>,
    /// The marks this view was made with; a replay takes them as they are.
    pub watermarks: Watermarks,
    /// Whether the provider's prompt cache had expired, and what kept a due mark from moving.
    pub cache_cold: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
    pub segments: Vec<Segment>,
    pub repairs: Vec<RepairAction>,
    /// The text of the recalled memories, empty when there are none.
    pub recalled: String,
    /// What stood before the running turn's messages, empty when nothing did.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub preface: String,
    /// Messages of the running turn that the build saw: from people, and staged.
    pub pending: u32,
    pub staged: u32,
    pub tokens: Breakdown,
    pub decision: Decision,
    /// Hex of the hash of the bytes that were sent, and how many they are.
    pub sha256: String,
    pub bytes: u64,
    /// For the next build to tell whether it begins with the same bytes.
    pub prefix: Prefix,
    /// The hash of the request this one was compared with, and where and why it does not begin with its bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix_break: Option<PrefixBreak>,
}

impl Receipt {
    /// Whether these are the bytes the receipt was written for.
    #[must_use]
    pub fn matches(&self, bytes: &[u8]) -> bool {
        self.sha256 == hex::encode(Sha256::digest(bytes))
    }
}
