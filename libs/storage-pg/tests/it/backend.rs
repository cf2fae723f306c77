//! Databases for the tests: each its own, copied from a migrated one.

use async_trait::async_trait;
use colloquy_storage::testsuite::{DatabaseClock, Fixture};
use colloquy_storage_pg::{PgOptions, PgStore, migrate};
use colloquy_types::{ManualClock, UnixMillis};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use uuid::Uuid;

pub const START: UnixMillis = UnixMillis(1_700_000_000_000);

struct TestClock(Arc<ManualClock>);

#[async_trait]
impl DatabaseClock for TestClock {
    async fn advance(&self, millis: i64) {
        self.0.advance(millis);
    }
}

/// The server to test on; `None` when there is none and none is required.
pub fn server() -> Option<String> {
    let url = std::env::var("COLLOQUY_TEST_PG_URL").ok();
    if url.is_none() {
        assert!(
            std::env::var_os("COLLOQUY_TEST_REQUIRE_SERVERS").is_none(),
            "no Postgres to test with"
        );
        println!("skipped: COLLOQUY_TEST_PG_URL is not set");
    }
    url
}

/// The same server, another database.
fn database(server: &str, name: &str) -> String {
    let (base, query) = server
        .split_once('?')
        .map_or((server, ""), |(base, query)| (base, query));
    let host = base
        .rfind('/')
        .filter(|at| *at > "postgresql://".len())
        .map_or(base, |at| &base[..at]);
    if query.is_empty() {
        format!("{host}/{name}")
    } else {
        format!("{host}/{name}?{query}")
    }
}

/// Named by the schema, so that one is made per schema and server, by whoever comes first.
async fn template(connection: &mut PgConnection, server: &str) -> String {
    let mut hasher = DefaultHasher::new();
    include_str!("../../migrations/0001_store.sql").hash(&mut hasher);
    include_str!("../../migrations/0002_hot_path.sql").hash(&mut hasher);
    let name = format!("colloquy_template_{:016x}", hasher.finish());
    sqlx::query("SELECT pg_advisory_lock(4711)")
        .execute(&mut *connection)
        .await
        .unwrap();
    let known: Option<i32> = sqlx::query_scalar("SELECT 1 FROM pg_database WHERE datname = $1")
        .bind(&name)
        .fetch_optional(&mut *connection)
        .await
        .unwrap();
    if known.is_none() {
        let draft = format!("{name}_draft_{}", Uuid::new_v4().simple());
        create(connection, &draft, "template0").await;
        migrate(&database(server, &draft)).await.unwrap();
        let rename = format!("ALTER DATABASE {draft} RENAME TO {name}");
        sqlx::query(AssertSqlSafe(rename))
            .execute(&mut *connection)
            .await
            .unwrap();
    }
    sqlx::query("SELECT pg_advisory_unlock(4711)")
        .execute(&mut *connection)
        .await
        .unwrap();
    name
}

async fn create(connection: &mut PgConnection, name: &str, template: &str) {
    let create = format!("CREATE DATABASE {name} TEMPLATE {template}");
    sqlx::query(AssertSqlSafe(create))
        .execute(&mut *connection)
        .await
        .unwrap();
}

/// URL of a new, empty, migrated database, as the server's superuser.
pub async fn empty_database() -> Option<String> {
    let server = server()?;
    let mut connection = PgConnection::connect(&server).await.unwrap();
    let template = template(&mut connection, &server).await;
    let name = format!("colloquy_case_{}", Uuid::new_v4().simple());
    create(&mut connection, &name, &template).await;
    connection.close().await.unwrap();
    Some(database(&server, &name))
}

/// The parallel cases need a few connections, and many cases run at the same time.
pub const CONNECTIONS: u32 = 6;

pub async fn store(url: &str, max_connections: u32) -> PgStore {
    PgStore::connect(&PgOptions {
        max_connections,
        ..PgOptions::new(url)
    })
    .await
    .unwrap()
}

/// The suite's view of a store whose clock nobody moves.
pub fn fixture(store: &PgStore) -> Fixture {
    let clock = Arc::new(ManualClock::new(START));
    Fixture {
        store: Arc::new(store.clone().with_clock(clock.clone())),
        clock: Arc::new(TestClock(clock)),
    }
}

pub async fn server_store() -> Option<Fixture> {
    let url = empty_database().await?;
    let clock = Arc::new(ManualClock::new(START));
    let store = store(&url, CONNECTIONS).await.with_clock(clock.clone());
    Some(Fixture {
        store: Arc::new(store),
        clock: Arc::new(TestClock(clock)),
    })
}
