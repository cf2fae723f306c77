//! Concrete backends: the one place that names them.

use crate::config::Config;
use colloquy_bus::{Bus, JetStreamBus, MemoryBus};
use colloquy_coord::{Coord, MemoryCoord, RedisCoord};
use colloquy_service_kit::run::connect_within;
use colloquy_storage::{ControlStore, HistoryStore, MemoryStore};
use colloquy_storage_pg::{PgOptions, PgStore};
use colloquy_storage_sqlite::{SqliteOptions, SqliteStore};
use colloquy_types::{Error, Result, SystemClock};
use std::sync::Arc;
use std::time::Duration;

/// How long a process waits for its stores before it gives up.
const WAIT: Duration = Duration::from_secs(60);

/// The stores of a process.
#[derive(Clone)]
pub struct Stores {
    pub control: Arc<dyn ControlStore>,
    pub history: Arc<dyn HistoryStore>,
    pub memory: Arc<dyn MemoryStore>,
}

/// # Errors
/// `DEPENDENCY` when the database does not answer in time.
pub async fn stores(config: &Config) -> Result<Stores> {
    if !config.postgres.url.is_empty() {
        let options = PgOptions {
            max_connections: config.postgres.max_connections,
            ..PgOptions::new(&config.postgres.url)
        };
        let store = Arc::new(connect_within("postgres", WAIT, || PgStore::connect(&options)).await?);
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
/// `DEPENDENCY` when Redis does not answer in time.
pub async fn coord(config: &Config) -> Result<Arc<dyn Coord>> {
    if config.redis.url.is_empty() {
        return Ok(Arc::new(MemoryCoord::new()));
    }
    let connected = connect_within("redis", WAIT, || RedisCoord::connect(&config.redis.url)).await?;
    Ok(Arc::new(connected))
}

/// # Errors
/// `DEPENDENCY` when NATS does not answer in time.
pub async fn bus(config: &Config) -> Result<Arc<dyn Bus>> {
    if config.nats.url.is_empty() {
        return Ok(Arc::new(MemoryBus::new()));
    }
    let connected = connect_within("nats", WAIT, || JetStreamBus::connect(&config.nats.url)).await?;
    Ok(Arc::new(connected))
}

/// Brings the schema up to date. SQLite does it by itself when it is opened.
///
/// # Errors
/// `DEPENDENCY` when the database does not answer, `INVALID_FIELD` when no owner is configured.
pub async fn migrate(config: &Config) -> Result<()> {
    if config.postgres.url.is_empty() && config.postgres.owner_url.is_empty() {
        return stores(config).await.map(|_| ());
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
