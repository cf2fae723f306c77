//! API keys: `clq_<tenant>_<key id>_<secret>`, the tenant and the id in clear so that look-up needs no search.

use crate::convert;
use colloquy_proto::v1;
use colloquy_storage::{ApiKey, ControlStore};
use colloquy_types::{
    AccountId, AgentId, CallerRole, Error, KeyId, Principal, Reason, Result, TenantId, UnixMillis,
};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// A key as it is handed out: the text once, the row for good.
pub struct Minted {
    pub text: String,
    pub row: ApiKey,
}

/// Makes a key; nothing is stored yet.
pub fn mint(tenant: TenantId, name: &str, roles: Vec<CallerRole>, subject: &str) -> Minted {
    let id = KeyId::new();
    let secret = hex::encode(rand::random::<[u8; 32]>());
    let text = format!("clq_{}_{}_{secret}", tenant.0.simple(), id.0.simple());
    let subject = if subject.is_empty() {
        id.to_string()
    } else {
        subject.to_owned()
    };
    let row = ApiKey {
        id,
        tenant,
        secret_hash: Sha256::digest(secret.as_bytes()).to_vec(),
        name: name.to_owned(),
        roles,
        subject,
        account: None,
        agents: Vec::new(),
        created: UnixMillis::default(),
        revoked: None,
    };
    Minted { text, row }
}

fn bad_key() -> Error {
    Error::new(Reason::BadCredential, "the key is unknown, malformed or revoked")
}

fn take_apart(text: &str) -> Option<(TenantId, KeyId, &str)> {
    let mut parts = text.strip_prefix("clq_")?.split('_');
    let tenant = format!("ten_{}", parts.next()?).parse().ok()?;
    let id = format!("key_{}", parts.next()?).parse().ok()?;
    let secret = parts.next()?;
    parts.next().is_none().then_some((tenant, id, secret))
}

/// The caller behind a key.
pub async fn verify(store: &dyn ControlStore, text: &str) -> Result<Principal> {
    let (tenant, id, secret) = take_apart(text).ok_or_else(bad_key)?;
    let key = store.get_key(tenant, id).await?.ok_or_else(bad_key)?;
    let genuine = bool::from(Sha256::digest(secret.as_bytes())[..].ct_eq(&key.secret_hash));
    if !genuine || key.revoked.is_some() {
        return Err(bad_key());
    }
    Ok(Principal {
        tenant: Some(key.tenant),
        roles: key.roles,
        key: Some(key.id),
        subject: key.subject,
        account: key.account,
        agents: key.agents,
    })
}

pub async fn create(
    store: &dyn ControlStore,
    tenant: TenantId,
    request: v1::CreateApiKeyRequest,
) -> Result<v1::CreateApiKeyResponse> {
    convert::check_name("name", &request.name, 200)?;
    let roles: Vec<CallerRole> = request.roles().map(CallerRole::try_from).collect::<Result<_>>()?;
    if roles.is_empty() {
        return Err(Error::invalid("roles", "name at least one"));
    }
    if roles
        .iter()
        .any(|role| matches!(role, CallerRole::Service | CallerRole::Operator))
    {
        return Err(Error::invalid(
            "roles",
            "`service` and `operator` are configured, not issued",
        ));
    }
    let mut minted = mint(tenant, &request.name, roles.clone(), &request.subject);
    if !request.account.is_empty() {
        let unknown = || Error::not_found("account", &request.account);
        let account = AccountId::parse(&request.account).map_err(|_| unknown())?;
        let own = store
            .find_account(&account)
            .await?
            .is_some_and(|found| found.tenant == tenant);
        minted.row.account = Some(account).filter(|_| own).ok_or_else(unknown).map(Some)?;
    } else if roles.contains(&CallerRole::Channel) && !roles.contains(&CallerRole::Admin) {
        return Err(Error::invalid("account", "a channel key acts for one account"));
    }
    minted.row.agents = request
        .agents
        .iter()
        .map(|agent| AgentId::parse(agent))
        .collect::<Result<_>>()?;
    store.create_key(&minted.row).await?;
    minted.row.created = store.now().await?;
    Ok(v1::CreateApiKeyResponse {
        api_key: Some(convert::key(minted.row)),
        secret: minted.text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_its_tenant_and_id() {
        let tenant = TenantId::new();
        let minted = mint(tenant, "worker", vec![CallerRole::Agent], "");
        let (found, id, secret) = take_apart(&minted.text).unwrap();
        assert_eq!((found, id, secret.len()), (tenant, minted.row.id, 64));
        assert_ne!(mint(tenant, "worker", vec![], "").text, minted.text);
    }

    #[test]
    fn what_is_no_key_is_taken_for_none() {
        for text in ["", "clq_", "clq_a_b_c", "clq_a_b_c_d", "Bearer x", "clq_語_b_c"] {
            assert!(take_apart(text).is_none(), "{text}");
        }
    }
}
