//! In-process backend.

use crate::{Coord, Popped, Scheduled};
use async_trait::async_trait;
use colloquy_types::queue::Lane;
use colloquy_types::{AgentId, Result, SessionId, TenantId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

#[derive(Clone)]
struct Entry {
    agent: AgentId,
    lane: Lane,
    due: Instant,
}

#[derive(Default)]
struct Tenant {
    sessions: HashMap<SessionId, Entry>,
    woken: Arc<Notify>,
}

/// The schedule of one process.
#[derive(Default)]
pub struct MemoryCoord {
    tenants: Mutex<HashMap<TenantId, Tenant>>,
}

impl MemoryCoord {
    pub fn new() -> Self {
        Self::default()
    }

    /// Loses everything, as a flushed Redis does.
    pub fn clear(&self) {
        self.lock()
            .values_mut()
            .for_each(|tenant| tenant.sessions.clear());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TenantId, Tenant>> {
        // A panic in between leaves a hint too many or too few, which is harmless.
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Coord for MemoryCoord {
    async fn schedule(&self, entry: &Scheduled) -> Result<()> {
        let due = Instant::now() + entry.due_in;
        let mut tenants = self.lock();
        let tenant = tenants.entry(entry.tenant).or_default();
        let new = Entry {
            agent: entry.agent.clone(),
            lane: entry.lane,
            due,
        };
        tenant
            .sessions
            .entry(entry.session)
            .and_modify(|known| {
                known.due = known.due.min(due);
                known.lane = known.lane.min(entry.lane);
            })
            .or_insert(new);
        tenant.woken.notify_one();
        Ok(())
    }

    async fn pop(&self, tenant: TenantId, agents: &[AgentId]) -> Result<Popped> {
        let now = Instant::now();
        let mut tenants = self.lock();
        let Some(tenant) = tenants.get_mut(&tenant) else {
            return Ok(Popped::Empty);
        };
        let serves = |entry: &Entry| agents.is_empty() || agents.contains(&entry.agent);
        let mine = || tenant.sessions.iter().filter(|(_, entry)| serves(entry));
        let ready = mine()
            .filter(|(_, entry)| entry.due <= now)
            .min_by_key(|(id, entry)| (entry.lane, entry.due, **id));
        let ready = ready.map(|(id, _)| *id);
        let next = mine().map(|(_, entry)| entry.due).min();
        if let Some(session) = ready
            && let Some(entry) = tenant.sessions.remove(&session)
        {
            return Ok(Popped::Ready {
                session,
                agent: entry.agent,
                lane: entry.lane,
            });
        }
        Ok(next.map_or(Popped::Empty, |due| {
            Popped::Later(due.saturating_duration_since(now))
        }))
    }

    async fn changed(&self, tenant: TenantId, limit: Duration) {
        let woken = self.lock().entry(tenant).or_default().woken.clone();
        let _ = tokio::time::timeout(limit, woken.notified()).await;
    }

    async fn ping(&self) -> Result<()> {
        Ok(())
    }
}
