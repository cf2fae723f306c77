//! The long poll: the schedule names a session, history's claim decides.

use crate::route::schedule;
use crate::service::Router;
use colloquy_coord::Wanted;
use colloquy_proto::convert::{duration, duration_ms};
use colloquy_proto::v1::{self, claim_turn_response::Claim};
use colloquy_service_kit::client::request;
use colloquy_service_kit::from_status;
use colloquy_types::{AgentId, Error, Principal, Reason, Result, SessionId, TenantId};
use std::time::Duration;
use tokio::time::Instant;

/// Longest wait of one call.
const LONGEST: Duration = Duration::from_secs(30);
/// What a worker may ask for.
const LEASE_MS: std::ops::RangeInclusive<i64> = 1_000..=600_000;
/// Pause between two questions to the database while there is no schedule.
const UNSCHEDULED: Duration = Duration::from_millis(500);

pub async fn acquire(
    router: &Router,
    principal: &Principal,
    tenant: TenantId,
    message: v1::AcquireTurnRequest,
) -> Result<v1::AcquireTurnResponse> {
    if message.worker.is_empty() || message.worker.len() > 128 || message.worker.contains('\0') {
        return Err(Error::invalid("worker", "must have 1 to 128 bytes"));
    }
    let agents = agents(principal, &message.agents)?;
    let wait = message.wait.as_ref().map_or(0, duration_ms).max(0);
    let lease = lease(message.lease.as_ref())?;
    let end = Instant::now() + Duration::from_millis(wait.unsigned_abs()).min(LONGEST);
    let wanted = Wanted { tenant, agents };
    let asking = Asking {
        worker: message.worker,
        lease,
    };
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let turn = tokio::select! {
            found = next(router, &wanted, left, &asking) => found?,
            () = router.shutdown.begun() => Next::Nothing,
        };
        match turn {
            Next::Turn(turn) => return Ok(v1::AcquireTurnResponse { turn: Some(*turn) }),
            Next::Nothing => return Ok(v1::AcquireTurnResponse { turn: None }),
            Next::Again => {}
        }
    }
}

/// The lease that the worker asks for, in milliseconds; none = the policy's.
fn lease(asked: Option<&prost_types::Duration>) -> Result<Option<i64>> {
    match asked.map(duration_ms) {
        Some(lease) if !LEASE_MS.contains(&lease) => Err(Error::invalid("lease", "must be 1 s to 10 min")),
        lease => Ok(lease),
    }
}

/// Who asks, and for what lease in milliseconds.
struct Asking {
    worker: String,
    lease: Option<i64>,
}

enum Next {
    Turn(Box<v1::Turn>),
    /// The session that was tried had none to give.
    Again,
    /// Nobody had one in time.
    Nothing,
}

/// Takes one session off the schedule and tries it. A call that is dropped, or fails, leaves the session taken: it is
/// offered again when the take has run out.
async fn next(router: &Router, wanted: &Wanted, left: Duration, asking: &Asking) -> Result<Next> {
    let tenant = wanted.tenant;
    let ready = match router.coord.acquire(std::slice::from_ref(wanted), left).await {
        Ok(Some(ready)) => ready,
        Ok(None) => return Ok(Next::Nothing),
        Err(error) => {
            // Without a schedule the database is asked itself, with a pause: slow, and right.
            tracing::warn!(%error, "no schedule, asking history");
            if let Some(turn) = without_schedule(router, wanted, asking).await? {
                return Ok(Next::Turn(Box::new(turn)));
            }
            if left.is_zero() {
                return Ok(Next::Nothing);
            }
            tokio::time::sleep(UNSCHEDULED.min(left)).await;
            return Ok(Next::Again);
        }
    };
    let next = match claim(router, wanted, ready.session, asking).await? {
        Claimed::Turn(turn) => Next::Turn(turn),
        Claimed::DueIn(due) => {
            let session = ready.session.to_string();
            schedule(router, tenant, ready.agent.clone(), &session, ready.lane, due).await;
            Next::Again
        }
        Claimed::Nothing => Next::Again,
    };
    if let Err(error) = router.coord.done(&ready).await {
        tracing::debug!(%error, "a take runs out by itself");
    }
    Ok(next)
}

/// What the worker asked for, within what its credential may.
fn agents(principal: &Principal, asked: &[String]) -> Result<Vec<AgentId>> {
    let asked: Vec<AgentId> = asked
        .iter()
        .map(|agent| AgentId::parse(agent))
        .collect::<Result<_>>()?;
    if principal.agents.is_empty() {
        return Ok(asked);
    }
    if asked.is_empty() {
        return Ok(principal.agents.clone());
    }
    match asked.iter().find(|agent| !principal.agents.contains(agent)) {
        Some(agent) => Err(Error::not_found("agent", agent)),
        None => Ok(asked),
    }
}

enum Claimed {
    Turn(Box<v1::Turn>),
    /// The first waiting turn is due in this many milliseconds.
    DueIn(i64),
    Nothing,
}

async fn claim(router: &Router, wanted: &Wanted, session: SessionId, asking: &Asking) -> Result<Claimed> {
    let message = v1::ClaimTurnRequest {
        session_id: session.to_string(),
        worker: asking.worker.clone(),
        agents: wanted.agents.iter().map(ToString::to_string).collect(),
        offer: None,
        lease: asking.lease.map(duration),
    };
    let answer = match router
        .history()
        .claim_turn(request(wanted.tenant, message))
        .await
        .map_err(from_status)
    {
        Ok(answer) => answer.into_inner(),
        // The session was popped: put off until the sweep, unless it is gone.
        Err(error) if error.reason == Reason::NotFound => return Ok(Claimed::Nothing),
        Err(error) => return Err(error),
    };
    Ok(match answer.claim {
        Some(Claim::Turn(turn)) => {
            metrics::counter!("colloquy_turns_offered_total").increment(1);
            Claimed::Turn(Box::new(offer(turn)))
        }
        Some(Claim::DueIn(due)) => Claimed::DueIn(duration_ms(&due)),
        None => Claimed::Nothing,
    })
}

async fn without_schedule(router: &Router, wanted: &Wanted, asking: &Asking) -> Result<Option<v1::Turn>> {
    let Wanted { tenant, agents } = wanted;
    let message = v1::ListRunnableRequest {
        horizon: None,
        limit: 500,
        per_agent: 0,
    };
    let found = router
        .history()
        .list_runnable(request(*tenant, message))
        .await
        .map_err(from_status)?
        .into_inner();
    for session in found.sessions {
        let served = agents.is_empty() || agents.iter().any(|agent| agent.as_str() == session.agent);
        if served
            && let Claimed::Turn(turn) = claim(router, wanted, session.session_id.parse()?, asking).await?
        {
            return Ok(Some(*turn));
        }
    }
    Ok(None)
}

fn offer(turn: v1::ClaimedTurn) -> v1::Turn {
    v1::Turn {
        turn_id: turn.turn_id,
        session_id: turn.session_id,
        session_key: turn.session_key,
        label: turn.label,
        agent: turn.agent,
        transcript_id: turn.transcript_id,
        branch_id: turn.branch_id,
        head_seq: turn.head_seq,
        fence: turn.fence,
        attempt: turn.attempt,
        lane: turn.lane,
        route: turn.route,
        preface: turn.preface,
        messages: turn.messages,
        policy_json: turn.policy_json,
        lease_left: turn.lease_left,
    }
}
