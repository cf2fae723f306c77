//! Memories: rows, lists, search.

use crate::cursor::{self, Cursor};
use crate::fault::Fault;
use crate::memory_ops as ops;
use crate::{PgStore, Tx, json};
use async_trait::async_trait;
use colloquy_storage::terms::terms;
use colloquy_storage::{
    Extraction, Memories, Memory, MemoryFilter, MemoryKind, MemoryScope, Page, PageRequest, Watermark,
    WatermarkKey,
};
use colloquy_types::{AgentId, Error, MemoryId, Result, TenantId, UnixMillis};
use sqlx::{FromRow, Postgres, QueryBuilder};
use uuid::Uuid;

#[derive(FromRow)]
pub(crate) struct MemoryRow {
    tenant: Uuid,
    id: Uuid,
    agent: String,
    scope: String,
    owner: String,
    kind: String,
    text: Vec<u8>,
    importance: f32,
    confidence: f32,
    provenance: String,
    sources: Vec<u8>,
    valid_from: i64,
    valid_to: Option<i64>,
    supersedes: Option<Uuid>,
    recall_count: i64,
    created: i64,
    updated: i64,
}

impl TryFrom<MemoryRow> for Memory {
    type Error = Error;

    fn try_from(row: MemoryRow) -> Result<Self> {
        let unknown = || Error::internal("a memory is of an unknown kind or scope");
        Ok(Self {
            id: MemoryId(row.id),
            tenant: TenantId(row.tenant),
            agent: AgentId::parse(&row.agent)?,
            scope: MemoryScope::parse(&row.scope, &row.owner).ok_or_else(unknown)?,
            kind: MemoryKind::parse(&row.kind).ok_or_else(unknown)?,
            text: json::text(row.text)?,
            importance: row.importance,
            confidence: row.confidence,
            provenance: json::from_word(&row.provenance)?,
            sources: json::from_bytes(&row.sources)?,
            valid_from: UnixMillis(row.valid_from),
            valid_to: row.valid_to.map(UnixMillis),
            supersedes: row.supersedes.map(MemoryId),
            recall_count: row.recall_count,
            created: UnixMillis(row.created),
            updated: UnixMillis(row.updated),
        })
    }
}

#[async_trait]
impl Memories for PgStore {
    async fn put_memory(&self, memory: &Memory) -> Result<Memory> {
        let mut tx = self.write(memory.tenant).await?;
        ops::insert(&mut tx, memory.tenant, memory).await?;
        let stored = load(&mut tx, memory.tenant, memory.id).await?;
        tx.commit().await?;
        Ok(stored)
    }

    async fn get_memory(&self, tenant: TenantId, id: MemoryId) -> Result<Option<Memory>> {
        Ok(get(&mut self.read(tenant).await?, tenant, id).await?)
    }

    async fn list_memories(
        &self,
        tenant: TenantId,
        filter: &MemoryFilter,
        page: &PageRequest,
    ) -> Result<Page<Memory>> {
        Ok(list(&mut self.read(tenant).await?, tenant, filter, page).await?)
    }

    async fn update_memory(&self, memory: &Memory) -> Result<Memory> {
        let mut tx = self.write(memory.tenant).await?;
        load(&mut tx, memory.tenant, memory.id).await?;
        ops::update(&mut tx, memory).await?;
        let stored = load(&mut tx, memory.tenant, memory.id).await?;
        tx.commit().await?;
        Ok(stored)
    }

    async fn delete_memory(&self, tenant: TenantId, id: MemoryId) -> Result<()> {
        let mut tx = self.write(tenant).await?;
        load(&mut tx, tenant, id).await?;
        ops::delete(&mut tx, tenant, id).await?;
        Ok(tx.commit().await?)
    }

    async fn search_memories(
        &self,
        tenant: TenantId,
        filter: &MemoryFilter,
        query: &str,
        limit: u32,
    ) -> Result<Vec<Memory>> {
        Ok(search(&mut self.read(tenant).await?, tenant, filter, query, limit).await?)
    }

    async fn count_recalls(&self, tenant: TenantId, ids: &[MemoryId]) -> Result<()> {
        let mut tx = self.write(tenant).await?;
        ops::count_recalls(&mut tx, tenant, ids).await?;
        Ok(tx.commit().await?)
    }

    async fn watermark(&self, tenant: TenantId, key: &WatermarkKey) -> Result<Watermark> {
        Ok(ops::watermark(&mut self.read(tenant).await?, tenant, key).await?)
    }

    async fn apply_extraction(&self, extraction: &Extraction) -> Result<bool> {
        let mut tx = self.write(extraction.tenant).await?;
        let applied = ops::apply(&mut tx, extraction).await?;
        tx.commit().await?;
        Ok(applied)
    }
}

pub(crate) async fn get(tx: &mut Tx, tenant: TenantId, id: MemoryId) -> Result<Option<Memory>, Fault> {
    let sql = "/* get_memory */ SELECT * FROM memories WHERE tenant = $1 AND id = $2";
    let row: Option<MemoryRow> = sqlx::query_as(sql)
        .bind(tenant.0)
        .bind(id.0)
        .fetch_optional(tx.conn())
        .await?;
    Ok(row.map(Memory::try_from).transpose()?)
}

async fn load(tx: &mut Tx, tenant: TenantId, id: MemoryId) -> Result<Memory, Fault> {
    get(tx, tenant, id)
        .await?
        .ok_or_else(|| Error::not_found("memory", id).into())
}

/// The tenant's memories within the filter; the predicates of a list and of a search.
fn push_filter(query: &mut QueryBuilder<Postgres>, tenant: TenantId, filter: &MemoryFilter, now: UnixMillis) {
    query.push("m.tenant = ").push_bind(tenant.0);
    query
        .push(" AND m.agent = ")
        .push_bind(filter.agent.as_str().to_owned());
    query.push(" AND (m.scope, m.owner) IN (VALUES ");
    for (place, scope) in filter.scopes.iter().enumerate() {
        query
            .push(if place == 0 { "(" } else { ", (" })
            .push_bind(scope.kind());
        query.push(", ").push_bind(scope.owner().to_owned()).push(")");
    }
    query.push(")");
    if let Some(kind) = filter.kind {
        query.push(" AND m.kind = ").push_bind(kind.as_str());
    }
    if !filter.include_ended {
        query
            .push(" AND (m.valid_to IS NULL OR m.valid_to > ")
            .push_bind(now.0)
            .push(")");
    }
}

async fn list(
    tx: &mut Tx,
    tenant: TenantId,
    filter: &MemoryFilter,
    page: &PageRequest,
) -> Result<Page<Memory>, Fault> {
    let after = Cursor::of(page, Cursor::LAST)?;
    if filter.scopes.is_empty() {
        return Ok(Page {
            items: vec![],
            next: None,
        });
    }
    let mut query = QueryBuilder::<Postgres>::new("/* list_memories */ SELECT m.* FROM memories m WHERE ");
    push_filter(&mut query, tenant, filter, tx.now);
    query
        .push(" AND (m.created, m.id) < (")
        .push_bind(after.at)
        .push(", ")
        .push_bind(after.id)
        .push(")");
    query
        .push(" ORDER BY m.created DESC, m.id DESC LIMIT ")
        .push_bind(cursor::rows(page));
    let memories = memories(query.build_query_as().fetch_all(tx.conn()).await?)?;
    Ok(cursor::page(memories, page, |memory: &Memory| Cursor {
        at: memory.created.0,
        id: memory.id.0,
    }))
}

/// Terms of a query that are looked up; more make a search slow and no better.
const MAX_TERMS: usize = 64;

async fn search(
    tx: &mut Tx,
    tenant: TenantId,
    filter: &MemoryFilter,
    text: &str,
    limit: u32,
) -> Result<Vec<Memory>, Fault> {
    let wanted = terms(text);
    if wanted.is_empty() || filter.scopes.is_empty() {
        return Ok(vec![]);
    }
    let mut query = QueryBuilder::<Postgres>::new("/* search_memories */ SELECT m.* FROM memories m JOIN ");
    query
        .push("(SELECT memory, count(*) AS shared FROM memory_terms WHERE tenant = ")
        .push_bind(tenant.0);
    query.push(" AND term IN (");
    let mut list = query.separated(", ");
    for term in wanted.into_iter().take(MAX_TERMS) {
        list.push_bind(term);
    }
    query.push(") GROUP BY memory) hit ON hit.memory = m.id WHERE ");
    push_filter(&mut query, tenant, filter, tx.now);
    query
        .push(" ORDER BY hit.shared DESC, m.updated DESC, m.id DESC LIMIT ")
        .push_bind(i64::from(limit));
    Ok(memories(query.build_query_as().fetch_all(tx.conn()).await?)?)
}

fn memories(rows: Vec<MemoryRow>) -> Result<Vec<Memory>> {
    rows.into_iter().map(Memory::try_from).collect()
}
