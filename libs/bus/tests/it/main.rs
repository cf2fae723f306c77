//! One suite for every backend, and what only JetStream has to stand.

#![allow(clippy::unwrap_used)] // a test may panic

mod jetstream_only;
mod suite;

use colloquy_bus::{Bus, JetStreamBus, MemoryBus, NatsConfig};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Short enough to wait for, long enough for a loaded machine to answer within.
const ACK_WAIT: Duration = Duration::from_millis(1_500);

/// A bus for one case, and what is to be wiped after it.
struct Fixture {
    bus: Arc<dyn Bus>,
    stream: Option<JetStreamBus>,
}

async fn memory() -> Option<Fixture> {
    let bus = Arc::new(MemoryBus::with_ack_wait(ACK_WAIT));
    Some(Fixture { bus, stream: None })
}

async fn jetstream() -> Option<Fixture> {
    let stream = open().await?;
    Some(Fixture {
        bus: Arc::new(stream.clone()),
        stream: Some(stream),
    })
}

/// A stream of its own per test, so that one can lose its store without another noticing. None when there is no
/// server and none is required.
async fn open() -> Option<JetStreamBus> {
    Some(JetStreamBus::open(config()?).await.unwrap())
}

fn config() -> Option<NatsConfig> {
    static TESTS: AtomicU32 = AtomicU32::new(0);
    let Ok(url) = std::env::var("COLLOQUY_TEST_NATS_URL") else {
        let required = std::env::var_os("COLLOQUY_TEST_REQUIRE_SERVERS").is_some();
        assert!(!required, "no NATS to test with");
        println!("skipped: COLLOQUY_TEST_NATS_URL is not set");
        return None;
    };
    let number = TESTS.fetch_add(1, Ordering::SeqCst);
    Some(NatsConfig {
        prefix: format!("test{}x{number}", std::process::id()),
        ack_wait_ms: 1_500,
        ..NatsConfig::new(&url)
    })
}

macro_rules! stamp {
    ($make:ident: $($case:ident),+ $(,)?) => {
        mod $make {
            $(#[tokio::test] async fn $case() {
                if let Some(fixture) = super::$make().await {
                    super::suite::$case(fixture.bus).await;
                    if let Some(stream) = fixture.stream {
                        stream.wipe().await.unwrap();
                    }
                }
            })+
        }
    };
}

macro_rules! list {
    (CASES: $($case:ident),+ $(,)?) => { const CASES: &[&str] = &[$(stringify!($case)),+]; };
}

/// The cases of the suite, handed to another macro.
macro_rules! cases {
    ($then:ident $first:ident) => {
        $then! { $first:
                a_published_job_is_delivered,
                a_kind_is_delivered_to_its_subscribers_only,
                the_same_id_is_delivered_once,
                the_same_id_is_not_delivered_again_after_its_end,
                what_is_not_acknowledged_comes_again,
                progress_puts_a_redelivery_off,
                a_refused_message_comes_again_after_its_delay,
                a_message_that_is_given_up_never_comes_again,
                two_subscribers_share,
                no_more_are_handed_out_than_asked_for,
                a_dropped_call_loses_nothing,
        }
    };
}

/// Stamps the suite onto a backend, named by its factory here. Which backends there must be is compared by the tests
/// of the project's shape.
macro_rules! conformance {
    ($make:ident) => {
        cases!(stamp $make);
    };
}

conformance!(memory);
conformance!(jetstream);

cases!(list CASES);

#[test]
fn the_suite_is_whole() {
    let written: Vec<&str> = include_str!("suite.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("pub async fn "))
        .filter(|line| line.ends_with("(bus: Arc<dyn Bus>) {"))
        .filter_map(|line| line.split('(').next())
        .collect();
    assert_eq!(written, CASES);
}
