//! Channel accounts.

use crate::fault::Fault;
use crate::{PgStore, Tx, json};
use async_trait::async_trait;
use colloquy_storage::{ChannelAccount, ChannelAccounts};
use colloquy_types::{AccountId, AgentId, ChannelName, Error, Reason, Result, TenantId, UnixMillis};
use sqlx::FromRow;
use uuid::Uuid;

#[derive(FromRow)]
struct Row {
    tenant: Uuid,
    id: String,
    channel: String,
    agent: String,
    name: String,
    secret: String,
    settings: Vec<u8>,
    created: i64,
}

impl TryFrom<Row> for ChannelAccount {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self> {
        Ok(Self {
            tenant: TenantId(row.tenant),
            id: AccountId::parse(&row.id)?,
            channel: ChannelName::parse(&row.channel)?,
            agent: AgentId::parse(&row.agent)?,
            name: row.name,
            secret: row.secret,
            settings_json: json::text(row.settings)?,
            created: UnixMillis(row.created),
        })
    }
}

#[async_trait]
impl ChannelAccounts for PgStore {
    async fn put_account(&self, account: &ChannelAccount) -> Result<ChannelAccount> {
        let mut tx = self.write(account.tenant).await?;
        let stored = put(&mut tx, account).await?;
        tx.commit().await?;
        Ok(stored)
    }

    async fn find_account(&self, id: &AccountId) -> Result<Option<ChannelAccount>> {
        // The function says whose it is and nothing else; the row is read under that tenant.
        let Some(tenant) = tenant_of(&mut self.sweep().await?, id).await? else {
            return Ok(None);
        };
        Ok(find(&mut self.read(tenant).await?, id).await?)
    }

    async fn list_accounts(&self, tenant: TenantId) -> Result<Vec<ChannelAccount>> {
        Ok(list(&mut self.read(tenant).await?, tenant).await?)
    }
}

/// No row comes back when the id is another tenant's; a taken name violates its own constraint.
async fn put(tx: &mut Tx, account: &ChannelAccount) -> Result<ChannelAccount, Fault> {
    let now = tx.now.0;
    let sql = "/* put_account */ INSERT INTO channel_accounts \
               (tenant, id, channel, agent, name, secret, settings, created) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) \
               ON CONFLICT (id) DO UPDATE SET channel = excluded.channel, agent = excluded.agent, \
               name = excluded.name, secret = excluded.secret, settings = excluded.settings \
               WHERE channel_accounts.tenant = excluded.tenant RETURNING *";
    let row: Option<Row> = sqlx::query_as(sql)
        .bind(account.tenant.0)
        .bind(account.id.as_str())
        .bind(account.channel.as_str())
        .bind(account.agent.as_str())
        .bind(&account.name)
        .bind(&account.secret)
        .bind(account.settings_json.as_bytes())
        .bind(now)
        .fetch_optional(tx.conn())
        .await
        .or_else(|error| if is_hidden(&error) { Ok(None) } else { Err(error) })?;
    match row {
        Some(row) => Ok(row.try_into()?),
        None => Err(Error::new(Reason::Conflict, "the account id is taken").into()),
    }
}

/// The row with the id is another tenant's: row-level security does not let the update see it.
fn is_hidden(error: &sqlx::Error) -> bool {
    error
        .as_database_error()
        .and_then(|error| error.code())
        .is_some_and(|code| code == "42501")
}

async fn find(tx: &mut Tx, id: &AccountId) -> Result<Option<ChannelAccount>, Fault> {
    let sql = "/* find_account */ SELECT * FROM channel_accounts WHERE id = $1";
    let row: Option<Row> = sqlx::query_as(sql)
        .bind(id.as_str())
        .fetch_optional(tx.conn())
        .await?;
    Ok(row.map(ChannelAccount::try_from).transpose()?)
}

async fn tenant_of(tx: &mut Tx, id: &AccountId) -> Result<Option<TenantId>, Fault> {
    let sql = "/* account_tenant */ SELECT control.account_tenant($1)";
    let tenant: Option<Uuid> = sqlx::query_scalar(sql)
        .bind(id.as_str())
        .fetch_one(tx.conn())
        .await?;
    Ok(tenant.map(TenantId))
}

async fn list(tx: &mut Tx, tenant: TenantId) -> Result<Vec<ChannelAccount>, Fault> {
    let sql = "/* list_accounts */ SELECT * FROM channel_accounts WHERE tenant = $1 ORDER BY channel, name";
    let rows: Vec<Row> = sqlx::query_as(sql).bind(tenant.0).fetch_all(tx.conn()).await?;
    Ok(rows
        .into_iter()
        .map(ChannelAccount::try_from)
        .collect::<Result<_>>()?)
}
