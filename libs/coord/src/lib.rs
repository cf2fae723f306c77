//! Which session to try next, and who should look again: fast, shared between replicas, never needed to be right.
//!
//! Owns the schedule of runnable sessions and best-effort hints. Everything here may be lost: the database decides
//! at the claim, a sweep seeds the schedule again, and whoever waits for a hint also reads the database now and
//! then. Must not know turns or messages. Another backend implements [`Coord`] and runs the conformance suite in
//! `tests/it`.
//!
//! Times are the backend's own clock: callers pass spans, so skewed replicas agree.

mod hub;
mod line;
mod memory;
mod redis;

pub use hub::{Changes, Signals};
pub use memory::MemoryCoord;
pub use redis::{RedisConfig, RedisCoord};

use async_trait::async_trait;
use colloquy_types::queue::Lane;
use colloquy_types::{AgentId, Result, SessionId, TenantId, TurnId};
use std::time::Duration;

/// How long an acquired session is kept from others. Longer than a claim takes; a holder that died within it
/// delays its session by no more than this.
pub const TAKEN: Duration = Duration::from_secs(10);

/// A session that can start a turn, from a time on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scheduled {
    pub tenant: TenantId,
    pub agent: AgentId,
    pub session: SessionId,
    pub lane: Lane,
    /// From now; zero or less = at once.
    pub due_in: Duration,
}

/// Whose sessions somebody can work on. Sessions of other tenants are never seen.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wanted {
    pub tenant: TenantId,
    /// Empty = all of the tenant.
    pub agents: Vec<AgentId>,
}

/// A session to try. It is kept from others until it is [`Coord::done`] or its time as taken has run out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    pub tenant: TenantId,
    pub agent: AgentId,
    pub session: SessionId,
    pub lane: Lane,
    /// Tells this take from a later one of the same session.
    pub token: i64,
}

/// What a look at the schedule finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Looked {
    Ready(Ready),
    /// Nothing is due before this time has passed.
    Later(Duration),
    Empty,
}

/// Why whoever runs a turn should read it again at once. The content is in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    Cancel,
    Steer,
    Reset,
    CompactionBefore,
    CompactionAfter,
}

#[async_trait]
pub trait Coord: Send + Sync + 'static {
    /// Puts a session on the schedule. One entry per session: the earlier time and the more urgent lane win. Wakes
    /// a waiter. May be called while the session is taken: the entry then outlives the end of the take.
    ///
    /// # Errors
    /// `DEPENDENCY`; the sweep makes up for it.
    async fn schedule(&self, entry: &Scheduled) -> Result<()>;

    /// Takes the due session of the most urgent lane, then of the earliest time. It is offered again after `lease`
    /// unless it is `done` before; with a lease of zero it is off the schedule at once.
    ///
    /// # Errors
    /// `DEPENDENCY`.
    async fn take(&self, wanted: &Wanted, lease: Duration) -> Result<Looked>;

    /// Waits at most `wait` for a session of any of these and takes it for [`TAKEN`]; none when there was none.
    /// Waiters that want the same stand in line, and only the first looks. Cancel-safe: what was taken by a call
    /// that was dropped is offered again.
    ///
    /// # Errors
    /// `DEPENDENCY`: ask the database itself, or wait for its sweep.
    async fn acquire(&self, wanted: &[Wanted], wait: Duration) -> Result<Option<Ready>>;

    /// Ends a take, whatever came of it; a take that has run out is left alone. To have the session offered again,
    /// `schedule` it first.
    ///
    /// # Errors
    /// `DEPENDENCY`; it is then offered once too often.
    async fn done(&self, ready: &Ready) -> Result<()>;

    /// Tells whoever runs the turn, in any process.
    ///
    /// # Errors
    /// `DEPENDENCY`; the next renewal tells it too.
    async fn signal(&self, tenant: TenantId, turn: TurnId, signal: Signal) -> Result<()>;

    /// The turn's signals from now on.
    fn signals(&self, tenant: TenantId, turn: TurnId) -> Signals;

    /// Tells the session's watchers, in any process, that there is something new to read.
    ///
    /// # Errors
    /// `DEPENDENCY`; watchers also read now and then without a hint.
    async fn hint(&self, tenant: TenantId, session: SessionId) -> Result<()>;

    /// The session's hints from now on.
    fn watch(&self, tenant: TenantId, session: SessionId) -> Changes;

    /// Loses the whole schedule, as a Redis without its data does. For tests.
    ///
    /// # Errors
    /// `DEPENDENCY`.
    async fn clear(&self) -> Result<()>;

    /// Whether the backend answers.
    ///
    /// # Errors
    /// `DEPENDENCY`.
    async fn ping(&self) -> Result<()>;
}
