//! NATS JetStream backend.

mod config;
mod definitions;
mod subscription;

pub use config::NatsConfig;

use crate::{Bus, JobMessage, Subscription};
use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::Stream;
use async_nats::jetstream::{self, Context};
use async_nats::{Client, ConnectOptions};
use async_trait::async_trait;
use colloquy_types::{Error, Result};
use std::fmt::Display;
use std::time::Duration;
use subscription::JetStreamSubscription;

fn unavailable(error: impl Display) -> Error {
    Error::unavailable(format!("nats: {error}"))
}

/// The bus of all processes.
#[derive(Clone)]
pub struct JetStreamBus {
    client: Client,
    jetstream: Context,
    config: NatsConfig,
}

impl JetStreamBus {
    /// Connects with everything else as by default.
    ///
    /// # Errors
    /// Those of `open`.
    pub async fn connect(url: &str) -> Result<Self> {
        Self::open(NatsConfig::new(url)).await
    }

    /// Connects and makes the stream; reconnects by itself afterwards.
    ///
    /// # Errors
    /// `INVALID_FIELD` for a setting that does not fit, `DEPENDENCY` when the server cannot be reached or has no
    /// JetStream.
    pub async fn open(config: NatsConfig) -> Result<Self> {
        config.validate()?;
        let options = ConnectOptions::new()
            .connection_timeout(Duration::from_secs(3))
            .name("colloquy");
        let client = options.connect(config.servers()?).await.map_err(unavailable)?;
        let mut jetstream = jetstream::new(client.clone());
        jetstream.set_timeout(Duration::from_secs(5));
        let bus = Self {
            client,
            jetstream,
            config,
        };
        // A stream of an earlier version gets today's limits.
        bus.jetstream
            .create_or_update_stream(definitions::stream(&bus.config))
            .await
            .map_err(unavailable)?;
        Ok(bus)
    }

    async fn stream(&self) -> Result<Stream> {
        self.jetstream
            .get_or_create_stream(definitions::stream(&self.config))
            .await
            .map_err(unavailable)
    }

    async fn consumer(&self, kind: &str) -> Result<PullConsumer> {
        let name = definitions::consumer_name(&self.config.prefix, kind);
        self.stream()
            .await?
            .get_or_create_consumer(&name, definitions::consumer(&self.config, kind))
            .await
            .map_err(unavailable)
    }

    /// Deletes the stream: what a restart with an empty store does. For tests.
    ///
    /// # Errors
    /// `DEPENDENCY`.
    pub async fn wipe(&self) -> Result<()> {
        self.jetstream
            .delete_stream(definitions::stream_name(&self.config.prefix))
            .await
            .map(|_| ())
            .map_err(unavailable)
    }

    async fn try_publish(&self, message: &JobMessage, payload: &[u8]) -> Result<(), PublishError> {
        let subject = definitions::subject(&self.config.prefix, message);
        let publish = PublishMessage::build()
            .payload(payload.to_vec().into())
            .message_id(message.id());
        self.jetstream.send_publish(subject, publish).await?.await?;
        Ok(())
    }
}

#[async_trait]
impl Bus for JetStreamBus {
    async fn publish(&self, message: &JobMessage) -> Result<()> {
        let payload = serde_json::to_vec(message).map_err(|error| Error::internal(error.to_string()))?;
        match self.try_publish(message, &payload).await {
            Err(error) if error.kind() == PublishErrorKind::StreamNotFound => {
                // The store was lost: make the stream again and say it once more.
                self.stream().await?;
                self.try_publish(message, &payload).await.map_err(unavailable)
            }
            published => published.map_err(unavailable),
        }
    }

    async fn subscribe(&self, kind: &str) -> Result<Box<dyn Subscription>> {
        let consumer = self.consumer(kind).await?;
        Ok(Box::new(JetStreamSubscription::new(self.clone(), kind, consumer)))
    }

    async fn ping(&self) -> Result<()> {
        tokio::time::timeout(Duration::from_secs(2), self.client.flush())
            .await
            .map_err(unavailable)?
            .map_err(unavailable)
    }
}
