//! What a worker does with a turn it holds, handed to history; and the place that it frees.

use crate::route::schedule;
use crate::service::Router;
use colloquy_proto::convert::duration_ms;
use colloquy_proto::v1::{self, signal};
use colloquy_service_kit::client::request;
use colloquy_service_kit::from_status;
use colloquy_types::queue::Lane;
use colloquy_types::{AgentId, CallerRole, Error, Principal, Result, SessionKey, TenantId};

pub async fn renew(
    router: &Router,
    tenant: TenantId,
    message: v1::RenewTurnRequest,
) -> Result<v1::RenewTurnResponse> {
    let message = v1::HistoryServiceRenewTurnRequest {
        turn_id: message.turn_id,
        fence: message.fence,
        steer_through: message.steer_through,
    };
    let renewed = router
        .history()
        .renew_turn(request(tenant, message))
        .await
        .map_err(from_status)?
        .into_inner();
    let mut signals = Vec::new();
    if renewed.state() == v1::TurnState::Stopping {
        signals.push(signal::Signal::Cancel(v1::CancelSignal { reason: renewed.stop }));
    }
    if let Some(last) = renewed.steered.last() {
        let through = last.number;
        let messages = renewed
            .steered
            .into_iter()
            .filter_map(|steered| steered.message)
            .collect();
        signals.push(signal::Signal::Steer(v1::SteerSignal { through, messages }));
    }
    let signals = signals
        .into_iter()
        .map(|signal| v1::Signal { signal: Some(signal) })
        .collect();
    Ok(v1::RenewTurnResponse {
        lease_left: renewed.lease_left,
        signals,
    })
}

pub async fn commit(
    router: &Router,
    tenant: TenantId,
    message: v1::CommitTurnRequest,
) -> Result<v1::CommitTurnResponse> {
    let failed = message.status() == v1::CommitStatus::Failed;
    let message = v1::HistoryServiceCommitTurnRequest {
        turn_id: message.turn_id,
        fence: message.fence,
        entries: message.entries,
        usage: message.usage,
        reply: message.reply,
        steer_through: message.steer_through,
        failed,
    };
    let done = router
        .history()
        .commit_turn(request(tenant, message))
        .await
        .map_err(from_status)?
        .into_inner();
    freed(router, tenant, &done.agent, &done.session_id, done.next_due_in).await;
    Ok(v1::CommitTurnResponse {
        head_seq: done.head_seq,
        window_messages: done.window_messages,
        window_tokens: done.window_tokens,
        input_tokens: done.input_tokens,
        output_tokens: done.output_tokens,
        compacting: done.compacting,
        deliveries: done.deliveries,
        replayed: done.replayed,
    })
}

pub async fn release(
    router: &Router,
    tenant: TenantId,
    message: v1::ReleaseTurnRequest,
) -> Result<v1::ReleaseTurnResponse> {
    let retry = match message.kind() {
        v1::ReleaseKind::Unspecified => return Err(Error::invalid("kind", "is required")),
        v1::ReleaseKind::Retry => true,
        v1::ReleaseKind::Fail => false,
    };
    let message = v1::HistoryServiceReleaseTurnRequest {
        turn_id: message.turn_id,
        fence: message.fence,
        retry,
        error: message.error,
    };
    let done = router
        .history()
        .release_turn(request(tenant, message))
        .await
        .map_err(from_status)?
        .into_inner();
    Ok(v1::ReleaseTurnResponse {
        outcome: done.outcome,
    })
}

/// The session's next waiting turn can start: a hint, at once instead of with the sweep.
async fn freed(
    router: &Router,
    tenant: TenantId,
    agent: &str,
    session: &str,
    next_due_in: Option<prost_types::Duration>,
) {
    if let (Some(due), Ok(agent)) = (next_due_in, AgentId::parse(agent)) {
        schedule(router, tenant, agent, session, Lane::User, duration_ms(&due)).await;
    }
}

pub async fn stop(
    router: &Router,
    principal: &Principal,
    tenant: TenantId,
    message: v1::StopTurnsRequest,
) -> Result<v1::StopTurnsResponse> {
    check_own(router, principal, tenant, &message.session_id).await?;
    let all = message.scope() == v1::StopScope::All;
    let message = v1::HistoryServiceStopTurnsRequest {
        session_id: message.session_id,
        all,
    };
    let done = router
        .history()
        .stop_turns(request(tenant, message))
        .await
        .map_err(from_status)?
        .into_inner();
    Ok(v1::StopTurnsResponse {
        stopping_turn_ids: done.stopping_turn_ids,
        drained_turn_ids: done.drained_turn_ids,
    })
}

pub async fn queue(
    router: &Router,
    principal: &Principal,
    tenant: TenantId,
    message: v1::GetQueueRequest,
) -> Result<v1::GetQueueResponse> {
    let session = message.session_id.clone();
    let message = v1::HistoryServiceGetQueueRequest {
        session_id: message.session_id,
        outcomes: message.outcomes,
    };
    let queue = router
        .history()
        .get_queue(request(tenant, message))
        .await
        .map_err(from_status)?
        .into_inner();
    let key = SessionKey::parse(&queue.session_key);
    if !key.is_ok_and(|key| principal.may_see(&key)) {
        return Err(Error::not_found("session", session));
    }
    Ok(v1::GetQueueResponse {
        running: queue.running,
        waiting: queue.waiting,
        outcomes: queue.outcomes,
    })
}

async fn check_own(router: &Router, principal: &Principal, tenant: TenantId, session: &str) -> Result<()> {
    if principal.has(CallerRole::Admin) {
        return Ok(());
    }
    let message = v1::GetSessionRequest {
        session: Some(v1::get_session_request::Session::SessionId(session.to_owned())),
    };
    let found = router
        .history()
        .get_session(request(tenant, message))
        .await
        .map_err(from_status)?
        .into_inner();
    let key = found.session.map(|session| session.key).unwrap_or_default();
    if SessionKey::parse(&key).is_ok_and(|key| principal.owns(&key)) {
        Ok(())
    } else {
        Err(Error::not_found("session", session))
    }
}
