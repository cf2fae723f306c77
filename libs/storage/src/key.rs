//! API keys. The key itself is shown once and never stored; its hash is.

use async_trait::async_trait;
use colloquy_types::{AccountId, AgentId, CallerRole, KeyId, Result, TenantId, UnixMillis};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    pub id: KeyId,
    pub tenant: TenantId,
    /// SHA-256 of the secret part (which has 256 random bits, so no slow hash is needed).
    pub secret_hash: Vec<u8>,
    pub name: String,
    pub roles: Vec<CallerRole>,
    /// Stable name of the holder within the tenant.
    pub subject: String,
    /// Set for a channel credential: the one account it may act for.
    pub account: Option<AccountId>,
    /// Set for a worker's credential: the agents it may serve; empty = all.
    pub agents: Vec<AgentId>,
    pub created: UnixMillis,
    pub revoked: Option<UnixMillis>,
}

#[async_trait]
pub trait ApiKeys: Send + Sync {
    /// `created` is set by the store.
    async fn create_key(&self, key: &ApiKey) -> Result<()>;
    /// Revoked keys are returned too, marked.
    async fn get_key(&self, tenant: TenantId, id: KeyId) -> Result<Option<ApiKey>>;
    /// By creation, revoked ones included; a tenant has few.
    async fn list_keys(&self, tenant: TenantId) -> Result<Vec<ApiKey>>;
    /// `NOT_FOUND` when there is no such key; revoking twice keeps the first instant.
    async fn revoke_key(&self, tenant: TenantId, id: KeyId) -> Result<()>;
}
