//! What every backend does.

use crate::ACK_WAIT;
use colloquy_bus::{Bus, Delivered, JobMessage, Subscription};
use colloquy_types::{JobId, SessionId, TenantId};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// Longer than anything here takes: a test that fails does not hang.
const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(300);

pub fn message() -> JobMessage {
    JobMessage {
        job: JobId::new(),
        publish_no: 1,
        tenant: TenantId::new(),
        session: SessionId::new(),
        kind: "compaction".into(),
    }
}

fn other(message: &JobMessage) -> JobMessage {
    JobMessage {
        job: JobId::new(),
        ..message.clone()
    }
}

type Messages = Box<dyn Subscription>;

pub async fn next(messages: &mut Messages) -> Delivered {
    timeout(LONG, messages.next())
        .await
        .expect("a message in time")
        .unwrap()
}

async fn nothing(messages: &mut Messages, within: Duration) {
    let waited = timeout(within, messages.next()).await;
    assert!(waited.is_err(), "nothing more is delivered");
}

pub async fn a_published_job_is_delivered(bus: Arc<dyn Bus>) {
    let one = message();
    bus.publish(&one).await.unwrap();
    let mut messages = bus.subscribe(&one.kind).await.unwrap();
    let delivered = next(&mut messages).await;
    assert_eq!(delivered.message, one);
    delivered.receipt.ack().await.unwrap();
    nothing(&mut messages, ACK_WAIT + SHORT).await;
    bus.ping().await.unwrap();
}

pub async fn a_kind_is_delivered_to_its_subscribers_only(bus: Arc<dyn Bus>) {
    let one = message();
    let extract = JobMessage {
        kind: "memory_extract".into(),
        ..other(&one)
    };
    let (mut messages, mut extracts) = (
        bus.subscribe(&one.kind).await.unwrap(),
        bus.subscribe(&extract.kind).await.unwrap(),
    );
    bus.publish(&extract).await.unwrap();
    bus.publish(&one).await.unwrap();
    for (messages, expected) in [(&mut messages, &one), (&mut extracts, &extract)] {
        let delivered = next(messages).await;
        assert_eq!(&delivered.message, expected);
        delivered.receipt.ack().await.unwrap();
    }
}

pub async fn the_same_id_is_delivered_once(bus: Arc<dyn Bus>) {
    let one = message();
    bus.publish(&one).await.unwrap();
    bus.publish(&one).await.unwrap();
    let again = JobMessage {
        publish_no: 2,
        ..one.clone()
    };
    bus.publish(&again).await.unwrap();
    let mut messages = bus.subscribe(&one.kind).await.unwrap();
    for expected in [&one, &again] {
        let delivered = next(&mut messages).await;
        assert_eq!(&delivered.message, expected);
        delivered.receipt.ack().await.unwrap();
    }
    nothing(&mut messages, SHORT).await;
}

pub async fn the_same_id_is_not_delivered_again_after_its_end(bus: Arc<dyn Bus>) {
    let one = message();
    let mut messages = bus.subscribe(&one.kind).await.unwrap();
    bus.publish(&one).await.unwrap();
    next(&mut messages).await.receipt.ack().await.unwrap();
    bus.publish(&one).await.unwrap();
    nothing(&mut messages, SHORT).await;
}

pub async fn what_is_not_acknowledged_comes_again(bus: Arc<dyn Bus>) {
    let one = message();
    let mut messages = bus.subscribe(&one.kind).await.unwrap();
    bus.publish(&one).await.unwrap();
    let start = Instant::now();
    drop(next(&mut messages).await);
    let again = next(&mut messages).await;
    assert_eq!(again.message, one);
    assert!(start.elapsed() >= ACK_WAIT / 2, "{:?}", start.elapsed());
    again.receipt.ack().await.unwrap();
}

pub async fn progress_puts_a_redelivery_off(bus: Arc<dyn Bus>) {
    let one = message();
    let mut messages = bus.subscribe(&one.kind).await.unwrap();
    bus.publish(&one).await.unwrap();
    let delivered = next(&mut messages).await;
    for _ in 0..5 {
        nothing(&mut messages, ACK_WAIT / 3).await;
        delivered.receipt.progress().await.unwrap();
    }
    let again = next(&mut messages).await;
    assert_eq!(again.message, one);
    again.receipt.ack().await.unwrap();
}

pub async fn a_refused_message_comes_again_after_its_delay(bus: Arc<dyn Bus>) {
    let one = message();
    let mut messages = bus.subscribe(&one.kind).await.unwrap();
    bus.publish(&one).await.unwrap();
    let delivered = next(&mut messages).await;
    let (start, delay) = (Instant::now(), Duration::from_millis(400));
    delivered.receipt.nak(delay).await.unwrap();
    let again = next(&mut messages).await;
    assert_eq!(again.message, one);
    assert!(
        start.elapsed() >= delay - Duration::from_millis(20),
        "{:?}",
        start.elapsed()
    );
    again.receipt.ack().await.unwrap();
}

pub async fn a_message_that_is_given_up_never_comes_again(bus: Arc<dyn Bus>) {
    let one = message();
    let mut messages = bus.subscribe(&one.kind).await.unwrap();
    bus.publish(&one).await.unwrap();
    next(&mut messages).await.receipt.term().await.unwrap();
    nothing(&mut messages, ACK_WAIT + SHORT).await;
}

pub async fn two_subscribers_share(bus: Arc<dyn Bus>) {
    let one = message();
    let (mut left, mut right) = (
        bus.subscribe(&one.kind).await.unwrap(),
        bus.subscribe(&one.kind).await.unwrap(),
    );
    let sent: Vec<_> = (0..2).map(|_| other(&one)).collect();
    for message in &sent {
        bus.publish(message).await.unwrap();
    }
    // Neither acknowledges before the other has its own.
    let (first, second) = (next(&mut left).await, next(&mut right).await);
    let got: HashSet<_> = [first.message.job, second.message.job].into();
    assert_eq!(got, sent.iter().map(|message| message.job).collect());
    first.receipt.ack().await.unwrap();
    second.receipt.ack().await.unwrap();
    nothing(&mut left, SHORT).await;
    nothing(&mut right, SHORT).await;
}

pub async fn no_more_are_handed_out_than_asked_for(bus: Arc<dyn Bus>) {
    let one = message();
    let two = other(&one);
    let mut messages = bus.subscribe_at_most(&one.kind, 1).await.unwrap();
    bus.publish(&one).await.unwrap();
    bus.publish(&two).await.unwrap();
    let first = next(&mut messages).await;
    nothing(&mut messages, SHORT).await;
    first.receipt.ack().await.unwrap();
    drop(first);
    let second = next(&mut messages).await;
    assert_eq!(second.message, two);
    second.receipt.ack().await.unwrap();
}

pub async fn a_dropped_call_loses_nothing(bus: Arc<dyn Bus>) {
    let one = message();
    let mut messages = bus.subscribe(&one.kind).await.unwrap();
    nothing(&mut messages, Duration::from_millis(100)).await;
    let start = Instant::now();
    bus.publish(&one).await.unwrap();
    let delivered = next(&mut messages).await;
    assert_eq!(delivered.message, one);
    // At once, not only when the wait for an acknowledgement is over.
    assert!(start.elapsed() < ACK_WAIT, "{:?}", start.elapsed());
    delivered.receipt.ack().await.unwrap();
}
