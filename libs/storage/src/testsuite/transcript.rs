//! Entries, pages and windows.

use super::fixture::*;
use crate::*;
use colloquy_types::queue::ResetReason;
use colloquy_types::{BranchId, EntryBody, Message, Reason, Seq, SessionId, TranscriptId};

pub async fn notes_are_appended_at_the_head(f: &Fixture) {
    let talk = f.talk();
    let id = talk.exchange("one", "1").await.session;
    let custom = EntryBody::Custom {
        kind: "state".to_owned(),
        json: r#"{"a":1}"#.to_owned(),
    };
    let shown = EntryBody::CustomMessage {
        kind: "note".to_owned(),
        message: Message::user("seen"),
    };
    let notes = [entry_of(custom, 0), entry_of(shown, 5)];
    let head = f.store.append_entries(talk.tenant, id, &notes).await.unwrap();
    assert_eq!(head, Seq(4));
    let entries = talk.entries().await;
    assert_eq!(
        (entries[2].id, &entries[2].body, entries[2].turn),
        (notes[0].id, &notes[0].body, None)
    );
    assert_eq!(
        (&entries[3].body, entries[3].tokens, entries[3].tokenizer.as_str()),
        (&notes[1].body, 5, "o200k")
    );
    let session = talk.session().await;
    assert_eq!(
        (session.head, session.window_messages, session.window_tokens),
        (Seq(4), 3, 25)
    );
    assert_eq!(
        f.store.append_entries(talk.tenant, id, &[]).await.unwrap(),
        Seq(4)
    );
    refused(
        f.store
            .append_entries(talk.tenant, SessionId::new(), &notes)
            .await,
        Reason::NotFound,
    );
}

pub async fn nothing_is_appended_beside_a_running_turn(f: &Fixture) {
    let talk = f.talk();
    let id = talk.say("one").await.session;
    let note = [assistant("note")];
    let turn = talk.run().await;
    refused(
        f.store.append_entries(talk.tenant, id, &note).await,
        Reason::Conflict,
    );
    f.store
        .stop(talk.tenant, id, StopScope::Oldest, 10_000)
        .await
        .unwrap();
    refused(
        f.store.append_entries(talk.tenant, id, &note).await,
        Reason::Conflict,
    );
    f.advance(10_000).await;
    f.store.expire(talk.tenant, turn.turn).await.unwrap();
    assert_eq!(
        f.store.append_entries(talk.tenant, id, &note).await.unwrap(),
        Seq(3)
    );
}

pub async fn entries_are_paged_both_ways(f: &Fixture) {
    let talk = f.talk();
    for n in 0..3 {
        talk.exchange(&format!("{n}"), "reply").await;
    }
    let session = talk.session().await;
    let list = async |order, limit| {
        let page = f
            .store
            .list_entries(talk.tenant, session.transcript, session.branch, order, limit)
            .await
            .unwrap();
        (
            page.entries.iter().map(|entry| entry.seq.0).collect::<Vec<_>>(),
            page.more,
        )
    };
    assert_eq!(list(Order::After(Seq(0)), 4).await, (vec![1, 2, 3, 4], true));
    assert_eq!(list(Order::After(Seq(4)), 2).await, (vec![5, 6], false));
    assert_eq!(list(Order::After(Seq(6)), 2).await, (vec![], false));
    assert_eq!(
        list(Order::Before(Seq(i64::MAX)), 4).await,
        (vec![6, 5, 4, 3], true)
    );
    assert_eq!(list(Order::Before(Seq(3)), 4).await, (vec![2, 1], false));
}

pub async fn a_page_is_bounded_in_bytes(f: &Fixture) {
    let talk = f.talk();
    let id = talk.exchange("one", "1").await.session;
    let large = "x".repeat(900 << 10);
    let notes: Vec<_> = (0..4).map(|_| assistant(&large)).collect();
    f.store.append_entries(talk.tenant, id, &notes).await.unwrap();
    let session = talk.session().await;
    let (transcript, branch) = (session.transcript, session.branch);
    let page = f
        .store
        .list_entries(talk.tenant, transcript, branch, Order::After(Seq(2)), 500)
        .await
        .unwrap();
    assert_eq!((page.entries.len(), page.more), (2, true));
    let huge = [assistant(&"y".repeat(3 << 20))];
    f.store.append_entries(talk.tenant, id, &huge).await.unwrap();
    let page = f
        .store
        .list_entries(talk.tenant, transcript, branch, Order::After(Seq(6)), 500)
        .await
        .unwrap();
    assert_eq!(
        (page.entries.len(), page.more),
        (1, false),
        "one entry always comes"
    );
}

pub async fn a_window_without_a_compaction_is_everything(f: &Fixture) {
    let talk = f.talk();
    talk.exchange("one", "1").await;
    talk.exchange("two", "2").await;
    let session = talk.session().await;
    let (transcript, branch) = (session.transcript, session.branch);
    let window = f
        .store
        .window(talk.tenant, transcript, branch, None)
        .await
        .unwrap();
    assert_eq!(window.summary, None);
    assert_eq!(
        words(&window.entries),
        ["user:one", "assistant:1", "user:two", "assistant:2"]
    );
    let expected = Branch {
        transcript,
        branch,
        epoch: session.epoch,
        head: Seq(4),
        compaction: None,
        first_kept: Seq(1),
        marks: Marks::default(),
        window_messages: 4,
        window_tokens: 40,
    };
    assert_eq!(window.branch, expected);
    let earlier = f
        .store
        .window(talk.tenant, transcript, branch, Some(Seq(2)))
        .await
        .unwrap();
    assert_eq!(words(&earlier.entries), ["user:one", "assistant:1"]);
}

pub async fn an_unknown_branch_is_not_found(f: &Fixture) {
    let talk = f.talk();
    talk.exchange("one", "1").await;
    let session = talk.session().await;
    let pairs = [
        (TranscriptId::new(), session.branch),
        (session.transcript, BranchId::new()),
    ];
    for (transcript, branch) in pairs {
        refused(
            f.store.window(talk.tenant, transcript, branch, None).await,
            Reason::NotFound,
        );
        let listed = f
            .store
            .list_entries(talk.tenant, transcript, branch, Order::After(Seq(0)), 10)
            .await;
        refused(listed, Reason::NotFound);
    }
}

pub async fn a_transcript_knows_its_session(f: &Fixture) {
    let talk = f.talk();
    let id = talk.exchange("one", "1").await.session;
    let old = talk.session().await.transcript;
    f.store
        .reset_session(talk.tenant, id, ResetReason::Api, 1_000)
        .await
        .unwrap();
    let new = talk.session().await.transcript;
    for transcript in [old, new] {
        assert_eq!(
            f.store.session_of(talk.tenant, transcript).await.unwrap(),
            Some(id)
        );
    }
    assert_eq!(
        f.store
            .session_of(talk.tenant, TranscriptId::new())
            .await
            .unwrap(),
        None
    );
}
