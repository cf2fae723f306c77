//! Accepting a message: the pure decision of `turns`, carried out by the store.

use crate::convert;
use crate::policies::{Known, Policies};
use colloquy_context::{Tokenizer, count_message};
use colloquy_proto::convert::{duration_ms, required};
use colloquy_proto::v1;
use colloquy_storage::{AcceptInput, Accepted, HistoryStore, PolicyId, TurnLimits};
use colloquy_types::message::{Author, Message, Part, Role, Route};
use colloquy_types::policy::Resume;
use colloquy_types::queue::{AcceptEvent, AcceptState, MergeKey};
use colloquy_types::{Error, MessageId, Policy, Reason, Result, SessionKey, TenantId, TurnId};
use sha2::{Digest, Sha256};

/// Longest dedupe key, in bytes.
const MAX_DEDUPE_BYTES: usize = 1_024;

pub async fn accept(
    store: &dyn HistoryStore,
    policies: &Policies,
    tenant: TenantId,
    request: v1::AcceptMessageRequest,
) -> Result<v1::AcceptMessageResponse> {
    let (strict, record_refusal) = (request.strict_duplicates, request.record_refusal);
    let (policy_id, known) = policies.of_json(&request.policy_json).await?;
    let input = input(tenant, request, policy_id, &known)?;
    // Drawn once: a decision that is taken again on fresher state opens the same turn.
    let turn = TurnId::new();
    let decide = |state: &AcceptState| match colloquy_turns::accept(
        state,
        &input.event,
        &known.policy,
        &input.key,
        turn,
    ) {
        Err(error) if record_refusal && matches!(error.reason, Reason::QueueFull | Reason::Busy) => {
            Ok(colloquy_turns::dropped())
        }
        plan => plan,
    };
    let (acceptance, duplicate) = match store.accept(&input, &decide).await? {
        Accepted::New(acceptance) => (acceptance, false),
        Accepted::Duplicate(acceptance) => (acceptance, true),
    };
    if duplicate && strict && acceptance.content_hash != input.content_hash {
        let message = "the idempotency key was used before with other content";
        return Err(Error::new(Reason::IdempotencyMismatch, message));
    }
    metrics::counter!("colloquy_messages_accepted_total", "duplicate" => if duplicate { "yes" } else { "no" })
        .increment(1);
    Ok(v1::AcceptMessageResponse {
        accepted: Some(convert::accepted(&acceptance, duplicate)),
        stopping_turn_ids: acceptance.stopping.iter().map(ToString::to_string).collect(),
        agent: input.key.agent().to_string(),
    })
}

fn input(
    tenant: TenantId,
    request: v1::AcceptMessageRequest,
    policy: PolicyId,
    known: &Known,
) -> Result<AcceptInput> {
    let key = SessionKey::parse(&request.session_key)?;
    if request.dedupe_key.is_empty() || request.dedupe_key.len() > MAX_DEDUPE_BYTES {
        return Err(Error::invalid(
            "dedupe_key",
            format!("must have 1 to {MAX_DEDUPE_BYTES} bytes"),
        ));
    }
    let (mode, lane, kind) = (
        request.mode().known(),
        request.lane().into(),
        request.kind().into(),
    );
    let debounce_ms = request.debounce.as_ref().map(duration_ms);
    if debounce_ms.is_some_and(|millis| !(0..=60_000).contains(&millis)) {
        return Err(Error::invalid("debounce", "must be within 0 to 60 s"));
    }
    let route = request
        .route
        .map(Route::try_from)
        .transpose()
        .map_err(|error| error.within("route"))?;
    let sender = request.sender.map(Author::from).unwrap_or_default();
    for (field, text) in [
        ("sender.id", &sender.id),
        ("sender.name", &sender.name),
        ("dedupe_key", &request.dedupe_key),
    ] {
        if text.contains('\0') {
            return Err(Error::invalid(field, "holds NUL"));
        }
    }
    let message = message(required("message", request.message)?, &sender, &known.policy)?;
    let event = AcceptEvent {
        message: MessageId::new(),
        text: message.text(),
        has_media: message.parts.iter().any(|part| matches!(part, Part::Media(_))),
        merge: MergeKey {
            authority: message.provenance,
            reply_to: route.clone(),
            kind,
            lane,
        },
        sender,
        mode,
        debounce_ms,
        authorised: request.authorised,
    };
    Ok(AcceptInput {
        tenant,
        message_id: event.message,
        tokens: count_message(&message, Tokenizer::default()),
        tokenizer: Tokenizer::default().name().to_owned(),
        dedupe_key: request.dedupe_key,
        content_hash: content_hash(&key, &message),
        event,
        route,
        policy,
        policy_json: known.json.clone(),
        limits: limits(&known.policy),
        key,
        message,
    })
}

fn message(wire: v1::Message, sender: &Author, policy: &Policy) -> Result<Message> {
    let mut message = Message::try_from(wire).map_err(|error| error.within("message"))?;
    if message.role != Role::User {
        return Err(Error::invalid("message.role", "must be user"));
    }
    if message.parts.is_empty() {
        return Err(Error::invalid("message.parts", "is empty"));
    }
    let says_nothing = |part: &Part| matches!(part, Part::Text { text } if text.trim().is_empty());
    if message.parts.iter().all(says_nothing) {
        return Err(Error::invalid("message.parts", "hold neither text nor media"));
    }
    let allowed = |part: &Part| matches!(part, Part::Text { .. } | Part::Media(_));
    if let Some(index) = message.parts.iter().position(|part| !allowed(part)) {
        return Err(Error::invalid(
            format!("message.parts[{index}]"),
            "people send text and media",
        ));
    }
    policy
        .limits
        .check(&message)
        .map_err(|error| error.within("message"))?;
    if message.author.id.is_empty() {
        message.author = sender.clone();
    }
    Ok(message)
}

fn content_hash(key: &SessionKey, message: &Message) -> Vec<u8> {
    let mut hash = Sha256::new();
    hash.update(key.canonical());
    hash.update([0]);
    hash.update(serde_json::to_vec(&message.parts).unwrap_or_default());
    hash.finalize().to_vec()
}

fn limits(policy: &Policy) -> TurnLimits {
    TurnLimits {
        lease_ms: policy.queue.lease_ms,
        max_attempts: policy.queue.max_attempts,
        max_turn_ms: policy.queue.max_turn_ms,
        max_concurrent: policy.queue.max_concurrent,
        retry_ms: policy.queue.retry_ms,
        resume_continue: policy.queue.resume == Resume::Continue,
    }
}
