//! Sessions: look-up, lists, reset.

use super::fixture::*;
use crate::*;
use colloquy_types::queue::{Outcome, ResetReason, TurnState};
use colloquy_types::{Epoch, Reason, Seq, SessionId, TenantId};

pub async fn a_session_is_found_by_id_and_key(f: &Fixture) {
    let talk = f.talk();
    let answer = talk.say("one").await;
    let session = f
        .store
        .get_session(talk.tenant, answer.session)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (session.id, session.tenant, &session.key),
        (answer.session, talk.tenant, &talk.key)
    );
    assert_eq!(
        f.store.find_session(talk.tenant, &talk.key).await.unwrap(),
        Some(session.clone())
    );
    assert_eq!((session.label.as_str(), session.display_name.as_str()), ("", ""));
    assert_eq!(
        (session.counters, session.compaction_error),
        (Counters::default(), None)
    );
    assert_eq!(
        f.store.get_session(talk.tenant, SessionId::new()).await.unwrap(),
        None
    );
    let other = session_key("default", "someone else");
    assert_eq!(f.store.find_session(talk.tenant, &other).await.unwrap(), None);
}

pub async fn a_patch_changes_what_it_names(f: &Fixture) {
    let talk = f.talk();
    let id = talk.say("one").await.session;
    let label = SessionPatch {
        label: Some("work".to_owned()),
        display_name: None,
    };
    f.store.update_session(talk.tenant, id, &label).await.unwrap();
    let name = SessionPatch {
        label: None,
        display_name: Some("Ada".to_owned()),
    };
    let session = f.store.update_session(talk.tenant, id, &name).await.unwrap();
    assert_eq!(
        (session.label.as_str(), session.display_name.as_str()),
        ("work", "Ada")
    );
    assert_eq!(talk.session().await, session);
    assert_eq!(talk.claim().await.label, "work");
    refused(
        f.store.update_session(talk.tenant, SessionId::new(), &name).await,
        Reason::NotFound,
    );
}

pub async fn sessions_are_paged_by_activity(f: &Fixture) {
    let tenant = TenantId::new();
    let mut expected = Vec::new();
    for peer in ["1", "2", "3", "4", "5"] {
        let talk = f.talk_of(tenant, "default", peer);
        expected.insert(0, talk.say("hello").await.session);
        f.advance(1).await;
    }
    f.talk_of(tenant, "default", "1").say("again").await;
    let oldest = expected.pop().unwrap();
    expected.insert(0, oldest);

    let mut found = Vec::new();
    let mut page = PageRequest { size: 2, token: None };
    for items in [2, 2, 1] {
        let listed = f
            .store
            .list_sessions(tenant, &SessionFilter::default(), &page)
            .await
            .unwrap();
        assert_eq!((listed.items.len(), listed.next.is_some()), (items, items == 2));
        found.extend(listed.items.into_iter().map(|session| session.id));
        page.token = listed.next;
    }
    assert_eq!(found, expected);
    page.token = Some("made up".to_owned());
    let refusal = f
        .store
        .list_sessions(tenant, &SessionFilter::default(), &page)
        .await;
    assert_eq!(
        refused(refusal, Reason::InvalidField).field.as_deref(),
        Some("page_token")
    );
}

pub async fn sessions_of_one_instant_are_paged_without_loss(f: &Fixture) {
    let tenant = TenantId::new();
    for peer in ["1", "2", "3"] {
        f.talk_of(tenant, "default", peer).say("hello").await;
    }
    let mut found = std::collections::BTreeSet::new();
    let mut page = PageRequest { size: 1, token: None };
    for _ in 0..3 {
        let listed = f
            .store
            .list_sessions(tenant, &SessionFilter::default(), &page)
            .await
            .unwrap();
        found.insert(listed.items[0].id);
        page.token = listed.next;
    }
    assert_eq!((found.len(), page.token), (3, None));
}

pub async fn filters_of_a_list_must_all_match(f: &Fixture) {
    let tenant = TenantId::new();
    let ada = f.talk_of(tenant, "default", "ada");
    let ada_id = ada.say("hello").await.session;
    let patch = SessionPatch {
        label: Some("100%_work".to_owned()),
        display_name: None,
    };
    f.store.update_session(tenant, ada_id, &patch).await.unwrap();
    f.advance(1_000).await;
    let now = f.store.now().await.unwrap();
    let bob = f.talk_of(tenant, "other", "bob");
    let bob_id = bob.say("hello").await.session;

    let list = async |filter: SessionFilter| -> Vec<SessionId> {
        let page = f
            .store
            .list_sessions(tenant, &filter, &PageRequest::default())
            .await
            .unwrap();
        page.items.into_iter().map(|session| session.id).collect()
    };
    let all = SessionFilter::default;
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(list(all()).await, [bob_id, ada_id]);
    assert_eq!(
        list(SessionFilter {
            agent: Some(agent("other")),
            ..all()
        })
        .await,
        [bob_id]
    );
    assert_eq!(
        list(SessionFilter {
            chat: text("ada"),
            ..all()
        })
        .await,
        [ada_id]
    );
    assert_eq!(
        list(SessionFilter {
            active_since: Some(now),
            ..all()
        })
        .await,
        [bob_id]
    );
    assert_eq!(
        list(SessionFilter {
            label_prefix: text("100%_"),
            ..all()
        })
        .await,
        [ada_id]
    );
    assert!(
        list(SessionFilter {
            label_prefix: text("%"),
            ..all()
        })
        .await
        .is_empty()
    );
    assert_eq!(
        list(SessionFilter {
            channel: text("telegram"),
            kind: text("direct"),
            ..all()
        })
        .await
        .len(),
        2
    );
    assert!(
        list(SessionFilter {
            channel: text("slack"),
            ..all()
        })
        .await
        .is_empty()
    );
    assert!(
        list(SessionFilter {
            kind: text("group"),
            ..all()
        })
        .await
        .is_empty()
    );
    assert!(
        list(SessionFilter {
            agent: Some(agent("other")),
            chat: text("ada"),
            ..all()
        })
        .await
        .is_empty()
    );
}

pub async fn a_reset_starts_over_under_the_same_key(f: &Fixture) {
    let talk = f.talk();
    let id = talk.exchange("one", "1").await.session;
    let patch = SessionPatch {
        label: Some("work".to_owned()),
        display_name: None,
    };
    f.store.update_session(talk.tenant, id, &patch).await.unwrap();
    talk.say("two").await;
    let running = talk.run().await;
    let waiting = talk.say("three").await;
    let before = talk.session().await;

    let after = f
        .store
        .reset_session(talk.tenant, id, ResetReason::Api, 10_000)
        .await
        .unwrap();
    assert_eq!(after, talk.session().await);
    assert_eq!(
        (after.id, &after.key, after.label.as_str()),
        (id, &talk.key, "work")
    );
    assert_ne!(
        (after.transcript, after.branch),
        (before.transcript, before.branch)
    );
    assert_eq!(after.epoch, Epoch(before.epoch.0 + 1));
    assert!(after.version > before.version);
    assert_eq!((after.counters, after.head), (Counters::default(), Seq(1)));
    assert_eq!((after.waiting, after.running), (0, 1));
    assert_eq!(words(&talk.entries().await), ["reset:api"]);
    assert_eq!(talk.outcome(waiting.message).await, Some(Outcome::CancelledReset));
    assert_eq!(talk.queue().await.running[0].state, TurnState::Stopping);

    f.advance(10_000).await;
    f.store.expire(talk.tenant, running.turn).await.unwrap();
    let old = words(&talk.entries_of(before.transcript, before.branch).await);
    assert_eq!(
        old,
        [
            "user:one",
            "assistant:1",
            "user:two",
            "interrupted:CANCELLED_RESET:1:"
        ]
    );
    let unknown = f
        .store
        .reset_session(talk.tenant, SessionId::new(), ResetReason::Api, 1)
        .await;
    refused(unknown, Reason::NotFound);
}
