//! Tenants.

use super::fixture::*;
use crate::*;
use colloquy_types::{CallerRole, KeyId, Reason, TenantId, UnixMillis};

fn admin(tenant: TenantId) -> ApiKey {
    ApiKey {
        id: KeyId::new(),
        tenant,
        secret_hash: vec![7],
        name: "first admin".to_owned(),
        roles: vec![CallerRole::Admin],
        subject: "admin".to_owned(),
        account: None,
        agents: vec![],
        created: UnixMillis(0),
        revoked: None,
    }
}

pub async fn a_tenant_is_created_and_found(f: &Fixture) {
    let id = TenantId::new();
    let created = f.store.create_tenant(id, "Acme").await.unwrap();
    assert_eq!(
        created,
        Tenant {
            id,
            name: "Acme".to_owned(),
            created: f.store.now().await.unwrap()
        }
    );
    assert_eq!(f.store.get_tenant(id).await.unwrap(), Some(created));
    assert_eq!(f.store.get_tenant(TenantId::new()).await.unwrap(), None);
}

pub async fn a_tenants_name_is_taken_once(f: &Fixture) {
    f.store.create_tenant(TenantId::new(), "Acme").await.unwrap();
    refused(
        f.store.create_tenant(TenantId::new(), "Acme").await,
        Reason::Conflict,
    );
    f.store.create_tenant(TenantId::new(), "acme").await.unwrap();
}

pub async fn a_tenant_comes_with_its_first_key(f: &Fixture) {
    let key = admin(TenantId::new());
    let made = f.store.create_tenant_with_key(key.tenant, "Acme", &key).await;
    assert_eq!(f.store.get_tenant(key.tenant).await.unwrap(), Some(made.unwrap()));
    let stored = f.store.get_key(key.tenant, key.id).await.unwrap().unwrap();
    assert_eq!((stored.secret_hash, stored.roles), (key.secret_hash, key.roles));
}

pub async fn a_tenant_without_its_first_key_is_none(f: &Fixture) {
    let key = admin(TenantId::new());
    f.store.create_key(&key).await.unwrap();
    let made = f.store.create_tenant_with_key(key.tenant, "Acme", &key).await;
    made.expect_err("the key's id is taken");
    assert_eq!(f.store.get_tenant(key.tenant).await.unwrap(), None);

    let key = admin(TenantId::new());
    f.store.create_tenant(TenantId::new(), "Acme").await.unwrap();
    let made = f.store.create_tenant_with_key(key.tenant, "Acme", &key).await;
    refused(made, Reason::Conflict);
    assert_eq!(f.store.get_key(key.tenant, key.id).await.unwrap(), None);
}

pub async fn tenants_are_listed_by_creation(f: &Fixture) {
    let mut expected = Vec::new();
    for n in 0..5 {
        expected.push(
            f.store
                .create_tenant(TenantId::new(), &format!("tenant {n}"))
                .await
                .unwrap(),
        );
        f.advance(1).await;
    }
    let mut found = Vec::new();
    let mut page = PageRequest { size: 2, token: None };
    for items in [2, 2, 1] {
        let listed = f.store.list_tenants(&page).await.unwrap();
        assert_eq!((listed.items.len(), listed.next.is_some()), (items, items == 2));
        found.extend(listed.items);
        page.token = listed.next;
    }
    assert_eq!(found, expected);
    let whole = f
        .store
        .list_tenants(&PageRequest { size: 5, token: None })
        .await
        .unwrap();
    assert_eq!((whole.items.len(), whole.next), (5, None));
}

pub async fn a_made_up_cursor_is_refused(f: &Fixture) {
    let page = PageRequest {
        size: 2,
        token: Some("made up".to_owned()),
    };
    let error = refused(f.store.list_tenants(&page).await, Reason::InvalidField);
    assert_eq!(error.field.as_deref(), Some("page_token"));
}
