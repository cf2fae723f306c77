//! Background work. The table is the outbox and the queue of record: a bus only spreads what stands here.

use crate::{Page, PageRequest};
use async_trait::async_trait;
use colloquy_types::{BranchId, JobId, Result, SessionId, TenantId, TranscriptId, UnixMillis};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobKind {
    Compaction,
    MemoryExtract,
}

impl JobKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Compaction => "compaction",
            Self::MemoryExtract => "memory_extract",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Compaction, Self::MemoryExtract]
            .into_iter()
            .find(|kind| kind.as_str() == text)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobState {
    /// To be published from its due time.
    Queued,
    /// Handed to the bus, not started.
    Published,
    Running,
    Done,
    Cancelled,
    /// Five runs failed; `replay_job` puts it back.
    Dead,
}

impl JobState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Published => "published",
            Self::Running => "running",
            Self::Done => "done",
            Self::Cancelled => "cancelled",
            Self::Dead => "dead",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [
            Self::Queued,
            Self::Published,
            Self::Running,
            Self::Done,
            Self::Cancelled,
            Self::Dead,
        ]
        .into_iter()
        .find(|state| state.as_str() == text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewJob {
    pub id: JobId,
    pub kind: JobKind,
    pub session: SessionId,
    pub transcript: TranscriptId,
    pub branch: BranchId,
    pub delay_ms: i64,
    /// JSON of what the kind needs, for instance instructions; `{}` without.
    pub payload_json: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub id: JobId,
    pub tenant: TenantId,
    pub kind: JobKind,
    pub session: SessionId,
    pub transcript: TranscriptId,
    pub branch: BranchId,
    pub state: JobState,
    /// Runs that ended as failed.
    pub attempts: i32,
    /// Grows with every hand-over to the bus and is never used twice.
    pub publish_no: i64,
    pub due: UnixMillis,
    pub payload_json: String,
    /// JSON of what a finished job says of itself; `{}` before.
    pub result_json: String,
    /// Why the last run failed; empty without.
    pub error: String,
    pub created: UnixMillis,
    pub updated: UnixMillis,
}

/// A job the relay may hand to the bus now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    pub job: Job,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Started {
    Run(Box<Job>),
    /// Another worker runs it and its lease has not passed.
    Busy,
    /// Done, cancelled or dead: drop the message.
    Ended,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobEnd {
    Done {
        result_json: String,
    },
    /// Counts as an attempt; queued again after the delay, dead after five.
    Failed {
        error: String,
        retry_ms: i64,
    },
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobFilter {
    pub state: Option<JobState>,
    pub kind: Option<JobKind>,
    pub session: Option<SessionId>,
}

#[async_trait]
pub trait Jobs: Send + Sync {
    /// When a job of the kind is queued, published or running for the session already, its id is returned
    /// instead of a second row. `NOT_FOUND` for an unknown session.
    async fn enqueue_job(&self, tenant: TenantId, job: &NewJob) -> Result<JobId>;

    /// Across tenants, at most `per_tenant` of each, oldest due first: queued and due; published longer than
    /// `republish_ms` ago and not started; running past their lease (this counts as a failed run).
    async fn list_publishable(
        &self,
        per_tenant: u32,
        limit: u32,
        republish_ms: i64,
    ) -> Result<Vec<(TenantId, JobId)>>;

    /// Marks the job published under the next number. `None` when it is not publishable any more.
    async fn mark_published(
        &self,
        tenant: TenantId,
        id: JobId,
        republish_ms: i64,
    ) -> Result<Option<Published>>;

    /// A worker takes the job under a lease; a run whose lease has passed counts as failed first. `NOT_FOUND`.
    async fn start_job(&self, tenant: TenantId, id: JobId, lease_ms: i64) -> Result<Started>;

    /// `FENCED` when the job is not running any more.
    async fn renew_job(&self, tenant: TenantId, id: JobId, lease_ms: i64) -> Result<()>;

    /// Ending an ended job changes nothing, and neither does failing one that does not run any more (its run was
    /// counted when it was taken away). Returns the state after. `NOT_FOUND` when unknown.
    async fn end_job(&self, tenant: TenantId, id: JobId, end: &JobEnd) -> Result<JobState>;

    async fn get_job(&self, tenant: TenantId, id: JobId) -> Result<Option<Job>>;
    /// Newest first.
    async fn list_jobs(&self, tenant: TenantId, filter: &JobFilter, page: &PageRequest) -> Result<Page<Job>>;
    /// Puts a dead or cancelled job back into the queue with its attempts zeroed. `NOT_FOUND`, or `CONFLICT`
    /// when it is in another state or another job of the kind is active for the session.
    async fn replay_job(&self, tenant: TenantId, id: JobId) -> Result<Job>;
    /// Ends a job that has not ended; a running one is told by its next renewal (a compaction also loses its
    /// session's marker). An ended one is returned as it is. `NOT_FOUND` when unknown.
    async fn cancel_job(&self, tenant: TenantId, id: JobId) -> Result<Job>;
}
