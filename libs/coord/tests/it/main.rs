//! One suite for every backend.

#![allow(clippy::unwrap_used)] // a test may panic

use colloquy_coord::{Coord, MemoryCoord, Popped, RedisCoord, Scheduled};
use colloquy_types::queue::Lane;
use colloquy_types::{AgentId, SessionId, TenantId};
use std::sync::Arc;
use std::time::Duration;

fn entry(tenant: TenantId, agent: &str, lane: Lane, due_in: u64) -> Scheduled {
    Scheduled {
        tenant,
        agent: AgentId::parse(agent).unwrap(),
        session: SessionId::new(),
        lane,
        due_in: Duration::from_millis(due_in),
    }
}

fn ready(entry: &Scheduled) -> Popped {
    Popped::Ready {
        session: entry.session,
        agent: entry.agent.clone(),
        lane: entry.lane,
    }
}

async fn redis() -> Option<Arc<dyn Coord>> {
    match std::env::var("COLLOQUY_TEST_REDIS_URL") {
        Ok(url) => Some(Arc::new(RedisCoord::connect(&url).await.unwrap())),
        Err(_) => {
            assert!(
                std::env::var_os("COLLOQUY_TEST_REQUIRE_SERVERS").is_none(),
                "no Redis to test with"
            );
            println!("skipped: COLLOQUY_TEST_REDIS_URL is not set");
            None
        }
    }
}

macro_rules! suite {
    ($($case:ident),+ $(,)?) => {
        mod memory { $(#[tokio::test] async fn $case() { super::$case(std::sync::Arc::new(super::MemoryCoord::new())).await; })+ }
        mod redis_server { $(#[tokio::test] async fn $case() {
            if let Some(coord) = super::redis().await { super::$case(coord).await; }
        })+ }
    };
}

suite!(
    a_session_is_popped_once,
    nothing_is_popped_before_its_time,
    an_earlier_time_wins,
    people_come_before_housekeeping,
    a_worker_gets_only_its_agents_and_tenant,
    a_waiter_is_woken,
);

async fn a_session_is_popped_once(coord: Arc<dyn Coord>) {
    let one = entry(TenantId::new(), "a", Lane::User, 0);
    coord.schedule(&one).await.unwrap();
    coord.schedule(&one).await.unwrap();
    assert_eq!(coord.pop(one.tenant, &[]).await.unwrap(), ready(&one));
    assert_eq!(coord.pop(one.tenant, &[]).await.unwrap(), Popped::Empty);
    coord.ping().await.unwrap();
}

async fn nothing_is_popped_before_its_time(coord: Arc<dyn Coord>) {
    let one = entry(TenantId::new(), "a", Lane::User, 60_000);
    coord.schedule(&one).await.unwrap();
    match coord.pop(one.tenant, &[]).await.unwrap() {
        Popped::Later(wait) => assert!(
            wait > Duration::from_secs(55) && wait <= Duration::from_secs(60),
            "{wait:?}"
        ),
        other => panic!("{other:?}"),
    }
}

async fn an_earlier_time_wins(coord: Arc<dyn Coord>) {
    let mut one = entry(TenantId::new(), "a", Lane::User, 60_000);
    coord.schedule(&one).await.unwrap();
    one.due_in = Duration::ZERO;
    coord.schedule(&one).await.unwrap();
    one.due_in = Duration::from_secs(90);
    coord.schedule(&one).await.unwrap();
    assert_eq!(coord.pop(one.tenant, &[]).await.unwrap(), ready(&one));
}

async fn people_come_before_housekeeping(coord: Arc<dyn Coord>) {
    let tenant = TenantId::new();
    let (background, person) = (
        entry(tenant, "a", Lane::Background, 0),
        entry(tenant, "a", Lane::User, 0),
    );
    coord.schedule(&background).await.unwrap();
    coord.schedule(&person).await.unwrap();
    assert_eq!(coord.pop(tenant, &[]).await.unwrap(), ready(&person));
    assert_eq!(coord.pop(tenant, &[]).await.unwrap(), ready(&background));
}

async fn a_worker_gets_only_its_agents_and_tenant(coord: Arc<dyn Coord>) {
    let one = entry(TenantId::new(), "a", Lane::User, 0);
    coord.schedule(&one).await.unwrap();
    let other = AgentId::parse("b").unwrap();
    assert_eq!(
        coord.pop(one.tenant, &[other.clone()]).await.unwrap(),
        Popped::Empty
    );
    assert_eq!(coord.pop(TenantId::new(), &[]).await.unwrap(), Popped::Empty);
    assert_eq!(
        coord.pop(one.tenant, &[other, one.agent.clone()]).await.unwrap(),
        ready(&one)
    );
}

async fn a_waiter_is_woken(coord: Arc<dyn Coord>) {
    let one = entry(TenantId::new(), "a", Lane::User, 0);
    let (waiting, tenant) = (coord.clone(), one.tenant);
    let waiter = tokio::spawn(async move { waiting.changed(tenant, Duration::from_secs(30)).await });
    coord.schedule(&one).await.unwrap();
    tokio::time::timeout(Duration::from_secs(5), waiter)
        .await
        .expect("woken in time")
        .unwrap();
}
