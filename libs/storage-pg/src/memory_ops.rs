//! Changes of memories, and the extraction that applies several of them at once.

use crate::fault::Fault;
use crate::memory;
use crate::{Tx, json};
use colloquy_storage::terms::terms;
use colloquy_storage::{Extraction, Memory, MemoryOp, Watermark, WatermarkKey};
use colloquy_types::{EntryId, MemoryId, Result, Seq, TenantId};

pub(crate) async fn insert(tx: &mut Tx, tenant: TenantId, memory: &Memory) -> Result<(), Fault> {
    let now = tx.now.0;
    let sql = "/* insert_memory */ INSERT INTO memories \
               (tenant, id, agent, scope, owner, kind, text, importance, confidence, provenance, sources, \
               valid_from, valid_to, supersedes, recall_count, created, updated) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)";
    let query = sqlx::query(sql)
        .bind(tenant.0)
        .bind(memory.id.0)
        .bind(memory.agent.as_str());
    let query = query
        .bind(memory.scope.kind())
        .bind(memory.scope.owner())
        .bind(memory.kind.as_str());
    let query = query
        .bind(memory.text.as_bytes())
        .bind(memory.importance)
        .bind(memory.confidence);
    let query = query
        .bind(json::to_word(&memory.provenance)?)
        .bind(json::to_bytes(&memory.sources)?);
    let query = query
        .bind(memory.valid_from.0)
        .bind(memory.valid_to.map(|end| end.0));
    let query = query
        .bind(memory.supersedes.map(|old| old.0))
        .bind(memory.recall_count)
        .bind(now)
        .bind(now);
    query.execute(tx.conn()).await?;
    index(tx, tenant, memory.id, &memory.text).await
}

async fn index(tx: &mut Tx, tenant: TenantId, id: MemoryId, text: &str) -> Result<(), Fault> {
    let sql = "/* index_memory */ DELETE FROM memory_terms WHERE tenant = $1 AND memory = $2";
    sqlx::query(sql)
        .bind(tenant.0)
        .bind(id.0)
        .execute(tx.conn())
        .await?;
    for term in terms(text) {
        let sql = "/* index_memory */ INSERT INTO memory_terms (tenant, term, memory) VALUES ($1, $2, $3)";
        sqlx::query(sql)
            .bind(tenant.0)
            .bind(term)
            .bind(id.0)
            .execute(tx.conn())
            .await?;
    }
    Ok(())
}

/// Text, kind and importance.
pub(crate) async fn update(tx: &mut Tx, memory: &Memory) -> Result<(), Fault> {
    let now = tx.now.0;
    let sql = "/* update_memory */ UPDATE memories SET text = $1, kind = $2, importance = $3, updated = $4 \
               WHERE tenant = $5 AND id = $6";
    let query = sqlx::query(sql)
        .bind(memory.text.as_bytes())
        .bind(memory.kind.as_str());
    let query = query
        .bind(memory.importance)
        .bind(now)
        .bind(memory.tenant.0)
        .bind(memory.id.0);
    query.execute(tx.conn()).await?;
    index(tx, memory.tenant, memory.id, &memory.text).await
}

/// Its terms go with it.
pub(crate) async fn delete(tx: &mut Tx, tenant: TenantId, id: MemoryId) -> Result<(), Fault> {
    let sql = "/* delete_memory */ DELETE FROM memories WHERE tenant = $1 AND id = $2";
    sqlx::query(sql)
        .bind(tenant.0)
        .bind(id.0)
        .execute(tx.conn())
        .await?;
    Ok(())
}

pub(crate) async fn count_recalls(tx: &mut Tx, tenant: TenantId, ids: &[MemoryId]) -> Result<(), Fault> {
    let sql = "/* count_recalls */ UPDATE memories SET recall_count = recall_count + 1 WHERE tenant = $1 AND id = $2";
    for id in ids {
        sqlx::query(sql)
            .bind(tenant.0)
            .bind(id.0)
            .execute(tx.conn())
            .await?;
    }
    Ok(())
}

pub(crate) async fn watermark(tx: &mut Tx, tenant: TenantId, key: &WatermarkKey) -> Result<Watermark, Fault> {
    let sql = "/* watermark */ SELECT through FROM memory_watermarks \
               WHERE tenant = $1 AND transcript = $2 AND branch = $3 AND strategy = $4";
    let query = sqlx::query_scalar(sql)
        .bind(tenant.0)
        .bind(key.transcript.0)
        .bind(key.branch.0);
    let through: Option<i64> = query.bind(&key.strategy).fetch_optional(tx.conn()).await?;
    Ok(Watermark {
        through: Seq(through.unwrap_or(0)),
    })
}

/// `false`, with nothing changed, when the watermark does not stand where the extraction began.
pub(crate) async fn apply(tx: &mut Tx, extraction: &Extraction) -> Result<bool, Fault> {
    let (tenant, key) = (extraction.tenant, &extraction.key);
    // The row may not be there yet, so the place is locked: two extractions of one transcript take turns.
    let place = format!("{tenant} {} {} {}", key.transcript, key.branch, key.strategy);
    let sql = "/* lock_watermark */ SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";
    sqlx::query(sql).bind(place).execute(tx.conn()).await?;
    if watermark(tx, tenant, key).await?.through != extraction.from {
        return Ok(false);
    }
    for op in &extraction.ops {
        apply_op(tx, tenant, op).await?;
    }
    let sql = "/* move_watermark */ INSERT INTO memory_watermarks (tenant, transcript, branch, strategy, through) \
               VALUES ($1, $2, $3, $4, $5) ON CONFLICT (tenant, transcript, branch, strategy) DO UPDATE SET through = excluded.through";
    let query = sqlx::query(sql)
        .bind(tenant.0)
        .bind(key.transcript.0)
        .bind(key.branch.0)
        .bind(&key.strategy);
    query.bind(extraction.through.0).execute(tx.conn()).await?;
    Ok(true)
}

async fn apply_op(tx: &mut Tx, tenant: TenantId, op: &MemoryOp) -> Result<(), Fault> {
    match op {
        MemoryOp::Add(memory) => insert(tx, tenant, memory).await,
        MemoryOp::Reinforce {
            id,
            importance,
            confidence,
            sources,
        } => reinforce(tx, tenant, *id, *importance, *confidence, sources).await,
        MemoryOp::Supersede { old, new } => {
            let new = Memory {
                supersedes: Some(*old),
                ..new.clone()
            };
            end(tx, tenant, *old).await?;
            insert(tx, tenant, &new).await
        }
    }
}

async fn reinforce(
    tx: &mut Tx,
    tenant: TenantId,
    id: MemoryId,
    importance: f32,
    confidence: f32,
    sources: &[EntryId],
) -> Result<(), Fault> {
    let Some(memory) = memory::get(tx, tenant, id).await? else {
        return Ok(());
    };
    let mut all = memory.sources;
    for source in sources {
        if !all.contains(source) {
            all.push(*source);
        }
    }
    let now = tx.now.0;
    let sql = "/* reinforce_memory */ UPDATE memories SET importance = greatest(importance, $1), \
               confidence = greatest(confidence, $2), sources = $3, updated = $4 WHERE tenant = $5 AND id = $6";
    let query = sqlx::query(sql)
        .bind(importance)
        .bind(confidence)
        .bind(json::to_bytes(&all)?)
        .bind(now);
    query.bind(tenant.0).bind(id.0).execute(tx.conn()).await?;
    Ok(())
}

async fn end(tx: &mut Tx, tenant: TenantId, id: MemoryId) -> Result<(), Fault> {
    let now = tx.now.0;
    let sql = "/* end_memory */ UPDATE memories SET valid_to = coalesce(valid_to, $1), updated = $2 \
               WHERE tenant = $3 AND id = $4";
    sqlx::query(sql)
        .bind(now)
        .bind(now)
        .bind(tenant.0)
        .bind(id.0)
        .execute(tx.conn())
        .await?;
    Ok(())
}
