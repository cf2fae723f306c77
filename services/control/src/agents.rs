//! Agents and their effective policies.

use crate::convert;
use colloquy_proto::convert::required;
use colloquy_proto::v1;
use colloquy_storage::{Agent, ControlStore};
use colloquy_types::policy::Profile;
use colloquy_types::{AccountId, AgentId, Error, Policy, Result, TenantId, UnixMillis};
use serde_json::Value;

pub async fn put(
    store: &dyn ControlStore,
    tenant: TenantId,
    request: v1::PutAgentRequest,
) -> Result<v1::Agent> {
    let agent = required("agent", request.agent)?;
    let policy = agent.policy.unwrap_or_default();
    let profile = Profile::parse(&policy.profile).map_err(|error| error.within("agent.policy"))?;
    Policy::resolve(profile, &[&policy.overrides_json]).map_err(|error| error.within("agent.policy"))?;
    let id = AgentId::parse(&agent.agent_id)?;
    if agent.display_name.chars().count() > 200 {
        return Err(Error::invalid(
            "agent.display_name",
            "is longer than 200 characters",
        ));
    }
    let row = Agent {
        tenant,
        id,
        display_name: agent.display_name,
        profile: profile.as_str().to_owned(),
        overrides_json: policy.overrides_json,
        version: 0,
        created: UnixMillis::default(),
        updated: UnixMillis::default(),
    };
    store.put_agent(&row).await.map(convert::agent)
}

pub async fn get(store: &dyn ControlStore, tenant: TenantId, id: &str) -> Result<Agent> {
    let unknown = || Error::not_found("agent", id);
    // A malformed id answers like an unknown one.
    let agent = AgentId::parse(id).map_err(|_| unknown())?;
    store.get_agent(tenant, &agent).await?.ok_or_else(unknown)
}

/// The overrides of the account, if one is named and the tenant's.
async fn account_overrides(store: &dyn ControlStore, tenant: TenantId, account: &str) -> Result<String> {
    if account.is_empty() {
        return Ok(String::new());
    }
    let found = store
        .find_account(&AccountId::parse(account)?)
        .await?
        .filter(|found| found.tenant == tenant);
    found
        .map(|found| found.settings_json)
        .ok_or_else(|| Error::not_found("account", account))
}

pub async fn resolve_policy(
    store: &dyn ControlStore,
    tenant: TenantId,
    request: v1::ResolvePolicyRequest,
) -> Result<v1::ResolvePolicyResponse> {
    let agent = get(store, tenant, &request.agent_id).await?;
    let account = account_overrides(store, tenant, &request.account_id).await?;
    let policy = Policy::resolve(
        Profile::parse(&agent.profile)?,
        &[&agent.overrides_json, &account],
    )?;
    Ok(v1::ResolvePolicyResponse {
        policy_json: policy.to_json(),
        version: agent.version,
    })
}

pub async fn explain_policy(
    store: &dyn ControlStore,
    tenant: TenantId,
    request: v1::ExplainPolicyRequest,
) -> Result<v1::ExplainPolicyResponse> {
    let agent = get(store, tenant, &request.agent_id).await?;
    let account = account_overrides(store, tenant, &request.account_id).await?;
    let profile = Profile::parse(&agent.profile)?;
    let policy = Policy::resolve(profile, &[&agent.overrides_json, &account])?;
    let layers = [("channel", account), ("agent", agent.overrides_json)]
        .map(|(name, json)| (name, serde_json::from_str::<Value>(&json).unwrap_or_default()));
    let effective: Value = serde_json::from_str(&policy.to_json()).unwrap_or_default();
    let mut values = Vec::new();
    walk(&effective, "", &mut |path, value| {
        let pointer = format!("/{}", path.replace('.', "/"));
        let origin = layers.iter().find(|(_, json)| json.pointer(&pointer).is_some());
        values.push(v1::PolicyValue {
            path: path.to_owned(),
            value_json: value.to_string(),
            origin: origin.map_or("profile", |(name, _)| *name).to_owned(),
        });
    });
    Ok(v1::ExplainPolicyResponse { values })
}

/// Visits every value that is no section.
fn walk(value: &Value, path: &str, visit: &mut impl FnMut(&str, &Value)) {
    match value {
        Value::Object(section) if !section.is_empty() => {
            for (key, value) in section {
                let path = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                walk(value, &path, visit);
            }
        }
        value => visit(path, value),
    }
}
