//! Accepting: once, durable, and every effect of a plan.

use super::fixture::*;
use crate::*;
use colloquy_types::queue::{
    AcceptPlan, AcceptState, Lane, MessageKind, Outcome, Placement, QueueMode, TurnState,
};
use colloquy_types::{Error, MessageId, Reason, Seq, TurnId};
use std::collections::BTreeSet;
use std::sync::Mutex;

pub async fn the_first_message_creates_the_session(f: &Fixture) {
    let talk = f.talk();
    let now = f.store.now().await.unwrap();
    let seen = Mutex::new(None);
    let input = talk.input("hello");
    let decide = |state: &AcceptState| {
        *seen.lock().unwrap() = Some(state.clone());
        open_turn(state)
    };
    let Accepted::New(answer) = talk.store().accept(&input, &decide).await.unwrap() else {
        panic!("new")
    };
    let state = seen.into_inner().unwrap().unwrap();
    assert_eq!((state.now, state.session), (now, None));
    assert!(state.waiting.is_empty() && state.running.is_empty());

    let session = talk.session().await;
    assert_eq!(answer.message, input.message_id);
    assert_eq!(
        (answer.session, answer.transcript),
        (session.id, session.transcript)
    );
    assert_eq!(
        (answer.placement, answer.position, answer.outcome),
        (Placement::Queued, 0, None)
    );
    assert_eq!((answer.due, answer.now), (Some(now), now));
    assert_eq!(answer.content_hash, b"hello");
    assert_eq!((session.waiting, session.running, session.head), (1, 0, Seq(0)));
    assert_eq!((session.created, session.last_user_activity), (now, Some(now)));
}

pub async fn the_state_shows_the_queue(f: &Fixture) {
    let talk = f.talk();
    let first = talk.say("one").await;
    let second = talk.say("two").await;
    let claimed = talk.run().await;
    f.advance(10).await;
    let seen = Mutex::new(None);
    let input = talk.input("three");
    let decide = |state: &AcceptState| {
        *seen.lock().unwrap() = Some(state.clone());
        open_turn(state)
    };
    talk.store().accept(&input, &decide).await.unwrap();
    let state = seen.into_inner().unwrap().unwrap();
    let head = state.session.unwrap();
    assert_eq!((head.session, head.transcript), (first.session, first.transcript));
    assert_eq!((head.head, head.last_user_activity), (Seq(0), Some(first.now)));
    let [running] = state.running.as_slice() else {
        panic!("one runs")
    };
    assert_eq!(
        (running.turn, running.fence, running.attempt),
        (claimed.turn, claimed.fence, 1)
    );
    assert_eq!(
        (running.state, running.lane, running.started),
        (TurnState::Running, Lane::User, first.now)
    );
    assert_eq!(running.lease_until, first.now.plus(LIMITS.lease_ms));
    let [waiting] = state.waiting.as_slice() else {
        panic!("one waits")
    };
    assert_eq!((Some(waiting.turn), waiting.attempt), (second.turn, 0));
    assert_eq!(
        (waiting.opened, waiting.due, waiting.closed),
        (second.now, second.now, false)
    );
    assert_eq!(waiting.messages, [second.message]);
    assert_eq!(
        (waiting.sender.as_deref(), waiting.mode),
        (Some("386246614"), QueueMode::Queue)
    );
    assert_eq!(waiting.merge, talk.input("x").event.merge);
    assert!(waiting.order > running.order);
}

pub async fn a_duplicate_gets_the_first_answer(f: &Fixture) {
    let talk = f.talk();
    let input = talk.input("hello");
    let Accepted::New(first) = talk.store().accept(&input, &open_turn).await.unwrap() else {
        panic!("new")
    };
    let version = talk.session().await.version;
    f.advance(50).await;

    let mut again = talk.input("hello, edited");
    again.dedupe_key.clone_from(&input.dedupe_key);
    let never = |_: &AcceptState| -> colloquy_types::Result<AcceptPlan> { panic!("nothing to decide") };
    let Accepted::Duplicate(second) = talk.store().accept(&again, &never).await.unwrap() else {
        panic!("dup")
    };
    assert_eq!(
        (second.message, second.session, second.turn),
        (first.message, first.session, first.turn)
    );
    assert_eq!(
        (second.placement, second.position),
        (first.placement, first.position)
    );
    assert_eq!((second.transcript, second.outcome), (first.transcript, None));
    assert_eq!(second.content_hash, first.content_hash);
    assert_eq!(talk.session().await.version, version);

    let turn = talk.claim().await;
    talk.commit(&turn, "hi").await;
    let Accepted::Duplicate(third) = talk.store().accept(&again, &never).await.unwrap() else {
        panic!("dup")
    };
    assert_eq!(
        (third.message, third.outcome),
        (first.message, Some(Outcome::Answered))
    );
}

pub async fn the_dedupe_key_is_the_tenants_own(f: &Fixture) {
    let (one, two) = (f.talk(), f.talk());
    let input = one.input("hello");
    let mut foreign = two.input("hello");
    foreign.dedupe_key.clone_from(&input.dedupe_key);
    assert!(matches!(
        one.store().accept(&input, &open_turn).await.unwrap(),
        Accepted::New(_)
    ));
    assert!(matches!(
        two.store().accept(&foreign, &open_turn).await.unwrap(),
        Accepted::New(_)
    ));
}

pub async fn a_refusal_leaves_no_row(f: &Fixture) {
    let talk = f.talk();
    let refuse = |_: &AcceptState| Err(Error::new(Reason::QueueFull, "full"));
    refused(
        talk.store().accept(&talk.input("hello"), &refuse).await,
        Reason::QueueFull,
    );
    assert_eq!(
        talk.store().find_session(talk.tenant, &talk.key).await.unwrap(),
        None
    );
    let first = talk.say("hello").await;
    let version = talk.session().await.version;
    refused(
        talk.store().accept(&talk.input("again"), &refuse).await,
        Reason::QueueFull,
    );
    assert_eq!(talk.session().await.version, version);
    assert_eq!(
        talk.store()
            .list_inbox(talk.tenant, first.session, 10)
            .await
            .unwrap()
            .len(),
        1
    );
}

pub async fn a_policy_is_stored_once_by_its_id(f: &Fixture) {
    let talk = f.talk();
    talk.say("one").await;
    let mut input = talk.input("two");
    input.policy_json = r#"{"other":"text under the same id"}"#.to_owned();
    let id = input.policy.clone();
    talk.store().accept(&input, &open_turn).await.unwrap();
    let stored = talk.store().get_policy(talk.tenant, &id).await.unwrap();
    assert_eq!(stored.as_deref(), Some(r#"{"profile":"goclaw"}"#));
    assert_eq!(
        talk.store()
            .get_policy(talk.tenant, &PolicyId("unknown".into()))
            .await
            .unwrap(),
        None
    );
}

pub async fn system_events_are_no_activity(f: &Fixture) {
    let talk = f.talk();
    let mut input = talk.input("tick");
    input.event.merge.kind = MessageKind::SystemEvent;
    talk.store().accept(&input, &open_turn).await.unwrap();
    assert_eq!(talk.session().await.last_user_activity, None);
    let person = talk.say("hello").await;
    f.advance(10).await;
    input.message_id = MessageId::new();
    input.dedupe_key = "another tick".to_owned();
    talk.store().accept(&input, &open_turn).await.unwrap();
    assert_eq!(talk.session().await.last_user_activity, Some(person.now));
}

pub async fn the_inbox_lists_newest_first(f: &Fixture) {
    let talk = f.talk();
    let mut accepted = Vec::new();
    for text in ["one", "two", "three"] {
        accepted.push(talk.say(text).await);
        f.advance(1).await;
    }
    let rows = talk
        .store()
        .list_inbox(talk.tenant, accepted[0].session, 2)
        .await
        .unwrap();
    let ids: Vec<MessageId> = rows.iter().map(|row| row.message_id).collect();
    assert_eq!(ids, [accepted[2].message, accepted[1].message]);
    assert_eq!(
        (rows[0].turn, rows[0].accepted),
        (accepted[2].turn, accepted[2].now)
    );
    assert_eq!((rows[0].outcome, rows[0].detail.as_str()), (None, ""));
}

pub async fn texts_with_nul_survive(f: &Fixture) {
    let talk = f.talk();
    talk.exchange("a\0b", "c\0d").await;
    assert_eq!(words(&talk.entries().await), ["user:a\0b", "assistant:c\0d"]);
}

pub async fn parallel_messages_merge_into_one_turn(f: &Fixture) {
    const N: usize = 16;
    let talk = f.talk();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..N {
        let (store, input) = (f.store.clone(), talk.input(&format!("text {n}")));
        tasks.spawn(async move { store.accept(&input, &join_newest).await });
    }
    let mut turns = BTreeSet::new();
    while let Some(done) = tasks.join_next().await {
        let Accepted::New(answer) = done.unwrap().unwrap() else {
            panic!("new")
        };
        turns.insert(answer.turn.unwrap());
    }
    assert_eq!(turns.len(), 1, "{turns:?}");
    f.advance(1_000).await;
    let turn = talk.claim().await;
    let texts: BTreeSet<String> = turn.messages.iter().map(|(_, message)| message.text()).collect();
    assert_eq!((turn.messages.len(), texts.len()), (N, N));
}

pub async fn parallel_duplicates_are_one_message(f: &Fixture) {
    const N: usize = 8;
    let talk = f.talk();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..N {
        let mut input = talk.input("hello");
        input.dedupe_key = "bot/42".to_owned();
        let store = f.store.clone();
        tasks.spawn(async move { store.accept(&input, &open_turn).await });
    }
    let (mut new, mut ids) = (0, BTreeSet::<(MessageId, Option<TurnId>)>::new());
    while let Some(done) = tasks.join_next().await {
        let (Accepted::New(answer) | Accepted::Duplicate(answer)) = &done.as_ref().unwrap().as_ref().unwrap();
        ids.insert((answer.message, answer.turn));
        new += usize::from(matches!(done.unwrap().unwrap(), Accepted::New(_)));
    }
    assert_eq!((new, ids.len()), (1, 1));
    assert_eq!(talk.session().await.waiting, 1);
}
