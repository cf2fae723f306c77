//! Several processes, lost connections, and what waiting costs.

use crate::proxy::Proxy;
use crate::suite::{acquired, all, entry, in_time};
use crate::{config, redis_url};
use colloquy_coord::{Coord, RedisConfig, RedisCoord, Signal};
use colloquy_types::queue::Lane;
use colloquy_types::{Reason, SessionId, TenantId, TurnId};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::timeout;

#[tokio::test]
async fn replicas_share_the_schedule_and_the_hints() {
    let Some(url) = redis_url() else { return };
    let config = config(&url);
    let (one, other) = (
        RedisCoord::open(&config).await.unwrap(),
        RedisCoord::open(&config).await.unwrap(),
    );
    let first = entry(TenantId::new(), "a", Lane::User, 0);
    let (waiting, tenant) = (other.clone(), first.tenant);
    let waiter = tokio::spawn(async move { acquired(&waiting, tenant).await });
    one.schedule(&first).await.unwrap();
    let ready = in_time(waiter).await.unwrap();
    assert_eq!(ready.session, first.session);
    assert_eq!(one.acquire(&[all(tenant)], Duration::ZERO).await.unwrap(), None);
    one.done(&ready).await.unwrap();

    let (turn, session) = (TurnId::new(), SessionId::new());
    let (mut signals, mut changes) = (other.signals(tenant, turn), other.watch(tenant, session));
    one.signal(tenant, turn, Signal::Reset).await.unwrap();
    one.hint(tenant, session).await.unwrap();
    assert_eq!(in_time(signals.next()).await, Signal::Reset);
    in_time(changes.next()).await;
    one.clear().await.unwrap();
}

#[tokio::test]
async fn forty_idle_waiters_cost_as_little_as_one() {
    let Some(url) = redis_url() else { return };
    let proxy = Proxy::start(&url).await;
    let coord = Arc::new(RedisCoord::open(&config(&proxy.url)).await.unwrap());
    let (tenant, wait) = (TenantId::new(), Duration::from_secs(2));
    let mut waiters = JoinSet::new();
    for _ in 0..40 {
        let waiting = coord.clone();
        waiters.spawn(async move { waiting.acquire(&[all(tenant)], wait).await.unwrap() });
    }
    assert!(waiters.join_all().await.iter().all(Option::is_none));
    // One look a second, and the first one twice where the server did not know the script.
    assert!(proxy.scripts() <= 5, "{} looks", proxy.scripts());
}

#[tokio::test]
async fn a_lost_connection_is_an_error_and_heals() {
    let Some(url) = redis_url() else { return };
    let proxy = Proxy::start(&url).await;
    let coord = RedisCoord::open(&config(&proxy.url)).await.unwrap();
    let one = entry(TenantId::new(), "a", Lane::User, 0);
    coord.schedule(&one).await.unwrap();
    proxy.break_off();
    let wanted = [all(one.tenant)];
    assert_eq!(coord.schedule(&one).await.unwrap_err().reason, Reason::Dependency);
    let lost = in_time(coord.acquire(&wanted, Duration::from_secs(10))).await;
    assert_eq!(lost.unwrap_err().reason, Reason::Dependency);
    proxy.let_through();
    let healed = async {
        loop {
            // Each call is told of a fault only once it is over.
            match coord.acquire(&wanted, Duration::from_secs(10)).await {
                Ok(Some(ready)) => return ready,
                _ => tokio::task::yield_now().await,
            }
        }
    };
    assert_eq!(in_time(healed).await.session, one.session);

    let mut changes = coord.watch(one.tenant, one.session);
    let hinted = async {
        loop {
            coord.hint(one.tenant, one.session).await.unwrap();
            if timeout(Duration::from_millis(50), changes.next()).await.is_ok() {
                return;
            }
        }
    };
    in_time(hinted).await;
    coord.clear().await.unwrap();
}

#[tokio::test]
async fn a_url_that_is_none_is_refused() {
    let refused = RedisCoord::open(&RedisConfig::new("cache:6379")).await;
    assert_eq!(refused.err().unwrap().reason, Reason::InvalidField);
}
