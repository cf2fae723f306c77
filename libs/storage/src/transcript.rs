//! Entries and the branches they stand on.

use async_trait::async_trait;
use colloquy_types::{BranchId, Entry, Epoch, NewEntry, Result, Seq, SessionId, TenantId, TranscriptId};

/// Entries up to these places are soft-trimmed or cleared; they only move forward until the next compaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Marks {
    pub soft: Seq,
    pub hard: Seq,
}

/// A branch and what its newest compaction says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    pub transcript: TranscriptId,
    pub branch: BranchId,
    pub epoch: Epoch,
    /// Sequence number of the last entry; 0 when empty.
    pub head: Seq,
    /// The newest compaction entry on this path.
    pub compaction: Option<Seq>,
    /// First entry of the window behind the summary; 1 without a compaction.
    pub first_kept: Seq,
    pub marks: Marks,
    /// Message entries and tokens in the window, the summary included.
    pub window_messages: i64,
    pub window_tokens: i64,
}

/// What a model call can see: the summary's entry, if any, then the entries from `first_kept` to `up_to`.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    pub branch: Branch,
    pub summary: Option<Entry>,
    /// In order, without the compaction entry itself.
    pub entries: Vec<Entry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Entries with a larger number, ascending.
    After(Seq),
    /// Entries with a smaller number, descending.
    Before(Seq),
}

#[derive(Debug, Clone, PartialEq)]
pub struct EntryPage {
    pub entries: Vec<Entry>,
    /// Whether there are more in the same direction.
    pub more: bool,
}

#[async_trait]
pub trait Transcripts: Send + Sync {
    /// The window as seen at `up_to` (the branch's head when `None`): one or two index range scans.
    /// `NOT_FOUND` when there is no such branch.
    async fn window(
        &self,
        tenant: TenantId,
        transcript: TranscriptId,
        branch: BranchId,
        up_to: Option<Seq>,
    ) -> Result<Window>;

    /// The session that the transcript is or was of; old transcripts stay readable after a reset.
    async fn session_of(&self, tenant: TenantId, transcript: TranscriptId) -> Result<Option<SessionId>>;

    /// At most `limit` entries (≤ 500) and at most 2 MiB of bodies, whichever is first, but at least one.
    async fn list_entries(
        &self,
        tenant: TenantId,
        transcript: TranscriptId,
        branch: BranchId,
        order: Order,
        limit: u32,
    ) -> Result<EntryPage>;

    /// Notes outside a turn, at the head of the session's current branch. Returns the new head.
    /// `CONFLICT` while a turn of the session runs (its block must stay contiguous with what it saw).
    async fn append_entries(&self, tenant: TenantId, session: SessionId, entries: &[NewEntry])
    -> Result<Seq>;
}
