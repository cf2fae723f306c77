//! What a file promises besides the suite.

use super::backend::START;
use colloquy_storage::Tenants;
use colloquy_storage_sqlite::{SqliteOptions, SqliteStore};
use colloquy_types::{ManualClock, Reason, TenantId};
use std::sync::Arc;

async fn open(options: SqliteOptions) -> SqliteStore {
    let clock = Arc::new(ManualClock::new(START));
    SqliteStore::connect(options, clock).await.expect("an open store")
}

#[tokio::test]
async fn what_was_written_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions::file(folder.path().join("colloquy.db"));
    let tenant = TenantId::new();
    let store = open(options.clone()).await;
    let created = store.create_tenant(tenant, "Acme").await.unwrap();
    store.close().await;
    let reopened = open(options).await;
    assert_eq!(reopened.get_tenant(tenant).await.unwrap(), Some(created));
}

#[tokio::test]
async fn two_processes_share_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions::file(folder.path().join("colloquy.db"));
    let (one, two) = (open(options.clone()).await, open(options).await);
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..40 {
        let store = if n % 2 == 0 { one.clone() } else { two.clone() };
        tasks.spawn(async move { store.create_tenant(TenantId::new(), &format!("tenant {n}")).await });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap().unwrap();
    }
    let page = colloquy_storage::PageRequest::default();
    assert_eq!(one.list_tenants(&page).await.unwrap().items.len(), 40);
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_unavailable() {
    let options = SqliteOptions::file("/nonexistent/colloquy.db");
    let opened = SqliteStore::connect(options, Arc::new(ManualClock::new(START))).await;
    assert_eq!(opened.err().map(|error| error.reason), Some(Reason::Dependency));
}
