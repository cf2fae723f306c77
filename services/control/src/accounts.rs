//! Channel accounts.

use crate::{agents, convert};
use colloquy_proto::convert::required;
use colloquy_proto::v1;
use colloquy_storage::{ChannelAccount, ControlStore};
use colloquy_types::policy::Profile;
use colloquy_types::{AccountId, ChannelName, Error, Policy, Result, TenantId, UnixMillis};

pub async fn put(
    store: &dyn ControlStore,
    tenant: TenantId,
    request: v1::PutChannelAccountRequest,
) -> Result<v1::PutChannelAccountResponse> {
    let account = required("account", request.account)?;
    let channel = ChannelName::parse(&account.channel)?;
    convert::check_name("account.name", &account.name, 64)?;
    let agent = agents::get(store, tenant, &account.agent).await?;
    let layers = [agent.overrides_json.as_str(), &account.overrides_json];
    Policy::resolve(Profile::parse(&agent.profile)?, &layers).map_err(|error| error.within("account"))?;
    if account.secret.len() > 256 {
        return Err(Error::invalid("account.secret", "is longer than 256 bytes"));
    }
    let replaced = replaced(store, tenant, &account.account_id).await?;
    let given = Some(account.secret).filter(|secret| !secret.is_empty());
    let (id, secret) = match replaced {
        Some(old) => (old.id, given.unwrap_or(old.secret)),
        None => (
            AccountId::random(),
            given.unwrap_or_else(|| hex::encode(rand::random::<[u8; 24]>())),
        ),
    };
    let row = ChannelAccount {
        tenant,
        id,
        channel,
        agent: agent.id,
        name: account.name,
        secret,
        settings_json: account.overrides_json,
        created: UnixMillis::default(),
    };
    let stored = store.put_account(&row).await?;
    let webhook_path = format!("/v1/channels/{}/{}", stored.channel, stored.id);
    Ok(v1::PutChannelAccountResponse {
        account: Some(convert::account(stored, true)),
        webhook_path,
    })
}

/// The account that is named. Ids stand in webhook URLs and must not be guessed, so only the server draws them.
async fn replaced(store: &dyn ControlStore, tenant: TenantId, id: &str) -> Result<Option<ChannelAccount>> {
    if id.is_empty() {
        return Ok(None);
    }
    let unknown = || Error::not_found("account", id);
    let account = AccountId::parse(id).map_err(|_| unknown())?;
    let found = store.find_account(&account).await?;
    found
        .filter(|found| found.tenant == tenant)
        .ok_or_else(unknown)
        .map(Some)
}

pub async fn resolve(store: &dyn ControlStore, id: &str) -> Result<v1::ResolveAccountResponse> {
    let unknown = || Error::not_found("account", id);
    let found = store
        .find_account(&AccountId::parse(id).map_err(|_| unknown())?)
        .await?
        .ok_or_else(unknown)?;
    let tenant_id = found.tenant.to_string();
    Ok(v1::ResolveAccountResponse {
        tenant_id,
        account: Some(convert::account(found, true)),
    })
}
