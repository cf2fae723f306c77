//! Entries: lists, and notes outside turns.

use crate::{convert, finish, sessions};
use colloquy_proto::convert::{id, optional_id};
use colloquy_proto::v1::{self, list_entries_request::From};
use colloquy_storage::{HistoryStore, Order};
use colloquy_types::message::Visibility;
use colloquy_types::{Entry, EntryBody, Error, Principal, Result, Seq, TenantId};

pub async fn list_entries(
    store: &dyn HistoryStore,
    principal: &Principal,
    tenant: TenantId,
    request: v1::ListEntriesRequest,
) -> Result<v1::ListEntriesResponse> {
    let found = store
        .get_session(tenant, id("session_id", &request.session_id)?)
        .await?;
    let session = sessions::visible(principal, found, &request.session_id)?;
    let transcript = optional_id(&request.transcript_id)?.unwrap_or(session.transcript);
    if transcript != session.transcript && store.session_of(tenant, transcript).await? != Some(session.id) {
        return Err(Error::not_found("transcript", transcript));
    }
    let branch = optional_id(&request.branch_id)?.unwrap_or(session.branch);
    let order = match request.from {
        Some(From::BeforeSeq(seq)) => Order::Before(Seq(seq)),
        Some(From::AfterSeq(seq)) => Order::After(Seq(seq)),
        None => Order::After(Seq(0)),
    };
    let limit = convert::page(request.page_size, String::new()).limit();
    let page = store
        .list_entries(tenant, transcript, branch, order, limit)
        .await?;
    Ok(v1::ListEntriesResponse {
        entries: page
            .entries
            .into_iter()
            .filter(|entry| principal.own_only().is_none() || is_for_people(entry))
            .map(Into::into)
            .collect(),
        more: page.more,
        transcript_id: transcript.to_string(),
        branch_id: branch.to_string(),
    })
}

pub async fn append(
    store: &dyn HistoryStore,
    tenant: TenantId,
    request: v1::AppendEntriesRequest,
) -> Result<v1::AppendEntriesResponse> {
    let session = id("session_id", &request.session_id)?;
    let head = store
        .append_entries(tenant, session, &finish::append_bodies(request.entries)?)
        .await?;
    Ok(v1::AppendEntriesResponse { head_seq: head.0 })
}

/// A person reads what was said to and by them: not what only the model sees, nor an agent's own state.
fn is_for_people(entry: &Entry) -> bool {
    match &entry.body {
        EntryBody::Message(message) | EntryBody::CustomMessage { message, .. } => {
            message.visibility != Visibility::Model
        }
        EntryBody::Custom { .. } => false,
        _ => true,
    }
}
