//! What every backend does.

use colloquy_coord::{Coord, Looked, Ready, Scheduled, Signal, Wanted};
use colloquy_types::queue::Lane;
use colloquy_types::{AgentId, SessionId, TenantId, TurnId};
use std::collections::HashSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

/// Longer than anything here takes: a test that fails does not hang.
const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(100);

pub fn entry(tenant: TenantId, agent: &str, lane: Lane, due_in: u64) -> Scheduled {
    Scheduled {
        tenant,
        agent: AgentId::parse(agent).unwrap(),
        session: SessionId::new(),
        lane,
        due_in: Duration::from_millis(due_in),
    }
}

/// A take without a lease: the session is off the schedule at once.
async fn pop(coord: &dyn Coord, tenant: TenantId, agents: &[AgentId]) -> Looked {
    let wanted = Wanted {
        tenant,
        agents: agents.to_vec(),
    };
    coord.take(&wanted, Duration::ZERO).await.unwrap()
}

fn assert_popped(looked: &Looked, entry: &Scheduled) {
    let Looked::Ready(ready) = looked else {
        panic!("{looked:?}");
    };
    assert_eq!(
        (ready.tenant, ready.session, &ready.agent, ready.lane),
        (entry.tenant, entry.session, &entry.agent, entry.lane)
    );
}

pub fn all(tenant: TenantId) -> Wanted {
    Wanted {
        tenant,
        agents: Vec::new(),
    }
}

async fn take(coord: &dyn Coord, tenant: TenantId, lease: Duration) -> Ready {
    match coord.take(&all(tenant), lease).await.unwrap() {
        Looked::Ready(ready) => ready,
        other => panic!("{other:?}"),
    }
}

pub async fn acquired(coord: &dyn Coord, tenant: TenantId) -> Ready {
    coord
        .acquire(&[all(tenant)], LONG)
        .await
        .unwrap()
        .expect("a session in time")
}

pub async fn in_time<T>(event: impl Future<Output = T>) -> T {
    timeout(LONG, event).await.expect("it happens in time")
}

pub async fn a_session_is_popped_once(coord: Arc<dyn Coord>) {
    let one = entry(TenantId::new(), "a", Lane::User, 0);
    coord.schedule(&one).await.unwrap();
    coord.schedule(&one).await.unwrap();
    assert_popped(&pop(&*coord, one.tenant, &[]).await, &one);
    assert_eq!(pop(&*coord, one.tenant, &[]).await, Looked::Empty);
    coord.ping().await.unwrap();
}

pub async fn nothing_is_popped_before_its_time(coord: Arc<dyn Coord>) {
    let one = entry(TenantId::new(), "a", Lane::User, 60_000);
    coord.schedule(&one).await.unwrap();
    match pop(&*coord, one.tenant, &[]).await {
        Looked::Later(wait) => assert!(
            wait > Duration::from_secs(40) && wait <= Duration::from_secs(60),
            "{wait:?}"
        ),
        other => panic!("{other:?}"),
    }
}

pub async fn an_earlier_time_wins(coord: Arc<dyn Coord>) {
    let mut one = entry(TenantId::new(), "a", Lane::User, 60_000);
    coord.schedule(&one).await.unwrap();
    one.due_in = Duration::ZERO;
    coord.schedule(&one).await.unwrap();
    one.due_in = Duration::from_secs(90);
    coord.schedule(&one).await.unwrap();
    assert_popped(&pop(&*coord, one.tenant, &[]).await, &one);
}

pub async fn the_more_urgent_lane_wins(coord: Arc<dyn Coord>) {
    let mut one = entry(TenantId::new(), "a", Lane::Background, 0);
    coord.schedule(&one).await.unwrap();
    for lane in [Lane::User, Lane::Heartbeat] {
        one.lane = lane;
        coord.schedule(&one).await.unwrap();
    }
    one.lane = Lane::User;
    assert_popped(&pop(&*coord, one.tenant, &[]).await, &one);
    assert_eq!(pop(&*coord, one.tenant, &[]).await, Looked::Empty);
}

pub async fn people_come_before_housekeeping(coord: Arc<dyn Coord>) {
    let tenant = TenantId::new();
    let lanes = [
        Lane::Background,
        Lane::Heartbeat,
        Lane::Cron,
        Lane::Subagent,
        Lane::User,
    ];
    // Also across agents: a worker of both serves the people of either first.
    let entries: Vec<_> = lanes
        .iter()
        .zip(["a", "b", "a", "b", "a"])
        .map(|(lane, agent)| entry(tenant, agent, *lane, 0))
        .collect();
    for one in &entries {
        coord.schedule(one).await.unwrap();
    }
    for one in entries.iter().rev() {
        assert_popped(&pop(&*coord, tenant, &[]).await, one);
    }
}

pub async fn within_a_lane_the_longest_due_comes_first(coord: Arc<dyn Coord>) {
    let tenant = TenantId::new();
    let (later, sooner) = (
        entry(tenant, "a", Lane::User, 600),
        entry(tenant, "a", Lane::User, 0),
    );
    coord.schedule(&later).await.unwrap();
    coord.schedule(&sooner).await.unwrap();
    assert_eq!(acquired(&*coord, tenant).await.session, sooner.session);
    assert_eq!(acquired(&*coord, tenant).await.session, later.session);
}

pub async fn a_worker_gets_only_its_agents_and_tenant(coord: Arc<dyn Coord>) {
    let one = entry(TenantId::new(), "a", Lane::User, 0);
    coord.schedule(&one).await.unwrap();
    let other = AgentId::parse("b").unwrap();
    let foreign = Wanted {
        tenant: one.tenant,
        agents: vec![other.clone()],
    };
    assert_eq!(
        pop(&*coord, one.tenant, std::slice::from_ref(&other)).await,
        Looked::Empty
    );
    assert_eq!(pop(&*coord, TenantId::new(), &[]).await, Looked::Empty);
    assert_eq!(coord.acquire(&[foreign], SHORT).await.unwrap(), None);
    assert_eq!(coord.acquire(&[all(TenantId::new())], SHORT).await.unwrap(), None);
    assert_popped(&pop(&*coord, one.tenant, &[other, one.agent.clone()]).await, &one);
}

pub async fn many_sessions_of_another_agent_hide_nothing(coord: Arc<dyn Coord>) {
    let tenant = TenantId::new();
    for _ in 0..300 {
        let other = entry(tenant, "busy", Lane::User, 0);
        coord.schedule(&other).await.unwrap();
    }
    let one = entry(tenant, "a", Lane::Background, 0);
    coord.schedule(&one).await.unwrap();
    assert_popped(
        &pop(&*coord, tenant, std::slice::from_ref(&one.agent)).await,
        &one,
    );
}

pub async fn a_holder_that_dies_leaves_its_session_to_others(coord: Arc<dyn Coord>) {
    let one = entry(TenantId::new(), "a", Lane::Cron, 0);
    coord.schedule(&one).await.unwrap();
    let (start, lease) = (Instant::now(), Duration::from_secs(1));
    let first = take(&*coord, one.tenant, lease).await;
    match coord.take(&all(one.tenant), lease).await.unwrap() {
        Looked::Later(wait) => assert!(wait <= lease, "{wait:?}"),
        other => panic!("{other:?}"),
    }
    let second = acquired(&*coord, one.tenant).await;
    assert!(start.elapsed() >= lease - Duration::from_millis(5));
    assert_ne!(first.token, second.token);
    assert_eq!(
        (second.session, second.agent, second.lane),
        (one.session, one.agent, one.lane)
    );
}

pub async fn a_session_that_is_done_is_not_offered_again(coord: Arc<dyn Coord>) {
    let one = entry(TenantId::new(), "a", Lane::User, 0);
    coord.schedule(&one).await.unwrap();
    let ready = take(&*coord, one.tenant, SHORT).await;
    coord.done(&ready).await.unwrap();
    assert_eq!(coord.take(&all(one.tenant), SHORT).await.unwrap(), Looked::Empty);
    assert_eq!(coord.acquire(&[all(one.tenant)], SHORT * 3).await.unwrap(), None);
}

pub async fn what_is_scheduled_during_a_take_outlives_its_end(coord: Arc<dyn Coord>) {
    let one = entry(TenantId::new(), "a", Lane::User, 0);
    coord.schedule(&one).await.unwrap();
    let ready = take(&*coord, one.tenant, LONG).await;
    coord.schedule(&one).await.unwrap();
    coord.done(&ready).await.unwrap();
    assert_eq!(acquired(&*coord, one.tenant).await.session, one.session);
}

pub async fn a_late_end_leaves_the_next_take_alone(coord: Arc<dyn Coord>) {
    let one = entry(TenantId::new(), "a", Lane::User, 0);
    coord.schedule(&one).await.unwrap();
    let late = take(&*coord, one.tenant, SHORT).await;
    let next = acquired(&*coord, one.tenant).await;
    coord.done(&late).await.unwrap();
    let looked = coord.take(&all(one.tenant), LONG).await.unwrap();
    assert!(matches!(looked, Looked::Later(_)), "{looked:?}");
    coord.done(&next).await.unwrap();
    assert_eq!(coord.take(&all(one.tenant), LONG).await.unwrap(), Looked::Empty);
}

pub async fn acquire_waits_for_what_is_scheduled(coord: Arc<dyn Coord>) {
    let one = entry(TenantId::new(), "a", Lane::User, 0);
    let (waiting, tenant) = (coord.clone(), one.tenant);
    let waiter = tokio::spawn(async move { acquired(&*waiting, tenant).await });
    coord.schedule(&one).await.unwrap();
    assert_eq!(in_time(waiter).await.unwrap().session, one.session);
}

pub async fn acquire_waits_for_what_is_due_later(coord: Arc<dyn Coord>) {
    let one = entry(TenantId::new(), "a", Lane::User, 250);
    let start = Instant::now();
    coord.schedule(&one).await.unwrap();
    assert_eq!(acquired(&*coord, one.tenant).await.session, one.session);
    assert!(start.elapsed() >= Duration::from_millis(245));
}

pub async fn acquire_ends_with_its_wait(coord: Arc<dyn Coord>) {
    let start = Instant::now();
    let wanted = [all(TenantId::new())];
    assert_eq!(coord.acquire(&wanted, SHORT).await.unwrap(), None);
    assert!(start.elapsed() >= SHORT);
    assert_eq!(coord.acquire(&[], SHORT).await.unwrap(), None);
}

pub async fn a_call_that_does_not_wait_is_not_held_up_by_a_line(coord: Arc<dyn Coord>) {
    let tenant = TenantId::new();
    let waiting = coord.clone();
    let waiter = tokio::spawn(async move { waiting.acquire(&[all(tenant)], LONG).await });
    let wanted = [all(tenant)];
    assert_eq!(
        in_time(coord.acquire(&wanted, Duration::ZERO)).await.unwrap(),
        None
    );
    waiter.abort();
}

pub async fn waiters_that_want_the_same_get_one_each(coord: Arc<dyn Coord>) {
    let tenant = TenantId::new();
    let mut waiters = JoinSet::new();
    for _ in 0..20 {
        let waiting = coord.clone();
        waiters.spawn(async move { acquired(&*waiting, tenant).await.session });
    }
    let mut expected = HashSet::new();
    for _ in 0..20 {
        let one = entry(tenant, "a", Lane::User, 0);
        expected.insert(one.session);
        coord.schedule(&one).await.unwrap();
    }
    let got: HashSet<_> = in_time(waiters.join_all()).await.into_iter().collect();
    assert_eq!(got, expected);
}

pub async fn somebody_who_serves_several_tenants_gets_all_of_theirs(coord: Arc<dyn Coord>) {
    let entries = [TenantId::new(), TenantId::new()].map(|tenant| entry(tenant, "a", Lane::User, 0));
    let wanted = entries.clone().map(|one| all(one.tenant));
    let (waiting, both) = (coord.clone(), wanted.clone());
    let waiter = tokio::spawn(async move { waiting.acquire(&both, LONG).await });
    coord.schedule(&entries[1]).await.unwrap();
    assert_eq!(
        in_time(waiter).await.unwrap().unwrap().unwrap().tenant,
        entries[1].tenant
    );
    coord.schedule(&entries[0]).await.unwrap();
    let next = coord.acquire(&wanted, LONG).await.unwrap().unwrap();
    assert_eq!(next.tenant, entries[0].tenant);
}

pub async fn a_lost_schedule_is_filled_again(coord: Arc<dyn Coord>) {
    let one = entry(TenantId::new(), "a", Lane::User, 0);
    coord.schedule(&one).await.unwrap();
    let ready = take(&*coord, one.tenant, LONG).await;
    coord.schedule(&one).await.unwrap();
    coord.clear().await.unwrap();
    assert_eq!(coord.take(&all(one.tenant), LONG).await.unwrap(), Looked::Empty);
    coord.done(&ready).await.unwrap();
    coord.schedule(&one).await.unwrap();
    assert_eq!(acquired(&*coord, one.tenant).await.session, one.session);
}

pub async fn a_signal_reaches_its_turn_and_no_other(coord: Arc<dyn Coord>) {
    let (tenant, turn) = (TenantId::new(), TurnId::new());
    let (mut own, mut other) = (
        coord.signals(tenant, turn),
        coord.signals(TenantId::new(), TurnId::new()),
    );
    for signal in [Signal::Steer, Signal::Cancel] {
        coord.signal(tenant, turn, signal).await.unwrap();
        assert_eq!(in_time(own.next()).await, signal);
    }
    assert!(timeout(SHORT, other.next()).await.is_err());
}

pub async fn a_hint_reaches_its_watchers(coord: Arc<dyn Coord>) {
    let (tenant, session) = (TenantId::new(), SessionId::new());
    let (mut one, mut two) = (coord.watch(tenant, session), coord.watch(tenant, session));
    let mut other = coord.watch(tenant, SessionId::new());
    coord.hint(tenant, session).await.unwrap();
    in_time(one.next()).await;
    in_time(two.next()).await;
    assert!(timeout(SHORT, other.next()).await.is_err());
}
