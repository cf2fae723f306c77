//! Tenants.

use crate::cursor::{self, Cursor};
use crate::fault::Fault;
use crate::key;
use crate::{PgStore, Tx};
use async_trait::async_trait;
use colloquy_storage::{ApiKey, Page, PageRequest, Tenant, Tenants};
use colloquy_types::{Error, Reason, Result, TenantId, UnixMillis};
use sqlx::FromRow;
use uuid::Uuid;

#[derive(FromRow)]
struct Row {
    id: Uuid,
    name: String,
    created: i64,
}

impl From<Row> for Tenant {
    fn from(row: Row) -> Self {
        Self {
            id: TenantId(row.id),
            name: row.name,
            created: UnixMillis(row.created),
        }
    }
}

#[async_trait]
impl Tenants for PgStore {
    async fn create_tenant(&self, id: TenantId, name: &str) -> Result<Tenant> {
        let mut tx = self.write(id).await?;
        let tenant = create(&mut tx, id, name).await?;
        tx.commit().await?;
        Ok(tenant)
    }

    async fn create_tenant_with_key(&self, id: TenantId, name: &str, first_key: &ApiKey) -> Result<Tenant> {
        let mut tx = self.write(id).await?;
        let tenant = create(&mut tx, id, name).await?;
        key::create(&mut tx, first_key).await?;
        tx.commit().await?;
        Ok(tenant)
    }

    async fn get_tenant(&self, id: TenantId) -> Result<Option<Tenant>> {
        Ok(get(&mut self.read(id).await?, id).await?)
    }

    async fn list_tenants(&self, page: &PageRequest) -> Result<Page<Tenant>> {
        Ok(list(&mut self.sweep().await?, page).await?)
    }
}

async fn create(tx: &mut Tx, id: TenantId, name: &str) -> Result<Tenant, Fault> {
    let created = tx.now;
    let sql = "/* create_tenant */ INSERT INTO tenants (id, name, created) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
    let done = sqlx::query(sql)
        .bind(id.0)
        .bind(name)
        .bind(created.0)
        .execute(tx.conn())
        .await?;
    if done.rows_affected() == 0 {
        return Err(Error::new(Reason::Conflict, "the id or the name of the tenant is taken").into());
    }
    Ok(Tenant {
        id,
        name: name.to_owned(),
        created,
    })
}

async fn get(tx: &mut Tx, id: TenantId) -> Result<Option<Tenant>, Fault> {
    let sql = "/* get_tenant */ SELECT id, name, created FROM tenants WHERE id = $1";
    let row: Option<Row> = sqlx::query_as(sql).bind(id.0).fetch_optional(tx.conn()).await?;
    Ok(row.map(Tenant::from))
}

async fn list(tx: &mut Tx, page: &PageRequest) -> Result<Page<Tenant>, Fault> {
    let after = Cursor::of(page, Cursor::FIRST)?;
    let sql = "/* list_tenants */ SELECT id, name, created FROM control.list_tenants($1, $2, $3)";
    let query = sqlx::query_as::<_, Row>(sql)
        .bind(after.at)
        .bind(after.id)
        .bind(cursor::rows(page));
    let tenants = query
        .fetch_all(tx.conn())
        .await?
        .into_iter()
        .map(Tenant::from)
        .collect();
    Ok(cursor::page(tenants, page, |tenant: &Tenant| Cursor {
        at: tenant.created.0,
        id: tenant.id.0,
    }))
}
