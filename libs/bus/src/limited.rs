//! No more messages in work than there are hands for.

use crate::{Delivered, Receipt, Subscription};
use async_trait::async_trait;
use colloquy_types::{Error, Result};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub struct Limited {
    inner: Box<dyn Subscription>,
    hands: Arc<Semaphore>,
}

impl Limited {
    pub fn new(inner: Box<dyn Subscription>, most: usize) -> Self {
        Self {
            inner,
            hands: Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS))),
        }
    }
}

#[async_trait]
impl Subscription for Limited {
    async fn next(&mut self) -> Result<Delivered> {
        // Before the message is taken: one that waits for a hand here would be kept from others.
        let hand = self.hands.clone().acquire_owned().await;
        let hand = hand.map_err(|error| Error::internal(error.to_string()))?;
        let delivered = self.inner.next().await?;
        Ok(Delivered {
            message: delivered.message,
            receipt: Box::new(Held {
                inner: delivered.receipt,
                _hand: hand,
            }),
        })
    }
}

struct Held {
    inner: Box<dyn Receipt>,
    _hand: OwnedSemaphorePermit,
}

#[async_trait]
impl Receipt for Held {
    async fn ack(&self) -> Result<()> {
        self.inner.ack().await
    }

    async fn progress(&self) -> Result<()> {
        self.inner.progress().await
    }

    async fn nak(&self, delay: Duration) -> Result<()> {
        self.inner.nak(delay).await
    }

    async fn term(&self) -> Result<()> {
        self.inner.term().await
    }
}
