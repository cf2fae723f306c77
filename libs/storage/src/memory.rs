//! What is remembered, and how far each transcript has been read for it.

use crate::{Page, PageRequest};
use async_trait::async_trait;
use colloquy_types::message::Provenance;
use colloquy_types::{AgentId, BranchId, EntryId, MemoryId, Result, Seq, TenantId, TranscriptId, UnixMillis};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryKind {
    Preference,
    Profile,
    Decision,
    Event,
    Task,
    Knowledge,
}

impl MemoryKind {
    pub const ALL: [Self; 6] = [
        Self::Preference,
        Self::Profile,
        Self::Decision,
        Self::Event,
        Self::Task,
        Self::Knowledge,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Preference => "preference",
            Self::Profile => "profile",
            Self::Decision => "decision",
            Self::Event => "event",
            Self::Task => "task",
            Self::Knowledge => "knowledge",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// Who may ever see a memory: agent knowledge everywhere, a person's own only in their direct sessions, a
/// group's only in that group. The owner string is the canonical owner made by the memory service.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "scope", content = "owner", rename_all = "snake_case")]
pub enum MemoryScope {
    Agent,
    Person(String),
    Group(String),
}

impl MemoryScope {
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Person(_) => "person",
            Self::Group(_) => "group",
        }
    }

    pub fn owner(&self) -> &str {
        match self {
            Self::Agent => "",
            Self::Person(owner) | Self::Group(owner) => owner,
        }
    }

    pub fn parse(kind: &str, owner: &str) -> Option<Self> {
        match kind {
            "agent" => Some(Self::Agent),
            "person" => Some(Self::Person(owner.to_owned())),
            "group" => Some(Self::Group(owner.to_owned())),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Memory {
    pub id: MemoryId,
    pub tenant: TenantId,
    pub agent: AgentId,
    pub scope: MemoryScope,
    pub kind: MemoryKind,
    pub text: String,
    /// 0 to 1.
    pub importance: f32,
    /// 0 to 1.
    pub confidence: f32,
    /// Class of the content it was taken from; `Untrusted` is quarantined and marked in recall.
    pub provenance: Provenance,
    pub sources: Vec<EntryId>,
    pub valid_from: UnixMillis,
    /// Set when superseded or expired.
    pub valid_to: Option<UnixMillis>,
    pub supersedes: Option<MemoryId>,
    pub recall_count: i64,
    pub created: UnixMillis,
    pub updated: UnixMillis,
}

#[derive(Debug, Clone, PartialEq)]
pub struct MemoryFilter {
    pub agent: AgentId,
    /// Any of these; none given, none found.
    pub scopes: Vec<MemoryScope>,
    pub kind: Option<MemoryKind>,
    /// Superseded and expired ones too.
    pub include_ended: bool,
}

/// One change of an extraction, applied together with the watermark.
#[derive(Debug, Clone, PartialEq)]
pub enum MemoryOp {
    Add(Memory),
    /// Same text again: raise confidence and importance to at least these, add the sources.
    Reinforce {
        id: MemoryId,
        importance: f32,
        confidence: f32,
        sources: Vec<EntryId>,
    },
    /// The old one gets `valid_to` = now, the new one names it in `supersedes`.
    Supersede {
        old: MemoryId,
        new: Memory,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WatermarkKey {
    pub transcript: TranscriptId,
    pub branch: BranchId,
    /// Version of the extraction strategy.
    pub strategy: String,
}

/// Entries up to `through` have been read for memories, each exactly once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Watermark {
    pub through: Seq,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Extraction {
    pub tenant: TenantId,
    pub key: WatermarkKey,
    /// Where the watermark must stand.
    pub from: Seq,
    /// Where it stands afterwards.
    pub through: Seq,
    pub ops: Vec<MemoryOp>,
}

#[async_trait]
pub trait Memories: Send + Sync {
    /// Adds one by hand; `created` and `updated` are set by the store.
    async fn put_memory(&self, memory: &Memory) -> Result<Memory>;
    async fn get_memory(&self, tenant: TenantId, id: MemoryId) -> Result<Option<Memory>>;
    /// Newest first.
    async fn list_memories(
        &self,
        tenant: TenantId,
        filter: &MemoryFilter,
        page: &PageRequest,
    ) -> Result<Page<Memory>>;
    /// Changes text, kind, importance of one. `NOT_FOUND` when there is none.
    async fn update_memory(&self, memory: &Memory) -> Result<Memory>;
    /// `NOT_FOUND` when there is none.
    async fn delete_memory(&self, tenant: TenantId, id: MemoryId) -> Result<()>;
    /// Valid memories within the filter that share at least one of the [`crate::terms`] with the query, at most
    /// `limit`, best match first. Ranking proper is the caller's.
    async fn search_memories(
        &self,
        tenant: TenantId,
        filter: &MemoryFilter,
        query: &str,
        limit: u32,
    ) -> Result<Vec<Memory>>;
    /// Counts a recall of each.
    async fn count_recalls(&self, tenant: TenantId, ids: &[MemoryId]) -> Result<()>;
    /// 0 before the first extraction.
    async fn watermark(&self, tenant: TenantId, key: &WatermarkKey) -> Result<Watermark>;
    /// Applies all operations and moves the watermark, or nothing: `false` when the watermark is not at `from`.
    /// The store sets `created` and `updated` of what is new. An operation on a memory that is gone (forgotten
    /// meanwhile) changes nothing of it.
    async fn apply_extraction(&self, extraction: &Extraction) -> Result<bool>;
}
