//! In-process backend with the same behaviour: dedupe, redelivery, progress.

use crate::{ACK_WAIT, Bus, DUPLICATE_WINDOW, Delivered, JobMessage, Receipt, Subscription};
use async_trait::async_trait;
use colloquy_types::Result;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

#[derive(Default)]
struct Queue {
    /// Messages with the time from which they may be delivered.
    visible: VecDeque<(Instant, JobMessage)>,
    in_flight: HashMap<String, (Instant, JobMessage)>,
    seen: HashSet<String>,
    /// The ids seen, oldest first, with the time at which they are forgotten.
    forget: VecDeque<(Instant, String)>,
}

impl Queue {
    /// False for an id within the duplicate window.
    fn is_new(&mut self, id: &str, now: Instant) -> bool {
        while let Some((until, _)) = self.forget.front()
            && *until <= now
        {
            if let Some((_, old)) = self.forget.pop_front() {
                self.seen.remove(&old);
            }
        }
        let new = self.seen.insert(id.to_owned());
        if new {
            self.forget.push_back((now + DUPLICATE_WINDOW, id.to_owned()));
        }
        new
    }
}

struct Shared {
    queues: Mutex<HashMap<String, Queue>>,
    woken: Notify,
    ack_wait: Duration,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Queue>> {
        // A panic in between loses at most an offer; the job table offers again.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bus of one process.
#[derive(Clone)]
pub struct MemoryBus(Arc<Shared>);

impl Default for MemoryBus {
    fn default() -> Self {
        Self::with_ack_wait(ACK_WAIT)
    }
}

impl MemoryBus {
    pub fn new() -> Self {
        Self::default()
    }

    /// With another wait for an acknowledgement.
    pub fn with_ack_wait(ack_wait: Duration) -> Self {
        Self(Arc::new(Shared {
            queues: Mutex::default(),
            woken: Notify::default(),
            ack_wait,
        }))
    }
}

#[async_trait]
impl Bus for MemoryBus {
    async fn publish(&self, message: &JobMessage) -> Result<()> {
        let now = Instant::now();
        let mut queues = self.0.lock();
        let queue = queues.entry(message.kind.clone()).or_default();
        if queue.is_new(&message.id(), now) {
            queue.visible.push_back((now, message.clone()));
        }
        drop(queues);
        self.0.woken.notify_waiters();
        Ok(())
    }

    async fn subscribe(&self, kind: &str) -> Result<Box<dyn Subscription>> {
        Ok(Box::new(MemorySubscription {
            shared: self.0.clone(),
            kind: kind.to_owned(),
        }))
    }

    async fn ping(&self) -> Result<()> {
        Ok(())
    }
}

struct MemorySubscription {
    shared: Arc<Shared>,
    kind: String,
}

enum Looked {
    Found(JobMessage),
    /// The earliest time at which something may be there.
    Until(Option<Instant>),
}

impl MemorySubscription {
    fn look(&self) -> Looked {
        let now = Instant::now();
        let mut queues = self.shared.lock();
        let queue = queues.entry(self.kind.clone()).or_default();
        let lost: Vec<String> = queue
            .in_flight
            .iter()
            .filter(|(_, (until, _))| *until <= now)
            .map(|(id, _)| id.clone())
            .collect();
        for id in lost {
            if let Some((_, message)) = queue.in_flight.remove(&id) {
                queue.visible.push_back((now, message));
            }
        }
        if let Some(at) = queue.visible.iter().position(|(from, _)| *from <= now)
            && let Some((_, message)) = queue.visible.remove(at)
        {
            queue
                .in_flight
                .insert(message.id(), (now + self.shared.ack_wait, message.clone()));
            return Looked::Found(message);
        }
        let times = queue.visible.iter().map(|(from, _)| *from);
        Looked::Until(
            times
                .chain(queue.in_flight.values().map(|(until, _)| *until))
                .min(),
        )
    }
}

#[async_trait]
impl Subscription for MemorySubscription {
    async fn next(&mut self) -> Result<Delivered> {
        loop {
            let woken = self.shared.woken.notified();
            tokio::pin!(woken);
            // Registered before looking: a publish in between is not missed.
            woken.as_mut().enable();
            let until = match self.look() {
                Looked::Found(message) => {
                    let receipt = MemoryReceipt {
                        shared: self.shared.clone(),
                        message: message.clone(),
                    };
                    return Ok(Delivered {
                        message,
                        receipt: Box::new(receipt),
                    });
                }
                Looked::Until(until) => until,
            };
            match until {
                Some(until) => {
                    let _ = tokio::time::timeout_at(until, woken).await;
                }
                None => woken.await,
            }
        }
    }
}

struct MemoryReceipt {
    shared: Arc<Shared>,
    message: JobMessage,
}

impl MemoryReceipt {
    fn with_queue(&self, change: impl FnOnce(&mut Queue)) {
        change(self.shared.lock().entry(self.message.kind.clone()).or_default());
        self.shared.woken.notify_waiters();
    }
}

#[async_trait]
impl Receipt for MemoryReceipt {
    async fn ack(&self) -> Result<()> {
        self.with_queue(|queue| {
            queue.in_flight.remove(&self.message.id());
        });
        Ok(())
    }

    async fn progress(&self) -> Result<()> {
        self.with_queue(|queue| {
            if let Some((until, _)) = queue.in_flight.get_mut(&self.message.id()) {
                *until = Instant::now() + self.shared.ack_wait;
            }
        });
        Ok(())
    }

    async fn nak(&self, delay: Duration) -> Result<()> {
        self.with_queue(|queue| {
            if queue.in_flight.remove(&self.message.id()).is_some() {
                queue
                    .visible
                    .push_back((Instant::now() + delay, self.message.clone()));
            }
        });
        Ok(())
    }

    async fn term(&self) -> Result<()> {
        self.ack().await
    }
}
