//! Messages bound to a turn that runs already.

use super::fixture::*;
use crate::*;
use colloquy_types::queue::{AcceptPlan, AcceptState, Effect, Outcome, Placement};
use colloquy_types::{MessageId, Result};

fn steer(state: &AcceptState) -> Result<AcceptPlan> {
    let turn = state.running[0].turn;
    Ok(AcceptPlan {
        placement: Placement::Steered,
        turn: Some(turn),
        position: 0,
        effects: vec![Effect::Steer { turn }],
        text: None,
    })
}

async fn steers(talk: &Talk, turn: &ClaimedTurn, through: i64) -> Vec<(i64, MessageId)> {
    let renewal = talk
        .store()
        .renew(talk.tenant, turn.turn, turn.fence, through)
        .await
        .unwrap();
    renewal
        .steer
        .into_iter()
        .map(|(number, id, _)| (number, id))
        .collect()
}

pub async fn renewals_repeat_a_steer_until_acknowledged(f: &Fixture) {
    let talk = f.talk();
    let own = talk.say("one").await;
    let turn = talk.run().await;
    let first = talk.accept("faster", &steer).await;
    let second = talk.accept("and louder", &steer).await;
    assert_eq!(
        (first.turn, first.placement, first.outcome),
        (Some(turn.turn), Placement::Steered, None)
    );
    let (one, two) = ((1, first.message), (2, second.message));
    assert_eq!(steers(&talk, &turn, 0).await, [one, two]);
    assert_eq!(talk.queue().await.running[0].messages, [own.message]);
    assert_eq!(steers(&talk, &turn, 0).await, [one, two]);
    assert_eq!(steers(&talk, &turn, 1).await, [two]);
    assert_eq!(
        steers(&talk, &turn, 0).await,
        [two],
        "an acknowledgement is never taken back"
    );
    let view = f.store.view(talk.tenant, turn.turn, turn.fence).await.unwrap();
    assert_eq!(
        view.messages.len(),
        2,
        "the acknowledged one counts as the turn's own"
    );
    assert_eq!(view.messages[1].0, first.message);
    assert_eq!(
        talk.queue().await.running[0].messages,
        [own.message, first.message]
    );
}

pub async fn a_commit_takes_in_acknowledged_steers(f: &Fixture) {
    let talk = f.talk();
    let own = talk.say("one").await;
    let turn = talk.run().await;
    let first = talk.accept("faster", &steer).await;
    let second = talk.accept("and louder", &steer).await;
    let third = talk.accept("and higher", &steer).await;
    let later = talk.say("later").await;
    assert_eq!(steers(&talk, &turn, 1).await.len(), 2);
    let mut commit = talk.commit_input(&turn, "1");
    commit.steer_through = 2;
    let committed = f.store.commit(&commit).await.unwrap();
    assert_eq!(committed.next_due, Some(f.store.now().await.unwrap()));
    assert_eq!(
        words(&talk.entries().await),
        ["user:one", "user:faster", "user:and louder", "assistant:1"]
    );
    assert_eq!(talk.outcome(own.message).await, Some(Outcome::Answered));
    assert_eq!(talk.outcome(first.message).await, Some(Outcome::Steered));
    assert_eq!(talk.outcome(second.message).await, Some(Outcome::Steered));
    assert_eq!(talk.outcome(third.message).await, None);

    let next = talk.claim().await;
    assert_ne!(next.turn, turn.turn);
    assert_eq!(talk.row(third.message).await.turn, Some(next.turn));
    assert_eq!((next.messages.len(), next.messages[0].0), (1, third.message));
    assert_eq!(
        (next.limits, next.policy.clone()),
        (turn.limits, turn.policy.clone())
    );
    talk.commit(&next, "2").await;
    assert_eq!(talk.outcome(third.message).await, Some(Outcome::Answered));
    assert_eq!(Some(talk.claim().await.turn), later.turn);
}

pub async fn a_reoffer_contains_acknowledged_steers(f: &Fixture) {
    let talk = f.talk();
    let own = talk.say("one").await;
    let turn = talk.run().await;
    let first = talk.accept("faster", &steer).await;
    let second = talk.accept("and louder", &steer).await;
    assert_eq!(steers(&talk, &turn, 1).await.len(), 1);
    f.advance(LIMITS.lease_ms).await;
    f.store.expire(talk.tenant, turn.turn).await.unwrap();
    f.advance(LIMITS.retry_ms).await;
    let again = talk.claim().await;
    let ids: Vec<MessageId> = again.messages.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, [own.message, first.message]);
    assert_eq!(steers(&talk, &again, 0).await, [(2, second.message)]);
}

pub async fn a_stopped_turn_ends_its_steers(f: &Fixture) {
    let talk = f.talk();
    let own = talk.say("one").await;
    let turn = talk.run().await;
    let steered = talk.accept("faster", &steer).await;
    f.store
        .stop(talk.tenant, turn.session, StopScope::Oldest, 10_000)
        .await
        .unwrap();
    let release = Release::Retry {
        error: "told to stop".to_owned(),
    };
    f.store
        .release(talk.tenant, turn.turn, turn.fence, &release)
        .await
        .unwrap();
    assert_eq!(talk.outcome(own.message).await, Some(Outcome::CancelledStop));
    assert_eq!(talk.outcome(steered.message).await, Some(Outcome::CancelledStop));
    let expected = ["user:one", "user:faster", "interrupted:CANCELLED_STOP:1:"];
    assert_eq!(words(&talk.entries().await), expected);
}
