//! Chunks through the summary model; finished ones are kept with the job, so a retry goes on where it stopped.

use crate::engine::{Engine, Marked};
use crate::plan::Plan;
use colloquy_context::Tokenizer;
use colloquy_context::compaction::audit::{AuditSource, audit, required_identifiers};
use colloquy_context::compaction::{Chunk, chunks};
use colloquy_llm::SummaryRequest;
use colloquy_proto::v1;
use colloquy_types::message::Message;
use colloquy_types::{Error, Result};
use std::collections::HashMap;

/// Share of the model window that a summary may take, and its bounds in tokens.
const SHARE: u32 = 20;
const SHORTEST: u32 = 400;
const LONGEST: u32 = 4_000;

/// A summary that passed its audit.
pub struct Summary {
    pub text: String,
    pub tokens: u32,
    pub model: String,
}

/// Summarises the plan's range, chunk by chunk, and audits the result.
///
/// # Errors
/// `INTERNAL` with the reason when the model fails or the audit is not passed after one retry.
pub async fn summarise(engine: &Engine, marked: &Marked, plan: &Plan, window_tokens: u32) -> Result<Summary> {
    let tokenizer = Tokenizer::default();
    let rendered = plan.rendered();
    let planned = chunks(&rendered, engine.summariser.window_tokens(), tokenizer);
    let messages: Vec<&Message> = plan.messages.iter().collect();
    let max_tokens = (window_tokens / SHARE)
        .clamp(SHORTEST, LONGEST)
        .min(plan.tokens_replaced().max(SHORTEST));
    let finished: HashMap<i32, &v1::CompactionChunk> =
        marked.chunks.iter().map(|chunk| (chunk.index, chunk)).collect();
    let mut summary = plan.previous.clone();
    let last = planned.len().saturating_sub(1);
    for (index, chunk) in planned.iter().enumerate() {
        let number = i32::try_from(index).unwrap_or(i32::MAX);
        let place = place(plan, chunk);
        if let Some(done) = finished
            .get(&number)
            .filter(|done| (done.from_seq, done.to_seq) == place)
        {
            summary.clone_from(&done.summary);
            continue;
        }
        let request = SummaryRequest {
            previous: summary.clone(),
            chunk: texts(chunk, &rendered),
            instructions: marked.instructions.clone(),
            missing: String::new(),
            last_request: if index == last {
                plan.last_request()
            } else {
                String::new()
            },
            identifiers: if index == last {
                required_identifiers(&messages)
            } else {
                Vec::new()
            },
            max_tokens,
        };
        summary = if index == last {
            audited(engine, request, &messages, plan).await?
        } else {
            engine
                .summariser
                .summarise(&request)
                .await
                .map_err(|error| Error::internal(error.to_string()))?
        };
        marked.save(engine, number, place, &summary).await?;
    }
    let tokens = tokenizer.count_text(&summary);
    Ok(Summary {
        text: summary,
        tokens,
        model: engine.summariser.name().to_owned(),
    })
}

/// The last chunk's answer is held against the whole range; one retry is told what was missing.
async fn audited(
    engine: &Engine,
    mut request: SummaryRequest,
    messages: &[&Message],
    plan: &Plan,
) -> Result<String> {
    let mut failure = String::new();
    for _ in 0..2 {
        request.missing.clone_from(&failure);
        let answer = engine
            .summariser
            .summarise(&request)
            .await
            .map_err(|error| Error::internal(error.to_string()))?;
        let source = AuditSource {
            messages,
            tokens: plan.tokens_replaced(),
            summary_tokens: Tokenizer::default().count_text(&answer),
        };
        match audit(&answer, &source) {
            Ok(()) => return Ok(answer),
            Err(found) => failure = found.to_string(),
        }
    }
    Err(Error::internal(format!("the summary was refused: {failure}")))
}

fn place(plan: &Plan, chunk: &Chunk) -> (i64, i64) {
    let seq = |index: usize| plan.seqs.get(index).map_or(0, |seq| seq.0);
    (
        seq(chunk.messages.start),
        seq(chunk.messages.end.saturating_sub(1)),
    )
}

fn texts(chunk: &Chunk, rendered: &[String]) -> Vec<String> {
    match &chunk.piece {
        Some(piece) => vec![rendered[chunk.messages.start][piece.clone()].to_owned()],
        None => rendered[chunk.messages.clone()].to_vec(),
    }
}
