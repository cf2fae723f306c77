//! Agents and the policies they run under.

use async_trait::async_trait;
use colloquy_types::{AgentId, Result, TenantId, UnixMillis};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    pub tenant: TenantId,
    pub id: AgentId,
    pub display_name: String,
    /// `goclaw`, `goclaw-lite` or `openclaw`.
    pub profile: String,
    /// JSON object merged over the profile, validated before it is stored.
    pub overrides_json: String,
    /// From 1, grows with every change.
    pub version: i64,
    pub created: UnixMillis,
    pub updated: UnixMillis,
}

#[async_trait]
pub trait Agents: Send + Sync {
    /// Inserts or replaces; sets `version`, `created`, `updated` and returns what is stored.
    async fn put_agent(&self, agent: &Agent) -> Result<Agent>;
    async fn get_agent(&self, tenant: TenantId, id: &AgentId) -> Result<Option<Agent>>;
    /// By id; a tenant has few.
    async fn list_agents(&self, tenant: TenantId) -> Result<Vec<Agent>>;
}
