//! In-process backend.

use crate::hub::{Changes, Hint, Hub, Signals, lock};
use crate::line::Lines;
use crate::{Coord, Looked, Ready, Scheduled, Signal, Wanted};
use async_trait::async_trait;
use colloquy_types::queue::Lane;
use colloquy_types::{AgentId, Result, SessionId, TenantId, TurnId};
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;

#[derive(Clone)]
struct Entry {
    agent: AgentId,
    lane: Lane,
    due: Instant,
}

struct Taken {
    token: i64,
    until: Instant,
    entry: Entry,
}

#[derive(Default)]
struct Tenant {
    sessions: HashMap<SessionId, Entry>,
    taken: HashMap<SessionId, Taken>,
    takes: i64,
}

impl Tenant {
    /// True when the session is due earlier than before.
    fn put(&mut self, session: SessionId, entry: Entry) -> bool {
        let Some(known) = self.sessions.get_mut(&session) else {
            self.sessions.insert(session, entry);
            return true;
        };
        let moved = entry.due < known.due || entry.lane < known.lane;
        *known = Entry {
            agent: entry.agent,
            lane: known.lane.min(entry.lane),
            due: known.due.min(entry.due),
        };
        moved
    }

    /// What a holder left without a word is offered again.
    fn reclaim(&mut self, now: Instant) {
        let lost: Vec<SessionId> = self
            .taken
            .iter()
            .filter(|(_, taken)| taken.until <= now)
            .map(|(id, _)| *id)
            .collect();
        for session in lost {
            if let Some(taken) = self.taken.remove(&session) {
                let entry = Entry {
                    due: now,
                    ..taken.entry
                };
                self.put(session, entry);
            }
        }
    }

    fn take(&mut self, wanted: &Wanted, now: Instant, lease: Duration) -> Looked {
        self.reclaim(now);
        let serves = |entry: &Entry| wanted.agents.is_empty() || wanted.agents.contains(&entry.agent);
        let mine = || self.sessions.iter().filter(|(_, entry)| serves(entry));
        let ready = mine()
            .filter(|(_, entry)| entry.due <= now)
            .min_by_key(|(id, entry)| (entry.lane, entry.due, **id))
            .map(|(id, entry)| (*id, entry.clone()));
        let Some((session, entry)) = ready else {
            let due = mine().map(|(_, entry)| entry.due);
            let next = due.chain(self.taken.values().map(|taken| taken.until)).min();
            return next.map_or(Looked::Empty, |due| {
                Looked::Later(due.saturating_duration_since(now))
            });
        };
        self.sessions.remove(&session);
        self.takes += 1;
        let ready = Ready {
            tenant: wanted.tenant,
            agent: entry.agent.clone(),
            session,
            lane: entry.lane,
            token: self.takes,
        };
        if !lease.is_zero() {
            let taken = Taken {
                token: self.takes,
                until: now + lease,
                entry,
            };
            self.taken.insert(session, taken);
        }
        Looked::Ready(ready)
    }
}

/// The schedule of one process.
#[derive(Default)]
pub struct MemoryCoord {
    tenants: Mutex<HashMap<TenantId, Tenant>>,
    hub: Hub,
    lines: Lines,
}

impl MemoryCoord {
    pub fn new() -> Self {
        Self::default()
    }
}

#[async_trait]
impl Coord for MemoryCoord {
    async fn schedule(&self, entry: &Scheduled) -> Result<()> {
        let new = Entry {
            agent: entry.agent.clone(),
            lane: entry.lane,
            due: Instant::now() + entry.due_in,
        };
        let moved = lock(&self.tenants)
            .entry(entry.tenant)
            .or_default()
            .put(entry.session, new);
        if moved {
            self.hub.deliver(Hint::Scheduled(entry.tenant));
        }
        Ok(())
    }

    async fn take(&self, wanted: &Wanted, lease: Duration) -> Result<Looked> {
        let now = Instant::now();
        Ok(match lock(&self.tenants).get_mut(&wanted.tenant) {
            Some(tenant) => tenant.take(wanted, now, lease),
            None => Looked::Empty,
        })
    }

    async fn acquire(&self, wanted: &[Wanted], wait: Duration) -> Result<Option<Ready>> {
        self.lines.acquire(self, &self.hub, wanted, wait).await
    }

    async fn done(&self, ready: &Ready) -> Result<()> {
        if let Some(tenant) = lock(&self.tenants).get_mut(&ready.tenant)
            && let Some(taken) = tenant.taken.get(&ready.session)
            && taken.token == ready.token
        {
            tenant.taken.remove(&ready.session);
        }
        Ok(())
    }

    async fn signal(&self, tenant: TenantId, turn: TurnId, signal: Signal) -> Result<()> {
        self.hub.deliver(Hint::Turn(tenant, turn, signal));
        Ok(())
    }

    fn signals(&self, tenant: TenantId, turn: TurnId) -> Signals {
        self.hub.signals(tenant, turn)
    }

    async fn hint(&self, tenant: TenantId, session: SessionId) -> Result<()> {
        self.hub.deliver(Hint::Session(tenant, session));
        Ok(())
    }

    fn watch(&self, tenant: TenantId, session: SessionId) -> Changes {
        self.hub.watch(tenant, session)
    }

    async fn clear(&self) -> Result<()> {
        lock(&self.tenants).clear();
        Ok(())
    }

    async fn ping(&self) -> Result<()> {
        Ok(())
    }
}
