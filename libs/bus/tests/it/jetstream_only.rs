//! A store that is lost, and settings that do not fit.

use crate::suite::message;
use crate::{config, open};
use colloquy_bus::{Bus, JetStreamBus, NatsConfig, Subscription};
use colloquy_types::Reason;
use std::time::Duration;
use tokio::time::timeout;

/// What a worker does: an error is worth another call.
async fn job(messages: &mut Box<dyn Subscription>) -> colloquy_bus::Delivered {
    let healed = async {
        loop {
            match messages.next().await {
                Ok(delivered) => return delivered,
                Err(error) => assert_eq!(error.reason, Reason::Dependency),
            }
        }
    };
    timeout(Duration::from_secs(30), healed)
        .await
        .expect("the subscription heals")
}

#[tokio::test]
async fn a_publication_makes_a_lost_store_again() {
    let Some(bus) = open().await else { return };
    let one = message();
    let mut messages = bus.subscribe(&one.kind).await.unwrap();
    bus.wipe().await.unwrap();
    bus.publish(&one).await.unwrap();
    let delivered = job(&mut messages).await;
    assert_eq!(delivered.message, one);
    delivered.receipt.ack().await.unwrap();
    bus.wipe().await.unwrap();
}

#[tokio::test]
async fn a_store_lost_under_a_waiting_subscriber_is_made_again() {
    let Some(bus) = open().await else { return };
    let one = message();
    let mut messages = bus.subscribe(&one.kind).await.unwrap();
    let waiter = tokio::spawn(async move { job(&mut messages).await });
    bus.wipe().await.unwrap();
    // What was published before the loss is gone; the relay says it again under its next number.
    bus.publish(&one).await.unwrap();
    let delivered = waiter.await.unwrap();
    assert_eq!(delivered.message, one);
    delivered.receipt.ack().await.unwrap();
    bus.wipe().await.unwrap();
}

#[tokio::test]
async fn a_url_that_is_none_is_refused_without_repeating_it() {
    let refused = JetStreamBus::open(NatsConfig::new("nats://app:s3cret@")).await;
    let error = refused.err().unwrap();
    assert_eq!(error.reason, Reason::InvalidField, "{error}");
    assert!(!error.to_string().contains("s3cret"));
}

#[tokio::test]
async fn a_stream_of_an_earlier_version_is_given_its_limits() {
    let Some(config) = config() else { return };
    let raw = async_nats::jetstream::new(async_nats::connect(&config.url).await.unwrap());
    let name = format!("{}_JOBS", config.prefix.to_uppercase());
    raw.create_stream(async_nats::jetstream::stream::Config {
        name: name.clone(),
        subjects: vec![format!("{}.jobs.>", config.prefix)],
        retention: async_nats::jetstream::stream::RetentionPolicy::WorkQueue,
        ..Default::default()
    })
    .await
    .unwrap();
    let bus = JetStreamBus::open(config).await.unwrap();
    let limits = raw.get_stream(&name).await.unwrap().cached_info().config.clone();
    assert!(limits.max_messages > 0 && limits.max_bytes > 0, "{limits:?}");
    bus.wipe().await.unwrap();
}

#[tokio::test]
async fn a_full_stream_refuses_the_newest_and_keeps_the_rest() {
    let Some(config) = config() else { return };
    let bus = JetStreamBus::open(config.clone()).await.unwrap();
    let raw = async_nats::jetstream::new(async_nats::connect(&config.url).await.unwrap());
    let name = format!("{}_JOBS", config.prefix.to_uppercase());
    let mut full = raw.get_stream(&name).await.unwrap().cached_info().config.clone();
    full.max_messages = 1;
    raw.update_stream(full).await.unwrap();

    let (first, second) = (message(), message());
    bus.publish(&first).await.unwrap();
    let refused = bus.publish(&second).await.unwrap_err();
    assert_eq!(refused.reason, Reason::Dependency, "{refused}");
    let mut messages = bus.subscribe(&first.kind).await.unwrap();
    let delivered = job(&mut messages).await;
    assert_eq!(delivered.message, first);
    delivered.receipt.ack().await.unwrap();
    bus.wipe().await.unwrap();
}
