//! Builds of the past: what they did, and their bytes again.

use super::respond::{chunks, header};
use super::subject;
use crate::policies::Policies;
use colloquy_context::build::{Rebuild, TurnMessages, rebuild};
use colloquy_context::{BuildOptions, Receipt};
use colloquy_proto::convert::id;
use colloquy_proto::v1::{self, rebuild_context_response::Part};
use colloquy_storage::{HistoryStore, Order, PolicyId, TurnPlace, TurnView};
use colloquy_types::{Entry, Error, Principal, Reason, Result, Seq, SessionKey, TenantId, TurnId};
use tonic::Status;

/// Entries of one look for the turn's own.
const PAGE: u32 = 500;

pub async fn get_receipt(
    store: &dyn HistoryStore,
    principal: &Principal,
    tenant: TenantId,
    request: v1::GetReceiptRequest,
) -> Result<v1::GetReceiptResponse> {
    let (stored, _) = find(store, principal, tenant, &request.turn_id, request.build).await?;
    Ok(v1::GetReceiptResponse {
        receipt_json: String::from_utf8_lossy(&stored.body).into_owned(),
        build: stored.build,
    })
}

pub async fn rebuild_context(
    store: &dyn HistoryStore,
    policies: &Policies,
    principal: &Principal,
    tenant: TenantId,
    request: v1::RebuildContextRequest,
) -> Result<Vec<Result<v1::RebuildContextResponse, Status>>> {
    let (stored, place) = find(store, principal, tenant, &request.turn_id, request.build).await?;
    let receipt: Receipt = serde_json::from_slice(&stored.body)
        .map_err(|error| Error::internal(format!("the receipt cannot be read: {error}")))?;
    let policy = PolicyId(receipt.policy_version.clone());
    let options = BuildOptions::from(&policies.get(tenant, &policy).await?.policy);
    let mut entries = window(store, tenant, &place, &receipt).await?;
    let view = if place.has_ended {
        let own = own_entries(store, tenant, &place, stored.turn, receipt.head).await?;
        entries.extend(own);
        None
    } else {
        Some(running(store, tenant, &place, stored.turn, stored.fence == place.fence).await?)
    };
    let said = view.map(|mut view| subject::of_turn(&mut view));
    let from = Rebuild {
        receipt: &receipt,
        entries: &entries,
        options,
        turn: said.as_ref().map(|(pending, staged)| TurnMessages {
            pending: &pending.messages,
            staged: &staged.messages,
        }),
    };
    let rebuilt = rebuild(&from).map_err(Error::from)?;
    let header = header(&rebuilt.built, 0, stored.build)?;
    let mut pieces = vec![Ok(v1::RebuildContextResponse {
        part: Some(Part::Header(header)),
        matches: rebuilt.matches,
    })];
    pieces.extend(chunks(&rebuilt.built.bytes).map(|bytes| {
        Ok(v1::RebuildContextResponse {
            part: Some(Part::Chunk(bytes)),
            matches: false,
        })
    }));
    Ok(pieces)
}

/// The receipt and where its turn belongs, if the caller may see that session.
async fn find(
    store: &dyn HistoryStore,
    principal: &Principal,
    tenant: TenantId,
    text: &str,
    build: u32,
) -> Result<(colloquy_storage::Receipt, TurnPlace)> {
    let turn: TurnId = id("turn_id", text)?;
    let unknown = || Error::not_found("turn", text);
    let place = store.turn_place(tenant, turn).await?.ok_or_else(unknown)?;
    if !SessionKey::parse(&place.key).is_ok_and(|key| principal.may_see(&key)) {
        return Err(unknown());
    }
    let stored = store
        .get_receipt(tenant, turn, Some(build).filter(|build| *build > 0))
        .await?;
    let stored = stored.ok_or_else(|| Error::not_found("build", format_args!("{build} of {text}")))?;
    Ok((stored, place))
}

/// What the build saw of the transcript, in order: the summary stands behind what it left.
async fn window(
    store: &dyn HistoryStore,
    tenant: TenantId,
    place: &TurnPlace,
    receipt: &Receipt,
) -> Result<Vec<Entry>> {
    // The summary was written behind the entries it keeps.
    let Some(end) = receipt.head.max(receipt.compaction) else {
        return Ok(Vec::new());
    };
    let window = store
        .window(tenant, place.transcript, place.branch, Some(end))
        .await?;
    let mut entries: Vec<Entry> = window.entries.into_iter().chain(window.summary).collect();
    entries.sort_by_key(|entry| entry.seq);
    Ok(entries)
}

/// The turn's own entries behind the head of then. Turns end in one block, so the look ends with it.
async fn own_entries(
    store: &dyn HistoryStore,
    tenant: TenantId,
    place: &TurnPlace,
    turn: TurnId,
    head: Option<Seq>,
) -> Result<Vec<Entry>> {
    let (mut own, mut after) = (Vec::new(), head.unwrap_or(Seq(0)));
    loop {
        let page = store
            .list_entries(tenant, place.transcript, place.branch, Order::After(after), PAGE)
            .await?;
        let Some(last) = page.entries.last().map(|entry| entry.seq) else {
            return Ok(own);
        };
        after = last;
        let begun = !own.is_empty();
        let before = own.len();
        own.extend(page.entries.into_iter().filter(|entry| entry.turn == Some(turn)));
        let over = begun && own.len() == before;
        if over || !page.more {
            return Ok(own);
        }
    }
}

async fn running(
    store: &dyn HistoryStore,
    tenant: TenantId,
    place: &TurnPlace,
    turn: TurnId,
    is_current: bool,
) -> Result<TurnView> {
    if !is_current {
        let message = "the turn still runs: what a lost attempt staged can be read when it has ended";
        return Err(Error::new(Reason::Conflict, message));
    }
    store.view(tenant, turn, place.fence).await
}
