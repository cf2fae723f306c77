//! Agents.

use crate::fault::Fault;
use crate::{PgStore, Tx, json};
use async_trait::async_trait;
use colloquy_storage::{Agent, Agents};
use colloquy_types::{AgentId, Error, Result, TenantId, UnixMillis};
use sqlx::FromRow;
use uuid::Uuid;

#[derive(FromRow)]
struct Row {
    tenant: Uuid,
    id: String,
    display_name: String,
    profile: String,
    overrides: Vec<u8>,
    version: i64,
    created: i64,
    updated: i64,
}

impl TryFrom<Row> for Agent {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self> {
        Ok(Self {
            tenant: TenantId(row.tenant),
            id: AgentId::parse(&row.id)?,
            display_name: row.display_name,
            profile: row.profile,
            overrides_json: json::text(row.overrides)?,
            version: row.version,
            created: UnixMillis(row.created),
            updated: UnixMillis(row.updated),
        })
    }
}

#[async_trait]
impl Agents for PgStore {
    async fn put_agent(&self, agent: &Agent) -> Result<Agent> {
        let mut tx = self.write(agent.tenant).await?;
        let stored = put(&mut tx, agent).await?;
        tx.commit().await?;
        Ok(stored)
    }

    async fn get_agent(&self, tenant: TenantId, id: &AgentId) -> Result<Option<Agent>> {
        Ok(get(&mut self.read(tenant).await?, tenant, id).await?)
    }

    async fn list_agents(&self, tenant: TenantId) -> Result<Vec<Agent>> {
        Ok(list(&mut self.read(tenant).await?, tenant).await?)
    }
}

async fn put(tx: &mut Tx, agent: &Agent) -> Result<Agent, Fault> {
    let now = tx.now.0;
    let sql = "/* put_agent */ INSERT INTO agents \
               (tenant, id, display_name, profile, overrides, version, created, updated) \
               VALUES ($1, $2, $3, $4, $5, 1, $6, $6) \
               ON CONFLICT (tenant, id) DO UPDATE SET display_name = excluded.display_name, \
               profile = excluded.profile, overrides = excluded.overrides, version = agents.version + 1, \
               updated = excluded.updated RETURNING *";
    let row: Row = sqlx::query_as(sql)
        .bind(agent.tenant.0)
        .bind(agent.id.as_str())
        .bind(&agent.display_name)
        .bind(&agent.profile)
        .bind(agent.overrides_json.as_bytes())
        .bind(now)
        .fetch_one(tx.conn())
        .await?;
    Ok(row.try_into()?)
}

async fn get(tx: &mut Tx, tenant: TenantId, id: &AgentId) -> Result<Option<Agent>, Fault> {
    let sql = "/* get_agent */ SELECT * FROM agents WHERE tenant = $1 AND id = $2";
    let row: Option<Row> = sqlx::query_as(sql)
        .bind(tenant.0)
        .bind(id.as_str())
        .fetch_optional(tx.conn())
        .await?;
    Ok(row.map(Agent::try_from).transpose()?)
}

async fn list(tx: &mut Tx, tenant: TenantId) -> Result<Vec<Agent>, Fault> {
    let sql = "/* list_agents */ SELECT * FROM agents WHERE tenant = $1 ORDER BY id";
    let rows: Vec<Row> = sqlx::query_as(sql).bind(tenant.0).fetch_all(tx.conn()).await?;
    Ok(rows.into_iter().map(Agent::try_from).collect::<Result<_>>()?)
}
