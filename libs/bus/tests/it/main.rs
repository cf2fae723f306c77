//! One suite for every backend.

#![allow(clippy::unwrap_used)] // a test may panic

use colloquy_bus::{Bus, Delivered, JetStreamBus, JobMessage, MemoryBus, Subscription};
use colloquy_types::{JobId, SessionId, TenantId};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

static KINDS: AtomicU32 = AtomicU32::new(0);

/// A kind of its own per test, so that tests on one server do not take each other's messages.
fn message() -> JobMessage {
    let number = KINDS.fetch_add(1, Ordering::SeqCst);
    let letter = |n: u32| char::from(b'a' + u8::try_from(n % 26).unwrap());
    let kind = format!(
        "t{}{}_{}",
        letter(number),
        letter(number / 26),
        std::process::id()
    );
    JobMessage {
        job: JobId::new(),
        publish_no: 1,
        tenant: TenantId::new(),
        session: SessionId::new(),
        kind,
    }
}

async fn jetstream() -> Option<Arc<dyn Bus>> {
    match std::env::var("COLLOQUY_TEST_NATS_URL") {
        Ok(url) => Some(Arc::new(JetStreamBus::connect(&url).await.unwrap())),
        Err(_) => {
            assert!(
                std::env::var_os("COLLOQUY_TEST_REQUIRE_SERVERS").is_none(),
                "no NATS to test with"
            );
            println!("skipped: COLLOQUY_TEST_NATS_URL is not set");
            None
        }
    }
}

macro_rules! suite {
    ($($case:ident),+ $(,)?) => {
        mod memory { $(#[tokio::test] async fn $case() { super::$case(std::sync::Arc::new(super::MemoryBus::new())).await; })+ }
        mod jetstream_server { $(#[tokio::test] async fn $case() {
            if let Some(bus) = super::jetstream().await { super::$case(bus).await; }
        })+ }
    };
}

suite!(
    a_published_job_is_delivered,
    the_same_id_is_delivered_once,
    a_refused_message_comes_again,
    two_subscribers_share,
);

async fn next(subscription: &mut Box<dyn Subscription>) -> Delivered {
    tokio::time::timeout(Duration::from_secs(20), subscription.next())
        .await
        .expect("a message in time")
        .unwrap()
}

async fn nothing(subscription: &mut Box<dyn Subscription>) {
    let waited = tokio::time::timeout(Duration::from_millis(300), subscription.next()).await;
    assert!(waited.is_err(), "nothing more is delivered");
}

async fn a_published_job_is_delivered(bus: Arc<dyn Bus>) {
    let one = message();
    bus.publish(&one).await.unwrap();
    let mut subscription = bus.subscribe(&one.kind).await.unwrap();
    let delivered = next(&mut subscription).await;
    assert_eq!(delivered.message, one);
    delivered.receipt.progress().await.unwrap();
    delivered.receipt.ack().await.unwrap();
    nothing(&mut subscription).await;
    bus.ping().await.unwrap();
}

async fn the_same_id_is_delivered_once(bus: Arc<dyn Bus>) {
    let one = message();
    bus.publish(&one).await.unwrap();
    bus.publish(&one).await.unwrap();
    let again = JobMessage {
        publish_no: 2,
        ..one.clone()
    };
    bus.publish(&again).await.unwrap();
    let mut subscription = bus.subscribe(&one.kind).await.unwrap();
    for expected in [&one, &again] {
        let delivered = next(&mut subscription).await;
        assert_eq!(&delivered.message, expected);
        delivered.receipt.ack().await.unwrap();
    }
    nothing(&mut subscription).await;
}

async fn a_refused_message_comes_again(bus: Arc<dyn Bus>) {
    let one = message();
    bus.publish(&one).await.unwrap();
    let mut subscription = bus.subscribe(&one.kind).await.unwrap();
    next(&mut subscription)
        .await
        .receipt
        .nak(Duration::from_millis(200))
        .await
        .unwrap();
    let again = next(&mut subscription).await;
    assert_eq!(again.message, one);
    again.receipt.ack().await.unwrap();
}

async fn two_subscribers_share(bus: Arc<dyn Bus>) {
    let one = message();
    let two = JobMessage {
        job: JobId::new(),
        ..one.clone()
    };
    let (mut left, mut right) = (
        bus.subscribe(&one.kind).await.unwrap(),
        bus.subscribe(&one.kind).await.unwrap(),
    );
    bus.publish(&one).await.unwrap();
    let first = next(&mut left).await;
    bus.publish(&two).await.unwrap();
    let second = next(&mut right).await;
    assert_ne!(first.message.job, second.message.job);
    first.receipt.ack().await.unwrap();
    second.receipt.ack().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_is_not_acknowledged_comes_again_and_progress_puts_it_off() {
    let (bus, one) = (MemoryBus::new(), message());
    bus.publish(&one).await.unwrap();
    let mut subscription = bus.subscribe(&one.kind).await.unwrap();
    let start = tokio::time::Instant::now();
    let delivered = subscription.next().await.unwrap();
    tokio::time::sleep(Duration::from_secs(20)).await;
    delivered.receipt.progress().await.unwrap();
    assert_eq!(subscription.next().await.unwrap().message, one);
    assert!(start.elapsed() >= Duration::from_secs(50));
}

#[tokio::test]
async fn a_lost_store_is_made_again() {
    let Ok(url) = std::env::var("COLLOQUY_TEST_NATS_URL") else {
        println!("skipped: COLLOQUY_TEST_NATS_URL is not set");
        return;
    };
    let bus = JetStreamBus::connect_as(&url, "wiped").await.unwrap();
    let one = message();
    let mut subscription = bus.subscribe(&one.kind).await.unwrap();
    bus.wipe().await.unwrap();
    bus.publish(&one).await.unwrap();
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    loop {
        match subscription.next().await {
            Ok(delivered) if delivered.message == one => break delivered.receipt.ack().await.unwrap(),
            _ => assert!(
                tokio::time::Instant::now() < deadline,
                "the subscription did not heal"
            ),
        }
    }
}
