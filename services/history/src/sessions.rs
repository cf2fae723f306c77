//! Sessions: look-up, lists, labels, resets.

use crate::convert;
use crate::finish::STOP_DEADLINE_MS;
use colloquy_proto::convert::{id, millis, non_empty, required};
use colloquy_proto::v1::{self, get_session_request};
use colloquy_storage::{HistoryStore, Session, SessionFilter, SessionPatch};
use colloquy_types::key::ChatType;
use colloquy_types::queue::ResetReason;
use colloquy_types::{AgentId, Error, Principal, Result, SessionKey, TenantId};

pub async fn get(
    store: &dyn HistoryStore,
    principal: &Principal,
    tenant: TenantId,
    request: v1::GetSessionRequest,
) -> Result<v1::Session> {
    match required("session", request.session)? {
        get_session_request::Session::SessionId(text) => {
            by_id(store, principal, tenant, &text).await.map(convert::session)
        }
        get_session_request::Session::Key(text) => {
            let found = store.find_session(tenant, &SessionKey::parse(&text)?).await?;
            visible(principal, found, &text).map(convert::session)
        }
    }
}

async fn by_id(
    store: &dyn HistoryStore,
    principal: &Principal,
    tenant: TenantId,
    text: &str,
) -> Result<Session> {
    let found = store.get_session(tenant, id("session_id", text)?).await?;
    visible(principal, found, text)
}

pub async fn list(
    store: &dyn HistoryStore,
    principal: &Principal,
    tenant: TenantId,
    request: v1::ListSessionsRequest,
) -> Result<v1::ListSessionsResponse> {
    let agent = non_empty(request.agent)
        .map(|agent| AgentId::parse(&agent))
        .transpose()?;
    let (person, own) = (non_empty(request.person), principal.own_only().map(str::to_owned));
    if own.is_some() && person.is_some() && own != person {
        return Ok(v1::ListSessionsResponse::default());
    }
    let filter = SessionFilter {
        agent,
        channel: non_empty(request.channel),
        kind: non_empty(request.kind),
        label_prefix: non_empty(request.label_prefix),
        active_since: request.active_since.as_ref().map(millis),
        chat: person.clone().or(own),
    };
    let page = store
        .list_sessions(
            tenant,
            &filter,
            &convert::page(request.page_size, request.page_token),
        )
        .await?;
    let seen = page
        .items
        .into_iter()
        .filter(|session| principal.may_see(&session.key))
        .filter(|session| person.is_none() || session.key.chat_type() == ChatType::Direct);
    Ok(v1::ListSessionsResponse {
        sessions: seen.map(convert::session).collect(),
        next_page_token: page.next.unwrap_or_default(),
    })
}

pub async fn update(
    store: &dyn HistoryStore,
    principal: &Principal,
    tenant: TenantId,
    request: v1::UpdateSessionRequest,
) -> Result<v1::Session> {
    let session = by_id(store, principal, tenant, &request.session_id).await?;
    let chosen = |field: &str, value: &str| match &request.update_mask {
        Some(mask) => mask.paths.iter().any(|path| path == field),
        None => !value.is_empty(),
    };
    if let Some(mask) = &request.update_mask
        && let Some(path) = mask
            .paths
            .iter()
            .find(|path| !["label", "display_name"].contains(&path.as_str()))
    {
        return Err(Error::invalid(
            "update_mask",
            format!("`{path}` cannot be changed"),
        ));
    }
    let patch = SessionPatch {
        label: chosen("label", &request.label).then(|| request.label.clone()),
        display_name: chosen("display_name", &request.display_name).then(|| request.display_name.clone()),
    };
    if patch
        .label
        .as_deref()
        .is_some_and(|label| !(1..=512).contains(&label.chars().count()) || label.contains('\0'))
    {
        return Err(Error::invalid("label", "must have 1 to 512 characters"));
    }
    if patch
        .display_name
        .as_deref()
        .is_some_and(|name| name.chars().count() > 512 || name.contains('\0'))
    {
        return Err(Error::invalid("display_name", "must have at most 512 characters"));
    }
    store
        .update_session(tenant, session.id, &patch)
        .await
        .map(convert::session)
}

pub async fn reset(
    store: &dyn HistoryStore,
    principal: &Principal,
    tenant: TenantId,
    request: v1::ResetSessionRequest,
) -> Result<v1::Session> {
    let session = by_id(store, principal, tenant, &request.session_id).await?;
    store
        .reset_session(tenant, session.id, ResetReason::Api, STOP_DEADLINE_MS)
        .await
        .map(convert::session)
}

/// The session, if there is one and the caller may see it.
///
/// # Errors
/// `NOT_FOUND`, the same for both.
pub fn visible(principal: &Principal, session: Option<Session>, asked: &str) -> Result<Session> {
    session
        .filter(|session| principal.may_see(&session.key))
        .ok_or_else(|| Error::not_found("session", asked))
}
