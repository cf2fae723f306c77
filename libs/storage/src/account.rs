//! Accounts on channels: the bot a person writes to.

use async_trait::async_trait;
use colloquy_types::{AccountId, AgentId, ChannelName, Result, TenantId, UnixMillis};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelAccount {
    pub tenant: TenantId,
    /// Unguessable and unique across tenants: webhook URLs carry it.
    pub id: AccountId,
    pub channel: ChannelName,
    pub agent: AgentId,
    /// How the tenant names the account, unique per channel.
    pub name: String,
    /// What a webhook must prove: Telegram's secret token, or the HMAC key. Never returned to clients.
    pub secret: String,
    /// JSON object of channel settings and policy overrides.
    pub settings_json: String,
    pub created: UnixMillis,
}

#[async_trait]
pub trait ChannelAccounts: Send + Sync {
    /// Inserts or replaces by id. `CONFLICT` when the id belongs to another tenant or the name is taken.
    async fn put_account(&self, account: &ChannelAccount) -> Result<ChannelAccount>;
    /// Across tenants, by the unguessable id: how a webhook finds its tenant.
    async fn find_account(&self, id: &AccountId) -> Result<Option<ChannelAccount>>;
    /// By channel and name; a tenant has few.
    async fn list_accounts(&self, tenant: TenantId) -> Result<Vec<ChannelAccount>>;
}
