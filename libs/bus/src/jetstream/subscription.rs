//! The messages of one kind, one pull at a time.

use super::{JetStreamBus, unavailable};
use crate::{Delivered, JobMessage, Receipt, Subscription};
use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::consumer::pull::Batch;
use async_nats::jetstream::{AckKind, Message};
use async_trait::async_trait;
use colloquy_types::{Error, Result};
use futures::StreamExt;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Longest wait of one pull; the loop goes on.
const PULL_WAIT: Duration = Duration::from_secs(5);
/// How much later than asked the server may end a pull. No answer at all comes from a consumer that is gone.
const PULL_SLACK: Duration = Duration::from_secs(1);

pub struct JetStreamSubscription {
    bus: JetStreamBus,
    kind: String,
    /// None after a fault: made again by the next pull.
    consumer: Option<PullConsumer>,
    /// Kept over a dropped `next`, so that a message that arrives in between is not lost until its wait is over.
    pull: Option<(Batch, Instant)>,
}

impl JetStreamSubscription {
    pub fn new(bus: JetStreamBus, kind: &str, consumer: PullConsumer) -> Self {
        Self {
            bus,
            kind: kind.to_owned(),
            consumer: Some(consumer),
            pull: None,
        }
    }

    /// None when nothing came within the wait.
    async fn pull(&mut self) -> Result<Option<Message>> {
        if self.pull.is_none() {
            let consumer = match &self.consumer {
                Some(consumer) => consumer,
                None => self.consumer.insert(self.bus.consumer(&self.kind).await?),
            };
            let pull = consumer.batch().max_messages(1).expires(PULL_WAIT);
            let batch = pull.messages().await.map_err(unavailable)?;
            self.pull = Some((batch, Instant::now() + PULL_WAIT + PULL_SLACK));
        }
        let next = match &mut self.pull {
            Some((batch, until)) => timeout_at(*until, batch.next()).await.ok().flatten(),
            None => None,
        };
        self.pull = None;
        next.transpose().map_err(unavailable)
    }

    /// An empty pull also comes from a consumer that vanished with its store.
    async fn still_there(&mut self) -> Result<()> {
        match &mut self.consumer {
            Some(consumer) => consumer.info().await.map(|_| ()).map_err(unavailable),
            None => Ok(()),
        }
    }

    /// The next message, or none where there is nothing to be said but to look again.
    async fn look(&mut self) -> Result<Option<Message>> {
        let message = self.pull().await?;
        if message.is_none() {
            self.still_there().await?;
        }
        Ok(message)
    }
}

#[async_trait]
impl Subscription for JetStreamSubscription {
    async fn next(&mut self) -> Result<Delivered> {
        let mut fault: Option<Error> = None;
        loop {
            match self.look().await {
                Ok(Some(message)) => match serde_json::from_slice::<JobMessage>(&message.payload) {
                    Ok(job) => {
                        return Ok(Delivered {
                            message: job,
                            receipt: Box::new(JetStreamReceipt(message)),
                        });
                    }
                    Err(error) => {
                        tracing::warn!(%error, "unreadable job message dropped");
                        let _ = message.ack_with(AckKind::Term).await;
                    }
                },
                Ok(None) => fault = None,
                Err(error) => {
                    self.consumer = None;
                    tracing::info!(%error, kind = self.kind, "consumer is made again");
                    // Once is a lost store or a new leader; twice in a row is worth a pause of the caller.
                    if fault.replace(error.clone()).is_some() {
                        return Err(error);
                    }
                }
            }
        }
    }
}

struct JetStreamReceipt(Message);

impl JetStreamReceipt {
    async fn say(&self, kind: AckKind) -> Result<()> {
        self.0.ack_with(kind).await.map_err(unavailable)
    }
}

#[async_trait]
impl Receipt for JetStreamReceipt {
    async fn ack(&self) -> Result<()> {
        self.say(AckKind::Ack).await
    }

    async fn progress(&self) -> Result<()> {
        self.say(AckKind::Progress).await
    }

    async fn nak(&self, delay: Duration) -> Result<()> {
        self.say(AckKind::Nak(Some(delay))).await
    }

    async fn term(&self) -> Result<()> {
        self.say(AckKind::Term).await
    }
}
