//! Rows ⇄ wire.

use colloquy_proto::convert::timestamp;
use colloquy_proto::v1;
use colloquy_storage::{Agent, ApiKey, ChannelAccount, PageRequest, Tenant};
use colloquy_types::policy::Origin;
use colloquy_types::{Error, Principal, Result};

/// 1 to `limit` characters, not blank.
pub fn check_name(field: &str, text: &str, limit: usize) -> Result<()> {
    if text.trim().is_empty() || text.contains('\0') {
        return Err(Error::invalid(field, "is blank"));
    }
    if text.chars().count() > limit {
        return Err(Error::invalid(
            field,
            format!("is longer than {limit} characters"),
        ));
    }
    Ok(())
}

pub fn page(size: u32, token: String) -> PageRequest {
    PageRequest {
        size,
        token: (!token.is_empty()).then_some(token),
    }
}

pub fn tenant(tenant: Tenant) -> v1::Tenant {
    v1::Tenant {
        tenant_id: tenant.id.to_string(),
        name: tenant.name,
        created_at: Some(timestamp(tenant.created)),
    }
}

pub fn key(key: ApiKey) -> v1::ApiKey {
    v1::ApiKey {
        key_id: key.id.to_string(),
        name: key.name,
        roles: key
            .roles
            .into_iter()
            .map(|role| v1::Role::from(role).into())
            .collect(),
        subject: key.subject,
        account: key
            .account
            .map(|account| account.into_string())
            .unwrap_or_default(),
        agents: key.agents.into_iter().map(|agent| agent.into_string()).collect(),
        created_at: Some(timestamp(key.created)),
        revoked_at: key.revoked.map(timestamp),
    }
}

pub fn principal(principal: Principal) -> v1::VerifyKeyResponse {
    v1::VerifyKeyResponse {
        tenant_id: principal
            .tenant
            .map(|tenant| tenant.to_string())
            .unwrap_or_default(),
        roles: principal
            .roles
            .into_iter()
            .map(|role| v1::Role::from(role).into())
            .collect(),
        key_id: principal.key.map(|key| key.to_string()).unwrap_or_default(),
        subject: principal.subject,
        account: principal
            .account
            .map(|account| account.into_string())
            .unwrap_or_default(),
        agents: principal
            .agents
            .into_iter()
            .map(|agent| agent.into_string())
            .collect(),
    }
}

pub fn agent(agent: Agent) -> v1::Agent {
    v1::Agent {
        agent_id: agent.id.into_string(),
        display_name: agent.display_name,
        policy: Some(v1::Policy {
            profile: agent.profile,
            overrides_json: agent.overrides_json,
        }),
        version: agent.version,
        created_at: Some(timestamp(agent.created)),
        updated_at: Some(timestamp(agent.updated)),
    }
}

/// The secret is left out unless asked for.
pub fn account(account: ChannelAccount, with_secret: bool) -> v1::ChannelAccount {
    v1::ChannelAccount {
        account_id: account.id.into_string(),
        channel: account.channel.into_string(),
        agent: account.agent.into_string(),
        name: account.name,
        secret: if with_secret {
            account.secret
        } else {
            String::new()
        },
        overrides_json: account.settings_json,
        created_at: Some(timestamp(account.created)),
    }
}

pub fn policy_value(value: Origin) -> v1::PolicyValue {
    v1::PolicyValue {
        path: value.path,
        value_json: value.value.to_string(),
        origin: value.layer,
        rule: value.rule.unwrap_or_default(),
    }
}
