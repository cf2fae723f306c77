//! Redis backend: one sorted set of due times per tenant, one script per operation on one hash tag.

use crate::{Coord, Popped, Scheduled};
use async_trait::async_trait;
use colloquy_types::queue::Lane;
use colloquy_types::{AgentId, Error, Result, TenantId};
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{Client, RedisError, Script};
use std::time::Duration;

/// A later time does not move a session back. Times are Redis' own.
const SCHEDULE: &str = r"
local now = redis.call('TIME')
local due = now[1] * 1000 + math.floor(now[2] / 1000) + tonumber(ARGV[2])
local known = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not known or tonumber(known) > due then
  redis.call('ZADD', KEYS[1], due, ARGV[1])
end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[3] .. ' ' .. ARGV[4])
redis.call('RPUSH', KEYS[3], '1')
redis.call('LTRIM', KEYS[3], -64, -1)
redis.call('PEXPIRE', KEYS[3], 60000)
return due
";

/// Looks at the first due sessions, most urgent lane first. Answers {session, agent, lane} or {'', '', milliseconds}.
const POP: &str = r"
local now = redis.call('TIME')
local at = now[1] * 1000 + math.floor(now[2] / 1000)
local wanted = {}
for i = 1, #ARGV do wanted[ARGV[i]] = true end
local function serves(agent) return #ARGV == 0 or wanted[agent] end
local best, best_lane, best_agent
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', at, 'LIMIT', 0, 200)
for _, session in ipairs(due) do
  local known = redis.call('HGET', KEYS[2], session)
  local lane, agent = string.match(known or '0 ', '^(%d+) (.*)$')
  if known and serves(agent) and (not best or tonumber(lane) < best_lane) then
    best, best_lane, best_agent = session, tonumber(lane), agent
  end
end
if best then
  redis.call('ZREM', KEYS[1], best)
  redis.call('HDEL', KEYS[2], best)
  return {best, best_agent, best_lane}
end
local later = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. at, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
if later[2] then return {'', '', tonumber(later[2]) - at} end
return {'', '', -1}
";

/// How often a waiter looks while nothing is hinted: what idle replicas cost.
const LOOK: Duration = Duration::from_millis(250);

/// The schedule of all router replicas.
#[derive(Clone)]
pub struct RedisCoord {
    connection: ConnectionManager,
    schedule: Script,
    pop: Script,
}

impl RedisCoord {
    /// Connects; reconnects by itself afterwards.
    ///
    /// # Errors
    /// `INVALID_FIELD` for a URL that is none, `DEPENDENCY` when it cannot be reached.
    pub async fn connect(url: &str) -> Result<Self> {
        let client = Client::open(url).map_err(|error| Error::invalid("redis.url", error.to_string()))?;
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(Duration::from_secs(2)))
            .set_response_timeout(Some(Duration::from_secs(2)))
            .set_number_of_retries(2);
        let connection = ConnectionManager::new_with_config(client, config)
            .await
            .map_err(unavailable)?;
        Ok(Self {
            connection,
            schedule: Script::new(SCHEDULE),
            pop: Script::new(POP),
        })
    }

    /// Loses everything; for tests of what happens then.
    ///
    /// # Errors
    /// `DEPENDENCY`.
    pub async fn flush(&self) -> Result<()> {
        redis::cmd("FLUSHALL")
            .exec_async(&mut self.connection.clone())
            .await
            .map_err(unavailable)
    }
}

fn unavailable(error: RedisError) -> Error {
    Error::unavailable(format!("redis: {error}"))
}

/// The tenant is the hash tag: all keys of one script are in one slot of a cluster.
fn key(tenant: TenantId, part: &str) -> String {
    format!("colloquy:{{{tenant}}}:{part}")
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

#[async_trait]
impl Coord for RedisCoord {
    async fn schedule(&self, entry: &Scheduled) -> Result<()> {
        let due_in = u64::try_from(entry.due_in.as_millis()).unwrap_or(u64::MAX);
        let mut call = self.schedule.prepare_invoke();
        call.key(key(entry.tenant, "due"))
            .key(key(entry.tenant, "agents"))
            .key(key(entry.tenant, "wake"));
        call.arg(entry.session.to_string())
            .arg(due_in)
            .arg(lane_number(entry.lane))
            .arg(entry.agent.as_str());
        let due: Result<i64, RedisError> = call.invoke_async(&mut self.connection.clone()).await;
        due.map(|_| ()).map_err(unavailable)
    }

    async fn pop(&self, tenant: TenantId, agents: &[AgentId]) -> Result<Popped> {
        let mut call = self.pop.prepare_invoke();
        call.key(key(tenant, "due")).key(key(tenant, "agents"));
        agents.iter().for_each(|agent| {
            call.arg(agent.as_str());
        });
        let answer: Result<(String, String, i64), RedisError> =
            call.invoke_async(&mut self.connection.clone()).await;
        let (session, agent, later) = answer.map_err(unavailable)?;
        if !session.is_empty() {
            let lane = LANES
                .get(usize::try_from(later).unwrap_or(0))
                .copied()
                .unwrap_or_default();
            return Ok(Popped::Ready {
                session: session.parse()?,
                agent: AgentId::parse(&agent)?,
                lane,
            });
        }
        Ok(u64::try_from(later).map_or(Popped::Empty, |millis| {
            Popped::Later(Duration::from_millis(millis))
        }))
    }

    async fn changed(&self, tenant: TenantId, limit: Duration) {
        // A pop of the wake list instead of a blocking one: a blocking command would hold the shared connection.
        let end = tokio::time::Instant::now() + limit;
        while tokio::time::Instant::now() < end {
            let mut pop = redis::cmd("LPOP");
            pop.arg(key(tenant, "wake"));
            let hint: Result<Option<String>, RedisError> =
                pop.query_async(&mut self.connection.clone()).await;
            if matches!(hint, Ok(Some(_))) {
                return;
            }
            tokio::time::sleep(LOOK.min(end.saturating_duration_since(tokio::time::Instant::now()))).await;
        }
    }

    async fn ping(&self) -> Result<()> {
        redis::cmd("PING")
            .exec_async(&mut self.connection.clone())
            .await
            .map_err(unavailable)
    }
}
