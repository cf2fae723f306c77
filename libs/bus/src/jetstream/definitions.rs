//! The stream and its consumers: both ends take them from here and from nowhere else.

use super::NatsConfig;
use crate::{DUPLICATE_WINDOW, JobMessage};
use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy};
use std::time::Duration;

/// Offers older than this are worthless: the relay publishes again.
const MAX_AGE: Duration = Duration::from_secs(3_600);
/// Offers on the server at a time. A full stream refuses the newest rather than forget the oldest: the job table is
/// the queue of record, so the relay says it and offers the job again later, by when the workers have made room.
/// Enough for 25,000 tenants with the 8 offers that the relay has under way for each.
const MAX_MESSAGES: i64 = 200_000;
/// An offer takes some 300 bytes. The server sets this much of its storage aside when the stream is made.
const MAX_BYTES: i64 = 128 << 20;

pub fn stream_name(prefix: &str) -> String {
    format!("{}_JOBS", prefix.to_uppercase())
}

/// `<prefix>.jobs.<kind>.<tenant>`.
pub fn subject(prefix: &str, message: &JobMessage) -> String {
    format!("{prefix}.jobs.{}.{}", message.kind, message.tenant)
}

pub fn stream(config: &NatsConfig) -> Config {
    Config {
        name: stream_name(&config.prefix),
        subjects: vec![format!("{}.jobs.>", config.prefix)],
        retention: RetentionPolicy::WorkQueue,
        duplicate_window: DUPLICATE_WINDOW,
        max_age: MAX_AGE,
        max_messages: MAX_MESSAGES,
        max_bytes: MAX_BYTES,
        discard: DiscardPolicy::New,
        ..Default::default()
    }
}

pub fn consumer_name(prefix: &str, kind: &str) -> String {
    format!("{prefix}_{kind}")
}

pub fn consumer(config: &NatsConfig, kind: &str) -> pull::Config {
    pull::Config {
        durable_name: Some(consumer_name(&config.prefix, kind)),
        filter_subject: format!("{}.jobs.{kind}.>", config.prefix),
        ack_policy: AckPolicy::Explicit,
        ack_wait: Duration::from_millis(config.ack_wait_ms),
        // The job table counts attempts; a redelivery is none.
        max_deliver: -1,
        max_ack_pending: 10_000,
        ..Default::default()
    }
}
