//! Replies on their way out.

use super::fixture::*;
use crate::*;
use colloquy_types::message::Route;
use colloquy_types::{AccountId, DeliveryId, Part, Reason, TurnId};

const LEASE_MS: i64 = 30_000;

/// Commits a turn with one delivery per route.
async fn reply(talk: &Talk, text: &str, routes: &[Route]) -> (TurnId, Vec<DeliveryId>) {
    talk.say("question").await;
    let turn = talk.claim().await;
    let mut commit = talk.commit_input(&turn, text);
    for (part, route) in (0..).zip(routes) {
        let parts = vec![Part::text(text)];
        commit.deliveries.push(NewDelivery {
            id: DeliveryId::new(),
            route: route.clone(),
            part,
            parts,
        });
    }
    talk.store().commit(&commit).await.unwrap();
    (
        turn.turn,
        commit.deliveries.iter().map(|delivery| delivery.id).collect(),
    )
}

async fn offered(talk: &Talk) -> Vec<(DeliveryId, i32)> {
    let account = route("x").account;
    let offered = talk
        .store()
        .claim_deliveries(talk.tenant, &account, 10, LEASE_MS)
        .await
        .unwrap();
    offered
        .iter()
        .map(|delivery| (delivery.id, delivery.attempt))
        .collect()
}

pub async fn a_delivery_is_offered_whole(f: &Fixture) {
    let talk = f.talk();
    let mut to = route("chat");
    to.thread = Some("7".to_owned());
    let (turn, ids) = reply(&talk, "hi\0", std::slice::from_ref(&to)).await;
    let offered = f
        .store
        .claim_deliveries(talk.tenant, &to.account, 10, LEASE_MS)
        .await
        .unwrap();
    let session = talk.session().await.id;
    let parts = vec![Part::text("hi\0")];
    assert_eq!(
        offered,
        [Delivery {
            id: ids[0],
            turn,
            session,
            route: to,
            parts,
            attempt: 1
        }]
    );
}

pub async fn only_the_accounts_deliveries_are_offered(f: &Fixture) {
    let talk = f.talk();
    reply(&talk, "hi", &[route("chat")]).await;
    let other = AccountId::parse("another").unwrap();
    assert!(
        f.store
            .claim_deliveries(talk.tenant, &other, 10, LEASE_MS)
            .await
            .unwrap()
            .is_empty()
    );
}

pub async fn a_route_gets_its_deliveries_in_order(f: &Fixture) {
    let talk = f.talk();
    let (_, first) = reply(&talk, "1", &[route("a"), route("a"), route("b")]).await;
    let (_, second) = reply(&talk, "2", &[route("b")]).await;
    assert_eq!(offered(&talk).await, [(first[0], 1), (first[2], 1)]);
    assert!(offered(&talk).await.is_empty(), "both are under a lease");
    f.store
        .ack_delivery(talk.tenant, first[2], None, &Ack::Delivered)
        .await
        .unwrap();
    assert_eq!(offered(&talk).await, [(second[0], 1)]);
    f.store
        .ack_delivery(
            talk.tenant,
            first[0],
            None,
            &Ack::Dead {
                detail: "blocked".to_owned(),
            },
        )
        .await
        .unwrap();
    assert_eq!(offered(&talk).await, [(first[1], 1)]);
}

pub async fn a_limit_is_kept(f: &Fixture) {
    let talk = f.talk();
    let (_, ids) = reply(&talk, "1", &[route("a"), route("b")]).await;
    let account = route("x").account;
    let one = f
        .store
        .claim_deliveries(talk.tenant, &account, 1, LEASE_MS)
        .await
        .unwrap();
    assert_eq!((one.len(), one[0].id), (1, ids[0]));
    assert_eq!(offered(&talk).await, [(ids[1], 1)]);
}

pub async fn an_unknown_end_is_offered_again(f: &Fixture) {
    let talk = f.talk();
    let (_, ids) = reply(&talk, "1", &[route("a"), route("a")]).await;
    assert_eq!(offered(&talk).await, [(ids[0], 1)]);
    f.advance(LEASE_MS - 1).await;
    assert!(offered(&talk).await.is_empty());
    f.advance(1).await;
    assert_eq!(offered(&talk).await, [(ids[0], 2)]);
}

pub async fn a_retry_waits_for_its_delay(f: &Fixture) {
    let talk = f.talk();
    let (_, ids) = reply(&talk, "1", &[route("a"), route("a")]).await;
    offered(&talk).await;
    let retry = Ack::Retry {
        delay_ms: 2_000,
        detail: "rate".to_owned(),
    };
    f.store
        .ack_delivery(talk.tenant, ids[0], None, &retry)
        .await
        .unwrap();
    f.advance(1_999).await;
    assert!(offered(&talk).await.is_empty(), "the next one waits behind it");
    f.advance(1).await;
    assert_eq!(offered(&talk).await, [(ids[0], 2)]);
}

pub async fn an_ended_delivery_stays_ended(f: &Fixture) {
    let talk = f.talk();
    let (_, ids) = reply(&talk, "1", &[route("a")]).await;
    offered(&talk).await;
    f.store
        .ack_delivery(talk.tenant, ids[0], None, &Ack::Delivered)
        .await
        .unwrap();
    let retry = Ack::Retry {
        delay_ms: 0,
        detail: String::new(),
    };
    f.store
        .ack_delivery(talk.tenant, ids[0], None, &retry)
        .await
        .unwrap();
    f.advance(LEASE_MS).await;
    assert!(offered(&talk).await.is_empty());
    refused(
        f.store
            .ack_delivery(talk.tenant, DeliveryId::new(), None, &Ack::Delivered)
            .await,
        Reason::NotFound,
    );
}

pub async fn a_bound_caller_acks_only_its_accounts_deliveries(f: &Fixture) {
    let talk = f.talk();
    let (_, ids) = reply(&talk, "1", &[route("a")]).await;
    let own = route("a").account;
    offered(&talk).await;
    let ack = async |account: &AccountId| {
        let dead = Ack::Dead {
            detail: String::new(),
        };
        f.store
            .ack_delivery(talk.tenant, ids[0], Some(account), &dead)
            .await
    };
    refused(ack(&AccountId::random()).await, Reason::NotFound);
    f.advance(LEASE_MS).await;
    assert_eq!(offered(&talk).await, [(ids[0], 2)], "it was left alone");
    ack(&own).await.unwrap();
    f.advance(LEASE_MS).await;
    assert!(offered(&talk).await.is_empty());
}
