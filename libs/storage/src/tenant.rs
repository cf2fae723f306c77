//! Customers of the SaaS team.

use crate::{ApiKey, Page, PageRequest};
use async_trait::async_trait;
use colloquy_types::{Result, TenantId, UnixMillis};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant {
    pub id: TenantId,
    /// 1 to 200 characters, unique; how an operator names the tenant.
    pub name: String,
    pub created: UnixMillis,
}

/// Operator's business; the only list that looks across tenants.
#[async_trait]
pub trait Tenants: Send + Sync {
    /// `CONFLICT` when the name is taken. `created` is set by the store.
    async fn create_tenant(&self, id: TenantId, name: &str) -> Result<Tenant>;
    /// The tenant and its first key, both or neither: without a key nobody could enter, and its name would be taken.
    /// `first_key.tenant` is `id`; errors are those of `create_tenant` and `create_key`.
    async fn create_tenant_with_key(&self, id: TenantId, name: &str, first_key: &ApiKey) -> Result<Tenant>;
    async fn get_tenant(&self, id: TenantId) -> Result<Option<Tenant>>;
    /// By creation.
    async fn list_tenants(&self, page: &PageRequest) -> Result<Page<Tenant>>;
}
