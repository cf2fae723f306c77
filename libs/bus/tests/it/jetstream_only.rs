//! A store that is lost, and settings that do not fit.

use crate::jetstream;
use crate::suite::message;
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
    let Some(bus) = jetstream().await else { return };
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
    let Some(bus) = jetstream().await else { return };
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
