//! API keys.

use crate::fault::Fault;
use crate::{SqliteStore, Tx, json};
use async_trait::async_trait;
use colloquy_storage::{ApiKey, ApiKeys};
use colloquy_types::{AccountId, Error, KeyId, Result, TenantId, UnixMillis};
use sqlx::FromRow;
use uuid::Uuid;

#[derive(FromRow)]
struct Row {
    tenant: Uuid,
    id: Uuid,
    secret_hash: Vec<u8>,
    name: String,
    roles: Vec<u8>,
    subject: String,
    account: Option<String>,
    agents: Vec<u8>,
    created: i64,
    revoked: Option<i64>,
}

impl TryFrom<Row> for ApiKey {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self> {
        Ok(Self {
            id: KeyId(row.id),
            tenant: TenantId(row.tenant),
            secret_hash: row.secret_hash,
            name: row.name,
            roles: json::from_bytes(&row.roles)?,
            subject: row.subject,
            account: row.account.as_deref().map(AccountId::parse).transpose()?,
            agents: json::from_bytes(&row.agents)?,
            created: UnixMillis(row.created),
            revoked: row.revoked.map(UnixMillis),
        })
    }
}

#[async_trait]
impl ApiKeys for SqliteStore {
    async fn create_key(&self, key: &ApiKey) -> Result<()> {
        let mut tx = self.write().await?;
        create(&mut tx, key).await?;
        Ok(tx.commit().await?)
    }

    async fn get_key(&self, tenant: TenantId, id: KeyId) -> Result<Option<ApiKey>> {
        Ok(get(&mut self.read().await?, tenant, id).await?)
    }

    async fn list_keys(&self, tenant: TenantId) -> Result<Vec<ApiKey>> {
        Ok(list(&mut self.read().await?, tenant).await?)
    }

    async fn revoke_key(&self, tenant: TenantId, id: KeyId) -> Result<()> {
        let mut tx = self.write().await?;
        revoke(&mut tx, tenant, id).await?;
        Ok(tx.commit().await?)
    }
}

pub async fn create(tx: &mut Tx, key: &ApiKey) -> Result<(), Fault> {
    let created = tx.now.0;
    let sql = "/* create_key */ INSERT INTO api_keys \
               (tenant, id, secret_hash, name, roles, subject, account, agents, created) \
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
    sqlx::query(sql)
        .bind(key.tenant.0)
        .bind(key.id.0)
        .bind(&key.secret_hash)
        .bind(&key.name)
        .bind(json::to_bytes(&key.roles)?)
        .bind(&key.subject)
        .bind(key.account.as_ref().map(AccountId::as_str))
        .bind(json::to_bytes(&key.agents)?)
        .bind(created)
        .execute(tx.conn())
        .await?;
    Ok(())
}

async fn get(tx: &mut Tx, tenant: TenantId, id: KeyId) -> Result<Option<ApiKey>, Fault> {
    let sql = "/* get_key */ SELECT * FROM api_keys WHERE tenant = ? AND id = ?";
    let row: Option<Row> = sqlx::query_as(sql)
        .bind(tenant.0)
        .bind(id.0)
        .fetch_optional(tx.conn())
        .await?;
    Ok(row.map(ApiKey::try_from).transpose()?)
}

async fn list(tx: &mut Tx, tenant: TenantId) -> Result<Vec<ApiKey>, Fault> {
    let sql = "/* list_keys */ SELECT * FROM api_keys WHERE tenant = ? ORDER BY created, id";
    let rows: Vec<Row> = sqlx::query_as(sql).bind(tenant.0).fetch_all(tx.conn()).await?;
    Ok(rows.into_iter().map(ApiKey::try_from).collect::<Result<_>>()?)
}

async fn revoke(tx: &mut Tx, tenant: TenantId, id: KeyId) -> Result<(), Fault> {
    let now = tx.now.0;
    let sql =
        "/* revoke_key */ UPDATE api_keys SET revoked = coalesce(revoked, ?) WHERE tenant = ? AND id = ?";
    let done = sqlx::query(sql)
        .bind(now)
        .bind(tenant.0)
        .bind(id.0)
        .execute(tx.conn())
        .await?;
    if done.rows_affected() == 0 {
        return Err(Error::not_found("key", id).into());
    }
    Ok(())
}
