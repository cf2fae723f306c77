//! Building contexts: load the window, call the pure build, stream the bytes.

use crate::policies::Policies;
use crate::sessions;
use colloquy_context::{
    BuildInput, BuildOptions, Built, Decision, Format, Moves, Tokenizer, Watermarks, build, count_message,
};
use colloquy_proto::convert::{id, required};
use colloquy_proto::v1::{self, build_context_request::Subject, build_context_response::Part};
use colloquy_storage::{HistoryStore, Marks, PolicyId, StageInput, Window};
use colloquy_types::message::Message;
use colloquy_types::{EntryBody, Error, Fence, Principal, Result, TenantId, TurnId};
use tonic::Status;

/// Largest piece of a body in one response message, in bytes.
const CHUNK_BYTES: usize = 1 << 20;

/// What a build is of.
struct Subjected {
    window: Window,
    policy: PolicyId,
    pending: Vec<Message>,
    staged: Vec<Message>,
    /// The running turn that may move the watermarks.
    turn: Option<(TurnId, Fence)>,
}

pub async fn build_context(
    store: &dyn HistoryStore,
    policies: &Policies,
    principal: &Principal,
    tenant: TenantId,
    request: v1::BuildContextRequest,
) -> Result<Vec<Result<v1::BuildContextResponse, Status>>> {
    let subject = subject(store, principal, tenant, &request).await?;
    let known = policies.get(tenant, &subject.policy).await?;
    let format = format_of(request.format());
    let window = if request.window_tokens == 0 {
        known.policy.model.window_tokens
    } else {
        request.window_tokens
    };
    if window < 256 {
        return Err(Error::invalid("window_tokens", "must be at least 256"));
    }
    let reserve = request
        .reserve_tokens
        .unwrap_or_else(|| known.policy.reserve(window));
    let input = BuildInput {
        compaction: subject.window.summary.as_ref(),
        pending: &subject.pending,
        staged: &subject.staged,
        recalled: &request.recall_block,
        options: BuildOptions::from(&known.policy),
        policy_version: &subject.policy.0,
        watermarks: watermarks(subject.window.branch.marks),
        moves: if subject.turn.is_some() {
            Moves::Running
        } else {
            Moves::Preview
        },
        cache_cold: request.cache_cold,
        reserve: Some(reserve.min(window / 2)),
        overhead: overhead(&request),
        model: &request.model,
        ..BuildInput::new(&subject.window.entries, window, format)
    };
    let tokens_in = tokens_before(&input);
    let built = build(&input).map_err(Error::from)?;
    keep_marks(store, tenant, &subject, &built).await?;
    metrics::counter!("colloquy_contexts_built_total").increment(1);
    respond(&input, built, tokens_in)
}

async fn subject(
    store: &dyn HistoryStore,
    principal: &Principal,
    tenant: TenantId,
    request: &v1::BuildContextRequest,
) -> Result<Subjected> {
    match required("subject", request.subject.as_ref())? {
        Subject::TurnId(text) => {
            let (turn, fence) = (id("turn_id", text)?, Fence(request.fence));
            let view = store.view(tenant, turn, fence).await?;
            let window = store
                .window(tenant, view.transcript, view.branch, Some(view.head))
                .await?;
            let mut pending = Vec::new();
            if !view.preface.is_empty() {
                pending.push(Message::user(view.preface));
            }
            pending.extend(view.messages.into_iter().map(|(_, message, _)| message));
            let staged = view.staged.into_iter().filter_map(|(body, _)| match body {
                EntryBody::Message(message) | EntryBody::CustomMessage { message, .. } => Some(message),
                _ => None,
            });
            Ok(Subjected {
                window,
                policy: view.policy,
                pending,
                staged: staged.collect(),
                turn: Some((turn, fence)),
            })
        }
        Subject::SessionId(text) => {
            let found = store.get_session(tenant, id("session_id", text)?).await?;
            let session = sessions::visible(principal, found, text)?;
            let policy = session
                .policy
                .clone()
                .ok_or_else(|| Error::not_found("session", text))?;
            let window = store
                .window(tenant, session.transcript, session.branch, None)
                .await?;
            Ok(Subjected {
                window,
                policy,
                pending: Vec::new(),
                staged: Vec::new(),
                turn: None,
            })
        }
    }
}

/// Watermarks that a running turn's build moved go with the turn; its commit makes them the branch's.
async fn keep_marks(
    store: &dyn HistoryStore,
    tenant: TenantId,
    subject: &Subjected,
    built: &Built<'_>,
) -> Result<()> {
    let Some((turn, fence)) = subject.turn else {
        return Ok(());
    };
    if built.watermarks == watermarks(subject.window.branch.marks) {
        return Ok(());
    }
    let marks = Some(Marks {
        soft: built.watermarks.soft,
        hard: built.watermarks.hard,
    });
    store
        .stage(&StageInput {
            tenant,
            turn,
            fence,
            first: 1,
            entries: Vec::new(),
            marks,
        })
        .await
        .map(|_| ())
}

fn watermarks(marks: Marks) -> Watermarks {
    Watermarks {
        soft: marks.soft,
        hard: marks.hard,
    }
}

fn overhead(request: &v1::BuildContextRequest) -> u32 {
    if request.overhead_tokens > 0 {
        return request.overhead_tokens;
    }
    let tokenizer = Tokenizer::for_model(&request.model);
    request
        .overhead_texts
        .iter()
        .map(|text| tokenizer.count_text(text))
        .fold(0, u32::saturating_add)
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

fn format_of(format: v1::ContextFormat) -> Format {
    match format {
        v1::ContextFormat::Unspecified | v1::ContextFormat::Neutral => Format::Neutral,
        v1::ContextFormat::Anthropic => Format::Anthropic,
        v1::ContextFormat::OpenaiChat => Format::OpenaiChat,
        v1::ContextFormat::OpenaiResponses => Format::OpenaiResponses,
        v1::ContextFormat::Gemini => Format::Gemini,
        v1::ContextFormat::Mistral => Format::Mistral,
    }
}

fn respond(
    input: &BuildInput<'_>,
    built: Built<'_>,
    tokens_in: u32,
) -> Result<Vec<Result<v1::BuildContextResponse, Status>>> {
    let decision = match built.decision {
        Decision::Fits => v1::ContextDecision::Fits,
        Decision::CompactSoon => v1::ContextDecision::CompactSoon,
        Decision::CompactNow => v1::ContextDecision::CompactNow,
        Decision::OverBudget => v1::ContextDecision::OverBudget,
    };
    let receipt_json = serde_json::to_string(&built.receipt)
        .map_err(|error| Error::internal(format!("the receipt cannot be written: {error}")))?;
    let header = v1::ContextHeader {
        decision: decision.into(),
        tokens_in,
        tokens_out: built.tokens.total().saturating_sub(built.tokens.overhead),
        overhead_tokens: built.tokens.overhead,
        reserve_tokens: built.receipt.reserve,
        window_tokens: input.window,
        messages: u32::try_from(built.messages.len()).unwrap_or(u32::MAX),
        trimmed: built.trimmed,
        cleared: built.cleared,
        repaired: built.repaired,
        receipt_json,
        sha256: built.receipt.sha256.clone(),
        body_bytes: built.bytes.len() as u64,
    };
    let mut pieces = vec![Ok(v1::BuildContextResponse {
        part: Some(Part::Header(header)),
    })];
    pieces.extend(built.bytes.chunks(CHUNK_BYTES).map(|bytes| {
        Ok(v1::BuildContextResponse {
            part: Some(Part::Chunk(bytes.to_vec())),
        })
    }));
    Ok(pieces)
}

pub fn count_tokens(request: v1::CountTokensRequest) -> Result<v1::CountTokensResponse> {
    let tokenizer = Tokenizer::for_model(&request.model);
    let mut tokens: Vec<u32> = request
        .texts
        .iter()
        .map(|text| tokenizer.count_text(text))
        .collect();
    for (index, message) in request.messages.into_iter().enumerate() {
        let message =
            Message::try_from(message).map_err(|error| error.within(&format!("messages[{index}]")))?;
        tokens.push(count_message(&message, tokenizer));
    }
    Ok(v1::CountTokensResponse {
        tokens,
        tokenizer: tokenizer.name().to_owned(),
    })
}
