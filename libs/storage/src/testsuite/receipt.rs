//! Receipts of builds, and calibrations.

use super::fixture::*;
use crate::*;
use colloquy_types::{Fence, Reason, Seq, TenantId, TurnId};

fn receipt(talk: &Talk, turn: &ClaimedTurn, body: &str) -> NewReceipt {
    NewReceipt {
        tenant: talk.tenant,
        turn: turn.turn,
        fence: turn.fence,
        marks: None,
        body: body.as_bytes().to_vec(),
    }
}

pub async fn builds_of_a_turn_count_from_one(f: &Fixture) {
    let talk = f.talk();
    talk.say("one").await;
    let turn = talk.run().await;
    for build in 1..=3 {
        let kept = f
            .store
            .keep_receipt(&receipt(&talk, &turn, &format!("b{build}")))
            .await;
        assert_eq!(kept.unwrap(), build);
    }
    let get = async |build| f.store.get_receipt(talk.tenant, turn.turn, build).await.unwrap();
    let last = get(None).await.unwrap();
    assert_eq!(
        (last.build, last.body.as_slice(), last.fence),
        (3, &b"b3"[..], turn.fence)
    );
    assert_eq!(
        (last.turn, last.session, last.reported),
        (turn.turn, turn.session, None)
    );
    assert_eq!(get(Some(1)).await.unwrap().body, b"b1");
    assert_eq!(get(Some(4)).await, None);
    talk.commit(&turn, "answer").await;
    talk.say("two").await;
    let next = talk.run().await;
    f.advance(1).await;
    assert_eq!(
        f.store.keep_receipt(&receipt(&talk, &next, "n1")).await.unwrap(),
        1
    );
    let recent = f
        .store
        .last_receipts(talk.tenant, turn.session, Recent::All, 2)
        .await
        .unwrap();
    let bodies: Vec<&[u8]> = recent.iter().map(|receipt| receipt.body.as_slice()).collect();
    assert_eq!(bodies, [&b"n1"[..], &b"b3"[..]]);
}

pub async fn only_the_holder_keeps_receipts(f: &Fixture) {
    let talk = f.talk();
    talk.say("one").await;
    let turn = talk.claim().await;
    let mut stale = receipt(&talk, &turn, "x");
    stale.fence = Fence(turn.fence.0 + 1);
    refused(f.store.keep_receipt(&stale).await, Reason::Fenced);
    let mut unknown = receipt(&talk, &turn, "x");
    unknown.turn = TurnId::new();
    refused(f.store.keep_receipt(&unknown).await, Reason::NotFound);
    // The first one confirms the offer, and moves the marks.
    let mut kept = receipt(&talk, &turn, "x");
    kept.marks = Some(Marks {
        soft: Seq(0),
        hard: Seq(0),
    });
    f.store.keep_receipt(&kept).await.unwrap();
    f.advance(OFFER_MS + 1).await;
    assert!(f.store.list_expired(10).await.unwrap().is_empty());
    let stranger = TenantId::new();
    assert_eq!(
        f.store.get_receipt(stranger, turn.turn, None).await.unwrap(),
        None
    );
    assert!(
        f.store
            .last_receipts(stranger, turn.session, Recent::All, 9)
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(f.store.turn_place(stranger, turn.turn).await.unwrap(), None);
    kept.tenant = stranger;
    refused(f.store.keep_receipt(&kept).await, Reason::NotFound);
}

pub async fn a_commit_notes_what_the_provider_counted(f: &Fixture) {
    let talk = f.talk();
    talk.say("one").await;
    let turn = talk.run().await;
    for body in ["a", "b"] {
        f.store.keep_receipt(&receipt(&talk, &turn, body)).await.unwrap();
    }
    let mut commit = talk.commit_input(&turn, "answer");
    commit.usage.context_tokens = 1_234;
    f.store.commit(&commit).await.unwrap();
    let reported = async |build| {
        let found = f.store.get_receipt(talk.tenant, turn.turn, Some(build)).await;
        found.unwrap().unwrap().reported
    };
    assert_eq!((reported(1).await, reported(2).await), (None, Some(1_234)));
    let recent = f
        .store
        .last_receipts(talk.tenant, turn.session, Recent::Reported, 9)
        .await;
    let builds: Vec<u32> = recent.unwrap().iter().map(|receipt| receipt.build).collect();
    assert_eq!(builds, [2]);
}

pub async fn a_turns_place_is_known_before_and_after_its_end(f: &Fixture) {
    let talk = f.talk();
    talk.say("one").await;
    let turn = talk.run().await;
    let place = async || f.store.turn_place(talk.tenant, turn.turn).await.unwrap().unwrap();
    let before = place().await;
    assert_eq!(
        (before.session, before.key.as_str()),
        (turn.session, turn.key.as_str())
    );
    assert_eq!((before.transcript, before.branch), (turn.transcript, turn.branch));
    assert_eq!((before.fence, before.has_ended), (turn.fence, false));
    talk.commit(&turn, "answer").await;
    assert!(place().await.has_ended);
    assert_eq!(
        f.store.turn_place(talk.tenant, TurnId::new()).await.unwrap(),
        None
    );
}

pub async fn a_calibration_is_set_by_compare_and_set(f: &Fixture) {
    let (tenant, other) = (TenantId::new(), TenantId::new());
    let key = CalibrationKey {
        model: "claude-opus".to_owned(),
        tokenizer: "claude".to_owned(),
    };
    let get = async |tenant| f.store.get_calibration(tenant, &key).await.unwrap();
    let put = async |tenant, state: &[u8], version| {
        f.store
            .put_calibration(tenant, &key, state, version)
            .await
            .unwrap()
    };
    assert_eq!(get(tenant).await, None);
    assert!(put(tenant, b"1", 0).await);
    assert!(!put(tenant, b"lost", 0).await, "another came first");
    let stored = get(tenant).await.unwrap();
    assert_eq!(stored.state, b"1");
    assert!(put(tenant, b"2", stored.version).await);
    assert_eq!(get(tenant).await.unwrap().state, b"2");
    assert_eq!(get(other).await, None);
    assert!(put(other, b"theirs", 0).await);
    assert_eq!(get(tenant).await.unwrap().state, b"2");
}
