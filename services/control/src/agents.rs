//! Agents and their effective policies.

use crate::convert;
use colloquy_proto::convert::required;
use colloquy_proto::v1;
use colloquy_storage::{Agent, ControlStore};
use colloquy_types::key::{ChatKind, Place};
use colloquy_types::policy::Profile;
use colloquy_types::{AccountId, AgentId, Error, Policy, Result, SessionKey, TenantId, UnixMillis};

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
    let layers = [
        ("agent", agent.overrides_json.as_str()),
        ("channel", account.as_str()),
    ];
    let mut explained = Policy::explain(Profile::parse(&agent.profile)?, &layers)?;
    if let Some(key) = explained_key(&request, &agent.id)? {
        explained = explained.within(&key);
    }
    let values = explained.values.into_iter().map(convert::policy_value);
    Ok(v1::ExplainPolicyResponse {
        values: values.collect(),
    })
}

/// The session that is asked about, or one that stands for the kind of chat.
fn explained_key(request: &v1::ExplainPolicyRequest, agent: &AgentId) -> Result<Option<SessionKey>> {
    if !request.session_key.is_empty() {
        let key = SessionKey::parse(&request.session_key).map_err(|error| error.within("session_key"))?;
        return if key.agent() == agent {
            Ok(Some(key))
        } else {
            Err(Error::invalid("session_key", "is one of another agent"))
        };
    }
    if request.chat_kind.is_empty() && request.channel.is_empty() {
        return Ok(None);
    }
    let part = |value: &str, default: &str| if value.is_empty() { default } else { value }.to_owned();
    let (channel, kind) = (part(&request.channel, "any"), part(&request.chat_kind, "direct"));
    let Some(kind) = ChatKind::parse(&kind) else {
        return Err(Error::invalid(
            "chat_kind",
            "is one of direct, group, channel, room",
        ));
    };
    let place = Place::Chat {
        channel,
        account: None,
        kind,
        chat: "1".to_owned(),
        user: None,
        topic: None,
        thread: None,
    };
    SessionKey::new(agent.clone(), place).map(Some)
}
