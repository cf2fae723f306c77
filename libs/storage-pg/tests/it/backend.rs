//! Databases for the tests: each its own, copied from a migrated one.

use async_trait::async_trait;
use colloquy_storage::testsuite::{DatabaseClock, Fixture};
use colloquy_storage_pg::{PgOptions, PgStore, migrate};
use colloquy_types::{ManualClock, UnixMillis};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
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

/// Of every file of a folder, by name and content.
fn fingerprint(folder: &Path) -> u64 {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        file.file_name().hash(&mut hasher);
        std::fs::read(&file).unwrap().hash(&mut hasher);
    }
    hasher.finish()
}

#[test]
fn every_migration_is_part_of_the_templates_name() {
    let folder = std::env::temp_dir().join(format!("colloquy-migrations-{}", Uuid::new_v4().simple()));
    std::fs::create_dir(&folder).unwrap();
    let mut names = HashSet::new();
    for (file, sql) in [
        ("0001_a.sql", "a"),
        ("0002_b.sql", "b"),
        ("0003_c.sql", "c"),
        ("0003_c.sql", "changed"),
        ("0004_d.sql", ""),
    ] {
        std::fs::write(folder.join(file), sql).unwrap();
        assert!(names.insert(fingerprint(&folder)), "{file} makes no difference");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Named by the schema, so that one is made per schema and server, by whoever comes first.
async fn template(connection: &mut PgConnection, server: &str) -> String {
    let migrations = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let name = format!("colloquy_template_{:016x}", fingerprint(&migrations));
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
