//! Rows of turns, and the changes of a queue that more than one operation makes.

use crate::Tx;
use crate::block::Line;
use crate::fault::Fault;
use crate::json;
use colloquy_storage::TurnLimits;
use colloquy_types::message::Route;
use colloquy_types::queue::{Outcome, TurnState};
use colloquy_types::{
    BranchId, Error, Message, MessageId, Result, SessionId, TenantId, TranscriptId, TurnId, UnixMillis,
};
use sqlx::FromRow;
use uuid::Uuid;

#[derive(Debug, FromRow)]
pub(crate) struct TurnRow {
    pub tenant: Uuid,
    pub id: Uuid,
    pub session: Uuid,
    pub transcript: Uuid,
    pub branch: Uuid,
    pub ord: i64,
    pub state: String,
    pub lane: String,
    pub mode: String,
    pub merge_key: Vec<u8>,
    pub sender: Option<String>,
    pub opened: i64,
    pub due: i64,
    pub closed: bool,
    pub attempt: u32,
    pub fence: i64,
    pub worker: String,
    pub claimed: i64,
    pub expires: Option<i64>,
    pub confirmed: bool,
    pub stop_outcome: Option<String>,
    pub policy: String,
    pub lease_ms: i64,
    pub asked_lease_ms: Option<i64>,
    pub max_attempts: u32,
    pub max_turn_ms: i64,
    pub max_concurrent: u32,
    pub retry_ms: i64,
    pub resume_continue: bool,
    pub route: Option<Vec<u8>>,
    pub preface: String,
    pub head_at_claim: i64,
    pub steer_acked: i64,
    pub commit_hash: Option<Vec<u8>>,
    pub commit_answer: Option<Vec<u8>>,
}

impl TurnRow {
    pub fn tenant(&self) -> TenantId {
        TenantId(self.tenant)
    }

    pub fn turn(&self) -> TurnId {
        TurnId(self.id)
    }

    pub fn session(&self) -> SessionId {
        SessionId(self.session)
    }

    /// Where its block goes: the branch that was current at its accept.
    pub fn line(&self) -> Line {
        Line {
            tenant: self.tenant(),
            transcript: TranscriptId(self.transcript),
            branch: BranchId(self.branch),
        }
    }

    pub fn state(&self) -> Result<TurnState> {
        TurnState::parse(&self.state).ok_or_else(|| Error::internal("a turn is in an unknown state"))
    }

    /// What its messages get when it has stopped.
    pub fn stop_outcome(&self) -> Result<Option<Outcome>> {
        self.stop_outcome.as_deref().map(outcome).transpose()
    }

    pub fn route(&self) -> Result<Option<Route>> {
        self.route.as_deref().map(json::from_bytes).transpose()
    }

    pub fn limits(&self) -> TurnLimits {
        TurnLimits {
            lease_ms: self.lease_ms,
            max_attempts: self.max_attempts,
            max_turn_ms: self.max_turn_ms,
            max_concurrent: self.max_concurrent,
            retry_ms: self.retry_ms,
            resume_continue: self.resume_continue,
        }
    }

    /// Where a lease given now ends: never behind the longest turn.
    pub fn lease_end(&self, now: UnixMillis) -> i64 {
        now.plus(self.asked_lease_ms.unwrap_or(self.lease_ms))
            .min(UnixMillis(self.claimed).plus(self.max_turn_ms))
            .0
    }
}

pub(crate) fn outcome(word: &str) -> Result<Outcome> {
    Outcome::parse(word).ok_or_else(|| Error::internal("an outcome is unknown"))
}

/// `NOT_FOUND` when there is none.
pub(crate) async fn load_turn(tx: &mut Tx, tenant: TenantId, id: TurnId) -> Result<TurnRow, Fault> {
    let sql = "/* load_turn */ SELECT * FROM turns WHERE tenant = ? AND id = ?";
    let row = sqlx::query_as(sql)
        .bind(tenant.0)
        .bind(id.0)
        .fetch_optional(tx.conn())
        .await?;
    row.ok_or_else(|| Error::not_found("turn", id).into())
}

/// Waiting in queue order, and running or stopping, oldest claim first.
pub(crate) async fn live_turns(
    tx: &mut Tx,
    tenant: TenantId,
    session: SessionId,
) -> Result<(Vec<TurnRow>, Vec<TurnRow>), Fault> {
    let sql = "/* live_turns */ SELECT * FROM turns WHERE tenant = ? AND session = ? AND ended IS NULL ORDER BY ord";
    let rows: Vec<TurnRow> = sqlx::query_as(sql)
        .bind(tenant.0)
        .bind(session.0)
        .fetch_all(tx.conn())
        .await?;
    let (waiting, mut running): (Vec<_>, Vec<_>) = rows
        .into_iter()
        .partition(|row| row.state == TurnState::Waiting.as_str());
    running.sort_by_key(|row| row.fence);
    Ok((waiting, running))
}

/// When the session's first waiting turn is due.
pub(crate) async fn next_due(
    tx: &mut Tx,
    tenant: TenantId,
    session: SessionId,
) -> Result<Option<UnixMillis>, Fault> {
    let sql = "/* next_due */ SELECT due FROM turns WHERE tenant = ? AND session = ? AND ended IS NULL \
               AND state = 'waiting' ORDER BY ord LIMIT 1";
    let due = sqlx::query_scalar(sql)
        .bind(tenant.0)
        .bind(session.0)
        .fetch_optional(tx.conn())
        .await?;
    Ok(due.map(UnixMillis))
}

/// The state a turn ends in with an outcome that is no answer.
pub(crate) fn end_state(outcome: Outcome) -> TurnState {
    if outcome == Outcome::Failed {
        TurnState::Failed
    } else {
        TurnState::Cancelled
    }
}

/// Ends a waiting turn; its messages get the outcome and stay readable. `false` when it does not wait.
pub(crate) async fn end_waiting(
    tx: &mut Tx,
    tenant: TenantId,
    turn: TurnId,
    outcome: Outcome,
) -> Result<bool, Fault> {
    let now = tx.now.0;
    let sql = "/* end_waiting */ UPDATE turns SET state = ?, ended = ? WHERE tenant = ? AND id = ? \
               AND state = 'waiting'";
    let query = sqlx::query(sql)
        .bind(end_state(outcome).as_str())
        .bind(now)
        .bind(tenant.0)
        .bind(turn.0);
    if query.execute(tx.conn()).await?.rows_affected() == 0 {
        return Ok(false);
    }
    record_outcome(tx, tenant, turn, outcome, "").await?;
    drop_staged(tx, tenant, turn).await?;
    Ok(true)
}

/// The messages of a turn that have no end yet get one.
pub(crate) async fn record_outcome(
    tx: &mut Tx,
    tenant: TenantId,
    turn: TurnId,
    outcome: Outcome,
    detail: &str,
) -> Result<(), Fault> {
    let sql = "/* record_outcome */ UPDATE inbox SET outcome = ?, detail = ? WHERE tenant = ? AND turn = ? \
               AND outcome IS NULL";
    let query = sqlx::query(sql)
        .bind(outcome.as_str())
        .bind(detail)
        .bind(tenant.0)
        .bind(turn.0);
    query.execute(tx.conn()).await?;
    Ok(())
}

/// What an ended turn had staged is in its block, or was never to be seen.
pub(crate) async fn drop_staged(tx: &mut Tx, tenant: TenantId, turn: TurnId) -> Result<(), Fault> {
    let sql = "/* drop_staged */ DELETE FROM staged_entries WHERE tenant = ? AND turn = ?";
    sqlx::query(sql)
        .bind(tenant.0)
        .bind(turn.0)
        .execute(tx.conn())
        .await?;
    Ok(())
}

pub(crate) async fn end_all_waiting(
    tx: &mut Tx,
    tenant: TenantId,
    session: SessionId,
    outcome: Outcome,
) -> Result<Vec<TurnId>, Fault> {
    let (waiting, _) = live_turns(tx, tenant, session).await?;
    for row in &waiting {
        end_waiting(tx, tenant, row.turn(), outcome).await?;
    }
    Ok(waiting.iter().map(TurnRow::turn).collect())
}

/// Running → stopping. `false` when it does not run, or is stopping for another reason already.
pub(crate) async fn stop_running(
    tx: &mut Tx,
    tenant: TenantId,
    turn: TurnId,
    outcome: Outcome,
    deadline: UnixMillis,
) -> Result<bool, Fault> {
    let sql = "/* stop_running */ UPDATE turns SET state = 'stopping', stop_outcome = ?, expires = ? \
               WHERE tenant = ? AND id = ? AND state = 'running'";
    let query = sqlx::query(sql)
        .bind(outcome.as_str())
        .bind(deadline.0)
        .bind(tenant.0)
        .bind(turn.0);
    Ok(query.execute(tx.conn()).await?.rows_affected() > 0)
}

pub(crate) async fn stop_all_running(
    tx: &mut Tx,
    tenant: TenantId,
    session: SessionId,
    outcome: Outcome,
    deadline: UnixMillis,
) -> Result<Vec<TurnId>, Fault> {
    let (_, running) = live_turns(tx, tenant, session).await?;
    let mut stopping = Vec::new();
    for row in running {
        if stop_running(tx, tenant, row.turn(), outcome, deadline).await? {
            stopping.push(row.turn());
        }
    }
    Ok(stopping)
}

/// A message of a turn.
#[derive(Debug, FromRow)]
pub(crate) struct MessageRow {
    id: Uuid,
    message: Vec<u8>,
    pub tokens: u32,
    pub tokenizer: String,
    /// Its number when it was steered into the turn.
    pub steer: Option<i64>,
}

impl MessageRow {
    pub fn id(&self) -> MessageId {
        MessageId(self.id)
    }

    pub fn message(&self) -> Result<Message> {
        json::from_bytes(&self.message)
    }

    /// One of the turn's own: accepted into it, or steered into it and acknowledged up to the number.
    pub fn is_own(&self, acked: i64) -> bool {
        self.steer.is_none_or(|number| number <= acked)
    }
}

/// Messages of a turn in the order of their accepts, steered ones included.
pub(crate) async fn messages(tx: &mut Tx, tenant: TenantId, turn: TurnId) -> Result<Vec<MessageRow>, Fault> {
    let sql = "/* messages */ SELECT id, message, tokens, tokenizer, steer FROM inbox \
               WHERE tenant = ? AND turn = ? ORDER BY ord";
    Ok(sqlx::query_as(sql)
        .bind(tenant.0)
        .bind(turn.0)
        .fetch_all(tx.conn())
        .await?)
}

/// Own message ids of every live turn of the session, in the order of their accepts.
pub(crate) async fn live_message_ids(
    tx: &mut Tx,
    tenant: TenantId,
    session: SessionId,
) -> Result<Vec<(TurnId, MessageId)>, Fault> {
    let sql = "/* live_message_ids */ SELECT i.turn, i.id FROM turns t \
               JOIN inbox i ON i.tenant = t.tenant AND i.turn = t.id \
               WHERE t.tenant = ? AND t.session = ? AND t.ended IS NULL \
               AND (i.steer IS NULL OR i.steer <= t.steer_acked) ORDER BY i.ord";
    let rows: Vec<(Uuid, Uuid)> = sqlx::query_as(sql)
        .bind(tenant.0)
        .bind(session.0)
        .fetch_all(tx.conn())
        .await?;
    Ok(rows
        .into_iter()
        .map(|(turn, id)| (TurnId(turn), MessageId(id)))
        .collect())
}
