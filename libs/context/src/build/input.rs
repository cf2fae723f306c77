//! Everything a build depends on, as a value.

use crate::compaction::trigger::CompactionOptions;
use crate::project::Format;
use crate::prune::{Moves, PruneOptions, Watermarks};
use crate::receipt::Receipt;
use crate::tokens::Tokenizer;
use crate::tokens::anchor::Anchor;
use colloquy_types::message::Message;
use colloquy_types::policy::HistoryMode;
use colloquy_types::{BranchId, Entry, Policy, TurnId, UnixMillis};

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
    /// stored token counts. Those before it change nothing.
    pub entries: &'a [Entry],
    /// The branch, for the receipt.
    pub branch: Option<BranchId>,
    /// The compaction that the branch's pointer names.
    pub compaction: Option<&'a Entry>,
    /// The running turn: its stored entries count as running. None where no turn runs.
    pub turn: Option<TurnId>,
    /// What the queue says before the running turn's messages, empty for nothing. It is part of no transcript.
    pub preface: &'a str,
    /// User messages of the running turn, and what it has staged so far.
    pub pending: &'a [Message],
    pub staged: &'a [Message],
    /// Their stored token counts, in the same order. What has none (the list is shorter, or a 0) is counted.
    pub pending_tokens: &'a [u32],
    pub staged_tokens: &'a [u32],
    /// The recalled memories as text, chosen once per turn; empty for none.
    pub recalled: &'a str,
    pub options: BuildOptions,
    /// Names the policy for the receipt.
    pub policy_version: &'a str,
    pub watermarks: Watermarks,
    pub moves: Moves,
    /// The caller knows that the provider's prompt cache has expired.
    pub cache_cold: bool,
    /// Else it is told from these: when the session's last successful model call ended (none = never), and the
    /// time of this build. Without the pair the cache counts as warm.
    pub last_call: Option<LastCall>,
    /// Tokens of the model's window.
    pub window: u32,
    /// Tokens of it that stay free for the answer, at most half; none = [`default_reserve`](crate::budget::default_reserve).
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
    /// The receipt of the session's build before this one: the new receipt says whether the request begins with
    /// the same bytes, and if not, why.
    pub previous: Option<&'a Receipt>,
}

/// The age of the provider's prompt cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastCall {
    /// When the last successful model call ended; none = there was none.
    pub at: Option<UnixMillis>,
    pub now: UnixMillis,
}

impl<'a> BuildInput<'a> {
    /// A build of these entries with the default profile; the caller sets the rest.
    #[must_use]
    pub fn new(entries: &'a [Entry], window: u32, format: Format) -> Self {
        Self {
            entries,
            branch: None,
            compaction: None,
            turn: None,
            preface: "",
            pending: &[],
            staged: &[],
            pending_tokens: &[],
            staged_tokens: &[],
            recalled: "",
            options: BuildOptions::goclaw(),
            policy_version: "",
            watermarks: Watermarks::default(),
            moves: Moves::Running,
            cache_cold: false,
            last_call: None,
            window,
            reserve: None,
            overhead: 0,
            calibration_percent: 100,
            anchor: None,
            format,
            model: "",
            tokenizer: Tokenizer::default(),
            previous: None,
        }
    }

    /// Whether the provider's prompt cache has expired.
    #[must_use]
    pub fn is_cache_cold(&self) -> bool {
        let is_old = |call: LastCall| self.options.prune.is_cold(call.at, call.now);
        self.cache_cold || self.last_call.is_some_and(is_old)
    }
}
