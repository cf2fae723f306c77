//! The life of a turn where its data is: claim, renew, stage, commit, release, stop, expire.

use crate::delivery::NewDelivery;
use crate::inbox::{InboxRow, PolicyId, TurnLimits};
use crate::transcript::Marks;
use async_trait::async_trait;
use colloquy_types::message::{Message, Route};
use colloquy_types::queue::{Lane, Outcome, TurnState};
use colloquy_types::{
    AgentId, BranchId, EntryBody, Epoch, Fence, JobId, MessageId, NewEntry, Result, Seq, SessionId, TenantId,
    TranscriptId, TurnId, UnixMillis,
};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRequest {
    pub tenant: TenantId,
    pub session: SessionId,
    /// Whom the turn is offered to, for people who look.
    pub worker: String,
    /// Agents the worker serves; empty = all. A session of another agent answers [`Claimed::Nothing`].
    pub agents: Vec<AgentId>,
    /// How long the offer stands unconfirmed; the first renewal, build or stage confirms it and starts the lease.
    pub offer_ms: i64,
    /// Lease of this claim instead of the policy's.
    pub lease_ms: Option<i64>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Claimed {
    Turn(Box<ClaimedTurn>),
    /// The first waiting turn is not due yet.
    Later(UnixMillis),
    /// Nothing waits, or as many turns run as may.
    Nothing,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ClaimedTurn {
    pub turn: TurnId,
    pub session: SessionId,
    /// Canonical string of the session's key.
    pub key: String,
    pub label: String,
    pub agent: AgentId,
    pub transcript: TranscriptId,
    pub branch: BranchId,
    /// Head of the branch at the claim: what the turn's builds see.
    pub head: Seq,
    pub fence: Fence,
    /// From 1.
    pub attempt: u32,
    pub lane: Lane,
    pub policy: PolicyId,
    pub limits: TurnLimits,
    pub route: Option<Route>,
    /// One-line summaries of dropped messages, in front of the turn's own; empty without.
    pub preface: String,
    /// In the order of their accepts.
    pub messages: Vec<(MessageId, Message)>,
    pub lease_left_ms: i64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Renewal {
    pub lease_left_ms: i64,
    /// `Running` or `Stopping`.
    pub state: TurnState,
    /// Why it is stopping.
    pub stop: Option<Outcome>,
    /// Steered messages not acknowledged yet, with their numbers from 1.
    pub steer: Vec<(i64, MessageId, Message)>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StageInput {
    pub tenant: TenantId,
    pub turn: TurnId,
    pub fence: Fence,
    /// Number of the first entry within the attempt, from 1. Entries that are there already are left alone.
    pub first: i64,
    pub entries: Vec<NewEntry>,
    /// Watermarks that the last build of the turn moved.
    pub marks: Option<Marks>,
}

/// What a provider reported for the turn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub input_tokens: i64,
    pub output_tokens: i64,
    pub cache_read_tokens: i64,
    pub cache_write_tokens: i64,
    /// Prompt tokens of the last call of the turn; 0 when not reported.
    pub context_tokens: i64,
    pub window_tokens: i64,
    pub provider: String,
    pub model: String,
}

/// A compaction job is written with the commit when the window has more than either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactAbove {
    pub messages: i64,
    pub tokens: i64,
    /// Id of the job, if one is written.
    pub job: JobId,
}

#[derive(Debug, Clone)]
pub struct CommitInput {
    pub tenant: TenantId,
    pub turn: TurnId,
    pub fence: Fence,
    /// Behind what is staged.
    pub entries: Vec<NewEntry>,
    pub usage: Usage,
    pub deliveries: Vec<NewDelivery>,
    /// Recorded on the turn's messages: `ANSWERED`, `FAILED`, or `NOT_SENT_POLICY`.
    pub outcome: Outcome,
    /// Highest steer number that the worker took in; what is above becomes the next turn.
    pub steer_through: i64,
    pub marks: Option<Marks>,
    pub compact: Option<CompactAbove>,
    /// Write a memory extraction job for the transcript unless one waits already.
    pub extract: Option<JobId>,
    /// Earliest start of the extraction, in milliseconds from now.
    pub extract_delay_ms: i64,
    /// SHA-256 of the request: a repeat with the same hash gets the same answer.
    pub content_hash: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Committed {
    pub session: SessionId,
    pub head: Seq,
    pub window_messages: i64,
    pub window_tokens: i64,
    pub input_tokens: i64,
    pub output_tokens: i64,
    /// A compaction job was written or is under way.
    pub compacting: bool,
    /// When the session's next waiting turn is due, if one waits.
    pub next_due: Option<UnixMillis>,
    /// The commit had been made before.
    pub replayed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Release {
    /// Back to the queue's front after a back-off; fails for good after the last attempt.
    Retry {
        error: String,
    },
    Fail {
        error: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopScope {
    /// The oldest running turn.
    Oldest,
    /// Every running turn, and everything that waits.
    All,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stopped {
    /// Running turns that are stopping now.
    pub stopping: Vec<TurnId>,
    /// Waiting turns that ended at once.
    pub drained: Vec<TurnId>,
}

/// What became of a turn whose lease or deadline had passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expired {
    /// Waiting again, from the instant given.
    Requeued { session: SessionId, due: UnixMillis },
    /// Ended (`FAILED`, or the outcome of its stop); `next_due` of the session.
    Ended {
        session: SessionId,
        outcome: Outcome,
        next_due: Option<UnixMillis>,
    },
    /// It was renewed, or had ended before.
    NotExpired,
}

/// A session with something to start, for the scheduler. Never content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runnable {
    pub tenant: TenantId,
    pub agent: AgentId,
    pub session: SessionId,
    pub lane: Lane,
    pub due: UnixMillis,
}

/// Which runnable sessions are looked for. No agent's backlog hides the sessions of another: each gives its `per_agent`
/// longest due, and when those of all agents are more than `limit`, the first of each come before any second, in an
/// order that differs from look to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunnableScan {
    /// `None` = across tenants.
    pub tenant: Option<TenantId>,
    /// Due now or within this time.
    pub horizon_ms: i64,
    pub per_agent: u32,
    pub limit: u32,
}

/// Everything a build of a turn needs besides the window.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnView {
    pub session: SessionId,
    pub key: String,
    pub agent: AgentId,
    pub transcript: TranscriptId,
    pub branch: BranchId,
    pub epoch: Epoch,
    /// Head at the claim.
    pub head: Seq,
    pub attempt: u32,
    pub state: TurnState,
    pub policy: PolicyId,
    pub route: Option<Route>,
    pub preface: String,
    pub messages: Vec<(MessageId, Message, u32)>,
    /// Staged by this attempt, and by lost ones under `resume: continue`; with tokens.
    pub staged: Vec<(EntryBody, u32)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedTurn {
    pub turn: TurnId,
    pub state: TurnState,
    pub lane: Lane,
    pub due: UnixMillis,
    pub attempt: u32,
    pub fence: Fence,
    pub worker: String,
    pub messages: Vec<MessageId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    pub running: Vec<QueuedTurn>,
    pub waiting: Vec<QueuedTurn>,
    /// The last accepted messages, newest first.
    pub outcomes: Vec<InboxRow>,
    pub now: UnixMillis,
}

#[async_trait]
pub trait Turns: Send + Sync {
    /// Locks the session, refuses while `max_concurrent` turns run or stop, takes the first waiting turn in queue
    /// order if it is due, draws the next fence, and binds the turn's messages. One transaction.
    /// An unknown session is [`Claimed::Nothing`]: the scheduler only hints. The cap is the one of the turn that
    /// waits first, and is looked at before its due time. The messages are the turn's own and the steered ones
    /// that an earlier attempt acknowledged.
    async fn claim(&self, request: &ClaimRequest) -> Result<Claimed>;

    /// Confirms an offer and extends the lease by the turn's `lease_ms`, never past `max_turn_ms` from the claim.
    /// `FENCED` under another number or after the turn ended, `NOT_FOUND` for an unknown turn. A lease that has
    /// passed but was not taken away can still be renewed. `steer_through` acknowledges steered messages: they
    /// count as the turn's own from then on. The time left of a stopping turn is that to its deadline.
    async fn renew(
        &self,
        tenant: TenantId,
        turn: TurnId,
        fence: Fence,
        steer_through: i64,
    ) -> Result<Renewal>;

    /// Confirms an offer and reads; a confirmed lease is not extended. `FENCED` like `renew`.
    async fn view(&self, tenant: TenantId, turn: TurnId, fence: Fence) -> Result<TurnView>;

    /// Keeps entries with the turn, idempotent by (turn, fence, number). `FENCED` like `renew`.
    /// Returns the highest number staged by this attempt. `INVALID_FIELD` on `first` when it leaves a gap.
    /// `marks` move the branch's watermarks at once, forward only, and not at all when a compaction newer than
    /// the turn's claim has cleared them; the same holds for those of a commit.
    async fn stage(&self, input: &StageInput) -> Result<i64>;

    /// Appends one contiguous block (an `interrupted` entry per lost attempt that staged something; the turn's
    /// user messages; what is staged; `entries`) to the turn's branch, marks its messages, writes deliveries and
    /// jobs, updates counters. `FENCED` under a stale fence, `CANCELLED` while stopping, `IDEMPOTENCY_MISMATCH`
    /// when committed before with another hash.
    ///
    /// The turn's messages get `outcome`, acknowledged steers get `STEERED`, and what was steered but not
    /// acknowledged becomes one closed waiting turn in front of the queue, due at once. Counters are the
    /// session's, and stay untouched when a reset has started another transcript since; head and window are
    /// those of the turn's branch.
    async fn commit(&self, input: &CommitInput) -> Result<Committed>;

    /// `FENCED` like `renew`. A stopping turn ends with its stop outcome whatever is asked. A turn that ends
    /// leaves its user messages and an `interrupted` entry in the transcript: its reason is the stop's outcome
    /// (`CANCELLED_STOP`, …) or the error, its attempt the last one, and it holds what that attempt staged.
    /// Every message of the turn, steers included, gets the outcome, with the error as detail.
    async fn release(
        &self,
        tenant: TenantId,
        turn: TurnId,
        fence: Fence,
        release: &Release,
    ) -> Result<Expired>;

    /// Running turns become stopping (outcome `CANCELLED_STOP`; one that is stopping already keeps its own) with
    /// `deadline_ms` from now; with [`StopScope::All`] waiting turns end.
    /// `NOT_FOUND` for an unknown session.
    async fn stop(
        &self,
        tenant: TenantId,
        session: SessionId,
        scope: StopScope,
        deadline_ms: i64,
    ) -> Result<Stopped>;

    /// Re-checks under the lock and ends or re-queues a turn whose lease or stop deadline has passed. An
    /// unconfirmed offer goes back without counting as an attempt. `NOT_FOUND` for an unknown turn.
    async fn expire(&self, tenant: TenantId, turn: TurnId) -> Result<Expired>;

    /// Turns whose lease or stop deadline has passed, across tenants; oldest first.
    async fn list_expired(&self, limit: u32) -> Result<Vec<(TenantId, TurnId)>>;

    /// Sessions with a waiting turn that could start, by due time. See [`RunnableScan`].
    async fn list_runnable(&self, scan: &RunnableScan) -> Result<Vec<Runnable>>;

    /// `NOT_FOUND` for an unknown session.
    async fn queue(&self, tenant: TenantId, session: SessionId, outcomes: u32) -> Result<Queue>;
}
