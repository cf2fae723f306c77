//! Accepting a message.

use crate::effects::Accepting;
use crate::fault::Fault;
use crate::queue_state::{self, TurnRow};
use crate::session::{self, SessionRow};
use crate::{PgStore, Tx, json};
use async_trait::async_trait;
use colloquy_storage::{AcceptInput, Acceptance, Accepted, Decide, Inbox, InboxRow, PolicyId, with_text};
use colloquy_types::queue::{AcceptPlan, AcceptState, MessageKind, RunningTurn, SessionHead, WaitingTurn};
use colloquy_types::{
    BranchId, Epoch, Error, Fence, MessageId, Reason, Result, Seq, SessionId, TenantId, TranscriptId, TurnId,
    UnixMillis,
};
use sqlx::FromRow;
use uuid::Uuid;

#[async_trait]
impl Inbox for PgStore {
    /// Decided under the session's lock, so once per attempt. Only the first message of a key has nothing to lock:
    /// when another one was faster, the second attempt finds its session.
    async fn accept(&self, input: &AcceptInput, decide: Decide<'_>) -> Result<Accepted> {
        for _ in 0..MAX_ATTEMPTS {
            match self.try_accept(input, decide).await {
                Err(Fault::Sql(sqlx::Error::Database(error))) if error.is_unique_violation() => {}
                done => return Ok(done?),
            }
        }
        Err(Error::new(
            Reason::Conflict,
            "the session is being created by others; try again",
        ))
    }

    async fn get_policy(&self, tenant: TenantId, id: &PolicyId) -> Result<Option<String>> {
        Ok(get_policy(&mut self.read(tenant).await?, tenant, id).await?)
    }

    async fn list_inbox(&self, tenant: TenantId, session: SessionId, limit: u32) -> Result<Vec<InboxRow>> {
        Ok(list(&mut self.read(tenant).await?, tenant, session, limit).await?)
    }
}

/// A race for a key or a dedupe key is decided by the first loss; more can only be bad luck.
const MAX_ATTEMPTS: usize = 5;

impl PgStore {
    async fn try_accept(&self, input: &AcceptInput, decide: Decide<'_>) -> Result<Accepted, Fault> {
        let mut tx = self.write(input.tenant).await?;
        let session = session::find(&mut tx, input.tenant, &input.key).await?;
        // Behind the lock: a twin of this message that came first is visible now.
        if let Some(first) = find_duplicate(&mut tx, input).await? {
            return Ok(Accepted::Duplicate(first));
        }
        let state = load_state(&mut tx, session.as_ref()).await?;
        let plan = decide(&state)?;
        let acceptance = apply(&mut tx, input, session, plan).await?;
        tx.commit().await?;
        Ok(Accepted::New(acceptance))
    }
}

#[derive(FromRow)]
struct FirstAnswer {
    id: Uuid,
    session: Uuid,
    transcript: Uuid,
    turn: Option<Uuid>,
    placement: String,
    #[sqlx(try_from = "i64")]
    position: u32,
    due: Option<i64>,
    outcome: Option<String>,
    hash: Vec<u8>,
}

async fn find_duplicate(tx: &mut Tx, input: &AcceptInput) -> Result<Option<Acceptance>, Fault> {
    let sql = "/* find_duplicate */ SELECT id, session, transcript, turn, placement, position, due, outcome, hash \
               FROM inbox WHERE tenant = $1 AND dedupe = $2";
    let query = sqlx::query_as(sql).bind(input.tenant.0).bind(&input.dedupe_key);
    let Some(row): Option<FirstAnswer> = query.fetch_optional(tx.conn()).await? else {
        return Ok(None);
    };
    Ok(Some(Acceptance {
        message: MessageId(row.id),
        session: SessionId(row.session),
        transcript: TranscriptId(row.transcript),
        turn: row.turn.map(TurnId),
        placement: json::from_word(&row.placement)?,
        position: row.position,
        due: row.due.map(UnixMillis),
        outcome: row.outcome.as_deref().map(queue_state::outcome).transpose()?,
        content_hash: row.hash,
        stopping: vec![],
        now: tx.now,
    }))
}

async fn load_state(tx: &mut Tx, session: Option<&SessionRow>) -> Result<AcceptState, Fault> {
    let now = tx.now;
    let Some(row) = session else {
        return Ok(AcceptState {
            now,
            session: None,
            waiting: vec![],
            running: vec![],
        });
    };
    let (tenant, id) = (TenantId(row.tenant), SessionId(row.id));
    let (waiting, running) = queue_state::live_turns(tx, tenant, id).await?;
    let ids = queue_state::live_message_ids(tx, tenant, id).await?;
    let head = SessionHead {
        session: id,
        version: row.version,
        transcript: TranscriptId(row.transcript),
        branch: BranchId(row.branch),
        epoch: Epoch(row.epoch),
        head: Seq(row.head),
        last_user_activity: row.last_user_activity.map(UnixMillis),
    };
    Ok(AcceptState {
        now,
        session: Some(head),
        waiting: waiting
            .iter()
            .map(|row| waiting_turn(row, &ids))
            .collect::<Result<_>>()?,
        running: running.iter().map(running_turn).collect::<Result<_>>()?,
    })
}

fn waiting_turn(row: &TurnRow, ids: &[(TurnId, MessageId)]) -> Result<WaitingTurn> {
    Ok(WaitingTurn {
        turn: row.turn(),
        order: row.ord,
        opened: UnixMillis(row.opened),
        due: UnixMillis(row.due),
        merge: json::from_bytes(&row.merge_key)?,
        sender: row.sender.clone(),
        messages: ids
            .iter()
            .filter(|(turn, _)| *turn == row.turn())
            .map(|(_, id)| *id)
            .collect(),
        closed: row.closed,
        attempt: row.attempt,
        mode: json::from_word(&row.mode)?,
    })
}

fn running_turn(row: &TurnRow) -> Result<RunningTurn> {
    Ok(RunningTurn {
        turn: row.turn(),
        order: row.ord,
        fence: Fence(row.fence),
        attempt: row.attempt,
        state: row.state()?,
        lane: json::from_word(&row.lane)?,
        started: UnixMillis(row.claimed),
        lease_until: UnixMillis(row.expires.unwrap_or(row.claimed)),
    })
}

async fn apply(
    tx: &mut Tx,
    input: &AcceptInput,
    session: Option<SessionRow>,
    plan: AcceptPlan,
) -> Result<Acceptance, Fault> {
    let session = match session {
        Some(row) => row,
        None => {
            let id = session::create(tx, input.tenant, &input.key).await?;
            session::load(tx, input.tenant, id).await?
        }
    };
    let (tenant, id) = (input.tenant, SessionId(session.id));
    put_policy(tx, input).await?;
    insert_message(tx, input, &session, &plan).await?;
    let mut accepting = Accepting::new(input, id, session.line());
    for effect in &plan.effects {
        accepting.apply(tx, effect).await?;
    }
    let due = accepting.due;
    let transcript = set_answer(tx, input, due, accepting.transcript()).await?;
    touch_session(tx, tenant, id, input).await?;
    Ok(Acceptance {
        message: input.message_id,
        session: id,
        transcript,
        turn: plan.turn,
        placement: plan.placement,
        position: plan.position,
        due,
        outcome: accepting.outcome,
        content_hash: input.content_hash.clone(),
        stopping: accepting.stopping,
        now: tx.now,
    })
}

async fn put_policy(tx: &mut Tx, input: &AcceptInput) -> Result<(), Fault> {
    let sql =
        "/* put_policy */ INSERT INTO policies (tenant, id, body) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
    let query = sqlx::query(sql)
        .bind(input.tenant.0)
        .bind(&input.policy.0)
        .bind(input.policy_json.as_bytes());
    query.execute(tx.conn()).await?;
    Ok(())
}

async fn insert_message(
    tx: &mut Tx,
    input: &AcceptInput,
    session: &SessionRow,
    plan: &AcceptPlan,
) -> Result<(), Fault> {
    let now = tx.now.0;
    let message = match &plan.text {
        Some(text) => json::to_bytes(&with_text(&input.message, text))?,
        None => json::to_bytes(&input.message)?,
    };
    let route = input.route.as_ref().map(json::to_bytes).transpose()?;
    let sql = "/* insert_message */ INSERT INTO inbox \
               (tenant, id, dedupe, hash, session, transcript, ord, sender, message, tokens, tokenizer, route, \
               placement, position, accepted) \
               SELECT tenant, $1, $2, $3, id, transcript, next_message, $4, $5, $6, $7, $8, $9, $10, $11 FROM sessions \
               WHERE tenant = $12 AND id = $13";
    let query = sqlx::query(sql)
        .bind(input.message_id.0)
        .bind(&input.dedupe_key)
        .bind(&input.content_hash);
    let query = query
        .bind(&input.event.sender.id)
        .bind(message)
        .bind(i64::from(input.tokens))
        .bind(&input.tokenizer);
    let query = query
        .bind(route)
        .bind(json::to_word(&plan.placement)?)
        .bind(i64::from(plan.position))
        .bind(now);
    query
        .bind(session.tenant)
        .bind(session.id)
        .execute(tx.conn())
        .await?;
    Ok(())
}

/// The rest of the answer, for duplicates. A message of no turn belongs to the transcript that is current now.
async fn set_answer(
    tx: &mut Tx,
    input: &AcceptInput,
    due: Option<UnixMillis>,
    transcript: TranscriptId,
) -> Result<TranscriptId, Fault> {
    let sql = "/* set_answer */ UPDATE inbox SET due = $1, transcript = $2 WHERE tenant = $3 AND id = $4";
    let query = sqlx::query(sql).bind(due.map(|due| due.0)).bind(transcript.0);
    query
        .bind(input.tenant.0)
        .bind(input.message_id.0)
        .execute(tx.conn())
        .await?;
    Ok(transcript)
}

async fn touch_session(
    tx: &mut Tx,
    tenant: TenantId,
    id: SessionId,
    input: &AcceptInput,
) -> Result<(), Fault> {
    let now = tx.now.0;
    let activity = (input.event.merge.kind == MessageKind::User).then_some(now);
    let sql = "/* touch_session */ UPDATE sessions SET version = version + 1, next_message = next_message + 1, \
               updated = $1, policy = $2, last_user_activity = coalesce($3, last_user_activity) \
               WHERE tenant = $4 AND id = $5";
    let query = sqlx::query(sql)
        .bind(now)
        .bind(&input.policy.0)
        .bind(activity)
        .bind(tenant.0)
        .bind(id.0);
    query.execute(tx.conn()).await?;
    Ok(())
}

async fn get_policy(tx: &mut Tx, tenant: TenantId, id: &PolicyId) -> Result<Option<String>, Fault> {
    let sql = "/* get_policy */ SELECT body FROM policies WHERE tenant = $1 AND id = $2";
    let body = sqlx::query_scalar(sql)
        .bind(tenant.0)
        .bind(&id.0)
        .fetch_optional(tx.conn())
        .await?;
    Ok(body.map(json::text).transpose()?)
}

#[derive(FromRow)]
struct ListedRow {
    id: Uuid,
    session: Uuid,
    turn: Option<Uuid>,
    accepted: i64,
    outcome: Option<String>,
    detail: String,
}

pub(crate) async fn list(
    tx: &mut Tx,
    tenant: TenantId,
    session: SessionId,
    limit: u32,
) -> Result<Vec<InboxRow>, Fault> {
    let sql = "/* list_inbox */ SELECT id, session, turn, accepted, outcome, detail FROM inbox \
               WHERE tenant = $1 AND session = $2 ORDER BY ord DESC LIMIT $3";
    let query = sqlx::query_as(sql)
        .bind(tenant.0)
        .bind(session.0)
        .bind(i64::from(limit.min(500)));
    let rows: Vec<ListedRow> = query.fetch_all(tx.conn()).await?;
    let listed = rows.into_iter().map(|row| {
        Ok(InboxRow {
            message_id: MessageId(row.id),
            session: SessionId(row.session),
            turn: row.turn.map(TurnId),
            accepted: UnixMillis(row.accepted),
            outcome: row.outcome.as_deref().map(queue_state::outcome).transpose()?,
            detail: row.detail,
        })
    });
    Ok(listed.collect::<Result<_>>()?)
}
