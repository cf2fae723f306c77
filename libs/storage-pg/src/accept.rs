//! Accepting a message: load, decide, apply by compare-and-set.

use crate::fault::Fault;
use crate::hot::{self, Call};
use crate::{PgStore, json};
use colloquy_storage::{AcceptInput, Acceptance, Accepted, Decide, with_text};
use colloquy_types::queue::{
    AcceptPlan, AcceptState, Effect, Lane, MergeKey, MessageKind, Outcome, Placement, QueueMode, RunningTurn,
    SessionHead, TurnState, WaitingTurn,
};
use colloquy_types::{
    BranchId, EntryBody, EntryId, Error, Fence, MessageId, Reason, Result, SessionId, TranscriptId, TurnId,
    UnixMillis,
};
use serde::Deserialize;
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

/// Decisions on a state that may have passed, before one is made under the session's lock.
const FREE_ATTEMPTS: usize = 2;
/// Under the lock only the first message of a key, or a twin, can still lose.
const LOCKED_ATTEMPTS: usize = 3;

/// What the functions say.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Duplicate(FirstAnswer),
    State(Loaded),
    Applied(Applied),
}

#[derive(Debug, Deserialize)]
struct FirstAnswer {
    id: Uuid,
    session: Uuid,
    transcript: Uuid,
    turn: Option<Uuid>,
    placement: Placement,
    position: u32,
    due: Option<UnixMillis>,
    outcome: Option<Outcome>,
    /// Hexadecimal.
    hash: String,
    now: UnixMillis,
}

#[derive(Debug, Clone, Deserialize)]
struct Loaded {
    now: UnixMillis,
    session: Option<LoadedSession>,
    /// All that have not ended, in queue order.
    turns: Vec<LoadedTurn>,
}

#[derive(Debug, Clone, Deserialize)]
struct LoadedSession {
    session: Uuid,
    version: i64,
    transcript: Uuid,
    branch: Uuid,
    epoch: colloquy_types::Epoch,
    head: colloquy_types::Seq,
    last_user_activity: Option<UnixMillis>,
}

#[derive(Debug, Clone, Deserialize)]
struct LoadedTurn {
    turn: Uuid,
    order: i64,
    state: TurnState,
    lane: Lane,
    mode: QueueMode,
    merge: MergeKey,
    sender: Option<String>,
    opened: UnixMillis,
    due: UnixMillis,
    closed: bool,
    attempt: u32,
    fence: i64,
    claimed: UnixMillis,
    expires: Option<UnixMillis>,
    messages: Vec<Uuid>,
}

#[derive(Debug, Deserialize)]
struct Applied {
    session: Uuid,
    transcript: Uuid,
    due: Option<UnixMillis>,
    outcome: Option<Outcome>,
    stopping: Vec<Uuid>,
}

impl From<FirstAnswer> for Acceptance {
    fn from(first: FirstAnswer) -> Self {
        let digits = first.hash.as_bytes().chunks(2);
        let bytes = digits.filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
        Self {
            message: MessageId(first.id),
            session: SessionId(first.session),
            transcript: TranscriptId(first.transcript),
            turn: first.turn.map(TurnId),
            placement: first.placement,
            position: first.position,
            due: first.due,
            outcome: first.outcome,
            content_hash: bytes.collect(),
            stopping: vec![],
            now: first.now,
        }
    }
}

impl From<Loaded> for AcceptState {
    fn from(loaded: Loaded) -> Self {
        let (waiting, mut running): (Vec<_>, Vec<_>) = loaded
            .turns
            .into_iter()
            .partition(|turn| turn.state == TurnState::Waiting);
        running.sort_by_key(|turn| turn.fence);
        Self {
            now: loaded.now,
            session: loaded.session.map(SessionHead::from),
            waiting: waiting.into_iter().map(WaitingTurn::from).collect(),
            running: running.into_iter().map(RunningTurn::from).collect(),
        }
    }
}

impl From<LoadedSession> for SessionHead {
    fn from(loaded: LoadedSession) -> Self {
        Self {
            session: SessionId(loaded.session),
            version: loaded.version,
            transcript: TranscriptId(loaded.transcript),
            branch: BranchId(loaded.branch),
            epoch: loaded.epoch,
            head: loaded.head,
            last_user_activity: loaded.last_user_activity,
        }
    }
}

impl From<LoadedTurn> for WaitingTurn {
    fn from(loaded: LoadedTurn) -> Self {
        Self {
            turn: TurnId(loaded.turn),
            order: loaded.order,
            opened: loaded.opened,
            due: loaded.due,
            merge: loaded.merge,
            sender: loaded.sender,
            messages: loaded.messages.into_iter().map(MessageId).collect(),
            closed: loaded.closed,
            attempt: loaded.attempt,
            mode: loaded.mode,
        }
    }
}

impl From<LoadedTurn> for RunningTurn {
    fn from(loaded: LoadedTurn) -> Self {
        Self {
            turn: TurnId(loaded.turn),
            order: loaded.order,
            fence: Fence(loaded.fence),
            attempt: loaded.attempt,
            state: loaded.state,
            lane: loaded.lane,
            started: loaded.claimed,
            lease_until: loaded.expires.unwrap_or(loaded.claimed),
        }
    }
}

enum Attempt {
    Done(Accepted),
    /// The session moved; this is what it is now.
    Missed(Loaded),
    /// A twin, or another first message, came first.
    Lost,
}

impl PgStore {
    pub(crate) async fn place(&self, input: &AcceptInput, decide: Decide<'_>) -> Result<Accepted, Fault> {
        let mut fresh = None;
        {
            let mut connection = self.pool.acquire().await?;
            for _ in 0..FREE_ATTEMPTS {
                match self.attempt(&mut connection, input, decide, fresh.take()).await? {
                    Attempt::Done(accepted) => return Ok(accepted),
                    Attempt::Missed(loaded) => fresh = Some(loaded),
                    Attempt::Lost => {}
                }
            }
        }
        for _ in 0..LOCKED_ATTEMPTS {
            let mut tx = self.write(input.tenant).await?;
            let sql = "/* lock_key */ SELECT id FROM sessions WHERE tenant = $1 AND key = $2 FOR UPDATE";
            let query = sqlx::query_scalar(sql)
                .bind(input.tenant.0)
                .bind(input.key.to_string());
            let _: Option<Uuid> = query.fetch_optional(tx.conn()).await?;
            if let Attempt::Done(accepted) = self.attempt(tx.conn(), input, decide, None).await? {
                tx.commit().await?;
                return Ok(accepted);
            }
        }
        Err(Error::new(
            Reason::Conflict,
            "the session is being created by others; try again",
        )
        .into())
    }

    async fn attempt(
        &self,
        connection: &mut PgConnection,
        input: &AcceptInput,
        decide: Decide<'_>,
        fresh: Option<Loaded>,
    ) -> Result<Attempt, Fault> {
        let loaded = match fresh {
            Some(loaded) => loaded,
            None => match hot::answer(connection, load(input, self.instant())).await? {
                Answer::Duplicate(first) => return Ok(Attempt::Done(Accepted::Duplicate(first.into()))),
                Answer::State(loaded) => loaded,
                Answer::Applied(_) => return Err(Error::internal("a load applied something").into()),
            },
        };
        let state = AcceptState::from(loaded);
        let plan = decide(&state)?;
        let call = apply(input, &state, &plan, self.instant())?;
        match hot::answer(connection, call).await {
            Ok(Answer::Applied(applied)) => {
                let accepted = Accepted::New(acceptance(input, &plan, applied, state.now));
                Ok(Attempt::Done(accepted))
            }
            Ok(Answer::Duplicate(first)) => Ok(Attempt::Done(Accepted::Duplicate(first.into()))),
            Ok(Answer::State(loaded)) => Ok(Attempt::Missed(loaded)),
            Err(Fault::Sql(sqlx::Error::Database(error))) if error.is_unique_violation() => Ok(Attempt::Lost),
            Err(fault) => Err(fault),
        }
    }
}

fn acceptance(input: &AcceptInput, plan: &AcceptPlan, applied: Applied, now: UnixMillis) -> Acceptance {
    Acceptance {
        message: input.message_id,
        session: SessionId(applied.session),
        transcript: TranscriptId(applied.transcript),
        turn: plan.turn,
        placement: plan.placement,
        position: plan.position,
        due: applied.due,
        outcome: applied.outcome,
        content_hash: input.content_hash.clone(),
        stopping: applied.stopping.into_iter().map(TurnId).collect(),
        now,
    }
}

fn load(input: &AcceptInput, instant: Option<i64>) -> Call<'_, Answer> {
    sqlx::query_scalar("/* accept_load */ SELECT history.accept_load($1, $2, $3, $4)")
        .bind(input.tenant.0)
        .bind(instant)
        .bind(input.key.to_string())
        .bind(&input.dedupe_key)
}

fn apply<'q>(
    input: &'q AcceptInput,
    state: &AcceptState,
    plan: &AcceptPlan,
    instant: Option<i64>,
) -> Result<Call<'q, Answer>> {
    let message = match &plan.text {
        Some(text) => json::to_bytes(&with_text(&input.message, text))?,
        None => json::to_bytes(&input.message)?,
    };
    let version = state.session.as_ref().map(|session| session.version);
    let steps = plan.effects.iter().map(step).collect::<Result<Vec<_>>>()?;
    let sql = "/* accept_apply */ SELECT history.accept_apply($1, $2, $3, $4, $5, $6, $7::json, $8, $9, $10, $11, $12, \
               $13, $14, $15, $16, $17, $18, $19, $20, $21::json, $22::json)";
    let call = sqlx::query_scalar(sql)
        .bind(input.tenant.0)
        .bind(state.now.0)
        .bind(instant)
        .bind(input.key.to_string())
        .bind(&input.dedupe_key)
        .bind(version)
        .bind(version.is_none().then(|| new_session(input).to_string()));
    let call = call
        .bind(input.message_id.0)
        .bind(&input.content_hash)
        .bind(message)
        .bind(i64::from(input.tokens))
        .bind(&input.tokenizer)
        .bind(&input.event.sender.id)
        .bind(input.event.merge.kind == MessageKind::User);
    let call = call
        .bind(input.route.as_ref().map(json::to_bytes).transpose()?)
        .bind(json::to_bytes(&input.event.merge)?)
        .bind(json::to_word(&plan.placement)?)
        .bind(i64::from(plan.position));
    Ok(call
        .bind(&input.policy.0)
        .bind(input.policy_json.as_bytes())
        .bind(json::to_string(&input.limits)?)
        .bind(Value::Array(steps).to_string()))
}

/// The row that the first message of a key makes.
fn new_session(input: &AcceptInput) -> Value {
    let key = &input.key;
    json!({
        "id": SessionId::new().0,
        "agent": key.agent().as_str(),
        "channel": key.channel(),
        "kind": key.kind(),
        "chat": key.chat(),
        "transcript": TranscriptId::new().0,
        "branch": BranchId::new().0,
    })
}

/// An effect with ids as the database has them, and what the database cannot make by itself.
fn step(effect: &Effect) -> Result<Value> {
    Ok(match effect {
        Effect::OpenTurn {
            turn,
            due,
            lane,
            mode,
        } => json!({ "effect": "open_turn", "turn": turn.0, "due": due, "lane": lane, "mode": mode }),
        Effect::JoinTurn { turn, due } => json!({ "effect": "join_turn", "turn": turn.0, "due": due }),
        Effect::CloseTurn { turn } => json!({ "effect": "close_turn", "turn": turn.0 }),
        Effect::MoveDue { turn, due } => json!({ "effect": "move_due", "turn": turn.0, "due": due }),
        Effect::EndTurn { turn, outcome } => {
            json!({ "effect": "end_turn", "turn": turn.0, "outcome": outcome })
        }
        Effect::SummarizeTurn { turn, into, line } => {
            let line = json::plain(line);
            json!({ "effect": "summarize_turn", "turn": turn.0, "into": into.0, "line": line })
        }
        Effect::StopTurn {
            turn,
            outcome,
            deadline,
        } => json!({ "effect": "stop_turn", "turn": turn.0, "outcome": outcome, "deadline": deadline }),
        Effect::Steer { turn } => json!({ "effect": "steer", "turn": turn.0 }),
        Effect::Reset { reason } => {
            let reason = reason.as_str().to_owned();
            let body = String::from_utf8_lossy(&json::to_bytes(&EntryBody::Reset { reason })?).into_owned();
            let (transcript, branch, entry) = (TranscriptId::new().0, BranchId::new().0, EntryId::new().0);
            json!({ "effect": "reset", "transcript": transcript, "branch": branch, "entry": entry, "body": body })
        }
        Effect::Finish { outcome } => json!({ "effect": "finish", "outcome": outcome }),
    })
}
