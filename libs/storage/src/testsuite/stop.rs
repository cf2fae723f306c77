//! Stopping what runs and emptying what waits.

use super::fixture::*;
use super::turn_end::retry;
use crate::*;
use colloquy_types::queue::{Outcome, TurnState};
use colloquy_types::{Reason, SessionId};

pub async fn a_stopping_turn_cannot_commit_but_stage(f: &Fixture) {
    let talk = f.talk();
    let answer = talk.say("one").await;
    let waiting = talk.say("two").await;
    let turn = talk.run().await;
    let stopped = f
        .store
        .stop(talk.tenant, turn.session, StopScope::Oldest, 10_000)
        .await
        .unwrap();
    assert_eq!(
        stopped,
        Stopped {
            stopping: vec![turn.turn],
            drained: vec![]
        }
    );
    let again = f
        .store
        .stop(talk.tenant, turn.session, StopScope::Oldest, 99_000)
        .await
        .unwrap();
    assert_eq!(again, Stopped::default(), "nothing runs any more");
    refused(
        f.store.commit(&talk.commit_input(&turn, "1")).await,
        Reason::Cancelled,
    );
    talk.stage(&turn, 1, &["half"]).await.unwrap();
    let view = f.store.view(talk.tenant, turn.turn, turn.fence).await.unwrap();
    assert_eq!(view.state, TurnState::Stopping);
    let ended = f
        .store
        .release(talk.tenant, turn.turn, turn.fence, &retry())
        .await
        .unwrap();
    let expected = Expired::Ended {
        session: turn.session,
        outcome: Outcome::CancelledStop,
        next_due: waiting.due,
    };
    assert_eq!(ended, expected);
    assert_eq!(
        words(&talk.entries().await),
        ["user:one", "interrupted:CANCELLED_STOP:1:half"]
    );
    assert_eq!(talk.outcome(answer.message).await, Some(Outcome::CancelledStop));
    refused(
        f.store.commit(&talk.commit_input(&turn, "1")).await,
        Reason::Fenced,
    );
    assert_eq!(Some(talk.claim().await.turn), waiting.turn);
}

pub async fn the_deadline_ends_a_stopping_turn(f: &Fixture) {
    let talk = f.talk();
    let answer = talk.say("one").await;
    let turn = talk.run().await;
    f.store
        .stop(talk.tenant, turn.session, StopScope::Oldest, 10_000)
        .await
        .unwrap();
    f.advance(9_999).await;
    assert_eq!(
        f.store.expire(talk.tenant, turn.turn).await.unwrap(),
        Expired::NotExpired
    );
    assert!(f.store.list_expired(10).await.unwrap().is_empty());
    f.advance(1).await;
    assert_eq!(
        f.store.list_expired(10).await.unwrap(),
        [(talk.tenant, turn.turn)]
    );
    let ended = f.store.expire(talk.tenant, turn.turn).await.unwrap();
    let expected = Expired::Ended {
        session: turn.session,
        outcome: Outcome::CancelledStop,
        next_due: None,
    };
    assert_eq!(ended, expected);
    assert_eq!(talk.outcome(answer.message).await, Some(Outcome::CancelledStop));
    assert_eq!(
        words(&talk.entries().await),
        ["user:one", "interrupted:CANCELLED_STOP:1:"]
    );
}

pub async fn stopping_all_empties_the_queue(f: &Fixture) {
    let talk = f.talk();
    talk.say("one").await;
    let waiting = [talk.say("two").await, talk.say("three").await];
    let turn = talk.run().await;
    let stopped = f
        .store
        .stop(talk.tenant, turn.session, StopScope::All, 10_000)
        .await
        .unwrap();
    let drained = waiting.iter().filter_map(|answer| answer.turn).collect();
    assert_eq!(
        stopped,
        Stopped {
            stopping: vec![turn.turn],
            drained
        }
    );
    for answer in &waiting {
        assert_eq!(talk.outcome(answer.message).await, Some(Outcome::CancelledStop));
    }
    f.store
        .release(talk.tenant, turn.turn, turn.fence, &retry())
        .await
        .unwrap();
    assert_eq!(talk.try_claim().await, Claimed::Nothing);
    let none = f
        .store
        .stop(talk.tenant, turn.session, StopScope::All, 10_000)
        .await
        .unwrap();
    assert_eq!(none, Stopped::default());
    refused(
        f.store
            .stop(talk.tenant, SessionId::new(), StopScope::All, 1)
            .await,
        Reason::NotFound,
    );
}

pub async fn a_commit_that_came_first_stands(f: &Fixture) {
    let talk = f.talk();
    let answer = talk.say("one").await;
    let turn = talk.run().await;
    talk.commit(&turn, "1").await;
    let stopped = f
        .store
        .stop(talk.tenant, turn.session, StopScope::Oldest, 10_000)
        .await
        .unwrap();
    assert_eq!(stopped, Stopped::default());
    assert_eq!(talk.outcome(answer.message).await, Some(Outcome::Answered));
    assert!(
        f.store
            .commit(&talk.commit_input(&turn, "1"))
            .await
            .unwrap()
            .replayed
    );
}
