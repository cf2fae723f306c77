//! Holding a turn: who may write under which fence, and for how long.

use super::staged;
use crate::Tx;
use crate::fault::Fault;
use crate::queue_state::{self, TurnRow};
use crate::session;
use colloquy_storage::{PolicyId, Renewal, TurnView};
use colloquy_types::queue::TurnState;
use colloquy_types::{AgentId, BranchId, Epoch, Error, Fence, Result, Seq, TenantId, TranscriptId, TurnId};

/// The turn, if it is held under the fence: running or stopping. Else `FENCED`, `NOT_FOUND` for an unknown one.
pub(crate) async fn held(
    tx: &mut Tx,
    tenant: TenantId,
    turn: TurnId,
    fence: Fence,
) -> Result<TurnRow, Fault> {
    let row = queue_state::load_turn(tx, tenant, turn).await?;
    let live = matches!(row.state()?, TurnState::Running | TurnState::Stopping);
    if row.fence != fence.0 || !live {
        return Err(Error::fenced().into());
    }
    Ok(row)
}

/// The first sign of life after an offer starts the lease.
pub(crate) async fn confirm(tx: &mut Tx, row: &mut TurnRow) -> Result<(), Fault> {
    if row.confirmed {
        return Ok(());
    }
    if row.state()? == TurnState::Running {
        row.expires = Some(row.lease_end(tx.now));
    }
    row.confirmed = true;
    let sql = "/* confirm */ UPDATE turns SET confirmed = 1, expires = ? WHERE tenant = ? AND id = ?";
    sqlx::query(sql)
        .bind(row.expires)
        .bind(row.tenant)
        .bind(row.id)
        .execute(tx.conn())
        .await?;
    Ok(())
}

pub(super) async fn renew(
    tx: &mut Tx,
    tenant: TenantId,
    turn: TurnId,
    fence: Fence,
    steer_through: i64,
) -> Result<Renewal, Fault> {
    let row = held(tx, tenant, turn, fence).await?;
    let state = row.state()?;
    // A stopping turn keeps its deadline, however alive its worker is.
    let expires = match state {
        TurnState::Running => row.lease_end(tx.now),
        _ => row.expires.unwrap_or(tx.now.0),
    };
    let messages = queue_state::messages(tx, tenant, turn).await?;
    let steered = messages
        .iter()
        .filter_map(|message| message.steer)
        .max()
        .unwrap_or(0);
    let acked = row.steer_acked.max(steer_through.min(steered));
    let sql = "/* renew */ UPDATE turns SET confirmed = 1, expires = ?, steer_acked = ? WHERE tenant = ? AND id = ?";
    sqlx::query(sql)
        .bind(expires)
        .bind(acked)
        .bind(tenant.0)
        .bind(turn.0)
        .execute(tx.conn())
        .await?;
    let open = messages.iter().filter(|message| !message.is_own(acked));
    let steer = open.map(|message| Ok((message.steer.unwrap_or(0), message.id(), message.message()?)));
    Ok(Renewal {
        lease_left_ms: (expires - tx.now.0).max(0),
        state,
        stop: row.stop_outcome()?,
        steer: steer.collect::<Result<_>>()?,
    })
}

/// `None` when the offer has to be confirmed first.
pub(super) async fn view_confirmed(
    tx: &mut Tx,
    tenant: TenantId,
    turn: TurnId,
    fence: Fence,
) -> Result<Option<TurnView>, Fault> {
    let row = held(tx, tenant, turn, fence).await?;
    if row.confirmed {
        Ok(Some(read(tx, row).await?))
    } else {
        Ok(None)
    }
}

pub(super) async fn view(
    tx: &mut Tx,
    tenant: TenantId,
    turn: TurnId,
    fence: Fence,
) -> Result<TurnView, Fault> {
    let mut row = held(tx, tenant, turn, fence).await?;
    confirm(tx, &mut row).await?;
    read(tx, row).await
}

async fn read(tx: &mut Tx, row: TurnRow) -> Result<TurnView, Fault> {
    let session = session::load(tx, row.tenant(), row.session()).await?;
    let messages = queue_state::messages(tx, row.tenant(), row.turn()).await?;
    let own = messages.iter().filter(|message| message.is_own(row.steer_acked));
    let messages = own.map(|message| Ok((message.id(), message.message()?, message.tokens)));
    let messages = messages.collect::<Result<_>>()?;
    let staged = staged::load(tx, &row).await?;
    let seen = staged.iter().filter(|entry| entry.is_seen(&row));
    Ok(TurnView {
        session: row.session(),
        agent: AgentId::parse(&session.agent)?,
        key: session.key,
        transcript: TranscriptId(row.transcript),
        branch: BranchId(row.branch),
        epoch: Epoch(session.epoch),
        head: Seq(row.head_at_claim),
        attempt: row.attempt,
        state: row.state()?,
        route: row.route()?,
        messages,
        staged: seen
            .map(|entry| Ok((entry.body()?, entry.tokens)))
            .collect::<Result<_>>()?,
        policy: PolicyId(row.policy),
        preface: row.preface,
    })
}
