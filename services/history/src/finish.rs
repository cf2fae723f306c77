//! How turns end: commit, release, stop, expiry; and staging on the way.

use crate::convert::{self, until};
use crate::policies::Policies;
use colloquy_context::{Tokenizer, count_body};
use colloquy_proto::convert::{id, message::parts};
use colloquy_proto::v1;
use colloquy_storage::{
    ClaimedTurn, CommitInput, CompactAbove, Expired, HistoryStore, NewDelivery, PolicyId, Release,
    StageInput, StopScope, TurnView,
};
use colloquy_types::message::{Limits, Part, Role, Route};
use colloquy_types::queue::Outcome;
use colloquy_types::silent::deliverable;
use colloquy_types::{
    AgentId, DeliveryId, EntryBody, EntryId, Error, Fence, JobId, NewEntry, Policy, Reason, Result,
    SessionKey, TenantId, TurnId,
};
use moka::future::Cache;
use prost::Message as _;
use sha2::{Digest, Sha256};

/// How long a stopped turn's worker may still stage and release.
pub const STOP_DEADLINE_MS: i64 = 10_000;

/// What a turn keeps from its claim to its end; immutable, so cached by id.
#[derive(Debug, Clone)]
pub struct Facts {
    pub key: String,
    pub agent: AgentId,
    pub policy: PolicyId,
    pub route: Option<Route>,
}

impl Facts {
    pub fn of(turn: &ClaimedTurn) -> Self {
        Self {
            key: turn.key.clone(),
            agent: turn.agent.clone(),
            policy: turn.policy.clone(),
            route: turn.route.clone(),
        }
    }

    fn of_view(view: TurnView) -> Self {
        Self {
            key: view.key,
            agent: view.agent,
            policy: view.policy,
            route: view.route,
        }
    }
}

/// Facts of the turns that this replica has seen.
#[derive(Clone)]
pub struct TurnFacts(Cache<(TenantId, TurnId), Facts>);

impl Default for TurnFacts {
    fn default() -> Self {
        Self(Cache::new(100_000))
    }
}

impl TurnFacts {
    pub async fn insert(&self, tenant: TenantId, turn: TurnId, facts: Facts) {
        self.0.insert((tenant, turn), facts).await;
    }

    /// `None` when the turn is not running under the fence; the commit itself says what is wrong then.
    async fn get(
        &self,
        store: &dyn HistoryStore,
        tenant: TenantId,
        turn: TurnId,
        fence: Fence,
    ) -> Result<Option<Facts>> {
        if let Some(facts) = self.0.get(&(tenant, turn)).await {
            return Ok(Some(facts));
        }
        match store.view(tenant, turn, fence).await {
            Ok(view) => {
                let facts = Facts::of_view(view);
                self.insert(tenant, turn, facts.clone()).await;
                Ok(Some(facts))
            }
            Err(error) if matches!(error.reason, Reason::Fenced | Reason::Cancelled) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Entries of a worker, checked and counted.
pub fn new_entries(bodies: Vec<v1::EntryBody>, limits: &Limits) -> Result<Vec<NewEntry>> {
    let convert = |(index, body): (usize, v1::EntryBody)| {
        entry(body, limits).map_err(|error| error.within(&format!("entries[{index}]")))
    };
    bodies.into_iter().enumerate().map(convert).collect()
}

fn entry(body: v1::EntryBody, limits: &Limits) -> Result<NewEntry> {
    let body = EntryBody::try_from(body)?;
    match &body {
        EntryBody::Message(message) if message.role == Role::User => {
            return Err(Error::invalid("message.role", "user messages come by `Submit`"));
        }
        EntryBody::Message(message) | EntryBody::CustomMessage { message, .. } => limits.check(message)?,
        EntryBody::Custom { json, .. } => check_json(json, limits)?,
        EntryBody::Label { .. } | EntryBody::ModelChange { .. } => {}
        _ => {
            return Err(Error::invalid(
                "body",
                "entries of this kind are written by the product",
            ));
        }
    }
    Ok(counted(body))
}

fn check_json(json: &str, limits: &Limits) -> Result<()> {
    if json.len() > limits.message_bytes {
        return Err(Error::too_large(
            "custom.json",
            format_args!("{} bytes", limits.message_bytes),
        ));
    }
    let parsed: std::result::Result<serde_json::Value, _> = serde_json::from_str(json);
    parsed
        .map(|_| ())
        .map_err(|error| Error::invalid("custom.json", format!("not JSON: {error}")))
}

/// An entry with its tokens, counted once.
pub fn counted(body: EntryBody) -> NewEntry {
    let tokenizer = Tokenizer::default();
    NewEntry {
        id: EntryId::new(),
        tokens: count_body(&body, tokenizer),
        tokenizer: tokenizer.name().to_owned(),
        body,
    }
}

pub async fn stage(
    store: &dyn HistoryStore,
    policies: &Policies,
    facts: &TurnFacts,
    tenant: TenantId,
    request: v1::StageEntriesRequest,
) -> Result<v1::StageEntriesResponse> {
    if request.first < 1 {
        return Err(Error::invalid("first", "numbers start at 1"));
    }
    let (turn, fence) = (id("turn_id", &request.turn_id)?, Fence(request.fence));
    let limits = match facts.get(store, tenant, turn, fence).await? {
        Some(facts) => policies.get(tenant, &facts.policy).await?.policy.limits,
        None => Limits::default(),
    };
    let input = StageInput {
        tenant,
        turn,
        fence,
        first: request.first,
        entries: new_entries(request.entries, &limits)?,
        marks: None,
    };
    Ok(v1::StageEntriesResponse {
        staged_through: store.stage(&input).await?,
    })
}

/// Ends a turn with its entries, its reply and the jobs that follow from it.
pub async fn commit(
    store: &dyn HistoryStore,
    policies: &Policies,
    facts: &TurnFacts,
    tenant: TenantId,
    request: v1::HistoryServiceCommitTurnRequest,
) -> Result<v1::HistoryServiceCommitTurnResponse> {
    let (turn, fence) = (id("turn_id", &request.turn_id)?, Fence(request.fence));
    let content_hash = Sha256::digest(request.encode_to_vec()).to_vec();
    let known = facts.get(store, tenant, turn, fence).await?;
    let input = input(policies, known.as_ref(), tenant, request, content_hash).await?;
    let deliveries = u32::try_from(input.deliveries.len()).unwrap_or(u32::MAX);
    let committed = store.commit(&input).await?;
    metrics::counter!("colloquy_turns_committed_total").increment(1);
    let next_due_in = match committed.next_due {
        Some(due) => Some(until(due, store.now().await?)),
        None => None,
    };
    Ok(v1::HistoryServiceCommitTurnResponse {
        session_id: committed.session.to_string(),
        head_seq: committed.head.0,
        window_messages: committed.window_messages,
        window_tokens: committed.window_tokens,
        input_tokens: committed.input_tokens,
        output_tokens: committed.output_tokens,
        compacting: committed.compacting,
        deliveries,
        replayed: committed.replayed,
        next_due_in,
        agent: known.map(|facts| facts.agent.into_string()).unwrap_or_default(),
    })
}

async fn input(
    policies: &Policies,
    facts: Option<&Facts>,
    tenant: TenantId,
    request: v1::HistoryServiceCommitTurnRequest,
    content_hash: Vec<u8>,
) -> Result<CommitInput> {
    let policy = match facts {
        Some(facts) => Some(policies.get(tenant, &facts.policy).await?),
        None => None,
    };
    let policy = policy.as_ref().map(|known| &known.policy);
    let limits = policy.map_or_else(Limits::default, |policy| policy.limits);
    let usage = request.usage.map(convert::usage).unwrap_or_default();
    let reply = parts(request.reply).map_err(|error| error.within("reply"))?;
    let (deliveries, outcome) = match (facts, policy) {
        (Some(facts), Some(policy)) => deliveries(facts, policy, reply)?,
        _ => (Vec::new(), Outcome::Answered),
    };
    let outcome = if request.failed { Outcome::Failed } else { outcome };
    Ok(CommitInput {
        tenant,
        turn: id("turn_id", &request.turn_id)?,
        fence: Fence(request.fence),
        entries: new_entries(request.entries, &limits)?,
        deliveries,
        outcome,
        steer_through: request.steer_through,
        marks: None,
        compact: policy.and_then(|policy| compact_above(policy, usage.window_tokens)),
        extract: policy
            .filter(|policy| policy.memory.enabled)
            .map(|_| JobId::new()),
        extract_delay_ms: policy.map_or(0, |policy| policy.memory.extract_delay_ms),
        usage,
        content_hash,
    })
}

/// When the window has more than this after the commit, a compaction is ordered with it.
fn compact_above(policy: &Policy, reported_window: i64) -> Option<CompactAbove> {
    if !policy.compaction.enabled {
        return None;
    }
    let window = u32::try_from(reported_window).ok().filter(|window| *window > 0);
    let tokens = policy.compaction_threshold(window.unwrap_or(policy.model.window_tokens));
    let messages = Some(i64::from(policy.compaction.max_messages)).filter(|messages| *messages > 0);
    Some(CompactAbove {
        messages: messages.unwrap_or(i64::MAX),
        tokens: tokens.map_or(i64::MAX, i64::from),
        job: JobId::new(),
    })
}

/// What goes out: nothing for a silent reply or one that the send policy keeps back.
fn deliveries(facts: &Facts, policy: &Policy, reply: Vec<Part>) -> Result<(Vec<NewDelivery>, Outcome)> {
    let key = SessionKey::parse(&facts.key)?;
    let heartbeat = key.kind() == "heartbeat";
    let parts: Vec<Part> = reply
        .into_iter()
        .filter_map(|part| match part {
            Part::Text { text } => {
                deliverable(&text, policy.delivery.silent_prefix, heartbeat).map(Part::text)
            }
            Part::Media(media) => Some(Part::Media(media)),
            _ => None,
        })
        .filter(|part| !matches!(part, Part::Text { text } if text.trim().is_empty()))
        .collect();
    let Some(route) = facts.route.clone().filter(|_| !parts.is_empty()) else {
        return Ok((Vec::new(), Outcome::Answered));
    };
    if !policy.delivery.allows(&facts.key, key.channel(), key.kind()) {
        return Ok((Vec::new(), Outcome::NotSentPolicy));
    }
    Ok((
        vec![NewDelivery {
            id: DeliveryId::new(),
            route,
            part: 0,
            parts,
        }],
        Outcome::Answered,
    ))
}

pub async fn release(
    store: &dyn HistoryStore,
    tenant: TenantId,
    request: v1::HistoryServiceReleaseTurnRequest,
) -> Result<v1::HistoryServiceReleaseTurnResponse> {
    let turn = id("turn_id", &request.turn_id)?;
    let error: String = request.error.chars().filter(|c| *c != '\0').take(1_000).collect();
    let release = if request.retry {
        Release::Retry { error }
    } else {
        Release::Fail { error }
    };
    let (session, outcome, next_due) = match store
        .release(tenant, turn, Fence(request.fence), &release)
        .await?
    {
        Expired::Requeued { session, due } => (session, None, Some(due)),
        Expired::Ended {
            session,
            outcome,
            next_due,
        } => (session, Some(outcome), next_due),
        Expired::NotExpired => return Err(Error::fenced()),
    };
    let next_due_in = match next_due {
        Some(due) => Some(until(due, store.now().await?)),
        None => None,
    };
    Ok(v1::HistoryServiceReleaseTurnResponse {
        session_id: session.to_string(),
        outcome: outcome.map_or(v1::Outcome::Unspecified, Into::into).into(),
        next_due_in,
    })
}

pub async fn stop(
    store: &dyn HistoryStore,
    tenant: TenantId,
    request: v1::HistoryServiceStopTurnsRequest,
) -> Result<v1::HistoryServiceStopTurnsResponse> {
    let scope = if request.all {
        StopScope::All
    } else {
        StopScope::Oldest
    };
    let session = id("session_id", &request.session_id)?;
    let stopped = store.stop(tenant, session, scope, STOP_DEADLINE_MS).await?;
    let text = |turns: Vec<TurnId>| turns.iter().map(ToString::to_string).collect();
    Ok(v1::HistoryServiceStopTurnsResponse {
        stopping_turn_ids: text(stopped.stopping),
        drained_turn_ids: text(stopped.drained),
    })
}

pub async fn expire(
    store: &dyn HistoryStore,
    tenant: TenantId,
    request: v1::ExpireTurnRequest,
) -> Result<v1::ExpireTurnResponse> {
    let expired = store.expire(tenant, id("turn_id", &request.turn_id)?).await?;
    let outcome = match &expired {
        Expired::Ended { outcome, .. } => (*outcome).into(),
        _ => v1::Outcome::Unspecified,
    };
    Ok(v1::ExpireTurnResponse {
        requeued: matches!(expired, Expired::Requeued { .. }),
        outcome: outcome.into(),
    })
}

/// Entries of a caller outside turns.
pub fn append_bodies(bodies: Vec<v1::EntryBody>) -> Result<Vec<NewEntry>> {
    if bodies.is_empty() {
        return Err(Error::invalid("entries", "is empty"));
    }
    new_entries(bodies, &Limits::default())
}
