//! One suite for every backend, and what only Redis has to stand.

#![allow(clippy::unwrap_used)] // a test may panic

mod proxy;
mod redis_only;
mod suite;

use colloquy_coord::{Coord, MemoryCoord, RedisConfig, RedisCoord};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The server to test with; None when there is none and none is required.
fn redis_url() -> Option<String> {
    let url = std::env::var("COLLOQUY_TEST_REDIS_URL").ok();
    if url.is_none() {
        let required = std::env::var_os("COLLOQUY_TEST_REQUIRE_SERVERS").is_some();
        assert!(!required, "no Redis to test with");
        println!("skipped: COLLOQUY_TEST_REDIS_URL is not set");
    }
    url
}

/// A prefix of its own per test, so that one can lose everything without another noticing.
fn config(url: &str) -> RedisConfig {
    static TESTS: AtomicU32 = AtomicU32::new(0);
    let number = TESTS.fetch_add(1, Ordering::SeqCst);
    RedisConfig {
        prefix: format!("test{}x{number}", std::process::id()),
        ..RedisConfig::new(url)
    }
}

async fn memory() -> Option<Arc<dyn Coord>> {
    Some(Arc::new(MemoryCoord::new()))
}

async fn redis() -> Option<Arc<dyn Coord>> {
    let coord = RedisCoord::open(&config(&redis_url()?)).await.unwrap();
    Some(Arc::new(coord))
}

macro_rules! stamp {
    ($make:ident: $($case:ident),+ $(,)?) => {
        mod $make {
            $(#[tokio::test] async fn $case() {
                if let Some(coord) = super::$make().await {
                    super::suite::$case(coord.clone()).await;
                    coord.clear().await.unwrap();
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
                a_session_is_popped_once,
                nothing_is_popped_before_its_time,
                an_earlier_time_wins,
                the_more_urgent_lane_wins,
                people_come_before_housekeeping,
                within_a_lane_the_longest_due_comes_first,
                a_worker_gets_only_its_agents_and_tenant,
                many_sessions_of_another_agent_hide_nothing,
                a_holder_that_dies_leaves_its_session_to_others,
                a_session_that_is_done_is_not_offered_again,
                what_is_scheduled_during_a_take_outlives_its_end,
                a_late_end_leaves_the_next_take_alone,
                acquire_waits_for_what_is_scheduled,
                acquire_waits_for_what_is_due_later,
                acquire_ends_with_its_wait,
                a_call_that_does_not_wait_is_not_held_up_by_a_line,
                waiters_that_want_the_same_get_one_each,
                somebody_who_serves_several_tenants_gets_all_of_theirs,
                a_lost_schedule_is_filled_again,
                a_signal_reaches_its_turn_and_no_other,
                a_hint_reaches_its_watchers,
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
conformance!(redis);

cases!(list CASES);

#[test]
fn the_suite_is_whole() {
    let written: Vec<&str> = include_str!("suite.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("pub async fn "))
        .filter(|line| line.ends_with("(coord: Arc<dyn Coord>) {"))
        .filter_map(|line| line.split('(').next())
        .collect();
    assert_eq!(written, CASES);
}
