//! What schedulers and people look at.

use crate::Tx;
use crate::fault::Fault;
use crate::queue_state::{self, TurnRow};
use crate::{inbox, json, session};
use colloquy_storage::{Queue, QueuedTurn, Runnable, RunnableScan};
use colloquy_types::{AgentId, Fence, MessageId, Result, SessionId, TenantId, TurnId, UnixMillis};
use sqlx::FromRow;
use uuid::Uuid;

pub(super) async fn expired(tx: &mut Tx, limit: u32) -> Result<Vec<(TenantId, TurnId)>, Fault> {
    let now = tx.now.0;
    let sql = "/* list_expired */ SELECT tenant, id FROM history.list_expired($1, $2)";
    let rows: Vec<(Uuid, Uuid)> = sqlx::query_as(sql)
        .bind(now)
        .bind(i64::from(limit))
        .fetch_all(tx.conn())
        .await?;
    Ok(rows
        .into_iter()
        .map(|(tenant, turn)| (TenantId(tenant), TurnId(turn)))
        .collect())
}

#[derive(FromRow)]
struct RunnableRow {
    tenant: Uuid,
    agent: String,
    session: Uuid,
    lane: String,
    due: i64,
}

/// The first waiting turn of each session that runs fewer turns than it may.
pub(super) async fn runnable(tx: &mut Tx, scan: &RunnableScan) -> Result<Vec<Runnable>, Fault> {
    let until = tx.now.plus(scan.horizon_ms).0;
    let only = scan.tenant.map(|tenant| tenant.0);
    let sql = "/* list_runnable */ SELECT tenant, agent, session, lane, due \
               FROM history.list_runnable($1, $2, $3, $4)";
    let rows: Vec<RunnableRow> = sqlx::query_as(sql)
        .bind(only)
        .bind(until)
        .bind(i64::from(scan.per_agent))
        .bind(i64::from(scan.limit))
        .fetch_all(tx.conn())
        .await?;
    let runnable = rows.into_iter().map(|row| {
        Ok(Runnable {
            tenant: TenantId(row.tenant),
            agent: AgentId::parse(&row.agent)?,
            session: SessionId(row.session),
            lane: json::from_word(&row.lane)?,
            due: UnixMillis(row.due),
        })
    });
    let mut runnable: Vec<Runnable> = runnable.collect::<Result<_>>()?;
    runnable.sort_by_key(|found| (found.due, found.tenant, found.session));
    Ok(runnable)
}

pub(super) async fn queue(
    tx: &mut Tx,
    tenant: TenantId,
    id: SessionId,
    outcomes: u32,
) -> Result<Queue, Fault> {
    session::load(tx, tenant, id).await?;
    let (waiting, running) = queue_state::live_turns(tx, tenant, id).await?;
    let ids = queue_state::live_message_ids(tx, tenant, id).await?;
    Ok(Queue {
        running: running
            .iter()
            .map(|row| queued(row, &ids))
            .collect::<Result<_>>()?,
        waiting: waiting
            .iter()
            .map(|row| queued(row, &ids))
            .collect::<Result<_>>()?,
        outcomes: inbox::list(tx, tenant, id, outcomes).await?,
        now: tx.now,
    })
}

fn queued(row: &TurnRow, ids: &[(TurnId, MessageId)]) -> Result<QueuedTurn> {
    Ok(QueuedTurn {
        turn: row.turn(),
        state: row.state()?,
        lane: json::from_word(&row.lane)?,
        due: UnixMillis(row.due),
        attempt: row.attempt,
        fence: Fence(row.fence),
        worker: row.worker.clone(),
        messages: ids
            .iter()
            .filter(|(turn, _)| *turn == row.turn())
            .map(|(_, id)| *id)
            .collect(),
    })
}
