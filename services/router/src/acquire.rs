//! The long poll: the schedule names a session, history's claim decides.

use crate::route::schedule;
use crate::service::Router;
use colloquy_coord::Popped;
use colloquy_proto::convert::duration_ms;
use colloquy_proto::v1::{self, claim_turn_response::Claim};
use colloquy_service_kit::client::request;
use colloquy_service_kit::from_status;
use colloquy_types::{AgentId, Error, Principal, Reason, Result, SessionId, TenantId};
use std::time::Duration;
use tokio::time::Instant;

/// Longest wait of one call.
const LONGEST: Duration = Duration::from_secs(30);
/// Longest wait before the schedule is looked at again.
const LOOK: Duration = Duration::from_secs(2);

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
    let end = Instant::now() + Duration::from_millis(wait.unsigned_abs()).min(LONGEST);
    loop {
        let pause = match router.coord.pop(tenant, &agents).await {
            Ok(Popped::Ready { session, agent, lane }) => {
                match claim(router, tenant, session, &message.worker, &agents).await? {
                    Claimed::Turn(turn) => return Ok(v1::AcquireTurnResponse { turn: Some(*turn) }),
                    Claimed::DueIn(due) => {
                        schedule(router, tenant, agent, &session.to_string(), lane, due).await
                    }
                    Claimed::Nothing => {}
                }
                continue;
            }
            Ok(Popped::Later(due)) => due.min(LOOK),
            Ok(Popped::Empty) => LOOK,
            Err(error) => {
                // Without a schedule the database is asked itself, with a pause: slow, and right.
                tracing::warn!(%error, "no schedule, asking history");
                match without_schedule(router, tenant, &message.worker, &agents).await? {
                    Some(turn) => return Ok(v1::AcquireTurnResponse { turn: Some(turn) }),
                    None => Duration::from_millis(500),
                }
            }
        };
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || router.shutdown.has_begun() {
            return Ok(v1::AcquireTurnResponse { turn: None });
        }
        tokio::select! {
            () = router.coord.changed(tenant, pause.min(left)) => {}
            () = router.shutdown.begun() => {}
        }
    }
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

async fn claim(
    router: &Router,
    tenant: TenantId,
    session: SessionId,
    worker: &str,
    agents: &[AgentId],
) -> Result<Claimed> {
    let message = v1::ClaimTurnRequest {
        session_id: session.to_string(),
        worker: worker.to_owned(),
        agents: agents.iter().map(ToString::to_string).collect(),
        offer: None,
    };
    let answer = match router
        .history()
        .claim_turn(request(tenant, message))
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

async fn without_schedule(
    router: &Router,
    tenant: TenantId,
    worker: &str,
    agents: &[AgentId],
) -> Result<Option<v1::Turn>> {
    let message = v1::ListRunnableRequest {
        horizon: None,
        limit: 500,
    };
    let found = router
        .history()
        .list_runnable(request(tenant, message))
        .await
        .map_err(from_status)?
        .into_inner();
    let own = tenant.to_string();
    for session in found
        .sessions
        .into_iter()
        .filter(|session| session.tenant_id == own)
    {
        let served = agents.is_empty() || agents.iter().any(|agent| agent.as_str() == session.agent);
        if served
            && let Claimed::Turn(turn) =
                claim(router, tenant, session.session_id.parse()?, worker, agents).await?
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
