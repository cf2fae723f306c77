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

/// The best results that fit, in order: one that is too long does not keep out a shorter one behind it.
fn within_budget(ranked: Vec<Ranked>, budget: u32) -> Vec<Ranked> {
    let mut left = budget;
    let mut fits = |ranked: &Ranked| {
        let tokens = Tokenizer::default().count_text(&ranked.memory.text);
        let rest = left.checked_sub(tokens);
        left = rest.unwrap_or(left);
        rest.is_some()
    };
    ranked.into_iter().filter(|ranked| fits(ranked)).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use colloquy_storage::{Memory, MemoryKind, MemoryScope};
    use colloquy_types::message::Provenance;
    use colloquy_types::{AgentId, UnixMillis};

    fn ranked(text: &str) -> Ranked {
        let at = UnixMillis(1_800_000_000_000);
        let memory = Memory {
            id: MemoryId::new(),
            tenant: TenantId::new(),
            agent: AgentId::parse("a").unwrap(),
            scope: MemoryScope::Agent,
            kind: MemoryKind::Knowledge,
            text: text.into(),
            importance: 0.5,
            confidence: 0.8,
            provenance: Provenance::Owner,
            sources: vec![],
            valid_from: at,
            valid_to: None,
            supersedes: None,
            recall_count: 0,
            created: at,
            updated: at,
        };
        Ranked {
            memory,
            score: 1.0,
            lexical: 1.0,
            recency: 1.0,
        }
    }

    fn kept(texts: &[&str], budget: u32) -> Vec<String> {
        within_budget(texts.iter().map(|text| ranked(text)).collect(), budget)
            .into_iter()
            .map(|ranked| ranked.memory.text)
            .collect()
    }

    #[test]
    fn a_memory_that_fits_exactly_is_kept() {
        let tokens = Tokenizer::default().count_text("the bike is red");
        assert_eq!(kept(&["the bike is red"], tokens), ["the bike is red"]);
        assert!(kept(&["the bike is red"], tokens - 1).is_empty());
    }

    #[test]
    fn one_that_does_not_fit_keeps_out_none_behind_it() {
        let long = "the bike is red ".repeat(50);
        let budget = Tokenizer::default().count_text("short") * 2;
        assert_eq!(
            kept(&["short", &long, "short", "short"], budget),
            ["short", "short"]
        );
    }
}
