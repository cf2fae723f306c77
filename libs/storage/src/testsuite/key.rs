//! API keys.

use super::fixture::*;
use crate::*;
use colloquy_types::{AccountId, CallerRole, KeyId, Reason, TenantId, UnixMillis};

async fn tenant(f: &Fixture) -> TenantId {
    let id = TenantId::new();
    f.store.create_tenant(id, &id.to_string()).await.unwrap();
    id
}

fn api_key(tenant: TenantId, name: &str) -> ApiKey {
    ApiKey {
        id: KeyId::new(),
        tenant,
        secret_hash: vec![0, 1, 255],
        name: name.to_owned(),
        roles: vec![CallerRole::Agent, CallerRole::Viewer],
        subject: "workers".to_owned(),
        account: Some(AccountId::parse("bot").unwrap()),
        agents: vec![agent("default"), agent("other")],
        created: UnixMillis(0),
        revoked: None,
    }
}

pub async fn a_key_is_stored_whole(f: &Fixture) {
    let key = api_key(tenant(f).await, "workers");
    f.store.create_key(&key).await.unwrap();
    let stored = f.store.get_key(key.tenant, key.id).await.unwrap().unwrap();
    assert_eq!(
        stored,
        ApiKey {
            created: f.store.now().await.unwrap(),
            ..key.clone()
        }
    );
    assert_eq!(f.store.get_key(key.tenant, KeyId::new()).await.unwrap(), None);
}

pub async fn keys_are_listed_by_creation(f: &Fixture) {
    let tenant = tenant(f).await;
    let mut expected = Vec::new();
    for name in ["c", "a", "b"] {
        let mut key = api_key(tenant, name);
        key.account = None;
        key.agents.clear();
        f.store.create_key(&key).await.unwrap();
        expected.push(key.id);
        f.advance(1).await;
    }
    f.store.revoke_key(tenant, expected[1]).await.unwrap();
    let listed = f.store.list_keys(tenant).await.unwrap();
    assert_eq!(listed.iter().map(|key| key.id).collect::<Vec<_>>(), expected);
    assert_eq!(
        listed.iter().map(|key| key.revoked.is_some()).collect::<Vec<_>>(),
        [false, true, false]
    );
    assert_eq!((listed[0].account.as_ref(), listed[0].agents.len()), (None, 0));
}

pub async fn revoking_twice_keeps_the_first_instant(f: &Fixture) {
    let key = api_key(tenant(f).await, "workers");
    f.store.create_key(&key).await.unwrap();
    let revoked = f.store.now().await.unwrap();
    f.store.revoke_key(key.tenant, key.id).await.unwrap();
    f.advance(10).await;
    f.store.revoke_key(key.tenant, key.id).await.unwrap();
    assert_eq!(
        f.store
            .get_key(key.tenant, key.id)
            .await
            .unwrap()
            .unwrap()
            .revoked,
        Some(revoked)
    );
    refused(
        f.store.revoke_key(key.tenant, KeyId::new()).await,
        Reason::NotFound,
    );
}
