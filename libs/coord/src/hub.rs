//! Hands hints to the waiters of this process. Nothing is kept for those who come later.

use crate::Signal;
use colloquy_types::{SessionId, TenantId, TurnId};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::broadcast;

/// Hints a slow reader may be behind by; older ones are lost to it.
const BEHIND: usize = 16;

/// What goes from process to process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hint {
    Scheduled(TenantId),
    Turn(TenantId, TurnId, Signal),
    Session(TenantId, SessionId),
}

/// Who waits for what in this process.
#[derive(Default)]
pub struct Hub {
    schedules: Arc<Topics<TenantId, ()>>,
    turns: Arc<Topics<(TenantId, TurnId), Signal>>,
    sessions: Arc<Topics<(TenantId, SessionId), ()>>,
}

impl Hub {
    pub fn deliver(&self, hint: Hint) {
        match hint {
            Hint::Scheduled(tenant) => self.schedules.publish(&tenant, ()),
            Hint::Turn(tenant, turn, signal) => self.turns.publish(&(tenant, turn), signal),
            Hint::Session(tenant, session) => self.sessions.publish(&(tenant, session), ()),
        }
    }

    pub fn schedules(&self, tenant: TenantId) -> Subscriber<TenantId, ()> {
        Topics::subscribe(&self.schedules, tenant)
    }

    pub fn signals(&self, tenant: TenantId, turn: TurnId) -> Signals {
        Signals(Topics::subscribe(&self.turns, (tenant, turn)))
    }

    pub fn watch(&self, tenant: TenantId, session: SessionId) -> Changes {
        Changes(Topics::subscribe(&self.sessions, (tenant, session)))
    }
}

/// The signals of one turn.
pub struct Signals(Subscriber<(TenantId, TurnId), Signal>);

impl Signals {
    /// Waits for the next signal, for ever if need be: renewals tell what was lost. Cancel-safe.
    pub async fn next(&mut self) -> Signal {
        self.0.next().await
    }
}

/// The hints of one session.
pub struct Changes(Subscriber<(TenantId, SessionId), ()>);

impl Changes {
    /// Waits until the session may have changed, for ever if need be: watchers read now and then anyway.
    /// Several changes may come as one. Cancel-safe.
    pub async fn next(&mut self) {
        self.0.next().await;
        self.0.drain();
    }
}

struct Topics<K, V>(Mutex<HashMap<K, broadcast::Sender<V>>>);

impl<K, V> Default for Topics<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Clone + Eq + Hash, V: Clone> Topics<K, V> {
    fn publish(&self, key: &K, value: V) {
        if let Some(sender) = lock(&self.0).get(key) {
            // Fails only when the last reader is just leaving.
            let _ = sender.send(value);
        }
    }

    fn subscribe(topics: &Arc<Self>, key: K) -> Subscriber<K, V> {
        let receiver = lock(&topics.0)
            .entry(key.clone())
            .or_insert_with(|| broadcast::Sender::new(BEHIND))
            .subscribe();
        Subscriber {
            topics: topics.clone(),
            key,
            receiver,
        }
    }
}

pub struct Subscriber<K: Clone + Eq + Hash, V: Clone> {
    topics: Arc<Topics<K, V>>,
    key: K,
    receiver: broadcast::Receiver<V>,
}

impl<K: Clone + Eq + Hash, V: Clone> Subscriber<K, V> {
    pub async fn next(&mut self) -> V {
        loop {
            match self.receiver.recv().await {
                Ok(value) => return value,
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                // The sender lives as long as a subscriber; were it gone, there would be nothing to hear.
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }

    /// Forgets what has come so far.
    pub fn drain(&mut self) {
        self.receiver = self.receiver.resubscribe();
    }
}

impl<K: Clone + Eq + Hash, V: Clone> Drop for Subscriber<K, V> {
    fn drop(&mut self) {
        let mut topics = lock(&self.topics.0);
        // This one still counts.
        if topics
            .get(&self.key)
            .is_some_and(|sender| sender.receiver_count() <= 1)
        {
            topics.remove(&self.key);
        }
    }
}

/// A panic in between leaves a hint too many or too few, which is harmless.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_ends_with_its_last_reader() {
        let (hub, tenant, turn) = (Hub::default(), TenantId::new(), TurnId::new());
        let (first, second) = (hub.signals(tenant, turn), hub.signals(tenant, turn));
        drop(first);
        assert_eq!(lock(&hub.turns.0).len(), 1);
        drop(second);
        assert!(lock(&hub.turns.0).is_empty());
    }

    #[tokio::test]
    async fn a_slow_reader_goes_on_with_the_newest() {
        let (hub, tenant, turn) = (Hub::default(), TenantId::new(), TurnId::new());
        let mut signals = hub.signals(tenant, turn);
        for _ in 0..BEHIND {
            hub.deliver(Hint::Turn(tenant, turn, Signal::Steer));
        }
        hub.deliver(Hint::Turn(tenant, turn, Signal::Cancel));
        for _ in 1..BEHIND {
            assert_eq!(signals.next().await, Signal::Steer);
        }
        assert_eq!(signals.next().await, Signal::Cancel);
    }
}
