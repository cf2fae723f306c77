//! Accepted messages and the policies they came with.

use crate::fault::Fault;
use crate::queue_state;
use crate::{PgStore, Tx, json};
use async_trait::async_trait;
use colloquy_storage::{AcceptInput, Accepted, Decide, Inbox, InboxRow, PolicyId};
use colloquy_types::{MessageId, Result, SessionId, TenantId, TurnId, UnixMillis};
use sqlx::FromRow;
use uuid::Uuid;

#[async_trait]
impl Inbox for PgStore {
    async fn accept(&self, input: &AcceptInput, decide: Decide<'_>) -> Result<Accepted> {
        Ok(self.place(input, decide).await?)
    }

    async fn get_policy(&self, tenant: TenantId, id: &PolicyId) -> Result<Option<String>> {
        Ok(get_policy(&mut self.read(tenant).await?, tenant, id).await?)
    }

    async fn list_inbox(&self, tenant: TenantId, session: SessionId, limit: u32) -> Result<Vec<InboxRow>> {
        Ok(list(&mut self.read(tenant).await?, tenant, session, limit).await?)
    }
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
