//! Processes die, Redis and NATS forget: every accepted message is answered exactly once, in order.

use colloquy_client::Client;
use colloquy_coord::RedisCoord;
use colloquy_tests::cluster::Cluster;
use colloquy_tests::people::{Adapter, Tenant, check_echoes};
use colloquy_tests::servers::{control, database, own};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::Duration;

const CHATS: i64 = 3;
const ROUNDS: usize = 20;
const LONG: Duration = Duration::from_secs(120);

/// Short leases, so that what a dead process held comes back soon; attempts enough for a bad night.
fn overrides() -> Value {
    json!({"queue": {"debounce_ms": 30, "lease_ms": 2_000, "retry_ms": 50, "max_attempts": 100, "capacity": 1_000}})
}

/// A seed of one's own by COLLOQUY_TEST_SEED; printed, so that a failure can be played again.
fn seeded(name: &str) -> StdRng {
    let given = std::env::var("COLLOQUY_TEST_SEED")
        .ok()
        .and_then(|text| text.parse().ok());
    let seed: u64 = given.unwrap_or_else(rand::random);
    println!("{name}: COLLOQUY_TEST_SEED={seed}");
    StdRng::seed_from_u64(seed)
}

/// Messages of every chat, posted in order beside everything else.
struct Load {
    said: Vec<Vec<String>>,
    next: i64,
}

impl Load {
    fn new() -> Self {
        Self {
            said: vec![Vec::new(); usize::try_from(CHATS).unwrap()],
            next: 1,
        }
    }

    /// One message for each chat, accepted when this returns.
    async fn burst(&mut self, tenant: &Tenant) {
        let number = self.next;
        self.next += 1;
        let text = |chat: i64| format!("message {number} of chat {chat}");
        let posts = (1..=CHATS).map(|chat| {
            let words = text(chat);
            async move { tenant.say(chat, number, &words).await }
        });
        futures::future::join_all(posts).await;
        for chat in 1..=CHATS {
            self.said[usize::try_from(chat).unwrap() - 1].push(text(chat));
        }
    }

    /// Every message answered once, every answer delivered once, in order.
    async fn check(&self, tenant: &Tenant, adapter: Adapter) {
        for (said, chat) in self.said.iter().zip(1..) {
            tenant.settled(chat, LONG).await;
            let talk = tenant.talk(chat).await;
            check_echoes(chat, said, &talk);
            adapter.check(chat, &talk, LONG).await;
        }
        println!(
            "{} deliveries came again after an unknown end",
            adapter.stop().await
        );
    }
}

async fn kill_under_load(name: &str, cluster: &mut Cluster) {
    let mut random = seeded(name);
    let tenant = Tenant::create(&cluster.operator, &cluster.http, overrides()).await;
    let echo = tenant.start_echo(&cluster.operator, Duration::from_millis(20));
    let adapter = tenant.start_adapter();
    let mut load = Load::new();
    for round in 0..ROUNDS {
        let place = random.random_range(0..cluster.len());
        let pause = Duration::from_millis(random.random_range(0..250));
        let (killed, ()) = tokio::join!(
            async {
                tokio::time::sleep(pause).await;
                cluster.kill_and_restart(place).await
            },
            async {
                load.burst(&tenant).await;
                load.burst(&tenant).await;
            }
        );
        println!("round {round}: {killed} killed after {pause:?}");
    }
    load.check(&tenant, adapter).await;
    echo.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_the_embedded_server_loses_and_doubles_nothing() {
    let mut cluster = Cluster::one_process().await;
    kill_under_load("embedded", &mut cluster).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_services_loses_and_doubles_nothing() {
    let Some(postgres) = database().await else { return };
    let (redis, nats) = (own("redis", "killredis"), own("nats", "killnats"));
    let mut cluster = Cluster::distributed(&postgres, &redis, &nats).await;
    kill_under_load("distributed", &mut cluster).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flushed_redis_and_an_emptied_nats_lose_and_double_nothing() {
    let Some(postgres) = database().await else { return };
    let (redis, nats) = (own("redis", "wiperedis"), own("nats", "wipenats"));
    let cluster = Cluster::distributed(&postgres, &redis, &nats).await;
    let tenant = Tenant::create(&cluster.operator, &cluster.http, overrides()).await;
    let echo = tenant.start_echo(&cluster.operator, Duration::from_millis(20));
    let adapter = tenant.start_adapter();
    let flusher = RedisCoord::connect(&redis).await.unwrap();
    let mut load = Load::new();
    for round in 0..6 {
        load.burst(&tenant).await;
        flusher.flush().await.unwrap();
        if round == 2 {
            control(&["kill", "wipenats"]);
            control(&["wipe", "wipenats"]);
            load.burst(&tenant).await;
            control(&["start", "nats", "wipenats"]);
        }
        load.burst(&tenant).await;
    }
    load.check(&tenant, adapter).await;
    // The jobs came through as well: every turn was read for memories.
    jobs_end(&tenant.admin).await;
    echo.stop().await;
}

async fn jobs_end(admin: &Client) {
    use colloquy_client::v1;
    let waited = tokio::time::timeout(LONG, async {
        loop {
            let jobs = admin
                .compactor()
                .list_jobs(v1::ListJobsRequest {
                    page_size: 500,
                    ..Default::default()
                })
                .await;
            if let Ok(jobs) = jobs
                && jobs
                    .into_inner()
                    .jobs
                    .iter()
                    .all(|job| job.state() == v1::JobState::Done)
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    });
    waited.await.expect("every job ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_routers_and_a_flush_never_run_two_turns_of_a_session_at_once() {
    let Some(postgres) = database().await else { return };
    let (redis, nats) = (own("redis", "tworedis"), own("nats", "twonats"));
    let cluster = Cluster::distributed(&postgres, &redis, &nats).await;
    // Long leases: two at once could only come from the dispatch.
    let overrides = json!({"queue": {"debounce_ms": 0, "capacity": 100}});
    let tenant = Tenant::create(&cluster.operator, &cluster.http, overrides).await;
    let flusher = RedisCoord::connect(&redis).await.unwrap();
    let mut said = Vec::new();
    for number in 1..=8 {
        let text = format!("turn {number}");
        tenant.say(1, number, &text).await;
        said.push(text);
    }
    flusher.flush().await.unwrap();
    let one = tenant.start_echo(&cluster.operator, Duration::from_millis(150));
    let other = tenant.start_echo(&cluster.other_router, Duration::from_millis(150));
    for _ in 0..4 {
        tokio::time::sleep(Duration::from_millis(200)).await;
        flusher.flush().await.unwrap();
    }
    tenant.settled(1, LONG).await;
    check_echoes(1, &said, &tenant.talk(1).await);
    let most = one
        .most
        .load(Ordering::SeqCst)
        .max(other.most.load(Ordering::SeqCst));
    assert_eq!(most, 1, "one turn of a session at a time, over both workers");
    one.stop().await;
    other.stop().await;
}
