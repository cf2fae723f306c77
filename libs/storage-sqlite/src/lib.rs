//! The store of embedded mode: one SQLite file (or memory) behind every trait of `storage`.
//!
//! Owns the SQL, the migrations and the connections. Must not decide anything: rules are arguments, and what the
//! traits promise is checked by the conformance suite in `tests`. Tenant and id lead every key, as in Postgres;
//! there is no row-level security, so every statement names the tenant.
//!
//! One connection writes. Every change is `BEGIN IMMEDIATE … COMMIT` on it, so two changes never see the same
//! state and no statement meets `SQLITE_BUSY` half-way; other processes on the same file wait for the busy
//! time-out. Reads have connections of their own and a consistent snapshot each (in memory they share the writer).
//!
//! To add an aggregate: a migration, a file named like its trait, `impl Trait for SqliteStore` in it.

mod account;
mod agent;
mod block;
mod compaction;
mod cursor;
mod delivery;
mod effects;
mod fault;
mod inbox;
mod job;
mod job_run;
mod json;
mod key;
mod memory;
mod memory_ops;
mod queue_state;
mod receipt;
mod session;
mod tenant;
mod transcript;
mod turn;

use async_trait::async_trait;
use colloquy_storage::Clocked;
use colloquy_types::{Clock, Error, Result, UnixMillis};
use fault::Fault;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Sqlite, SqliteConnection, SqlitePool, Transaction};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Where the data is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A file, created when missing, with its write-ahead log beside it.
    File(PathBuf),
    /// Gone when the store is dropped.
    Memory,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteOptions {
    pub location: Location,
    /// Connections for reads of a file.
    pub readers: u32,
    /// How long a change waits for another process's.
    pub busy_timeout: Duration,
}

impl SqliteOptions {
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self {
            location: Location::File(path.into()),
            readers: 4,
            busy_timeout: Duration::from_secs(10),
        }
    }

    pub fn memory() -> Self {
        Self {
            location: Location::Memory,
            ..Self::file("")
        }
    }
}

/// Every trait of `storage` on one SQLite database. Clones share the connections.
#[derive(Clone)]
pub struct SqliteStore {
    writer: SqlitePool,
    readers: SqlitePool,
    clock: Arc<dyn Clock>,
}

impl SqliteStore {
    /// Opens the database and brings its schema up to date. `clock` is the database's time.
    ///
    /// # Errors
    /// `DEPENDENCY` when the file cannot be opened or the schema is newer than the program.
    pub async fn connect(options: SqliteOptions, clock: Arc<dyn Clock>) -> Result<Self> {
        let (writer, readers) = match &options.location {
            Location::Memory => {
                let only = pool(1, connection(&options).in_memory(true)).await?;
                (only.clone(), only)
            }
            Location::File(path) => {
                let file = connection(&options).filename(path).create_if_missing(true);
                // The writer first: it makes the file and its schema.
                (
                    pool(1, file.clone()).await?,
                    pool(options.readers.max(1), file).await?,
                )
            }
        };
        sqlx::migrate!("./migrations")
            .run(&writer)
            .await
            .map_err(|error| {
                Error::unavailable(format!(
                    "the database's schema cannot be brought up to date: {error}"
                ))
            })?;
        Ok(Self {
            writer,
            readers,
            clock,
        })
    }

    /// Waits for what is under way and closes the file.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }

    /// A change: nobody else writes until it ends. Dropping it undoes it.
    async fn write(&self) -> Result<Tx, Fault> {
        let inner = self.writer.begin_with("BEGIN IMMEDIATE").await?;
        Ok(Tx {
            inner,
            now: self.clock.now(),
        })
    }

    /// A consistent snapshot.
    async fn read(&self) -> Result<Tx, Fault> {
        let inner = self.readers.begin().await?;
        Ok(Tx {
            inner,
            now: self.clock.now(),
        })
    }
}

fn connection(options: &SqliteOptions) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(options.busy_timeout)
        .statement_cache_capacity(256)
}

async fn pool(connections: u32, options: SqliteConnectOptions) -> Result<SqlitePool, Fault> {
    // A database in memory lives in its connection: none may be retired.
    let pool = SqlitePoolOptions::new()
        .test_before_acquire(false)
        .max_connections(connections)
        .idle_timeout(None)
        .max_lifetime(None);
    Ok(pool.connect_with(options).await?)
}

/// A transaction and the instant it happens at.
struct Tx {
    inner: Transaction<'static, Sqlite>,
    now: UnixMillis,
}

impl Tx {
    fn conn(&mut self) -> &mut SqliteConnection {
        &mut self.inner
    }

    async fn commit(self) -> Result<(), Fault> {
        Ok(self.inner.commit().await?)
    }
}

#[async_trait]
impl Clocked for SqliteStore {
    async fn now(&self) -> Result<UnixMillis> {
        Ok(self.clock.now())
    }
}
