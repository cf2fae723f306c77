//! Building contexts: load the window, call the pure build, keep its receipt, stream the bytes.

mod past;
mod receipts;
mod respond;
mod subject;

pub use receipts::{get_receipt, rebuild_context};

use crate::calibration::Calibrations;
use crate::policies::{Known, Policies};
use colloquy_context::build::LastCall;
use colloquy_context::tokens::anchor::Anchor;
use colloquy_context::{
    BuildInput, BuildOptions, Built, Counter, Format, Moves, Tokenizer, Watermarks, build, count_message,
    count_overhead,
};
use colloquy_proto::v1;
use colloquy_storage::{HistoryStore, Marks, NewReceipt};
use colloquy_types::message::Message;
use colloquy_types::{Error, Policy, Principal, Result, TenantId};
use past::Past;
use respond::pieces;
use std::sync::Arc;
use subject::{Subject, subject};
use tonic::Status;

/// Shortest window that anything can be built for, in tokens.
const LEAST_WINDOW: u32 = 256;

pub async fn build_context(
    store: &dyn HistoryStore,
    policies: &Policies,
    calibrations: &Calibrations,
    principal: &Principal,
    tenant: TenantId,
    request: v1::BuildContextRequest,
) -> Result<Vec<Result<v1::BuildContextResponse, Status>>> {
    let subject = subject(store, principal, tenant, &request).await?;
    let (version, known) = policy(policies, tenant, &subject, &request).await?;
    let model = if request.model.is_empty() {
        &known.policy.model.name
    } else {
        &request.model
    };
    let calibration = calibrations.get(tenant, model).await?;
    let past = Past::load(store, tenant, &subject, model).await?;
    let asked = request.window_tokens;
    let window = if asked == 0 {
        known.policy.model.window_tokens
    } else {
        asked
    };
    if window < LEAST_WINDOW {
        return Err(Error::invalid(
            "window_tokens",
            format!("must be at least {LEAST_WINDOW}"),
        ));
    }
    let format = format_of(request.format());
    let input = BuildInput {
        branch: Some(subject.window.branch.branch),
        compaction: subject.window.summary.as_ref(),
        turn: subject.turn.map(|(turn, _)| turn),
        preface: &subject.preface,
        pending: &subject.pending.messages,
        staged: &subject.staged.messages,
        pending_tokens: &subject.pending.tokens,
        staged_tokens: &subject.staged.tokens,
        recalled: &request.recall_block,
        options: BuildOptions::from(&known.policy),
        policy_version: &version,
        watermarks: watermarks(subject.window.branch.marks),
        moves: if subject.turn.is_some() {
            Moves::Running
        } else {
            Moves::Preview
        },
        cache_cold: request.cache_cold,
        last_call: last_call(store, &known.policy, &past).await?,
        reserve: request.reserve_tokens.or(known.policy.context.reserve_tokens),
        overhead: overhead(&request, model, format),
        calibration_percent: calibration.percent(),
        anchor: past
            .measured
            .and_then(|measured| Anchor::new(measured, window, &calibration)),
        model,
        previous: past.previous.as_ref(),
        ..BuildInput::new(&subject.window.entries, window, format)
    };
    let tokens_in = tokens_before(&input);
    let built = build(&input).map_err(Error::from)?;
    let number = keep(store, tenant, &subject, &built).await?;
    metrics::counter!("colloquy_contexts_built_total").increment(1);
    pieces(&built, tokens_in, number)
}

/// The policy in force, or for a preview another one.
async fn policy(
    policies: &Policies,
    tenant: TenantId,
    subject: &Subject,
    request: &v1::BuildContextRequest,
) -> Result<(String, Arc<Known>)> {
    let known = policies.get(tenant, &subject.policy).await?;
    if request.policy_json.is_empty() {
        return Ok((subject.policy.0.clone(), known));
    }
    if subject.turn.is_some() {
        return Err(Error::invalid(
            "policy_json",
            "a running turn keeps the policy it was accepted under",
        ));
    }
    let changed = known.policy.with(&request.policy_json)?;
    let (version, changed) = policies.of_json(&changed.to_json()).await?;
    Ok((version.0, changed))
}

/// The age of the provider's prompt cache, where the policy asks for it.
async fn last_call(store: &dyn HistoryStore, policy: &Policy, past: &Past) -> Result<Option<LastCall>> {
    if policy.context.prune.cache_ttl_ms.is_none() {
        return Ok(None);
    }
    Ok(Some(LastCall {
        at: past.last_call,
        now: store.now().await?,
    }))
}

/// Stores the receipt of a running turn's build, with the watermarks that it moved; the build's number.
async fn keep(
    store: &dyn HistoryStore,
    tenant: TenantId,
    subject: &Subject,
    built: &Built<'_>,
) -> Result<u32> {
    let Some((turn, fence)) = subject.turn else {
        return Ok(0);
    };
    let moved = built.watermarks != watermarks(subject.window.branch.marks);
    let marks = moved.then_some(Marks {
        soft: built.watermarks.soft,
        hard: built.watermarks.hard,
    });
    let body = serde_json::to_vec(&built.receipt)
        .map_err(|error| Error::internal(format!("the receipt cannot be written: {error}")))?;
    let receipt = NewReceipt {
        tenant,
        turn,
        fence,
        marks,
        body,
    };
    store.keep_receipt(&receipt).await
}

fn watermarks(marks: Marks) -> Watermarks {
    Watermarks {
        soft: marks.soft,
        hard: marks.hard,
    }
}

fn overhead(request: &v1::BuildContextRequest, model: &str, format: Format) -> u32 {
    if request.overhead_tokens > 0 {
        return request.overhead_tokens;
    }
    if request.overhead_texts.is_empty() && request.tools_json.is_empty() {
        return 0;
    }
    let system: Vec<&str> = request.overhead_texts.iter().map(String::as_str).collect();
    count_overhead(&system, &request.tools_json, format, Tokenizer::for_model(model))
}

/// Tokens of everything in reach, before anything was left out.
fn tokens_before(input: &BuildInput<'_>) -> u32 {
    let first = input.entries.iter().map(|entry| entry.tokens);
    let summary = input.compaction.map(|entry| entry.tokens);
    let turn = input
        .pending
        .iter()
        .chain(input.staged)
        .map(|message| count_message(message, input.tokenizer));
    first.chain(summary).chain(turn).fold(0, u32::saturating_add)
}

pub fn format_of(format: v1::ContextFormat) -> Format {
    match format {
        v1::ContextFormat::Unspecified | v1::ContextFormat::Neutral => Format::Neutral,
        v1::ContextFormat::Anthropic => Format::Anthropic,
        v1::ContextFormat::OpenaiChat => Format::OpenaiChat,
        v1::ContextFormat::OpenaiChatStrict => Format::OpenaiChatStrict,
        v1::ContextFormat::OpenaiResponses => Format::OpenaiResponses,
        v1::ContextFormat::Gemini => Format::Gemini,
        v1::ContextFormat::Mistral => Format::Mistral,
    }
}

pub fn count_tokens(request: v1::CountTokensRequest) -> Result<v1::CountTokensResponse> {
    let counter = Counter::for_model(&request.model);
    let mut tokens: Vec<u32> = request
        .texts
        .iter()
        .map(|text| counter.tokenizer.count_text(text))
        .collect();
    for (index, message) in request.messages.into_iter().enumerate() {
        let message =
            Message::try_from(message).map_err(|error| error.within(&format!("messages[{index}]")))?;
        tokens.push(counter.message(&message));
    }
    Ok(v1::CountTokensResponse {
        tokens,
        tokenizer: counter.tokenizer.name().to_owned(),
    })
}
