//! Replies on their way out.

use crate::fault::Fault;
use crate::queue_state::TurnRow;
use crate::{SqliteStore, Tx, json};
use async_trait::async_trait;
use colloquy_storage::{Ack, Deliveries, Delivery, NewDelivery};
use colloquy_types::{AccountId, DeliveryId, Error, Result, SessionId, TenantId, TurnId};
use sqlx::FromRow;
use uuid::Uuid;

#[async_trait]
impl Deliveries for SqliteStore {
    async fn claim_deliveries(
        &self,
        tenant: TenantId,
        account: &AccountId,
        limit: u32,
        lease_ms: i64,
    ) -> Result<Vec<Delivery>> {
        // Adapters poll: an empty look must not queue up for the writer.
        if due(&mut self.read().await?, tenant, account, 1).await?.is_empty() {
            return Ok(vec![]);
        }
        let mut tx = self.write().await?;
        let offered = offer(&mut tx, tenant, account, limit, lease_ms).await?;
        tx.commit().await?;
        Ok(offered)
    }

    async fn ack_delivery(
        &self,
        tenant: TenantId,
        id: DeliveryId,
        account: Option<&AccountId>,
        ack: &Ack,
    ) -> Result<()> {
        let mut tx = self.write().await?;
        acknowledge(&mut tx, tenant, id, account, ack).await?;
        Ok(tx.commit().await?)
    }
}

/// Written with the commit of the turn.
pub(crate) async fn insert(tx: &mut Tx, turn: &TurnRow, deliveries: &[NewDelivery]) -> Result<(), Fault> {
    let now = tx.now.0;
    let sql = "/* insert_delivery */ INSERT INTO deliveries \
               (tenant, id, pos, turn, session, account, route, part, parts, due) \
               SELECT ?1, ?2, coalesce(max(pos), 0) + 1, ?3, ?4, ?5, ?6, ?7, ?8, ?9 FROM deliveries WHERE tenant = ?1";
    for delivery in deliveries {
        let query = sqlx::query(sql)
            .bind(turn.tenant)
            .bind(delivery.id.0)
            .bind(turn.id)
            .bind(turn.session);
        let query = query
            .bind(delivery.route.account.as_str())
            .bind(json::to_bytes(&delivery.route)?);
        let query = query
            .bind(delivery.part)
            .bind(json::to_bytes(&delivery.parts)?)
            .bind(now);
        query.execute(tx.conn()).await?;
    }
    Ok(())
}

#[derive(FromRow)]
struct Row {
    id: Uuid,
    turn: Uuid,
    session: Uuid,
    route: Vec<u8>,
    parts: Vec<u8>,
    attempt: i32,
}

/// Per route the oldest that has not ended, if it is neither under a lease nor backing off.
async fn due(tx: &mut Tx, tenant: TenantId, account: &AccountId, limit: u32) -> Result<Vec<Row>, Fault> {
    let now = tx.now.0;
    let sql = "/* due_deliveries */ SELECT d.id, d.turn, d.session, d.route, d.parts, d.attempt FROM deliveries d \
               WHERE d.tenant = ? AND d.account = ? AND d.ended IS NULL AND d.due <= ? \
               AND NOT EXISTS (SELECT 1 FROM deliveries e WHERE e.tenant = d.tenant AND e.account = d.account \
               AND e.route = d.route AND e.ended IS NULL AND e.pos < d.pos) ORDER BY d.pos LIMIT ?";
    let query = sqlx::query_as(sql)
        .bind(tenant.0)
        .bind(account.as_str())
        .bind(now)
        .bind(limit);
    Ok(query.fetch_all(tx.conn()).await?)
}

async fn offer(
    tx: &mut Tx,
    tenant: TenantId,
    account: &AccountId,
    limit: u32,
    lease_ms: i64,
) -> Result<Vec<Delivery>, Fault> {
    let until = tx.now.plus(lease_ms).0;
    let mut offered = Vec::new();
    for row in due(tx, tenant, account, limit).await? {
        let attempt = row.attempt + 1;
        let sql =
            "/* offer_delivery */ UPDATE deliveries SET attempt = ?, due = ? WHERE tenant = ? AND id = ?";
        let query = sqlx::query(sql)
            .bind(attempt)
            .bind(until)
            .bind(tenant.0)
            .bind(row.id);
        query.execute(tx.conn()).await?;
        offered.push(Delivery {
            id: DeliveryId(row.id),
            turn: TurnId(row.turn),
            session: SessionId(row.session),
            route: json::from_bytes(&row.route)?,
            parts: json::from_bytes(&row.parts)?,
            attempt,
        });
    }
    Ok(offered)
}

async fn acknowledge(
    tx: &mut Tx,
    tenant: TenantId,
    id: DeliveryId,
    account: Option<&AccountId>,
    ack: &Ack,
) -> Result<(), Fault> {
    let now = tx.now;
    let (due, outcome, detail) = match ack {
        Ack::Delivered => (now, Some("DELIVERED"), ""),
        Ack::Retry { delay_ms, detail } => (now.plus(*delay_ms), None, detail.as_str()),
        Ack::Dead { detail } => (now, Some("DEAD"), detail.as_str()),
    };
    let sql = "/* ack_delivery */ UPDATE deliveries SET due = ?, outcome = ?, detail = ?, ended = ? \
               WHERE tenant = ? AND id = ? AND ended IS NULL AND account = coalesce(?, account)";
    let query = sqlx::query(sql)
        .bind(due.0)
        .bind(outcome)
        .bind(detail)
        .bind(outcome.map(|_| now.0));
    if query
        .bind(tenant.0)
        .bind(id.0)
        .bind(account.map(AccountId::as_str))
        .execute(tx.conn())
        .await?
        .rows_affected()
        > 0
    {
        return Ok(());
    }
    let sql = "/* ack_delivery */ SELECT count(*) FROM deliveries WHERE tenant = ? AND id = ? \
               AND account = coalesce(?, account)";
    let known: i64 = sqlx::query_scalar(sql)
        .bind(tenant.0)
        .bind(id.0)
        .bind(account.map(AccountId::as_str))
        .fetch_one(tx.conn())
        .await?;
    if known == 0 {
        Err(Error::not_found("delivery", id).into())
    } else {
        Ok(())
    }
}
