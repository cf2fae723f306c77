//! From a normalised message to an accepted one: key, policy, accept, schedule.

use crate::service::Router;
use colloquy_coord::Scheduled;
use colloquy_proto::convert::{duration_ms, required};
use colloquy_proto::v1;
use colloquy_service_kit::client::request;
use colloquy_service_kit::from_status;
use colloquy_types::key::KeyRoute;
use colloquy_types::queue::Lane;
use colloquy_types::{AgentId, Policy, Result, SessionKey, TenantId};
use std::time::Duration;

pub async fn route(
    router: &Router,
    tenant: TenantId,
    message: v1::RouteMessageRequest,
) -> Result<v1::AcceptResult> {
    let agent = AgentId::parse(&message.agent)?;
    let policy = router.policies.get(tenant, &agent, &message.account).await?;
    let key = key(&message, &policy.policy)?;
    let lane = Lane::from(message.lane());
    let accept = v1::AcceptMessageRequest {
        session_key: key.canonical(),
        route: message.route,
        sender: message.sender,
        message: message.message,
        dedupe_key: message.dedupe_key,
        kind: message.kind,
        mode: message.mode,
        lane: message.lane,
        debounce: message.debounce,
        authorised: message.authorised,
        policy_json: policy.json.clone(),
        strict_duplicates: message.strict_duplicates,
        record_refusal: message.record_refusal,
    };
    let answer = router
        .history()
        .accept_message(request(tenant, accept))
        .await
        .map_err(from_status)?
        .into_inner();
    let accepted = required("accepted", answer.accepted)?;
    if !accepted.turn_id.is_empty() && accepted.placement() != v1::Placement::Steered {
        let due = accepted.due_in.as_ref().map_or(0, duration_ms);
        schedule(router, tenant, agent, &accepted.session_id, lane, due).await;
    }
    Ok(accepted)
}

fn key(message: &v1::RouteMessageRequest, policy: &Policy) -> Result<SessionKey> {
    if !message.session_key.is_empty() {
        return SessionKey::parse(&message.session_key);
    }
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let route = KeyRoute {
        agent: message.agent.clone(),
        channel: some(&message.channel),
        account: some(&message.account),
        kind: message.chat_kind.clone(),
        chat: Some(message.chat.clone()),
        topic: some(&message.topic),
        thread: some(&message.thread),
        ..KeyRoute::default()
    };
    route.resolve(policy.dm_scope)
}

/// Losing this is harmless: the sweep finds the session within its pause.
pub async fn schedule(
    router: &Router,
    tenant: TenantId,
    agent: AgentId,
    session: &str,
    lane: Lane,
    due_ms: i64,
) {
    let Ok(session) = session.parse() else { return };
    let due_in = Duration::from_millis(u64::try_from(due_ms).unwrap_or(0));
    let entry = Scheduled {
        tenant,
        agent,
        session,
        lane,
        due_in,
    };
    if let Err(error) = router.coord.schedule(&entry).await {
        tracing::warn!(%error, "a session was left to the sweep");
    }
}
