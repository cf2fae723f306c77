//! Claims and renewals.

use crate::convert::{self, turn_message, until};
use crate::finish::{Facts, TurnFacts};
use crate::policies::Policies;
use colloquy_proto::convert::{duration, duration_ms, id};
use colloquy_proto::v1;
use colloquy_storage::{ClaimRequest, Claimed, ClaimedTurn, HistoryStore, RunnableScan};
use colloquy_types::{AgentId, Fence, Result, TenantId};

/// How long an unconfirmed offer stands.
const OFFER_MS: i64 = 5_000;

pub async fn claim(
    store: &dyn HistoryStore,
    policies: &Policies,
    facts: &TurnFacts,
    tenant: TenantId,
    request: v1::ClaimTurnRequest,
) -> Result<v1::ClaimTurnResponse> {
    let claim = ClaimRequest {
        tenant,
        session: id("session_id", &request.session_id)?,
        worker: request.worker,
        agents: request
            .agents
            .iter()
            .map(|agent| AgentId::parse(agent))
            .collect::<Result<_>>()?,
        offer_ms: request.offer.as_ref().map_or(OFFER_MS, duration_ms),
        lease_ms: request.lease.as_ref().map(duration_ms),
    };
    let claim = match store.claim(&claim).await? {
        Claimed::Turn(turn) => {
            let policy_json = policies.get(tenant, &turn.policy).await?.json.clone();
            facts.insert(tenant, turn.turn, Facts::of(&turn)).await;
            metrics::counter!("colloquy_turns_claimed_total").increment(1);
            Some(v1::claim_turn_response::Claim::Turn(wire(*turn, policy_json)))
        }
        Claimed::Later(due) => Some(v1::claim_turn_response::Claim::DueIn(until(
            due,
            store.now().await?,
        ))),
        Claimed::Nothing => None,
    };
    Ok(v1::ClaimTurnResponse { claim })
}

fn wire(turn: ClaimedTurn, policy_json: String) -> v1::ClaimedTurn {
    v1::ClaimedTurn {
        turn_id: turn.turn.to_string(),
        session_id: turn.session.to_string(),
        session_key: turn.key,
        label: turn.label,
        agent: turn.agent.into_string(),
        transcript_id: turn.transcript.to_string(),
        branch_id: turn.branch.to_string(),
        head_seq: turn.head.0,
        fence: turn.fence.0,
        attempt: turn.attempt,
        lane: v1::Lane::from(turn.lane).into(),
        route: turn.route.map(Into::into),
        preface: turn.preface,
        messages: turn
            .messages
            .into_iter()
            .map(|(id, message)| turn_message(id, message))
            .collect(),
        policy_json,
        lease_left: Some(duration(turn.lease_left_ms)),
    }
}

pub async fn renew(
    store: &dyn HistoryStore,
    tenant: TenantId,
    request: v1::HistoryServiceRenewTurnRequest,
) -> Result<v1::HistoryServiceRenewTurnResponse> {
    let turn = id("turn_id", &request.turn_id)?;
    let renewal = store
        .renew(tenant, turn, Fence(request.fence), request.steer_through)
        .await?;
    let steered = |(number, id, message)| v1::SteeredMessage {
        number,
        message: Some(turn_message(id, message)),
    };
    Ok(v1::HistoryServiceRenewTurnResponse {
        lease_left: Some(duration(renewal.lease_left_ms)),
        state: v1::TurnState::from(renewal.state).into(),
        stop: renewal.stop.map_or(v1::Outcome::Unspecified, Into::into).into(),
        steered: renewal.steer.into_iter().map(steered).collect(),
    })
}

/// Across tenants, or of the one that the call is made for.
pub async fn runnable(
    store: &dyn HistoryStore,
    tenant: Option<TenantId>,
    request: v1::ListRunnableRequest,
) -> Result<v1::ListRunnableResponse> {
    let or = |asked: u32, default: u32| if asked == 0 { default } else { asked.min(10_000) };
    let scan = RunnableScan {
        tenant,
        horizon_ms: request.horizon.as_ref().map_or(0, duration_ms),
        per_agent: or(request.per_agent, 100),
        limit: or(request.limit, 1_000),
    };
    let (found, now) = (store.list_runnable(&scan).await?, store.now().await?);
    let wire = |session: colloquy_storage::Runnable| v1::RunnableSession {
        tenant_id: session.tenant.to_string(),
        agent: session.agent.into_string(),
        session_id: session.session.to_string(),
        lane: v1::Lane::from(session.lane).into(),
        due_in: Some(until(session.due, now)),
    };
    Ok(v1::ListRunnableResponse {
        sessions: found.into_iter().map(wire).collect(),
    })
}

pub async fn queue(
    store: &dyn HistoryStore,
    tenant: TenantId,
    request: v1::HistoryServiceGetQueueRequest,
) -> Result<v1::HistoryServiceGetQueueResponse> {
    let session = id("session_id", &request.session_id)?;
    let outcomes = if request.outcomes == 0 {
        20
    } else {
        request.outcomes.min(500)
    };
    let queue = store.queue(tenant, session, outcomes).await?;
    let found = store.get_session(tenant, session).await?;
    Ok(v1::HistoryServiceGetQueueResponse {
        running: queue.running.into_iter().map(convert::queued_turn).collect(),
        waiting: queue.waiting.into_iter().map(convert::queued_turn).collect(),
        outcomes: queue.outcomes.into_iter().map(convert::outcome).collect(),
        session_key: found.map(|session| session.key.canonical()).unwrap_or_default(),
    })
}
