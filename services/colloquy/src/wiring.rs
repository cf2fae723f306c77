//! Concrete backends: the one place that names them.

use crate::config::Config;
use colloquy_bus::{Bus, JetStreamBus, MemoryBus, NatsConfig};
use colloquy_coord::{Coord, MemoryCoord, RedisConfig, RedisCoord};
use colloquy_service_kit::run::connect_within;
use colloquy_storage::{ControlStore, HistoryStore, MemoryStore};
use colloquy_storage_pg::{PgOptions, PgStore};
use colloquy_storage_sqlite::{SqliteOptions, SqliteStore};
use colloquy_types::{Error, Result, SystemClock};
use std::sync::Arc;
use std::time::Duration;

/// How long a process waits for each of its stores before it gives up.
pub const WAIT: Duration = Duration::from_secs(60);

/// Addresses that cannot be any.
pub fn problems(config: &Config) -> Vec<Error> {
    let given = |url: &str, checked: &dyn Fn(&str) -> Result<()>| match url {
        "" => None,
        url => checked(url).err(),
    };
    let postgres = |setting: &'static str| move |url: &str| colloquy_storage_pg::check_url(setting, url);
    [
        given(&config.postgres.url, &postgres("postgres.url")),
        given(&config.postgres.owner_url, &postgres("postgres.owner_url")),
        given(&config.redis.url, &|url| RedisConfig::new(url).validate()),
        given(&config.nats.url, &|url| NatsConfig::new(url).validate()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The stores of a process.
#[derive(Clone)]
pub struct Stores {
    pub control: Arc<dyn ControlStore>,
    pub history: Arc<dyn HistoryStore>,
    pub memory: Arc<dyn MemoryStore>,
}

/// # Errors
/// `DEPENDENCY` when the database does not answer within `wait`.
pub async fn stores(config: &Config, wait: Duration) -> Result<Stores> {
    if !config.postgres.url.is_empty() {
        let options = PgOptions {
            max_connections: config.postgres.max_connections,
            ..PgOptions::new(&config.postgres.url)
        };
        let store = Arc::new(connect_within("postgres", wait, || PgStore::connect(&options)).await?);
        return Ok(Stores {
            control: store.clone(),
            history: store.clone(),
            memory: store,
        });
    }
    let options = if config.sqlite.path.is_empty() {
        SqliteOptions::memory()
    } else {
        SqliteOptions::file(&config.sqlite.path)
    };
    let store = Arc::new(SqliteStore::connect(options, Arc::new(SystemClock)).await?);
    Ok(Stores {
        control: store.clone(),
        history: store.clone(),
        memory: store,
    })
}

/// # Errors
/// `DEPENDENCY` when Redis does not answer within `wait`.
pub async fn coord(config: &Config, wait: Duration) -> Result<Arc<dyn Coord>> {
    if config.redis.url.is_empty() {
        return Ok(Arc::new(MemoryCoord::new()));
    }
    let connected = connect_within("redis", wait, || RedisCoord::connect(&config.redis.url)).await?;
    Ok(Arc::new(connected))
}

/// # Errors
/// `DEPENDENCY` when NATS does not answer within `wait`.
pub async fn bus(config: &Config, wait: Duration) -> Result<Arc<dyn Bus>> {
    if config.nats.url.is_empty() {
        return Ok(Arc::new(MemoryBus::new()));
    }
    let connected = connect_within("nats", wait, || JetStreamBus::connect(&config.nats.url)).await?;
    Ok(Arc::new(connected))
}

/// Brings the schema up to date. SQLite does it by itself when it is opened.
///
/// # Errors
/// `DEPENDENCY` when the database does not answer, `INVALID_FIELD` when no owner is configured.
pub async fn migrate(config: &Config) -> Result<()> {
    if config.postgres.url.is_empty() && config.postgres.owner_url.is_empty() {
        return stores(config, WAIT).await.map(|_| ());
    }
    if config.postgres.owner_url.is_empty() {
        return Err(Error::invalid(
            "postgres.owner_url",
            "is needed: the application's role may not change the schema",
        ));
    }
    connect_within("postgres", WAIT, || {
        colloquy_storage_pg::migrate(&config.postgres.owner_url)
    })
    .await
}
