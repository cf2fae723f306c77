//! Which session to try next: fast, shared between router replicas, and never needed to be right.
//!
//! Owns the schedule of runnable sessions. Everything here is a hint: the database decides at the claim, and a
//! sweep seeds the schedule again when it was lost. Must not know turns or messages. Another backend implements
//! [`Coord`] and runs the conformance suite in `tests/it`.
//!
//! Times are the backend's own clock: callers pass spans, so skewed replicas agree.

mod memory;
mod redis;

pub use memory::MemoryCoord;
pub use redis::RedisCoord;

use async_trait::async_trait;
use colloquy_types::queue::Lane;
use colloquy_types::{AgentId, Result, SessionId, TenantId};
use std::time::Duration;

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

/// What the schedule says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Popped {
    /// Try this one; it is off the schedule now.
    Ready {
        session: SessionId,
        agent: AgentId,
        lane: Lane,
    },
    /// Nothing is due before this time has passed.
    Later(Duration),
    Empty,
}

#[async_trait]
pub trait Coord: Send + Sync + 'static {
    /// Puts a session on the schedule, or moves it forward; a later time does not move it back. Wakes a waiter.
    ///
    /// # Errors
    /// `DEPENDENCY`; the sweep makes up for it.
    async fn schedule(&self, entry: &Scheduled) -> Result<()>;

    /// Takes the due session of the most urgent lane, then of the earliest time, of the agents (empty = all).
    ///
    /// # Errors
    /// `DEPENDENCY`.
    async fn pop(&self, tenant: TenantId, agents: &[AgentId]) -> Result<Popped>;

    /// Waits until something may have been scheduled for the tenant, at most `limit`. May return early.
    async fn changed(&self, tenant: TenantId, limit: Duration);

    /// Whether the backend answers.
    ///
    /// # Errors
    /// `DEPENDENCY`.
    async fn ping(&self) -> Result<()>;
}
