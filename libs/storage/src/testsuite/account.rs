//! Channel accounts.

use super::fixture::*;
use crate::*;
use colloquy_types::{AccountId, ChannelName, Reason, TenantId, UnixMillis};

async fn new_account(f: &Fixture, name: &str) -> ChannelAccount {
    let tenant = TenantId::new();
    f.store.create_tenant(tenant, &tenant.to_string()).await.unwrap();
    account_of(tenant, "telegram", name)
}

fn account_of(tenant: TenantId, channel: &str, name: &str) -> ChannelAccount {
    ChannelAccount {
        tenant,
        id: AccountId::random(),
        channel: ChannelName::parse(channel).unwrap(),
        agent: agent("default"),
        name: name.to_owned(),
        secret: "s3cret".to_owned(),
        settings_json: "{}".to_owned(),
        created: UnixMillis(0),
    }
}

pub async fn an_account_is_found_by_its_id_alone(f: &Fixture) {
    let given = new_account(f, "bot").await;
    let stored = f.store.put_account(&given).await.unwrap();
    assert_eq!(
        stored,
        ChannelAccount {
            created: f.store.now().await.unwrap(),
            ..given.clone()
        }
    );
    assert_eq!(f.store.find_account(&given.id).await.unwrap(), Some(stored));
    assert_eq!(f.store.find_account(&AccountId::random()).await.unwrap(), None);
}

pub async fn an_account_is_replaced_by_id(f: &Fixture) {
    let given = new_account(f, "bot").await;
    let first = f.store.put_account(&given).await.unwrap();
    f.advance(5).await;
    let changed = ChannelAccount {
        name: "renamed".to_owned(),
        secret: "other".to_owned(),
        ..given
    };
    let second = f.store.put_account(&changed).await.unwrap();
    assert_eq!(
        second,
        ChannelAccount {
            created: first.created,
            ..changed
        }
    );
    assert_eq!(f.store.list_accounts(first.tenant).await.unwrap(), [second]);
}

pub async fn an_accounts_id_and_name_are_taken_once(f: &Fixture) {
    let given = new_account(f, "bot").await;
    f.store.put_account(&given).await.unwrap();
    let mut foreign = new_account(f, "bot").await;
    f.store.put_account(&foreign).await.unwrap();
    foreign.id = given.id.clone();
    foreign.name = "another".to_owned();
    refused(f.store.put_account(&foreign).await, Reason::Conflict);
    refused(
        f.store
            .put_account(&account_of(given.tenant, "telegram", "bot"))
            .await,
        Reason::Conflict,
    );
    f.store
        .put_account(&account_of(given.tenant, "slack", "bot"))
        .await
        .unwrap();
    assert_eq!(
        f.store.find_account(&given.id).await.unwrap().unwrap().tenant,
        given.tenant
    );
}

pub async fn accounts_are_listed_by_channel_and_name(f: &Fixture) {
    let first = new_account(f, "b").await;
    f.store.put_account(&first).await.unwrap();
    f.store
        .put_account(&account_of(first.tenant, "telegram", "a"))
        .await
        .unwrap();
    f.store
        .put_account(&account_of(first.tenant, "slack", "z"))
        .await
        .unwrap();
    let listed = f.store.list_accounts(first.tenant).await.unwrap();
    let names: Vec<_> = listed
        .iter()
        .map(|account| (account.channel.as_str(), account.name.as_str()))
        .collect();
    assert_eq!(names, [("slack", "z"), ("telegram", "a"), ("telegram", "b")]);
}
