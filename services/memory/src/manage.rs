//! Memories by hand: add, list, change, delete.

use crate::convert;
use crate::scope;
use crate::service::MemoryServer;
use colloquy_proto::convert::{id, non_empty};
use colloquy_proto::v1;
use colloquy_storage::{Memory, MemoryFilter, MemoryKind, MemoryScope, PageRequest};
use colloquy_types::message::Provenance;
use colloquy_types::{AgentId, CallerRole, Error, MemoryId, Principal, Result, TenantId, UnixMillis};

const MAX_TEXT_CHARS: usize = 4_000;

fn check_text(text: &str) -> Result<()> {
    if text.trim().is_empty() {
        return Err(Error::invalid("text", "is blank"));
    }
    if text.chars().count() > MAX_TEXT_CHARS {
        return Err(Error::too_large(
            "text",
            format_args!("{MAX_TEXT_CHARS} characters"),
        ));
    }
    Ok(())
}

fn check_importance(importance: f32) -> Result<()> {
    let legal = (0.0..=1.0).contains(&importance);
    if legal {
        Ok(())
    } else {
        Err(Error::invalid("importance", "must be within 0 to 1"))
    }
}

pub async fn remember(
    server: &MemoryServer,
    principal: &Principal,
    tenant: TenantId,
    request: v1::RememberRequest,
) -> Result<v1::Memory> {
    check_text(&request.text)?;
    check_importance(request.importance)?;
    let session = server
        .sessions
        .visible(principal, tenant, &request.session_id)
        .await?;
    let own = scope::of_session(&session.key).own;
    let memory = Memory {
        id: MemoryId::new(),
        tenant,
        agent: session.key.agent().clone(),
        scope: if request.agent_wide {
            MemoryScope::Agent
        } else {
            own
        },
        kind: convert::kind(request.kind()).unwrap_or(MemoryKind::Knowledge),
        importance: if request.importance == 0.0 {
            0.5
        } else {
            request.importance
        },
        confidence: 1.0,
        // An agent's word is an agent's word, an operator's the owner's.
        provenance: if principal.has(CallerRole::Admin) {
            Provenance::Owner
        } else {
            Provenance::Agent
        },
        sources: Vec::new(),
        valid_from: server.store.now().await?,
        valid_to: None,
        supersedes: None,
        recall_count: 0,
        created: UnixMillis::default(),
        updated: UnixMillis::default(),
        text: request.text,
    };
    server.store.put_memory(&memory).await.map(convert::memory)
}

pub async fn list(
    server: &MemoryServer,
    principal: &Principal,
    tenant: TenantId,
    request: v1::ListMemoriesRequest,
) -> Result<v1::ListMemoriesResponse> {
    let (agent, scopes) = if request.session_id.is_empty() {
        let agent = AgentId::parse(&request.agent)?;
        if !principal.may_serve(&agent) {
            return Err(Error::not_found("agent", agent));
        }
        (agent, vec![MemoryScope::Agent])
    } else {
        let session = server
            .sessions
            .visible(principal, tenant, &request.session_id)
            .await?;
        (
            session.key.agent().clone(),
            scope::of_session(&session.key).visible,
        )
    };
    let kind = convert::kind(request.kind());
    let filter = MemoryFilter {
        agent,
        scopes,
        kind,
        include_ended: request.include_ended,
    };
    let page = PageRequest {
        size: request.page_size,
        token: non_empty(request.page_token),
    };
    let page = server.store.list_memories(tenant, &filter, &page).await?;
    Ok(v1::ListMemoriesResponse {
        memories: page.items.into_iter().map(convert::memory).collect(),
        next_page_token: page.next.unwrap_or_default(),
    })
}

/// The memory, if there is one and the caller serves its agent.
pub async fn get(
    server: &MemoryServer,
    principal: &Principal,
    tenant: TenantId,
    text: &str,
) -> Result<Memory> {
    let found = server.store.get_memory(tenant, id("memory_id", text)?).await?;
    found
        .filter(|memory| principal.may_serve(&memory.agent))
        .ok_or_else(|| Error::not_found("memory", text))
}

pub async fn delete(
    server: &MemoryServer,
    principal: &Principal,
    tenant: TenantId,
    text: &str,
) -> Result<()> {
    let memory = get(server, principal, tenant, text).await?;
    server.store.delete_memory(tenant, memory.id).await
}

pub async fn update(
    server: &MemoryServer,
    principal: &Principal,
    tenant: TenantId,
    request: v1::UpdateMemoryRequest,
) -> Result<v1::Memory> {
    check_importance(request.importance)?;
    let mut memory = get(server, principal, tenant, &request.memory_id).await?;
    memory.kind = convert::kind(request.kind()).unwrap_or(memory.kind);
    if !request.text.is_empty() {
        check_text(&request.text)?;
        memory.text = request.text;
    }
    if request.importance > 0.0 {
        memory.importance = request.importance;
    }
    server.store.update_memory(&memory).await.map(convert::memory)
}
