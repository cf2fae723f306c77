//! Sessions: one row per key.

use crate::{Page, PageRequest, PolicyId};
use async_trait::async_trait;
use colloquy_types::queue::ResetReason;
use colloquy_types::{
    AgentId, BranchId, Epoch, Fence, Result, Seq, SessionId, SessionKey, TenantId, TranscriptId, UnixMillis,
};

/// Zeroed by a reset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    pub input_tokens: i64,
    pub output_tokens: i64,
    pub turns: i64,
    pub compactions: i64,
    /// Prompt tokens of the last reported call; `None` before the first.
    pub last_prompt_tokens: Option<i64>,
    /// Model window of the last reported call.
    pub context_window: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub id: SessionId,
    pub tenant: TenantId,
    pub key: SessionKey,
    pub label: String,
    pub display_name: String,
    pub transcript: TranscriptId,
    pub branch: BranchId,
    pub epoch: Epoch,
    pub version: i64,
    /// The last number handed out to a claim.
    pub fence: Fence,
    pub counters: Counters,
    /// Of the current branch.
    pub head: Seq,
    pub window_messages: i64,
    pub window_tokens: i64,
    pub waiting: i64,
    pub running: i64,
    /// Effective policy of the last accepted message.
    pub policy: Option<PolicyId>,
    /// Why the last compaction failed, until one succeeds.
    pub compaction_error: Option<String>,
    /// Model and provider of the last reported call; empty before.
    pub model: String,
    pub provider: String,
    pub created: UnixMillis,
    pub updated: UnixMillis,
    pub last_user_activity: Option<UnixMillis>,
}

/// Every field given must match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFilter {
    pub agent: Option<AgentId>,
    pub channel: Option<String>,
    /// `KeyKind::as_str`.
    pub kind: Option<String>,
    pub label_prefix: Option<String>,
    /// Last activity (`updated`) at or after.
    pub active_since: Option<UnixMillis>,
    /// The `subject` of a user credential: only sessions whose chat is this peer.
    pub chat: Option<String>,
}

/// Fields to change; `None` leaves one as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionPatch {
    pub label: Option<String>,
    pub display_name: Option<String>,
}

#[async_trait]
pub trait Sessions: Send + Sync {
    async fn get_session(&self, tenant: TenantId, id: SessionId) -> Result<Option<Session>>;
    async fn find_session(&self, tenant: TenantId, key: &SessionKey) -> Result<Option<Session>>;
    /// Newest activity first, keyset-paged on (updated, id).
    async fn list_sessions(
        &self,
        tenant: TenantId,
        filter: &SessionFilter,
        page: &PageRequest,
    ) -> Result<Page<Session>>;
    /// `NOT_FOUND` when there is none. Returns the session as it is now.
    async fn update_session(&self, tenant: TenantId, id: SessionId, patch: &SessionPatch) -> Result<Session>;
    /// New transcript and branch under the same key, counters zeroed, epoch and version + 1; a `reset` entry is
    /// the first of the new transcript; waiting turns end with `CANCELLED_RESET`, running ones become
    /// stopping with `stop_deadline_ms` from now, and a running compaction loses its marker.
    async fn reset_session(
        &self,
        tenant: TenantId,
        id: SessionId,
        reason: ResetReason,
        stop_deadline_ms: i64,
    ) -> Result<Session>;
}
