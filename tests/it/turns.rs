//! One message, one turn, one answer.

use colloquy_client::{Answer, Client, v1};
use colloquy_tests::both_ways;
use colloquy_tests::people::{Tenant, check_echoes, update};
use colloquy_tests::server::Server;
use colloquy_types::message::Role;
use serde_json::json;
use std::time::Duration;
use tonic::Code;

both_ways! {
    an_update_posted_three_times_is_one_turn,
    message_seven_of_two_chats_is_two_turns,
    two_messages_at_the_same_instant_are_one_turn_with_both_texts,
    a_worker_that_lost_its_lease_cannot_commit,
    a_stopped_turn_refuses_its_commit_and_leaves_its_message,
    commands_are_obeyed,
    a_worker_chooses_its_lease,
    an_agent_that_gives_up_keeps_its_entries_and_sends_its_excuse,
}

const SOON: Duration = Duration::from_secs(20);

async fn acquire(client: &Client) -> Option<v1::Turn> {
    let wait = colloquy_proto::convert::duration(5_000);
    let ask = v1::AcquireTurnRequest {
        agents: vec![],
        worker: "by hand".into(),
        wait: Some(wait),
        ..Default::default()
    };
    client.router().acquire_turn(ask).await.unwrap().into_inner().turn
}

async fn commit(
    client: &Client,
    turn: &v1::Turn,
    text: &str,
) -> Result<v1::CommitTurnResponse, tonic::Status> {
    let answer = Answer::text(text);
    let ask = v1::CommitTurnRequest {
        turn_id: turn.turn_id.clone(),
        fence: turn.fence,
        entries: answer.entries,
        reply: answer.reply,
        ..Default::default()
    };
    client
        .router()
        .commit_turn(ask)
        .await
        .map(tonic::Response::into_inner)
}

async fn an_update_posted_three_times_is_one_turn(server: Server) {
    let tenant = Tenant::create(
        &server.operator,
        &server.http,
        json!({"queue": {"debounce_ms": 0}}),
    )
    .await;
    let body = update(5, 1, "hello").to_string();
    let (first, second) = tokio::join!(tenant.post_raw(body.clone()), tenant.post_raw(body.clone()));
    let third = tenant.post_raw(body).await;
    let ids: Vec<&str> = [&first, &second, &third]
        .iter()
        .map(|(_, answer)| answer["message_id"].as_str().unwrap())
        .collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    let placements =
        [&first, &second, &third].map(|(_, answer)| answer["placement"].as_str().unwrap().to_owned());
    assert_eq!(
        placements
            .iter()
            .filter(|placement| *placement == "DUPLICATE")
            .count(),
        2,
        "{placements:?}"
    );
    let echo = tenant.start_echo(&server.operator, Duration::ZERO);
    tenant.settled(5, SOON).await;
    check_echoes(5, &["hello".into()], &tenant.talk(5).await);
    echo.stop().await;
}

async fn message_seven_of_two_chats_is_two_turns(server: Server) {
    let tenant = Tenant::create(
        &server.operator,
        &server.http,
        json!({"queue": {"debounce_ms": 0}}),
    )
    .await;
    let echo = tenant.start_echo(&server.operator, Duration::ZERO);
    for chat in [1, 2] {
        tenant.say(chat, 7, &format!("from {chat}")).await;
    }
    for chat in [1, 2] {
        tenant.settled(chat, SOON).await;
        check_echoes(chat, &[format!("from {chat}")], &tenant.talk(chat).await);
    }
    echo.stop().await;
}

async fn two_messages_at_the_same_instant_are_one_turn_with_both_texts(server: Server) {
    let tenant = Tenant::create(
        &server.operator,
        &server.http,
        json!({"queue": {"debounce_ms": 600}}),
    )
    .await;
    tokio::join!(tenant.say(5, 1, "one"), tenant.say(5, 2, "two"));
    let worker = tenant.worker_client(&server.operator);
    let turn = acquire(&worker).await.unwrap();
    assert_eq!(turn.messages.len(), 2);
    commit(&worker, &turn, "both").await.unwrap();
    let talk = tenant.talk(5).await;
    let mut said: Vec<&str> = talk
        .iter()
        .filter(|(role, _)| *role == Role::User)
        .map(|(_, text)| text.as_str())
        .collect();
    said.sort_unstable();
    assert_eq!(said, ["one", "two"]);
    assert_eq!(talk.len(), 3);
}

async fn a_worker_that_lost_its_lease_cannot_commit(server: Server) {
    let overrides = json!({"queue": {"debounce_ms": 0, "lease_ms": 1_000, "retry_ms": 0}});
    let tenant = Tenant::create(&server.operator, &server.http, overrides).await;
    tenant.say(5, 1, "hello").await;
    let worker = tenant.worker_client(&server.operator);
    let slow = acquire(&worker).await.unwrap();
    // Confirmed, so that the lease and not the offer runs out.
    let renew = v1::RenewTurnRequest {
        turn_id: slow.turn_id.clone(),
        fence: slow.fence,
        steer_through: 0,
    };
    worker.router().renew_turn(renew).await.unwrap();
    let quick = acquire(&worker).await.unwrap();
    assert_eq!((quick.turn_id.clone(), quick.attempt), (slow.turn_id.clone(), 2));
    assert!(quick.fence > slow.fence);
    let refused = commit(&worker, &slow, "too late").await.unwrap_err();
    assert_eq!(refused.code(), Code::Aborted);
    assert!(colloquy_client::Error::from(refused).is("FENCED"));
    commit(&worker, &quick, "in time").await.unwrap();
    let again = commit(&worker, &quick, "in time").await.unwrap();
    assert!(again.replayed);
    let other = commit(&worker, &quick, "other words").await.unwrap_err();
    assert_eq!(other.code(), Code::AlreadyExists);
    let talk = tenant.talk(5).await;
    assert_eq!(talk.last().unwrap().1, "in time");
    assert_eq!(talk.len(), 2);
}

async fn a_stopped_turn_refuses_its_commit_and_leaves_its_message(server: Server) {
    let tenant = Tenant::create(
        &server.operator,
        &server.http,
        json!({"queue": {"debounce_ms": 0}}),
    )
    .await;
    tenant.say(5, 1, "a long task").await;
    let worker = tenant.worker_client(&server.operator);
    let turn = acquire(&worker).await.unwrap();
    let session_id = turn.session_id.clone();
    let stop = v1::StopTurnsRequest {
        session_id,
        scope: v1::StopScope::All.into(),
    };
    let stopped = tenant.admin.router().stop_turns(stop).await.unwrap().into_inner();
    assert_eq!(stopped.stopping_turn_ids, std::slice::from_ref(&turn.turn_id));
    let refused = commit(&worker, &turn, "done").await.unwrap_err();
    assert!(colloquy_client::Error::from(refused).is("CANCELLED"));
    let release = v1::ReleaseTurnRequest {
        turn_id: turn.turn_id.clone(),
        fence: turn.fence,
        kind: v1::ReleaseKind::Retry.into(),
        error: String::new(),
    };
    let released = worker.router().release_turn(release).await.unwrap().into_inner();
    assert_eq!(released.outcome(), v1::Outcome::CancelledStop);
    assert_eq!(tenant.talk(5).await, [(Role::User, "a long task".to_owned())]);
    assert_eq!(tenant.entries(5).await.last().unwrap().body.kind(), "interrupted");
}

async fn commands_are_obeyed(server: Server) {
    let tenant = Tenant::create(
        &server.operator,
        &server.http,
        json!({"queue": {"debounce_ms": 0}}),
    )
    .await;
    let echo = tenant.start_echo(&server.operator, Duration::ZERO);
    tenant.say(5, 1, "before").await;
    tenant.settled(5, SOON).await;
    let old = tenant.session(5).await.unwrap().transcript_id;
    let answer = tenant.say(5, 2, "/new after").await;
    assert_eq!(answer["placement"], "QUEUED");
    tenant.settled(5, SOON).await;
    assert_ne!(tenant.session(5).await.unwrap().transcript_id, old);
    check_echoes(5, &["after".into()], &tenant.talk(5).await);
    assert_eq!(tenant.say(5, 3, "/stop").await["placement"], "COMMAND");
    echo.stop().await;
}

async fn a_worker_chooses_its_lease(server: Server) {
    let overrides = json!({"queue": {"debounce_ms": 0}});
    let tenant = Tenant::create(&server.operator, &server.http, overrides).await;
    tenant.say(5, 1, "hello").await;
    let worker = tenant.worker_client(&server.operator);
    let ask = |lease| v1::AcquireTurnRequest {
        worker: "by hand".into(),
        wait: Some(colloquy_proto::convert::duration(5_000)),
        lease: Some(colloquy_proto::convert::duration(lease)),
        ..Default::default()
    };
    let refused = worker.router().acquire_turn(ask(500)).await.unwrap_err();
    assert_eq!(
        colloquy_client::Error::from(refused).field.as_deref(),
        Some("lease")
    );
    let turn = worker.router().acquire_turn(ask(7_000)).await.unwrap();
    let turn = turn.into_inner().turn.unwrap();
    let renew = v1::RenewTurnRequest {
        turn_id: turn.turn_id,
        fence: turn.fence,
        steer_through: 0,
    };
    let renewed = worker.router().renew_turn(renew).await.unwrap().into_inner();
    assert_eq!(renewed.lease_left.unwrap().seconds, 7);
}

async fn an_agent_that_gives_up_keeps_its_entries_and_sends_its_excuse(server: Server) {
    let overrides = json!({"queue": {"debounce_ms": 0}});
    let tenant = Tenant::create(&server.operator, &server.http, overrides).await;
    tenant.say(5, 1, "hello").await;
    let worker = tenant.worker_client(&server.operator);
    let turn = acquire(&worker).await.unwrap();
    let answer = Answer::text("I cannot reach the booking system.");
    let ask = v1::CommitTurnRequest {
        turn_id: turn.turn_id.clone(),
        fence: turn.fence,
        entries: answer.entries,
        reply: answer.reply,
        status: v1::CommitStatus::Failed.into(),
        ..Default::default()
    };
    let committed = worker.router().commit_turn(ask).await.unwrap().into_inner();
    assert_eq!(committed.deliveries, 1);
    let queue = v1::GetQueueRequest {
        session_id: turn.session_id.clone(),
        outcomes: 1,
    };
    let queue = tenant.admin.router().get_queue(queue).await.unwrap().into_inner();
    assert_eq!(queue.outcomes[0].outcome(), v1::Outcome::Failed);
    assert_eq!(tenant.talk(5).await.len(), 2);
}
