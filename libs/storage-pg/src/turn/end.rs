//! Ends without a commit: release, stop, expiry.

use super::{lease, staged};
use crate::Tx;
use crate::block;
use crate::fault::Fault;
use crate::json;
use crate::queue_state::{self, TurnRow};
use crate::session;
use colloquy_storage::{Expired, Release, StopScope, Stopped};
use colloquy_types::queue::{Outcome, TurnState};
use colloquy_types::{Fence, Result, SessionId, TenantId, TurnId};

const LEASE_EXPIRED: &str = "lease expired";

pub(super) async fn release(
    tx: &mut Tx,
    tenant: TenantId,
    turn: TurnId,
    fence: Fence,
    release: &Release,
) -> Result<Expired, Fault> {
    let row = lease::held(tx, tenant, turn, fence).await?;
    if let Some(outcome) = row.stop_outcome()? {
        return finish(tx, &row, outcome, "").await;
    }
    match release {
        Release::Retry { error } => retry(tx, &row, &json::plain(error)).await,
        Release::Fail { error } => finish(tx, &row, Outcome::Failed, &json::plain(error)).await,
    }
}

pub(super) async fn expire(tx: &mut Tx, tenant: TenantId, turn: TurnId) -> Result<Expired, Fault> {
    let row = queue_state::load_turn(tx, tenant, turn).await?;
    if row.expires.is_none_or(|expires| expires > tx.now.0) {
        return Ok(Expired::NotExpired);
    }
    if let Some(outcome) = row.stop_outcome()? {
        return finish(tx, &row, outcome, "").await;
    }
    if row.confirmed {
        return retry(tx, &row, LEASE_EXPIRED).await;
    }
    requeue(tx, &row, row.attempt - 1, 0, "").await
}

/// Waits again after a back-off, or fails for good after the last attempt.
async fn retry(tx: &mut Tx, row: &TurnRow, error: &str) -> Result<Expired, Fault> {
    if row.attempt >= row.max_attempts {
        return finish(tx, row, Outcome::Failed, error).await;
    }
    requeue(tx, row, row.attempt, row.retry_ms, error).await
}

/// Its order stays, so it is first again. Its fence stays too: no write can come under it before the next claim.
async fn requeue(
    tx: &mut Tx,
    row: &TurnRow,
    attempt: u32,
    delay_ms: i64,
    error: &str,
) -> Result<Expired, Fault> {
    let due = tx.now.plus(delay_ms);
    let sql = "/* requeue */ UPDATE turns SET state = 'waiting', closed = true, attempt = $1, due = $2, expires = NULL, \
               confirmed = false, worker = '', error = $3 WHERE tenant = $4 AND id = $5";
    let query = sqlx::query(sql).bind(i64::from(attempt)).bind(due.0).bind(error);
    query.bind(row.tenant).bind(row.id).execute(tx.conn()).await?;
    session::bump(tx, row.tenant(), row.session()).await?;
    Ok(Expired::Requeued {
        session: row.session(),
        due,
    })
}

/// Leaves the messages and an `interrupted` entry in the transcript.
async fn finish(tx: &mut Tx, row: &TurnRow, outcome: Outcome, error: &str) -> Result<Expired, Fault> {
    let now = tx.now.0;
    let staged = staged::load(tx, row).await?;
    let mut lines = staged::opening(tx, row, i64::MAX, &staged).await?;
    let reason = if outcome == Outcome::Failed {
        error
    } else {
        outcome.as_str()
    };
    let seen = staged.iter().filter(|entry| entry.is_seen(row));
    lines.push(staged::interrupted(reason.to_owned(), row.attempt, seen)?);
    block::append(tx, row.line(), Some(row.turn()), &lines).await?;

    queue_state::record_outcome(tx, row.tenant(), row.turn(), outcome, error).await?;
    queue_state::drop_staged(tx, row.tenant(), row.turn()).await?;
    let sql = "/* finish */ UPDATE turns SET state = $1, expires = NULL, error = $2, ended = $3 \
               WHERE tenant = $4 AND id = $5";
    let query = sqlx::query(sql)
        .bind(queue_state::end_state(outcome).as_str())
        .bind(error)
        .bind(now);
    query.bind(row.tenant).bind(row.id).execute(tx.conn()).await?;
    session::touch(tx, row.tenant(), row.session()).await?;
    let next_due = queue_state::next_due(tx, row.tenant(), row.session()).await?;
    Ok(Expired::Ended {
        session: row.session(),
        outcome,
        next_due,
    })
}

pub(super) async fn stop(
    tx: &mut Tx,
    tenant: TenantId,
    id: SessionId,
    scope: StopScope,
    deadline_ms: i64,
) -> Result<Stopped, Fault> {
    session::load(tx, tenant, id).await?;
    let deadline = tx.now.plus(deadline_ms);
    let stopped = match scope {
        StopScope::Oldest => {
            let (_, running) = queue_state::live_turns(tx, tenant, id).await?;
            let oldest = running
                .iter()
                .find(|row| row.state == TurnState::Running.as_str());
            let stopping: Vec<TurnId> = oldest.map(TurnRow::turn).into_iter().collect();
            for turn in &stopping {
                queue_state::stop_running(tx, tenant, *turn, Outcome::CancelledStop, deadline).await?;
            }
            Stopped {
                stopping,
                drained: vec![],
            }
        }
        StopScope::All => Stopped {
            stopping: queue_state::stop_all_running(tx, tenant, id, Outcome::CancelledStop, deadline).await?,
            drained: queue_state::end_all_waiting(tx, tenant, id, Outcome::CancelledStop).await?,
        },
    };
    if stopped != Stopped::default() {
        session::bump(tx, tenant, id).await?;
    }
    Ok(stopped)
}
