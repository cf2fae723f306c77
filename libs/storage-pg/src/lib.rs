//! The store of distributed mode: every trait of `storage` on PostgreSQL 14 or newer.
//!
//! Owns the SQL, the migrations and the roles. Must not decide anything: rules are arguments, and what the traits
//! promise is checked by the conformance suite in `tests`.
//!
//! Connections work as `colloquy_app`, which owns nothing: row-level security shows them the tenant of the
//! transaction and nothing else, also where a statement forgot its predicate. What must look across tenants goes
//! through functions of a second role that return ids and times only.
//!
//! The operations that every message takes (accept, claim, renew, view, stage, commit, window) are one SQL function and
//! one round trip each; what is rare is a transaction driven from here.
//!
//! A change locks the session's row first, then the turn or job, then the rest, and reads what it decides on after
//! the lock: two changes of one session see each other.
//!
//! To add an aggregate: a migration with its policy, a file named like its trait, `impl Trait for PgStore` in it.

mod accept;
mod account;
mod agent;
mod block;
mod compaction;
mod cursor;
mod delivery;
mod fault;
mod hot;
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
use colloquy_types::{Clock, Error, Result, TenantId, UnixMillis, redacted_url};
use fault::Fault;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection, PgConnection, PgPool, Postgres, Transaction};
use std::sync::Arc;
use std::time::Duration;

/// The role that connections work as.
pub const APP_ROLE: &str = "colloquy_app";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PgOptions {
    /// `postgres://user:password@host/database`; the user is `colloquy_app` or a member of it.
    pub url: String,
    pub max_connections: u32,
    /// How long a caller waits for a connection.
    pub acquire_timeout: Duration,
}

impl PgOptions {
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            max_connections: 16,
            acquire_timeout: Duration::from_secs(5),
        }
    }
}

/// Every trait of `storage` on one database. Clones share the connections.
#[derive(Clone)]
pub struct PgStore {
    pool: PgPool,
    /// Instead of the database's time, for tests that move it.
    clock: Option<Arc<dyn Clock>>,
}

/// Brings the schema up to date, as its owner. Safe to run by several replicas at once.
///
/// # Errors
/// `INVALID_FIELD` for a URL that is none, `DEPENDENCY` when the database cannot be reached or refuses.
pub async fn migrate(owner_url: &str) -> Result<()> {
    let options = parse("postgres.owner_url", owner_url)?;
    let mut connection = PgConnection::connect_with(&options).await.map_err(Fault::from)?;
    let migrated = sqlx::migrate!("./migrations")
        .run_direct(None, &mut connection, false)
        .await;
    migrated
        .map_err(|error| Error::unavailable(format!("the schema cannot be brought up to date: {error}")))?;
    connection.close().await.map_err(Fault::from)?;
    Ok(())
}

/// Whether `url`, which `setting` names, can be the address of a database.
///
/// # Errors
/// `INVALID_FIELD` when not.
pub fn check_url(setting: &str, url: &str) -> Result<()> {
    parse(setting, url).map(|_| ())
}

fn parse(setting: &str, url: &str) -> Result<PgConnectOptions> {
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        let message = format!("`{}` is not postgres://user@host/database", redacted_url(url));
        return Err(Error::invalid(setting, message));
    }
    url.parse()
        .map_err(|error| Error::invalid(setting, format!("not a PostgreSQL URL: {error}")))
}

impl PgStore {
    /// # Errors
    /// `INVALID_FIELD` for a URL that is none, `DEPENDENCY` when the database cannot be reached or has no schema yet.
    pub async fn connect(options: &PgOptions) -> Result<Self> {
        let connect = parse("postgres.url", &options.url)?
            .options([("search_path", "control,history,memory")])
            .statement_cache_capacity(512);
        let pool = PgPoolOptions::new()
            .max_connections(options.max_connections)
            .acquire_timeout(options.acquire_timeout)
            .test_before_acquire(false)
            .after_connect(|connection, _| {
                Box::pin(async move {
                    sqlx::query("SET ROLE colloquy_app")
                        .execute(connection)
                        .await
                        .map(|_| ())
                })
            })
            .connect_with(connect)
            .await
            .map_err(Fault::from)?;
        let store = Self { pool, clock: None };
        store.now().await?;
        Ok(store)
    }

    /// The same store on a clock that tests move.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// The connections, for tests that look behind the traits.
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Waits for what is under way and closes the connections.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// A change under the tenant. Dropping it undoes it.
    async fn write(&self, tenant: TenantId) -> Result<Tx, Fault> {
        self.begin(Some(tenant), true).await
    }

    /// A consistent snapshot under the tenant.
    async fn read(&self, tenant: TenantId) -> Result<Tx, Fault> {
        self.begin(Some(tenant), false).await
    }

    /// A look across tenants: sees what the functions for it show, and no row besides.
    async fn sweep(&self) -> Result<Tx, Fault> {
        self.begin(None, false).await
    }

    async fn begin(&self, tenant: Option<TenantId>, writes: bool) -> Result<Tx, Fault> {
        let begin = if writes {
            "BEGIN"
        } else {
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        };
        let mut inner = self.pool.begin_with(begin).await?;
        let tenant = tenant.map(|tenant| tenant.0.to_string()).unwrap_or_default();
        let sql = "/* begin */ SELECT set_config('colloquy.tenant', $1, true), \
                   (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
        let (_, now): (String, i64) = sqlx::query_as(sql).bind(tenant).fetch_one(&mut *inner).await?;
        let now = self.clock.as_ref().map_or(UnixMillis(now), |clock| clock.now());
        Ok(Tx { inner, now, writes })
    }
}

/// A transaction and the instant it happens at: the database's, taken once.
struct Tx {
    inner: Transaction<'static, Postgres>,
    now: UnixMillis,
    /// Whether rows that are read to decide on are locked.
    writes: bool,
}

impl Tx {
    fn conn(&mut self) -> &mut PgConnection {
        &mut self.inner
    }

    async fn commit(self) -> Result<(), Fault> {
        Ok(self.inner.commit().await?)
    }
}

#[async_trait]
impl Clocked for PgStore {
    async fn now(&self) -> Result<UnixMillis> {
        if let Some(clock) = &self.clock {
            return Ok(clock.now());
        }
        let sql = "/* now */ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
        let now: i64 = sqlx::query_scalar(sql)
            .fetch_one(&self.pool)
            .await
            .map_err(Fault::from)?;
        Ok(UnixMillis(now))
    }
}
