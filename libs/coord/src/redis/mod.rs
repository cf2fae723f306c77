//! Redis backend: the schedule of all replicas in scripts on one hash tag per tenant, hints by publish.

mod config;
mod hints;
mod scripts;

pub use config::RedisConfig;

use crate::hub::{Changes, Hint, Hub, Signals};
use crate::line::Lines;
use crate::{Coord, Looked, Ready, Scheduled, Signal, Wanted};
use async_trait::async_trait;
use colloquy_types::queue::Lane;
use colloquy_types::{AgentId, Error, Result, SessionId, TenantId, TurnId};
use hints::{Listener, encode};
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{FromRedisValue, RedisError, ScriptInvocation};
use scripts::Scripts;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// The schedule of all replicas.
#[derive(Clone)]
pub struct RedisCoord {
    connection: ConnectionManager,
    scripts: Scripts,
    prefix: String,
    channel: String,
    hub: Arc<Hub>,
    lines: Arc<Lines>,
    _listener: Arc<Task>,
}

/// Ends with the last handle.
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl RedisCoord {
    /// Connects with everything else as by default; reconnects by itself afterwards.
    ///
    /// # Errors
    /// `INVALID_FIELD` for a URL that is none, `DEPENDENCY` when it cannot be reached.
    pub async fn connect(url: &str) -> Result<Self> {
        Self::open(&RedisConfig::new(url)).await
    }

    /// Connects; reconnects by itself afterwards.
    ///
    /// # Errors
    /// Those of `connect`.
    pub async fn open(config: &RedisConfig) -> Result<Self> {
        let client = config.client()?;
        let limit = Duration::from_millis(config.timeout_ms);
        let manager = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(limit))
            .set_response_timeout(Some(limit))
            .set_number_of_retries(2);
        let connection = ConnectionManager::new_with_config(client.clone(), manager)
            .await
            .map_err(unavailable)?;
        let hub = Arc::new(Hub::default());
        let channel = format!("{}:hints", config.prefix);
        let listener = Listener {
            client,
            channel: channel.clone(),
            limit,
            hub: hub.clone(),
        };
        let first = listener.connect().await?;
        Ok(Self {
            connection,
            scripts: Scripts::new(),
            prefix: config.prefix.clone(),
            channel,
            hub,
            lines: Arc::default(),
            _listener: Arc::new(Task(tokio::spawn(listener.run(first)))),
        })
    }

    /// Empties the whole server; for tests of what happens then.
    ///
    /// # Errors
    /// `DEPENDENCY`.
    pub async fn flush(&self) -> Result<()> {
        redis::cmd("FLUSHALL")
            .exec_async(&mut self.connection.clone())
            .await
            .map_err(unavailable)
    }

    /// The tenant is the hash tag: all its keys are in one slot of a cluster.
    fn base(&self, tenant: TenantId) -> String {
        format!("{}:{{{tenant}}}:", self.prefix)
    }

    async fn invoke<T: FromRedisValue>(&self, call: &ScriptInvocation<'_>) -> Result<T> {
        call.invoke_async(&mut self.connection.clone())
            .await
            .map_err(unavailable)
    }

    async fn publish(&self, hint: Hint) -> Result<()> {
        redis::cmd("PUBLISH")
            .arg(&self.channel)
            .arg(encode(hint))
            .exec_async(&mut self.connection.clone())
            .await
            .map_err(unavailable)
    }
}

fn unavailable(error: RedisError) -> Error {
    Error::unavailable(format!("redis: {error}"))
}

/// By urgency; the place is the number in Redis.
const LANES: [Lane; 5] = [
    Lane::User,
    Lane::Subagent,
    Lane::Cron,
    Lane::Heartbeat,
    Lane::Background,
];

fn lane_number(lane: Lane) -> usize {
    LANES.iter().position(|known| *known == lane).unwrap_or(0)
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

#[async_trait]
impl Coord for RedisCoord {
    async fn schedule(&self, entry: &Scheduled) -> Result<()> {
        let base = self.base(entry.tenant);
        let mut call = self.scripts.schedule.prepare_invoke();
        call.key(format!("{base}where")).key(format!("{base}agents"));
        call.arg(base)
            .arg(entry.session.to_string())
            .arg(millis(entry.due_in))
            .arg(lane_number(entry.lane))
            .arg(entry.agent.as_str())
            .arg(&self.channel)
            .arg(encode(Hint::Scheduled(entry.tenant)));
        let _moved: i64 = self.invoke(&call).await?;
        Ok(())
    }

    async fn take(&self, wanted: &Wanted, lease: Duration) -> Result<Looked> {
        let base = self.base(wanted.tenant);
        let mut call = self.scripts.take.prepare_invoke();
        call.key(format!("{base}taken"))
            .key(format!("{base}where"))
            .key(format!("{base}agents"));
        call.arg(base).arg(millis(lease));
        wanted.agents.iter().for_each(|agent| {
            call.arg(agent.as_str());
        });
        let (session, agent, lane, number): (String, String, usize, i64) = self.invoke(&call).await?;
        if session.is_empty() {
            return Ok(u64::try_from(number).map_or(Looked::Empty, |millis| {
                Looked::Later(Duration::from_millis(millis))
            }));
        }
        Ok(Looked::Ready(Ready {
            tenant: wanted.tenant,
            agent: AgentId::parse(&agent)?,
            session: session.parse()?,
            lane: LANES.get(lane).copied().unwrap_or_default(),
            token: number,
        }))
    }

    async fn acquire(&self, wanted: &[Wanted], wait: Duration) -> Result<Option<Ready>> {
        self.lines.acquire(self, &self.hub, wanted, wait).await
    }

    async fn done(&self, ready: &Ready) -> Result<()> {
        let base = self.base(ready.tenant);
        let mut call = self.scripts.done.prepare_invoke();
        call.key(format!("{base}taken")).key(format!("{base}where"));
        call.arg(base).arg(ready.session.to_string()).arg(ready.token);
        let _ended: i64 = self.invoke(&call).await?;
        Ok(())
    }

    async fn signal(&self, tenant: TenantId, turn: TurnId, signal: Signal) -> Result<()> {
        self.publish(Hint::Turn(tenant, turn, signal)).await
    }

    fn signals(&self, tenant: TenantId, turn: TurnId) -> Signals {
        self.hub.signals(tenant, turn)
    }

    async fn hint(&self, tenant: TenantId, session: SessionId) -> Result<()> {
        self.publish(Hint::Session(tenant, session)).await
    }

    fn watch(&self, tenant: TenantId, session: SessionId) -> Changes {
        self.hub.watch(tenant, session)
    }

    async fn clear(&self) -> Result<()> {
        // Only this prefix: the server may be shared.
        let mut cursor = 0_u64;
        loop {
            let (next, keys): (u64, Vec<String>) = redis::cmd("SCAN")
                .arg(cursor)
                .arg("MATCH")
                .arg(format!("{}:*", self.prefix))
                .arg("COUNT")
                .arg(1_000)
                .query_async(&mut self.connection.clone())
                .await
                .map_err(unavailable)?;
            for key in keys {
                redis::cmd("UNLINK")
                    .arg(key)
                    .exec_async(&mut self.connection.clone())
                    .await
                    .map_err(unavailable)?;
            }
            cursor = next;
            if cursor == 0 {
                return Ok(());
            }
        }
    }

    async fn ping(&self) -> Result<()> {
        redis::cmd("PING")
            .exec_async(&mut self.connection.clone())
            .await
            .map_err(unavailable)
    }
}
