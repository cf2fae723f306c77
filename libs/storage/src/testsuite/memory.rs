//! Memories and how far transcripts have been read for them.

use super::fixture::*;
use crate::*;
use colloquy_types::{
    BranchId, EntryId, MemoryId, Provenance, Reason, Seq, TenantId, TranscriptId, UnixMillis,
};

fn memory_of(tenant: TenantId, text: &str) -> Memory {
    Memory {
        id: MemoryId::new(),
        tenant,
        agent: agent("default"),
        scope: MemoryScope::Person("telegram:386246614".to_owned()),
        kind: MemoryKind::Preference,
        text: text.to_owned(),
        importance: 0.5,
        confidence: 0.75,
        provenance: Provenance::Owner,
        sources: vec![EntryId::new()],
        valid_from: UnixMillis(1),
        valid_to: None,
        supersedes: None,
        recall_count: 0,
        created: UnixMillis(0),
        updated: UnixMillis(0),
    }
}

fn filter() -> MemoryFilter {
    let scopes = vec![MemoryScope::Person("telegram:386246614".to_owned())];
    MemoryFilter {
        agent: agent("default"),
        scopes,
        kind: None,
        include_ended: false,
    }
}

async fn put(f: &Fixture, tenant: TenantId, text: &str) -> Memory {
    f.store.put_memory(&memory_of(tenant, text)).await.unwrap()
}

async fn found(f: &Fixture, tenant: TenantId, filter: &MemoryFilter, query: &str) -> Vec<String> {
    let found = f.store.search_memories(tenant, filter, query, 10).await.unwrap();
    found.into_iter().map(|memory| memory.text).collect()
}

pub async fn a_memory_is_stored_whole(f: &Fixture) {
    let tenant = TenantId::new();
    let given = memory_of(tenant, "likes\0tea");
    let stored = f.store.put_memory(&given).await.unwrap();
    let now = f.store.now().await.unwrap();
    assert_eq!(
        stored,
        Memory {
            created: now,
            updated: now,
            ..given.clone()
        }
    );
    assert_eq!(f.store.get_memory(tenant, given.id).await.unwrap(), Some(stored));
    assert_eq!(f.store.get_memory(tenant, MemoryId::new()).await.unwrap(), None);
}

pub async fn a_memory_is_changed(f: &Fixture) {
    let tenant = TenantId::new();
    let stored = put(f, tenant, "likes tea").await;
    f.advance(5).await;
    let change = Memory {
        text: "likes coffee".to_owned(),
        kind: MemoryKind::Profile,
        importance: 0.25,
        confidence: 0.0,
        ..stored.clone()
    };
    let changed = f.store.update_memory(&change).await.unwrap();
    let updated = stored.created.plus(5);
    assert_eq!(
        changed,
        Memory {
            confidence: stored.confidence,
            updated,
            ..change
        }
    );
    assert!(found(f, tenant, &filter(), "tea").await.is_empty());
    assert_eq!(found(f, tenant, &filter(), "coffee").await, ["likes coffee"]);
    refused(
        f.store.update_memory(&memory_of(tenant, "unknown")).await,
        Reason::NotFound,
    );
}

pub async fn a_deleted_memory_is_gone(f: &Fixture) {
    let tenant = TenantId::new();
    let stored = put(f, tenant, "likes tea").await;
    f.store.delete_memory(tenant, stored.id).await.unwrap();
    assert_eq!(f.store.get_memory(tenant, stored.id).await.unwrap(), None);
    assert!(found(f, tenant, &filter(), "tea").await.is_empty());
    refused(f.store.delete_memory(tenant, stored.id).await, Reason::NotFound);
}

pub async fn memories_are_listed_newest_first(f: &Fixture) {
    let tenant = TenantId::new();
    let mut expected = Vec::new();
    for n in 0..3 {
        expected.insert(0, put(f, tenant, &format!("memory {n}")).await);
        f.advance(1).await;
    }
    let mut found = Vec::new();
    let mut page = PageRequest { size: 2, token: None };
    for items in [2, 1] {
        let listed = f.store.list_memories(tenant, &filter(), &page).await.unwrap();
        assert_eq!((listed.items.len(), listed.next.is_some()), (items, items == 2));
        found.extend(listed.items);
        page.token = listed.next;
    }
    assert_eq!(found, expected);
}

pub async fn lists_and_searches_keep_to_the_filter(f: &Fixture) {
    let tenant = TenantId::new();
    let person = |owner: &str| MemoryScope::Person(owner.to_owned());
    let variants = [
        (
            "tea mine",
            "default",
            person("telegram:386246614"),
            MemoryKind::Preference,
        ),
        (
            "tea theirs",
            "default",
            person("telegram:1"),
            MemoryKind::Preference,
        ),
        (
            "tea group",
            "default",
            MemoryScope::Group("telegram:386246614".into()),
            MemoryKind::Preference,
        ),
        ("tea known", "default", MemoryScope::Agent, MemoryKind::Knowledge),
        ("tea other", "other", MemoryScope::Agent, MemoryKind::Knowledge),
    ];
    for (text, agent_id, scope, kind) in variants {
        let memory = Memory {
            agent: agent(agent_id),
            scope,
            kind,
            ..memory_of(tenant, text)
        };
        f.store.put_memory(&memory).await.unwrap();
        f.advance(1).await;
    }
    let list = async |filter: &MemoryFilter| -> Vec<String> {
        let page = f
            .store
            .list_memories(tenant, filter, &PageRequest::default())
            .await
            .unwrap();
        let listed: Vec<String> = page.items.into_iter().map(|memory| memory.text).collect();
        let mut searched = found(f, tenant, filter, "tea").await;
        searched.sort();
        let mut sorted = listed.clone();
        sorted.sort();
        assert_eq!(searched, sorted, "a search sees what a list sees");
        listed
    };
    assert_eq!(list(&filter()).await, ["tea mine"]);
    let mut wide = filter();
    wide.scopes.push(MemoryScope::Agent);
    assert_eq!(list(&wide).await, ["tea known", "tea mine"]);
    assert_eq!(
        list(&MemoryFilter {
            kind: Some(MemoryKind::Knowledge),
            ..wide.clone()
        })
        .await,
        ["tea known"]
    );
    assert_eq!(
        list(&MemoryFilter {
            agent: agent("other"),
            ..wide
        })
        .await,
        ["tea other"]
    );
    assert!(
        list(&MemoryFilter {
            scopes: vec![],
            ..filter()
        })
        .await
        .is_empty()
    );
}

pub async fn a_search_ranks_shared_terms(f: &Fixture) {
    let tenant = TenantId::new();
    for text in ["Green tea in the morning", "green bicycle", "東京で働く"] {
        put(f, tenant, text).await;
    }
    let green = found(f, tenant, &filter(), "GREEN tea?").await;
    assert_eq!(green, ["Green tea in the morning", "green bicycle"]);
    assert_eq!(
        f.store
            .search_memories(tenant, &filter(), "green tea", 1)
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(found(f, tenant, &filter(), "東京").await, ["東京で働く"]);
    assert!(found(f, tenant, &filter(), "coffee").await.is_empty());
    assert!(found(f, tenant, &filter(), " \0'\"*%-- ").await.is_empty());
}

pub async fn recalls_are_counted(f: &Fixture) {
    let tenant = TenantId::new();
    let (one, two) = (put(f, tenant, "one").await, put(f, tenant, "two").await);
    f.store
        .count_recalls(tenant, &[one.id, MemoryId::new()])
        .await
        .unwrap();
    f.store.count_recalls(tenant, &[one.id, two.id]).await.unwrap();
    f.store.count_recalls(tenant, &[]).await.unwrap();
    assert_eq!(
        f.store
            .get_memory(tenant, one.id)
            .await
            .unwrap()
            .unwrap()
            .recall_count,
        2
    );
    assert_eq!(
        f.store
            .get_memory(tenant, two.id)
            .await
            .unwrap()
            .unwrap()
            .recall_count,
        1
    );
}

fn extraction(tenant: TenantId, from: i64, through: i64, ops: Vec<MemoryOp>) -> Extraction {
    let uuid = tenant.0; // any fixed ids do
    let key = WatermarkKey {
        transcript: TranscriptId(uuid),
        branch: BranchId(uuid),
        strategy: "rules-1".to_owned(),
    };
    Extraction {
        tenant,
        key,
        from: Seq(from),
        through: Seq(through),
        ops,
    }
}

pub async fn an_extraction_happens_once(f: &Fixture) {
    let tenant = TenantId::new();
    let memory = memory_of(tenant, "likes tea");
    let first = extraction(tenant, 0, 4, vec![MemoryOp::Add(memory.clone())]);
    assert_eq!(
        f.store.watermark(tenant, &first.key).await.unwrap(),
        Watermark { through: Seq(0) }
    );
    assert!(f.store.apply_extraction(&first).await.unwrap());
    assert_eq!(
        f.store.watermark(tenant, &first.key).await.unwrap(),
        Watermark { through: Seq(4) }
    );
    let stored = f.store.get_memory(tenant, memory.id).await.unwrap().unwrap();
    assert_eq!(stored.created, f.store.now().await.unwrap());
    assert_eq!(found(f, tenant, &filter(), "tea").await, ["likes tea"]);

    let again = extraction(tenant, 0, 4, vec![MemoryOp::Add(memory_of(tenant, "likes tea"))]);
    assert!(!f.store.apply_extraction(&again).await.unwrap());
    assert_eq!(found(f, tenant, &filter(), "tea").await.len(), 1);
    let other = WatermarkKey {
        strategy: "rules-2".to_owned(),
        ..first.key
    };
    assert_eq!(
        f.store.watermark(tenant, &other).await.unwrap(),
        Watermark::default()
    );
    assert!(
        f.store
            .apply_extraction(&extraction(tenant, 4, 6, vec![]))
            .await
            .unwrap()
    );
}

pub async fn parallel_extractions_apply_one(f: &Fixture) {
    let tenant = TenantId::new();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..6 {
        let op = MemoryOp::Add(memory_of(tenant, &format!("tea {n}")));
        let (store, extraction) = (f.store.clone(), extraction(tenant, 0, 4, vec![op]));
        tasks.spawn(async move { store.apply_extraction(&extraction).await });
    }
    let mut applied = 0;
    while let Some(done) = tasks.join_next().await {
        applied += usize::from(done.unwrap().unwrap());
    }
    assert_eq!(applied, 1);
    assert_eq!(found(f, tenant, &filter(), "tea").await.len(), 1);
}

pub async fn a_reinforced_memory_grows_only(f: &Fixture) {
    let tenant = TenantId::new();
    let memory = put(f, tenant, "likes tea").await;
    let source = EntryId::new();
    let sources = vec![memory.sources[0], source];
    let op = MemoryOp::Reinforce {
        id: memory.id,
        importance: 0.25,
        confidence: 1.0,
        sources: sources.clone(),
    };
    let gone = MemoryOp::Reinforce {
        id: MemoryId::new(),
        importance: 1.0,
        confidence: 1.0,
        sources: vec![],
    };
    assert!(
        f.store
            .apply_extraction(&extraction(tenant, 0, 2, vec![op, gone]))
            .await
            .unwrap()
    );
    let grown = f.store.get_memory(tenant, memory.id).await.unwrap().unwrap();
    assert_eq!(
        (grown.importance, grown.confidence, grown.sources),
        (0.5, 1.0, sources)
    );
}

pub async fn a_superseded_memory_is_kept_with_its_end(f: &Fixture) {
    let tenant = TenantId::new();
    let old = put(f, tenant, "likes tea").await;
    f.advance(5).await;
    let new = memory_of(tenant, "likes coffee and tea");
    let op = MemoryOp::Supersede {
        old: old.id,
        new: new.clone(),
    };
    assert!(
        f.store
            .apply_extraction(&extraction(tenant, 0, 2, vec![op]))
            .await
            .unwrap()
    );
    let now = f.store.now().await.unwrap();
    let ended = f.store.get_memory(tenant, old.id).await.unwrap().unwrap();
    let current = f.store.get_memory(tenant, new.id).await.unwrap().unwrap();
    assert_eq!((ended.valid_to, ended.text.as_str()), (Some(now), "likes tea"));
    assert_eq!((current.supersedes, current.valid_to), (Some(old.id), None));
    assert_eq!(found(f, tenant, &filter(), "tea").await, ["likes coffee and tea"]);
    let all = MemoryFilter {
        include_ended: true,
        ..filter()
    };
    assert_eq!(found(f, tenant, &all, "tea").await.len(), 2);
}
