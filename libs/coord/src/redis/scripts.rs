//! What happens to a tenant's schedule in Redis, one script per operation.
//!
//! All keys of a tenant share its hash tag, so in a cluster they are in one slot. A script computes the keys of the
//! sorted sets itself, from the agents it finds; they are in the same slot as those it is given.
//!
//! | key | holds |
//! |---|---|
//! | `<base>due:<agent>:<lane>` | sorted set: session by due time |
//! | `<base>where` | hash: session to `<lane> <agent>`, for what is scheduled or taken |
//! | `<base>taken` | sorted set: session by the end of its take |
//! | `<base>agents` | set: agents that have been scheduled |
//!
//! Times are Redis' own, in milliseconds. A schedule nobody touches for a day goes; the sweep makes it again.

/// Shared by all scripts.
const PRELUDE: &str = r"
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local function keep(key) redis.call('PEXPIRE', key, 86400000) end
local function where(key, session)
  local lane, agent = string.match(redis.call('HGET', key, session) or '', '^(%d) (.+)$')
  return tonumber(lane), agent
end
local function due_key(base, agent, lane) return base .. 'due:' .. agent .. ':' .. lane end
";

/// KEYS where, agents. ARGV base, session, milliseconds from now, lane, agent, channel, hint.
/// Answers 1 when the session is due earlier than before.
const SCHEDULE: &str = r"
local base, session, lane, agent = ARGV[1], ARGV[2], tonumber(ARGV[4]), ARGV[5]
local due = now + tonumber(ARGV[3])
local moved = 1
local known_lane, known_agent = where(KEYS[1], session)
if known_lane then
  local known_key = due_key(base, known_agent, known_lane)
  local known_due = tonumber(redis.call('ZSCORE', known_key, session))
  if known_due then
    if known_due <= due and known_lane <= lane then moved = 0 end
    due = math.min(due, known_due)
    lane = math.min(lane, known_lane)
    redis.call('ZREM', known_key, session)
  end
end
local key = due_key(base, agent, lane)
redis.call('ZADD', key, due, session)
redis.call('HSET', KEYS[1], session, lane .. ' ' .. agent)
redis.call('SADD', KEYS[2], agent)
keep(key) keep(KEYS[1]) keep(KEYS[2])
if moved == 1 then redis.call('PUBLISH', ARGV[6], ARGV[7]) end
return moved
";

/// KEYS taken, where, agents. ARGV base, milliseconds of the take (0 = off at once), agents (none = all).
/// Answers {session, agent, lane, token} or {'', '', 0, milliseconds until something is due, -1 = nothing}.
const TAKE: &str = r"
local base, lease = ARGV[1], tonumber(ARGV[2])
-- What a holder left without a word is offered again.
for _, session in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, 100)) do
  redis.call('ZREM', KEYS[1], session)
  local lane, agent = where(KEYS[2], session)
  if lane then
    local key = due_key(base, agent, lane)
    redis.call('ZADD', key, 'NX', now, session)
    keep(key)
  end
end
local agents = {}
for i = 3, #ARGV do agents[#agents + 1] = ARGV[i] end
if #agents == 0 then agents = redis.call('SMEMBERS', KEYS[3]) end
local best, best_due, best_agent, best_lane, later
for lane = 0, 4 do
  for _, agent in ipairs(agents) do
    local first = redis.call('ZRANGE', due_key(base, agent, lane), 0, 0, 'WITHSCORES')
    local due = tonumber(first[2])
    if due and due > now then
      later = math.min(later or due, due)
    elseif due and (not best or due < best_due) then
      best, best_due, best_agent, best_lane = first[1], due, agent, lane
    end
  end
  if best then break end
end
if not best then
  local taken = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
  if taken[2] then later = math.min(later or tonumber(taken[2]), tonumber(taken[2])) end
  return {'', '', 0, later and later - now or -1}
end
redis.call('ZREM', due_key(base, best_agent, best_lane), best)
if lease > 0 then
  redis.call('ZADD', KEYS[1], now + lease, best)
  keep(KEYS[1])
elseif not redis.call('ZSCORE', KEYS[1], best) then
  redis.call('HDEL', KEYS[2], best)
end
return {best, best_agent, best_lane, now + lease}
";

/// KEYS taken, where. ARGV base, session, token: the end of the take, which tells it from a later one.
const DONE: &str = r"
local base, session = ARGV[1], ARGV[2]
if tonumber(redis.call('ZSCORE', KEYS[1], session)) ~= tonumber(ARGV[3]) then return 0 end
redis.call('ZREM', KEYS[1], session)
local lane, agent = where(KEYS[2], session)
if lane and not redis.call('ZSCORE', due_key(base, agent, lane), session) then
  redis.call('HDEL', KEYS[2], session)
end
return 1
";

/// The scripts, hashed once.
#[derive(Clone)]
pub struct Scripts {
    pub schedule: redis::Script,
    pub take: redis::Script,
    pub done: redis::Script,
}

impl Scripts {
    pub fn new() -> Self {
        let script = |body: &str| redis::Script::new(&[PRELUDE, body].concat());
        Self {
            schedule: script(SCHEDULE),
            take: script(TAKE),
            done: script(DONE),
        }
    }
}
