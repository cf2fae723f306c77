//! Compaction's half of a session: one running marker, chunks that survive a crash, an apply that is
//! compare-and-set.

use crate::transcript::Branch;
use async_trait::async_trait;
use colloquy_types::{
    BranchId, Epoch, Fence, JobId, NewEntry, Result, Seq, SessionId, TenantId, TranscriptId,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BeginCompaction {
    pub tenant: TenantId,
    pub session: SessionId,
    pub job: JobId,
    pub lease_ms: i64,
}

/// Proof of being the one that compacts; checked by every save and by the apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marker(pub Fence);

/// The state a plan is made on; the apply compares transcript, branch and epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub session: SessionId,
    pub branch: Branch,
    pub policy: Option<crate::PolicyId>,
}

/// A summarised part of the range, kept with the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// From 0.
    pub index: i32,
    pub from: Seq,
    pub to: Seq,
    pub summary: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkipReason {
    AlreadyRunning,
    /// The job has ended, or names a transcript that is not the session's any more: then it is cancelled.
    Superseded,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    Run {
        marker: Marker,
        snapshot: Box<Snapshot>,
        chunks: Vec<Chunk>,
    },
    Skipped(SkipReason),
}

#[derive(Debug, Clone)]
pub struct ApplyCompaction {
    pub tenant: TenantId,
    pub session: SessionId,
    pub job: JobId,
    pub marker: Marker,
    pub transcript: TranscriptId,
    pub branch: BranchId,
    pub epoch: Epoch,
    /// Its body is `EntryBody::Compaction`.
    pub entry: NewEntry,
    pub first_kept: Seq,
    /// JSON of what the job says of itself.
    pub result_json: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailCompaction {
    pub tenant: TenantId,
    pub session: SessionId,
    pub job: JobId,
    pub marker: Marker,
    /// Shown on the session and in the job.
    pub reason: String,
    pub retry_ms: i64,
}

#[async_trait]
pub trait Compactions: Send + Sync {
    /// Takes the session's running marker under a lease and starts the job. A marker whose lease has passed is
    /// taken over (that run counts as failed). `NOT_FOUND` for an unknown session or job.
    async fn begin_compaction(&self, begin: &BeginCompaction) -> Result<Begun>;
    /// `FENCED` when the marker is another's.
    async fn renew_compaction(
        &self,
        tenant: TenantId,
        session: SessionId,
        job: JobId,
        marker: Marker,
        lease_ms: i64,
    ) -> Result<()>;
    /// Idempotent by (job, index). `FENCED` when the marker is another's.
    async fn save_chunk(
        &self,
        tenant: TenantId,
        session: SessionId,
        job: JobId,
        marker: Marker,
        chunk: &Chunk,
    ) -> Result<()>;
    /// One transaction: checks marker (`FENCED`) and (transcript, branch, epoch) (`CONFLICT`), appends the entry,
    /// moves the branch's pointer, recomputes the window's counters from `first_kept`, clears the watermarks,
    /// epoch + 1, counts the compaction, ends the job, drops the marker. Returns the branch as it is now.
    async fn apply_compaction(&self, apply: &ApplyCompaction) -> Result<Branch>;
    /// Leaves history untouched: records the reason on the session, ends the job's run as failed (see
    /// `Jobs::end_job`), drops the marker. `FENCED` when the marker is another's.
    async fn fail_compaction(&self, fail: &FailCompaction) -> Result<()>;
    /// Like `fail_compaction`, but the job is done: there was nothing to do. The reason is kept in the job only,
    /// as its result `{"skipped": reason}`.
    async fn skip_compaction(&self, fail: &FailCompaction) -> Result<()>;
}
