//! Recall within a session's scope.

use crate::rank::{RankOptions, Ranked, block, rank};
use crate::scope;
use crate::service::MemoryServer;
use colloquy_context::Tokenizer;
use colloquy_proto::convert::duration_ms;
use colloquy_proto::v1;
use colloquy_storage::{MemoryFilter, WatermarkKey};
use colloquy_types::policy::{self, Profile};
use colloquy_types::{Error, MemoryId, Principal, Result, TenantId};
use std::time::Duration;
use tokio::time::Instant;

/// Candidates fetched per result asked for.
const CANDIDATES: usize = 4;
/// Wait for the extraction, where the caller names none, and at most.
const WAIT_MS: i64 = 5_000;
const LONGEST_WAIT_MS: i64 = 30_000;
/// Pause between two looks at the watermark, which another replica moves.
const LOOK: Duration = Duration::from_millis(200);
const MAX_QUERY_CHARS: usize = 4_000;

pub async fn recall(
    server: &MemoryServer,
    principal: &Principal,
    tenant: TenantId,
    request: v1::RecallRequest,
) -> Result<v1::RecallResponse> {
    let session = server
        .sessions
        .visible(principal, tenant, &request.session_id)
        .await?;
    if request.query.trim().is_empty() {
        return Err(Error::invalid("query", "is blank"));
    }
    let watermark = WatermarkKey {
        transcript: session.transcript,
        branch: session.branch,
        strategy: server.extractor.strategy().to_owned(),
    };
    let extracted_through = extracted(server, tenant, &watermark, &request).await?;
    let query: String = request.query.chars().take(MAX_QUERY_CHARS).collect();
    let defaults = Profile::default().policy().memory;
    let options = options(&defaults, request.limit);
    let filter = MemoryFilter {
        agent: session.key.agent().clone(),
        scopes: scope::of_session(&session.key).visible,
        kind: None,
        include_ended: false,
    };
    let limit = u32::try_from(options.limit * CANDIDATES).unwrap_or(200);
    let candidates = server
        .store
        .search_memories(tenant, &filter, &query, limit)
        .await?;
    let ranked = rank(&query, candidates, server.store.now().await?, &options);
    let budget = if request.token_budget == 0 {
        defaults.recall_tokens
    } else {
        request.token_budget
    };
    let ranked = within_budget(ranked, budget);
    let ids: Vec<MemoryId> = ranked.iter().map(|ranked| ranked.memory.id).collect();
    if !ids.is_empty() {
        server.store.count_recalls(tenant, &ids).await?;
    }
    Ok(v1::RecallResponse {
        block: block(&ranked),
        results: ranked.into_iter().map(result).collect(),
        extracted_through,
    })
}

/// How far the session has been read for memories: at once, or as soon as that is as far as the caller asks for.
async fn extracted(
    server: &MemoryServer,
    tenant: TenantId,
    key: &WatermarkKey,
    request: &v1::RecallRequest,
) -> Result<i64> {
    let wait = request
        .wait
        .as_ref()
        .map_or(WAIT_MS, duration_ms)
        .clamp(0, LONGEST_WAIT_MS);
    let end = Instant::now() + Duration::from_millis(wait.unsigned_abs());
    loop {
        let through = server.store.watermark(tenant, key).await?.through.0;
        let left = end.saturating_duration_since(Instant::now());
        if through >= request.wait_for_entry || left.is_zero() || !server.shutdown.sleep(LOOK.min(left)).await
        {
            return Ok(through);
        }
    }
}

fn options(memory: &policy::Memory, limit: u32) -> RankOptions {
    let limit = if limit == 0 {
        memory.recall_limit
    } else {
        limit.min(50)
    };
    RankOptions {
        limit: limit as usize,
        min_score: memory.min_score,
        half_life_days: memory.half_life_days,
        mmr: memory.mmr,
    }
}

/// The best results that fit, in order.
fn within_budget(ranked: Vec<Ranked>, budget: u32) -> Vec<Ranked> {
    let mut left = budget;
    let mut fits = |ranked: &Ranked| {
        let tokens = Tokenizer::default().count_text(&ranked.memory.text);
        left = left.saturating_sub(tokens);
        left > 0
    };
    ranked.into_iter().take_while(|ranked| fits(ranked)).collect()
}

#[allow(clippy::cast_possible_truncation)] // scores within 0 to 1
fn result(ranked: Ranked) -> v1::RecallResult {
    v1::RecallResult {
        score: ranked.score as f32,
        lexical: ranked.lexical as f32,
        recency: ranked.recency as f32,
        memory: Some(crate::convert::memory(ranked.memory)),
    }
}
