//! How a turn ends other than by a commit: released, stopped, lost.

use super::fixture::*;
use crate::*;
use colloquy_types::queue::Outcome;
use colloquy_types::{Fence, Reason, TurnId};

pub(super) fn retry() -> Release {
    Release::Retry {
        error: "overloaded".to_owned(),
    }
}

pub async fn a_released_turn_comes_first_after_its_backoff(f: &Fixture) {
    let talk = f.talk();
    talk.say("one").await;
    talk.say("two").await;
    let turn = talk.run().await;
    let due = f.store.now().await.unwrap().plus(LIMITS.retry_ms);
    let released = f
        .store
        .release(talk.tenant, turn.turn, turn.fence, &retry())
        .await
        .unwrap();
    assert_eq!(
        released,
        Expired::Requeued {
            session: turn.session,
            due
        }
    );
    assert_eq!(talk.try_claim().await, Claimed::Later(due));
    f.advance(LIMITS.retry_ms).await;
    let again = talk.claim().await;
    assert_eq!((again.turn, again.attempt, again.fence), (turn.turn, 2, Fence(2)));
}

pub async fn the_last_attempt_fails_for_good(f: &Fixture) {
    let mut talk = f.talk();
    talk.limits.max_attempts = 2;
    let answer = talk.say("one").await;
    let next = talk.say("two").await;
    let turn = talk.run().await;
    f.store
        .release(talk.tenant, turn.turn, turn.fence, &retry())
        .await
        .unwrap();
    f.advance(LIMITS.retry_ms).await;
    let turn = talk.run().await;
    talk.stage(&turn, 1, &["half"]).await.unwrap();
    let ended = f
        .store
        .release(talk.tenant, turn.turn, turn.fence, &retry())
        .await
        .unwrap();
    let expected = Expired::Ended {
        session: turn.session,
        outcome: Outcome::Failed,
        next_due: next.due,
    };
    assert_eq!(ended, expected);
    assert_eq!(
        words(&talk.entries().await),
        ["user:one", "interrupted:overloaded:2:half"]
    );
    let row = talk.row(answer.message).await;
    assert_eq!(
        (row.outcome, row.detail.as_str()),
        (Some(Outcome::Failed), "overloaded")
    );
    assert_eq!(
        (
            talk.session().await.window_messages,
            talk.session().await.window_tokens
        ),
        (1, 10)
    );
    assert_eq!(Some(talk.claim().await.turn), next.turn);
}

pub async fn a_failed_turn_leaves_its_messages(f: &Fixture) {
    let talk = f.talk();
    let answer = talk.say("one").await;
    let turn = talk.run().await;
    talk.stage(&turn, 1, &["a", "b"]).await.unwrap();
    let fail = Release::Fail {
        error: "bad request".to_owned(),
    };
    let ended = f
        .store
        .release(talk.tenant, turn.turn, turn.fence, &fail)
        .await
        .unwrap();
    assert_eq!(
        ended,
        Expired::Ended {
            session: turn.session,
            outcome: Outcome::Failed,
            next_due: None
        }
    );
    let entries = talk.entries().await;
    assert_eq!(words(&entries), ["user:one", "interrupted:bad request:1:a,b"]);
    assert!(entries.iter().all(|entry| entry.turn == Some(turn.turn)));
    assert_eq!(talk.outcome(answer.message).await, Some(Outcome::Failed));
    assert_eq!(
        (talk.session().await.waiting, talk.session().await.running),
        (0, 0)
    );
}

pub async fn an_unconfirmed_offer_is_not_an_attempt(f: &Fixture) {
    let talk = f.talk();
    talk.say("one").await;
    let turn = talk.claim().await;
    assert_eq!(
        f.store.expire(talk.tenant, turn.turn).await.unwrap(),
        Expired::NotExpired
    );
    f.advance(OFFER_MS).await;
    assert_eq!(
        f.store.list_expired(10).await.unwrap(),
        [(talk.tenant, turn.turn)]
    );
    let due = f.store.now().await.unwrap();
    let expired = f.store.expire(talk.tenant, turn.turn).await.unwrap();
    assert_eq!(
        expired,
        Expired::Requeued {
            session: turn.session,
            due
        }
    );
    let again = talk.claim().await;
    assert_eq!((again.turn, again.attempt, again.fence), (turn.turn, 1, Fence(2)));
}

pub async fn a_lost_lease_is_offered_again(f: &Fixture) {
    let talk = f.talk();
    talk.say("one").await;
    let turn = talk.run().await;
    f.advance(LIMITS.lease_ms - 1).await;
    assert_eq!(
        f.store.expire(talk.tenant, turn.turn).await.unwrap(),
        Expired::NotExpired
    );
    f.advance(1).await;
    let due = f.store.now().await.unwrap().plus(LIMITS.retry_ms);
    let expired = f.store.expire(talk.tenant, turn.turn).await.unwrap();
    assert_eq!(
        expired,
        Expired::Requeued {
            session: turn.session,
            due
        }
    );
    assert_eq!(
        f.store.expire(talk.tenant, turn.turn).await.unwrap(),
        Expired::NotExpired
    );
    f.advance(LIMITS.retry_ms).await;
    assert_eq!(talk.claim().await.attempt, 2);
    refused(f.store.expire(talk.tenant, TurnId::new()).await, Reason::NotFound);
}

pub async fn the_last_lost_lease_fails_the_turn(f: &Fixture) {
    let mut talk = f.talk();
    talk.limits.max_attempts = 1;
    let answer = talk.say("one").await;
    let turn = talk.run().await;
    talk.stage(&turn, 1, &["half"]).await.unwrap();
    f.advance(LIMITS.lease_ms).await;
    let expired = f.store.expire(talk.tenant, turn.turn).await.unwrap();
    assert_eq!(
        expired,
        Expired::Ended {
            session: turn.session,
            outcome: Outcome::Failed,
            next_due: None
        }
    );
    assert_eq!(
        words(&talk.entries().await),
        ["user:one", "interrupted:lease expired:1:half"]
    );
    assert_eq!(talk.outcome(answer.message).await, Some(Outcome::Failed));
    refused(
        f.store.commit(&talk.commit_input(&turn, "late")).await,
        Reason::Fenced,
    );
    assert_eq!(
        f.store.expire(talk.tenant, turn.turn).await.unwrap(),
        Expired::NotExpired
    );
    assert!(f.store.list_expired(10).await.unwrap().is_empty());
}

pub async fn what_a_lost_attempt_staged_is_kept_as_interrupted(f: &Fixture) {
    let talk = f.talk();
    talk.say("one").await;
    lose_after_staging(&talk, &["half", "more"]).await;
    lose_after_staging(&talk, &[]).await;
    let turn = talk.claim().await;
    assert_eq!(turn.attempt, 3);
    let view = f.store.view(talk.tenant, turn.turn, turn.fence).await.unwrap();
    assert!(view.staged.is_empty());
    assert_eq!(
        talk.stage(&turn, 1, &["whole"]).await.unwrap(),
        1,
        "each attempt counts from 1"
    );
    talk.commit(&turn, "1").await;
    let expected = [
        "interrupted:lost attempt 1:1:half,more",
        "user:one",
        "assistant:whole",
        "assistant:1",
    ];
    assert_eq!(words(&talk.entries().await), expected);
}

pub async fn a_resumed_turn_goes_on_with_what_was_staged(f: &Fixture) {
    let mut talk = f.talk();
    talk.limits.resume_continue = true;
    talk.say("one").await;
    lose_after_staging(&talk, &["half"]).await;
    let turn = talk.claim().await;
    talk.stage(&turn, 1, &["rest"]).await.unwrap();
    let view = f.store.view(talk.tenant, turn.turn, turn.fence).await.unwrap();
    assert_eq!(view.staged.len(), 2);
    talk.commit(&turn, "1").await;
    assert_eq!(
        words(&talk.entries().await),
        ["user:one", "assistant:half", "assistant:rest", "assistant:1"]
    );
}

async fn lose_after_staging(talk: &Talk, texts: &[&str]) {
    let turn = talk.run().await;
    talk.stage(&turn, 1, texts).await.unwrap();
    talk.fixture.advance(LIMITS.lease_ms).await;
    talk.store().expire(talk.tenant, turn.turn).await.unwrap();
    talk.fixture.advance(LIMITS.retry_ms).await;
}

pub async fn every_change_of_the_queue_moves_the_version(f: &Fixture) {
    let talk = f.talk();
    talk.say("one").await;
    let mut last = talk.session().await.version;
    let turn = talk.run().await;
    let mut moved = async |what: &str| {
        let version = talk.session().await.version;
        assert!(version > last, "{what} does not move the version");
        last = version;
    };
    moved("a claim").await;
    f.store
        .release(talk.tenant, turn.turn, turn.fence, &retry())
        .await
        .unwrap();
    moved("a release").await;
    f.advance(LIMITS.retry_ms).await;
    talk.run().await;
    moved("a claim again").await;
    f.advance(LIMITS.lease_ms).await;
    f.store.expire(talk.tenant, turn.turn).await.unwrap();
    moved("an expiry").await;
    f.advance(LIMITS.retry_ms).await;
    let turn = talk.run().await;
    moved("a third claim").await;
    talk.commit(&turn, "1").await;
    moved("a commit").await;
    talk.say("two").await;
    moved("an accept").await;
    f.store
        .stop(talk.tenant, turn.session, StopScope::All, 10_000)
        .await
        .unwrap();
    moved("a stop").await;
}
