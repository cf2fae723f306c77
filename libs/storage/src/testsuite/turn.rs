//! Claiming, holding and committing a turn.

use super::fixture::*;
use crate::*;
use colloquy_types::queue::{Lane, TurnState};
use colloquy_types::{Fence, Message, Reason, Seq, SessionId, TenantId, TurnId};
use std::collections::BTreeSet;

pub async fn a_claim_binds_the_first_waiting_turn(f: &Fixture) {
    let talk = f.talk();
    let first = talk.say("one").await;
    talk.say("two").await;
    let before = talk.session().await;
    let turn = talk.claim().await;
    assert_eq!((Some(turn.turn), turn.session), (first.turn, first.session));
    assert_eq!(
        (turn.key.as_str(), &turn.agent),
        (talk.key.to_string().as_str(), &agent("default"))
    );
    assert_eq!((turn.transcript, turn.branch), (before.transcript, before.branch));
    assert_eq!(
        (turn.head, turn.fence, turn.attempt, turn.lane),
        (Seq(0), Fence(1), 1, Lane::User)
    );
    assert_eq!(
        (turn.limits, turn.route.as_ref()),
        (LIMITS, Some(&route("386246614")))
    );
    assert_eq!((turn.policy, turn.preface.as_str()), (talk.input("x").policy, ""));
    assert_eq!((turn.messages.len(), turn.messages[0].0), (1, first.message));
    assert_eq!(
        (turn.messages[0].1.text().as_str(), turn.lease_left_ms),
        ("one", OFFER_MS)
    );
    let after = talk.session().await;
    assert_eq!((after.fence, after.waiting, after.running), (Fence(1), 1, 1));
    assert!(after.version > before.version);
}

pub async fn one_turn_runs_at_a_time(f: &Fixture) {
    let talk = f.talk();
    talk.say("one").await;
    talk.say("two").await;
    let first = talk.run().await;
    assert_eq!(talk.try_claim().await, Claimed::Nothing);
    talk.commit(&first, "1").await;
    let second = talk.claim().await;
    assert_eq!((second.fence, second.head), (Fence(2), Seq(2)));
    assert_eq!(talk.try_claim().await, Claimed::Nothing);
}

pub async fn as_many_turns_run_as_may(f: &Fixture) {
    let mut talk = f.talk();
    talk.limits.max_concurrent = 2;
    for text in ["one", "two", "three"] {
        talk.say(text).await;
    }
    let (first, second) = (talk.run().await, talk.run().await);
    assert_eq!((first.fence, second.fence), (Fence(1), Fence(2)));
    assert_eq!(talk.try_claim().await, Claimed::Nothing);
    talk.commit(&second, "2").await;
    talk.commit(&first, "1").await;
    assert_eq!(
        words(&talk.entries().await),
        ["user:two", "assistant:2", "user:one", "assistant:1"]
    );
}

pub async fn a_turn_starts_when_due(f: &Fixture) {
    let talk = f.talk();
    let turn = TurnId::new();
    let answer = talk
        .accept("one", &move |state| Ok(open_with(state, turn, 800, vec![])))
        .await;
    assert_eq!(talk.try_claim().await, Claimed::Later(answer.now.plus(800)));
    f.advance(799).await;
    assert!(matches!(talk.try_claim().await, Claimed::Later(_)));
    f.advance(1).await;
    assert_eq!(talk.claim().await.turn, turn);
}

pub async fn a_claim_is_for_the_workers_agents(f: &Fixture) {
    let talk = f.talk();
    let session = talk.say("one").await.session;
    let mut request = ClaimRequest {
        tenant: talk.tenant,
        session,
        worker: "w".to_owned(),
        agents: vec![agent("other")],
        offer_ms: OFFER_MS,
        lease_ms: None,
    };
    assert_eq!(f.store.claim(&request).await.unwrap(), Claimed::Nothing);
    request.session = SessionId::new();
    assert_eq!(f.store.claim(&request).await.unwrap(), Claimed::Nothing);
    request.session = session;
    request.agents.push(agent("default"));
    assert!(matches!(f.store.claim(&request).await.unwrap(), Claimed::Turn(_)));
}

pub async fn one_of_parallel_claims_wins(f: &Fixture) {
    let talk = f.talk();
    let session = talk.say("one").await.session;
    talk.say("two").await;
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..8 {
        let request = ClaimRequest {
            tenant: talk.tenant,
            session,
            worker: format!("worker-{n}"),
            agents: vec![],
            offer_ms: OFFER_MS,
            lease_ms: None,
        };
        let store = f.store.clone();
        tasks.spawn(async move { store.claim(&request).await });
    }
    let mut won = Vec::new();
    while let Some(done) = tasks.join_next().await {
        if let Claimed::Turn(turn) = done.unwrap().unwrap() {
            won.push(turn.fence);
        }
    }
    assert_eq!(won, [Fence(1)]);
}

pub async fn a_renewal_confirms_and_extends(f: &Fixture) {
    let talk = f.talk();
    talk.say("one").await;
    let turn = talk.claim().await;
    let renewal = f
        .store
        .renew(talk.tenant, turn.turn, turn.fence, 0)
        .await
        .unwrap();
    assert_eq!(
        (renewal.lease_left_ms, renewal.state),
        (LIMITS.lease_ms, TurnState::Running)
    );
    assert_eq!((renewal.stop, renewal.steer.len()), (None, 0));
    f.advance(OFFER_MS + 1).await;
    assert!(f.store.list_expired(10).await.unwrap().is_empty());
    assert_eq!(
        f.store
            .renew(talk.tenant, turn.turn, turn.fence, 0)
            .await
            .unwrap()
            .lease_left_ms,
        LIMITS.lease_ms
    );
}

pub async fn a_worker_may_ask_for_another_lease(f: &Fixture) {
    let talk = f.talk();
    let session = talk.say("one").await.session;
    let request = ClaimRequest {
        tenant: talk.tenant,
        session,
        worker: "w".to_owned(),
        agents: vec![],
        offer_ms: OFFER_MS,
        lease_ms: Some(7_000),
    };
    let Claimed::Turn(turn) = f.store.claim(&request).await.unwrap() else {
        panic!("nothing to claim");
    };
    assert_eq!((turn.lease_left_ms, turn.limits.lease_ms), (OFFER_MS, 7_000));
    let (tenant, id) = (talk.tenant, turn.turn);
    let left = |fence| async move { f.store.renew(tenant, id, fence, 0).await.unwrap().lease_left_ms };
    assert_eq!(left(turn.fence).await, 7_000);
    f.advance(7_000).await;
    f.store.expire(talk.tenant, turn.turn).await.unwrap();
    f.advance(LIMITS.retry_ms).await;
    // Of this claim alone: the next holder did not ask.
    let next = talk.claim().await;
    assert_eq!(next.turn, turn.turn);
    assert_eq!(left(next.fence).await, LIMITS.lease_ms);
}

pub async fn a_lease_ends_with_the_longest_turn(f: &Fixture) {
    let mut talk = f.talk();
    talk.limits.max_turn_ms = 100_000;
    talk.say("one").await;
    let turn = talk.run().await;
    f.advance(50_000).await;
    assert_eq!(
        f.store
            .renew(talk.tenant, turn.turn, turn.fence, 0)
            .await
            .unwrap()
            .lease_left_ms,
        50_000
    );
    f.advance(50_000).await;
    assert_eq!(
        f.store
            .renew(talk.tenant, turn.turn, turn.fence, 0)
            .await
            .unwrap()
            .lease_left_ms,
        0
    );
    assert_eq!(
        f.store.list_expired(10).await.unwrap(),
        [(talk.tenant, turn.turn)]
    );
}

pub async fn a_stale_fence_is_refused_everywhere(f: &Fixture) {
    let talk = f.talk();
    talk.say("one").await;
    let old = talk.claim().await;
    f.advance(OFFER_MS).await;
    f.store.expire(talk.tenant, old.turn).await.unwrap();
    assert_fenced(&talk, &old).await; // it waits
    let new = talk.run().await;
    assert_eq!((new.turn, new.fence), (old.turn, Fence(2)));
    assert_fenced(&talk, &old).await; // another attempt runs
    talk.commit(&new, "1").await;
    assert_fenced(&talk, &old).await; // it has ended
    refused(
        f.store.renew(talk.tenant, new.turn, new.fence, 0).await,
        Reason::Fenced,
    );
    assert_eq!(words(&talk.entries().await), ["user:one", "assistant:1"]);
}

async fn assert_fenced(talk: &Talk, turn: &ClaimedTurn) {
    let store = talk.store();
    refused(
        store.renew(talk.tenant, turn.turn, turn.fence, 0).await,
        Reason::Fenced,
    );
    refused(
        store.view(talk.tenant, turn.turn, turn.fence).await,
        Reason::Fenced,
    );
    refused(talk.stage(turn, 1, &["late"]).await, Reason::Fenced);
    refused(
        store.commit(&talk.commit_input(turn, "late")).await,
        Reason::Fenced,
    );
    let release = Release::Fail {
        error: "late".to_owned(),
    };
    refused(
        store.release(talk.tenant, turn.turn, turn.fence, &release).await,
        Reason::Fenced,
    );
}

pub async fn a_view_confirms_and_shows_the_turn(f: &Fixture) {
    let talk = f.talk();
    talk.exchange("zero", "0").await;
    let answer = talk.say("one").await;
    let turn = talk.claim().await;
    let view = f.store.view(talk.tenant, turn.turn, turn.fence).await.unwrap();
    let session = talk.session().await;
    assert_eq!(
        (view.session, view.key.as_str()),
        (session.id, talk.key.to_string().as_str())
    );
    assert_eq!(
        (view.transcript, view.branch, view.epoch),
        (session.transcript, session.branch, session.epoch)
    );
    assert_eq!(
        (view.head, view.attempt, view.state),
        (Seq(2), 1, TurnState::Running)
    );
    assert_eq!(
        (view.agent, view.policy, view.route),
        (turn.agent.clone(), turn.policy.clone(), turn.route.clone())
    );
    assert_eq!(
        view.messages,
        [(answer.message, turn.messages[0].1.clone(), TOKENS)]
    );
    assert!(view.staged.is_empty());
    f.advance(LIMITS.lease_ms - 1).await;
    assert!(f.store.list_expired(10).await.unwrap().is_empty());
    f.store.view(talk.tenant, turn.turn, turn.fence).await.unwrap();
    f.advance(1).await;
    assert_eq!(
        f.store.list_expired(10).await.unwrap().len(),
        1,
        "reading again does not extend"
    );
}

pub async fn staging_is_idempotent_by_number(f: &Fixture) {
    let talk = f.talk();
    talk.say("one").await;
    let turn = talk.claim().await;
    assert_eq!(talk.stage(&turn, 1, &["a", "b"]).await.unwrap(), 2);
    assert_eq!(talk.stage(&turn, 2, &["not b", "c"]).await.unwrap(), 3);
    assert_eq!(
        refused(talk.stage(&turn, 5, &["gap"]).await, Reason::InvalidField)
            .field
            .as_deref(),
        Some("first")
    );
    assert_eq!(talk.stage(&turn, 4, &[]).await.unwrap(), 3);
    let view = f.store.view(talk.tenant, turn.turn, turn.fence).await.unwrap();
    let texts: Vec<String> = view
        .staged
        .iter()
        .filter_map(|(body, _)| body.message().map(Message::text))
        .collect();
    assert_eq!(texts, ["a", "b", "c"]);
    assert!(view.staged.iter().all(|(_, tokens)| *tokens == TOKENS));
    assert!(
        talk.entries().await.is_empty(),
        "staged is not in the transcript yet"
    );
}

pub async fn runnable_sessions_are_found_across_tenants(f: &Fixture) {
    let (early, late, busy) = (f.talk(), f.talk(), f.talk());
    busy.say("runs").await;
    busy.run().await;
    busy.say("waits").await;
    let due_late = {
        let turn = TurnId::new();
        late.accept("late", &move |state| Ok(open_with(state, turn, 800, vec![])))
            .await
    };
    let due_early = early.say("early").await;
    early.say("early, second").await;
    let runnable = |talk: &Talk, answer: &Acceptance| Runnable {
        tenant: talk.tenant,
        agent: agent("default"),
        session: answer.session,
        lane: Lane::User,
        due: answer.due.unwrap(),
    };
    let (first, second) = (runnable(&early, &due_early), runnable(&late, &due_late));
    let scan = async |tenant, horizon_ms, per_agent| {
        let scan = RunnableScan {
            tenant,
            horizon_ms,
            per_agent,
            limit: 10,
        };
        f.store.list_runnable(&scan).await.unwrap()
    };
    assert_eq!(scan(None, 0, 10).await, std::slice::from_ref(&first));
    assert_eq!(scan(None, 800, 10).await, [first.clone(), second.clone()]);
    assert_eq!(scan(Some(late.tenant), 800, 10).await, [second]);
    assert_eq!(scan(Some(TenantId::new()), 800, 10).await, []);
}

pub async fn a_backlog_hides_nobodys_sessions(f: &Fixture) {
    let crowd = TenantId::new();
    for peer in 0..8 {
        let talk = f.talk_of(crowd, "default", &peer.to_string());
        talk.say("of the crowd").await;
    }
    let small = f.talk();
    let own = small.say("of one").await.session;
    let scan = async |per_agent, limit| {
        let scan = RunnableScan {
            tenant: None,
            horizon_ms: 0,
            per_agent,
            limit,
        };
        f.store.list_runnable(&scan).await.unwrap()
    };
    let found = scan(3, 100).await;
    assert_eq!(found.iter().filter(|one| one.tenant == crowd).count(), 3);
    assert!(found.iter().any(|one| one.session == own));
    // The first of each come before any second.
    let found = scan(100, 2).await;
    assert!(found.iter().any(|one| one.session == own), "{found:?}");
}

pub async fn the_queue_shows_what_runs_and_waits(f: &Fixture) {
    let talk = f.talk();
    let answers = [
        talk.say("one").await,
        talk.say("two").await,
        talk.say("three").await,
    ];
    let turn = talk.run().await;
    let queue = talk.queue().await;
    assert_eq!(queue.now, f.store.now().await.unwrap());
    let [running] = queue.running.as_slice() else {
        panic!("one runs")
    };
    assert_eq!(
        (running.turn, running.state, running.lane),
        (turn.turn, TurnState::Running, Lane::User)
    );
    assert_eq!(
        (running.attempt, running.fence, running.worker.as_str()),
        (1, turn.fence, "worker-1")
    );
    assert_eq!(running.messages, [answers[0].message]);
    let waiting: BTreeSet<_> = queue.waiting.iter().map(|waiting| Some(waiting.turn)).collect();
    assert_eq!(waiting, BTreeSet::from([answers[1].turn, answers[2].turn]));
    assert_eq!(Some(queue.waiting[0].turn), answers[1].turn);
    assert_eq!(
        (queue.waiting[0].state, queue.waiting[0].attempt),
        (TurnState::Waiting, 0)
    );
    assert_eq!(queue.outcomes.len(), 3);
    assert_eq!(queue.outcomes[0].message_id, answers[2].message);
    refused(
        f.store.queue(talk.tenant, SessionId::new(), 1).await,
        Reason::NotFound,
    );
}
