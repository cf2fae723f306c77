//! NATS JetStream backend. The stream and consumer definitions stand here and nowhere else.

use crate::{ACK_WAIT, Bus, Delivered, JobMessage, Receipt, Subscription};
use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{self, RetentionPolicy};
use async_nats::jetstream::{self, AckKind, Context, Message};
use async_nats::{Client, ConnectOptions};
use async_trait::async_trait;
use colloquy_types::{Error, Result};
use futures::StreamExt;
use std::fmt::Display;
use std::time::Duration;

/// First part of subjects and names when nothing else is configured.
const PREFIX: &str = "colloquy";
/// Ids are remembered this long; a job's next publication has a new one.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);
/// Offers older than this are worthless: the relay publishes again.
const MAX_AGE: Duration = Duration::from_secs(3_600);
/// Longest wait of one fetch; the loop goes on.
const FETCH_WAIT: Duration = Duration::from_secs(5);

fn stream_name(prefix: &str) -> String {
    format!("{}_JOBS", prefix.to_uppercase())
}

fn stream_config(prefix: &str) -> stream::Config {
    stream::Config {
        name: stream_name(prefix),
        subjects: vec![format!("{prefix}.jobs.>")],
        retention: RetentionPolicy::WorkQueue,
        duplicate_window: DUPLICATE_WINDOW,
        max_age: MAX_AGE,
        ..Default::default()
    }
}

fn consumer_config(prefix: &str, kind: &str) -> pull::Config {
    pull::Config {
        durable_name: Some(format!("{prefix}_{kind}")),
        filter_subject: format!("{prefix}.jobs.{kind}.>"),
        ack_policy: AckPolicy::Explicit,
        ack_wait: ACK_WAIT,
        // The job table counts attempts; a redelivery is none.
        max_deliver: -1,
        max_ack_pending: 10_000,
        ..Default::default()
    }
}

fn unavailable(error: impl Display) -> Error {
    Error::unavailable(format!("nats: {error}"))
}

/// The bus of all processes.
#[derive(Clone)]
pub struct JetStreamBus {
    client: Client,
    jetstream: Context,
    prefix: String,
}

impl JetStreamBus {
    /// Connects and makes the stream; reconnects by itself afterwards.
    ///
    /// # Errors
    /// `DEPENDENCY` when it cannot be reached or has no JetStream.
    pub async fn connect(url: &str) -> Result<Self> {
        Self::connect_as(url, PREFIX).await
    }

    /// Under a prefix of its own (`[a-z]+`), so that several installations share a server.
    ///
    /// # Errors
    /// Those of `connect`.
    pub async fn connect_as(url: &str, prefix: &str) -> Result<Self> {
        let options = ConnectOptions::new()
            .connection_timeout(Duration::from_secs(3))
            .name("colloquy");
        let client = options.connect(url).await.map_err(unavailable)?;
        let mut jetstream = jetstream::new(client.clone());
        jetstream.set_timeout(Duration::from_secs(5));
        let bus = Self {
            client,
            jetstream,
            prefix: prefix.to_owned(),
        };
        bus.stream().await?;
        Ok(bus)
    }

    async fn stream(&self) -> Result<stream::Stream> {
        self.jetstream
            .get_or_create_stream(stream_config(&self.prefix))
            .await
            .map_err(unavailable)
    }

    async fn consumer(&self, kind: &str) -> Result<PullConsumer> {
        let config = consumer_config(&self.prefix, kind);
        let name = config.durable_name.clone().unwrap_or_default();
        self.stream()
            .await?
            .get_or_create_consumer(&name, config)
            .await
            .map_err(unavailable)
    }

    /// Deletes the stream: what a restart with an empty store does. For tests.
    ///
    /// # Errors
    /// `DEPENDENCY`.
    pub async fn wipe(&self) -> Result<()> {
        self.jetstream
            .delete_stream(stream_name(&self.prefix))
            .await
            .map(|_| ())
            .map_err(unavailable)
    }

    async fn try_publish(&self, message: &JobMessage) -> Result<()> {
        let subject = format!("{}.jobs.{}.{}", self.prefix, message.kind, message.tenant);
        let payload = serde_json::to_vec(message).map_err(|error| Error::internal(error.to_string()))?;
        let publish = PublishMessage::build()
            .payload(payload.into())
            .message_id(message.id());
        let acked = self
            .jetstream
            .send_publish(subject, publish)
            .await
            .map_err(unavailable)?;
        acked.await.map(|_| ()).map_err(unavailable)
    }
}

#[async_trait]
impl Bus for JetStreamBus {
    async fn publish(&self, message: &JobMessage) -> Result<()> {
        if self.try_publish(message).await.is_ok() {
            return Ok(());
        }
        // The store may have been lost: make the stream again and say it once more.
        self.stream().await?;
        self.try_publish(message).await
    }

    async fn subscribe(&self, kind: &str) -> Result<Box<dyn Subscription>> {
        let consumer = self.consumer(kind).await?;
        Ok(Box::new(JetStreamSubscription {
            bus: self.clone(),
            kind: kind.to_owned(),
            consumer: Some(consumer),
        }))
    }

    async fn ping(&self) -> Result<()> {
        tokio::time::timeout(Duration::from_secs(2), self.client.flush())
            .await
            .map_err(unavailable)?
            .map_err(unavailable)
    }
}

struct JetStreamSubscription {
    bus: JetStreamBus,
    kind: String,
    /// None after a fault: made again by the next call.
    consumer: Option<PullConsumer>,
}

impl JetStreamSubscription {
    async fn fetch(&mut self) -> Result<Option<Message>> {
        let consumer = match &self.consumer {
            Some(consumer) => consumer,
            None => self.consumer.insert(self.bus.consumer(&self.kind).await?),
        };
        let fetch = consumer.fetch().max_messages(1).expires(FETCH_WAIT);
        let mut batch = fetch.messages().await.map_err(unavailable)?;
        let next = tokio::time::timeout(FETCH_WAIT + Duration::from_secs(2), batch.next()).await;
        match next {
            Ok(Some(message)) => message.map(Some).map_err(unavailable),
            Ok(None) => Ok(None),
            // Neither a message nor the end of the fetch: the consumer is gone.
            Err(_) => Err(unavailable("no answer to a fetch")),
        }
    }

    /// An empty fetch also comes from a consumer that vanished with its store.
    async fn still_there(&mut self) -> Result<()> {
        match &mut self.consumer {
            Some(consumer) => consumer.info().await.map(|_| ()).map_err(unavailable),
            None => Ok(()),
        }
    }
}

#[async_trait]
impl Subscription for JetStreamSubscription {
    async fn next(&mut self) -> Result<Delivered> {
        loop {
            match self.fetch().await {
                Ok(Some(message)) => match serde_json::from_slice(&message.payload) {
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
                Ok(None) => {
                    if let Err(error) = self.still_there().await {
                        self.consumer = None;
                        tracing::info!(%error, "consumer is made again");
                    }
                }
                Err(error) => {
                    self.consumer = None;
                    return Err(error);
                }
            }
        }
    }
}

struct JetStreamReceipt(Message);

#[async_trait]
impl Receipt for JetStreamReceipt {
    async fn ack(&self) -> Result<()> {
        self.0.ack().await.map_err(unavailable)
    }

    async fn progress(&self) -> Result<()> {
        self.0.ack_with(AckKind::Progress).await.map_err(unavailable)
    }

    async fn nak(&self, delay: Duration) -> Result<()> {
        self.0
            .ack_with(AckKind::Nak(Some(delay)))
            .await
            .map_err(unavailable)
    }
}
