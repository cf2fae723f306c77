//! What the services need from a database, one trait per aggregate, and the suite that every backend must pass.
//!
//! Owns the shapes that go in and out and the contract of each operation. Must not know a database. A backend
//! is a crate of its own that implements every trait here and runs `testsuite` against itself.
//!
//! Rules that hold for every method:
//! - The tenant is the first argument; a foreign id behaves exactly like one that does not exist.
//! - A method is one transaction. When it returns `Ok`, its effect survives the death of any process.
//! - Instants are the database's clock ([`Clocked::now`]), never the caller's.
//! - Errors: `NOT_FOUND`, `FENCED`, `CANCELLED`, `CONFLICT`, `IDEMPOTENCY_MISMATCH` as documented, and
//!   `DEPENDENCY` when the database cannot be reached.

mod account;
mod agent;
mod compaction;
mod delivery;
mod inbox;
mod job;
mod key;
mod memory;
mod receipt;
mod session;
mod tenant;
pub mod terms;
#[cfg(feature = "testsuite")]
pub mod testsuite;
mod transcript;
mod turn;

pub use account::{ChannelAccount, ChannelAccounts};
pub use agent::{Agent, Agents};
pub use compaction::{
    ApplyCompaction, BeginCompaction, Begun, Chunk, Compactions, FailCompaction, Marker, SkipReason, Snapshot,
};
pub use delivery::{Ack, Deliveries, Delivery, NewDelivery};
pub use inbox::{
    AcceptInput, Acceptance, Accepted, Decide, Inbox, InboxRow, PolicyId, TurnLimits, with_text,
};
pub use job::{Job, JobEnd, JobFilter, JobKind, JobState, Jobs, NewJob, Published, Started};
pub use key::{ApiKey, ApiKeys};
pub use memory::{
    Extraction, Memories, Memory, MemoryFilter, MemoryKind, MemoryOp, MemoryScope, Watermark, WatermarkKey,
};
pub use receipt::{CalibrationKey, NewReceipt, Receipt, Receipts, Recent, StoredCalibration, TurnPlace};
pub use session::{Counters, Session, SessionFilter, SessionPatch, Sessions};
pub use tenant::{Tenant, Tenants};
pub use transcript::{Branch, EntryPage, Marks, Order, Transcripts, Window};
pub use turn::{
    ClaimRequest, Claimed, ClaimedTurn, CommitInput, Committed, CompactAbove, Expired, Queue, QueuedTurn,
    Release, Renewal, Runnable, RunnableScan, StageInput, StopScope, Stopped, TurnView, Turns, Usage,
};

use async_trait::async_trait;
use colloquy_types::{Result, UnixMillis};

/// The database's time, and whether it answers.
#[async_trait]
pub trait Clocked: Send + Sync {
    /// The instant that due times, leases and deadlines are compared with.
    async fn now(&self) -> Result<UnixMillis>;
}

/// What `control` keeps.
pub trait ControlStore: Clocked + Tenants + ApiKeys + Agents + ChannelAccounts {}
impl<T: Clocked + Tenants + ApiKeys + Agents + ChannelAccounts> ControlStore for T {}

/// What `history` keeps.
pub trait HistoryStore:
    Clocked + Sessions + Transcripts + Inbox + Turns + Receipts + Deliveries + Jobs + Compactions
{
}
impl<T> HistoryStore for T where
    T: Clocked + Sessions + Transcripts + Inbox + Turns + Receipts + Deliveries + Jobs + Compactions
{
}

/// What `memory` keeps.
pub trait MemoryStore: Clocked + Memories {}
impl<T: Clocked + Memories> MemoryStore for T {}

/// One page of a keyset-paged list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Opaque; `None` on the last page.
    pub next: Option<String>,
}

/// Which page is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageRequest {
    /// At most 500; 0 means 50.
    pub size: u32,
    /// `next` of the page before. A cursor that was not handed out is `INVALID_FIELD` on `page_token`.
    pub token: Option<String>,
}

impl PageRequest {
    /// The effective size, 1 to 500.
    pub fn limit(&self) -> u32 {
        match self.size {
            0 => 50,
            size => size.min(500),
        }
    }
}
