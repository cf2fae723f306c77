//! Channel accounts: refused webhooks, credentials bound to one account, secrets, generic webhooks.

use colloquy_client::v1;
use colloquy_ingress::channel::generic;
use colloquy_tests::both_ways;
use colloquy_tests::people::{Tenant, update};
use colloquy_tests::server::Server;
use serde_json::{Value, json};
use std::time::Duration;
use tonic::{Code, Status};

both_ways! {
    a_webhook_into_a_full_queue_is_recorded_as_dropped,
    a_webhook_into_a_busy_session_that_rejects_is_recorded_as_dropped,
    a_channel_key_acknowledges_its_own_accounts_deliveries_only,
    a_channel_key_without_an_account_is_refused,
    an_unknown_account_is_not_put,
    an_update_of_an_account_keeps_its_secret,
    equal_chats_and_ids_joined_otherwise_are_two_messages,
}

const SOON: Duration = Duration::from_secs(20);

async fn outcomes(tenant: &Tenant, session_id: &str) -> Vec<(String, v1::Outcome)> {
    let ask = v1::GetQueueRequest {
        session_id: session_id.to_owned(),
        outcomes: 50,
    };
    let queue = tenant.admin.router().get_queue(ask).await.unwrap().into_inner();
    let outcome = |found: v1::MessageOutcome| (found.message_id.clone(), found.outcome());
    queue.outcomes.into_iter().map(outcome).collect()
}

/// Posts what cannot be taken: told so with a 200, on record, and known when it comes again.
async fn dropped(tenant: &Tenant, chat: i64, message_id: i64) {
    let body = update(chat, message_id, "one too many").to_string();
    let (status, refused) = tenant.post_raw(body.clone()).await;
    assert_eq!((status, &refused["ok"]), (200, &json!(false)), "{refused}");
    assert_eq!(refused["placement"], "DROPPED", "{refused}");
    let session = refused["session_id"].as_str().unwrap();
    let dropped = (
        refused["message_id"].as_str().unwrap().to_owned(),
        v1::Outcome::DroppedQueueFull,
    );
    assert!(outcomes(tenant, session).await.contains(&dropped));
    let (status, again) = tenant.post_raw(body).await;
    assert_eq!(
        (status, &again["placement"]),
        (200, &json!("DUPLICATE")),
        "{again}"
    );
    assert_eq!(again["message_id"], refused["message_id"]);
    let recorded = outcomes(tenant, session).await;
    assert_eq!(recorded.iter().filter(|row| **row == dropped).count(), 1);
}

async fn a_webhook_into_a_full_queue_is_recorded_as_dropped(server: Server) {
    let overrides = json!({"queue": {"debounce_ms": 0, "capacity": 1, "drop": "new"}});
    let tenant = Tenant::create(&server.operator, &server.http, overrides).await;
    tenant.say(5, 1, "first").await;
    dropped(&tenant, 5, 2).await;
    assert_eq!(tenant.session(5).await.unwrap().waiting, 1);
}

async fn a_webhook_into_a_busy_session_that_rejects_is_recorded_as_dropped(server: Server) {
    let overrides = json!({"queue": {"debounce_ms": 0, "mode": "reject"}});
    let tenant = Tenant::create(&server.operator, &server.http, overrides).await;
    tenant.say(5, 1, "first").await;
    dropped(&tenant, 5, 2).await;
    let echo = tenant.start_echo(&server.operator, Duration::ZERO);
    tenant.settled(5, SOON).await;
    echo.stop().await;
    // What was refused is not answered later.
    let talk = tenant.talk(5).await;
    assert_eq!(talk.len(), 2, "{talk:?}");
}

fn account(name: &str, channel: &str) -> v1::ChannelAccount {
    v1::ChannelAccount {
        channel: channel.into(),
        agent: "default".into(),
        name: name.into(),
        ..Default::default()
    }
}

async fn put(tenant: &Tenant, account: v1::ChannelAccount) -> Result<v1::PutChannelAccountResponse, Status> {
    let ask = v1::PutChannelAccountRequest {
        account: Some(account),
    };
    let put = tenant.admin.control().put_channel_account(ask).await;
    put.map(tonic::Response::into_inner)
}

async fn create_key(tenant: &Tenant, roles: &[v1::Role], account: &str) -> Result<String, Status> {
    let ask = v1::CreateApiKeyRequest {
        name: "adapter".into(),
        roles: roles.iter().map(|role| (*role).into()).collect(),
        account: account.into(),
        ..Default::default()
    };
    let created = tenant.admin.control().create_api_key(ask).await;
    created.map(|created| created.into_inner().secret)
}

async fn a_channel_key_acknowledges_its_own_accounts_deliveries_only(server: Server) {
    let overrides = json!({"queue": {"debounce_ms": 0}});
    let tenant = Tenant::create(&server.operator, &server.http, overrides).await;
    let other = put(&tenant, account("other", "telegram"))
        .await
        .unwrap()
        .account
        .unwrap();
    let echo = tenant.start_echo(&server.operator, Duration::ZERO);
    tenant.say(5, 1, "hello").await;
    tenant.settled(5, SOON).await;
    echo.stop().await;
    let channel = [v1::Role::Channel];
    let own = create_key(&tenant, &channel, &tenant.account).await.unwrap();
    let foreign = create_key(&tenant, &channel, &other.account_id).await.unwrap();
    let (own, foreign) = (server.connect(&own), server.connect(&foreign));
    let stream = || v1::StreamDeliveriesRequest {
        account: tenant.account.clone(),
    };
    let refused = foreign.ingress().stream_deliveries(stream()).await.map(drop);
    assert_eq!(refused.unwrap_err().code(), Code::NotFound);
    let mut offered = own
        .ingress()
        .stream_deliveries(stream())
        .await
        .unwrap()
        .into_inner();
    let delivery = offered.message().await.unwrap().unwrap().delivery.unwrap();
    let ack = |result: v1::DeliveryResult| v1::AckDeliveryRequest {
        delivery_id: delivery.delivery_id.clone(),
        result: result.into(),
        ..Default::default()
    };
    for result in [
        v1::DeliveryResult::Delivered,
        v1::DeliveryResult::Retry,
        v1::DeliveryResult::Dead,
    ] {
        let refused = foreign.ingress().ack_delivery(ack(result)).await.unwrap_err();
        assert_eq!(refused.code(), Code::NotFound, "{refused}");
    }
    own.ingress()
        .ack_delivery(ack(v1::DeliveryResult::Delivered))
        .await
        .unwrap();
}

async fn a_channel_key_without_an_account_is_refused(server: Server) {
    let tenant = Tenant::create(&server.operator, &server.http, json!({})).await;
    for roles in [
        &[v1::Role::Channel][..],
        &[v1::Role::Channel, v1::Role::User],
        &[v1::Role::Agent, v1::Role::Channel],
    ] {
        let refused = create_key(&tenant, roles, "").await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{roles:?}: {refused}");
        let field = colloquy_client::Error::from(refused).field;
        assert_eq!(field.as_deref(), Some("account"), "{roles:?}");
    }
}

async fn an_unknown_account_is_not_put(server: Server) {
    let tenant = Tenant::create(&server.operator, &server.http, json!({})).await;
    for id in ["acc_nobody", &tenant.account.replace('_', "-"), "my own choice"] {
        let named = v1::ChannelAccount {
            account_id: id.into(),
            ..account("chosen", "telegram")
        };
        let refused = put(&tenant, named).await.unwrap_err();
        assert_eq!(refused.code(), Code::NotFound, "{id}: {refused}");
    }
    let listed = tenant
        .admin
        .control()
        .list_channel_accounts(v1::ListChannelAccountsRequest {})
        .await
        .unwrap()
        .into_inner();
    assert_eq!(listed.accounts.len(), 1);
}

async fn an_update_of_an_account_keeps_its_secret(server: Server) {
    let tenant = Tenant::create(&server.operator, &server.http, json!({})).await;
    let renamed = v1::ChannelAccount {
        account_id: tenant.account.clone(),
        ..account("renamed", "telegram")
    };
    let stored = put(&tenant, renamed.clone()).await.unwrap();
    assert!(tenant.webhook.ends_with(&stored.webhook_path));
    let stored = stored.account.unwrap();
    assert_eq!(
        (stored.account_id.as_str(), stored.name.as_str()),
        (tenant.account.as_str(), "renamed")
    );
    assert_eq!(
        tenant.say(5, 1, "with the old secret").await["placement"],
        "QUEUED"
    );
    // A secret that is given replaces it.
    let changed = v1::ChannelAccount {
        secret: "another-secret".into(),
        ..renamed
    };
    assert_eq!(
        put(&tenant, changed).await.unwrap().account.unwrap().secret,
        "another-secret"
    );
}

async fn equal_chats_and_ids_joined_otherwise_are_two_messages(server: Server) {
    let overrides = json!({"queue": {"debounce_ms": 0}});
    let tenant = Tenant::create(&server.operator, &server.http, overrides).await;
    let put = put(&tenant, account("own", "shop")).await.unwrap();
    let (url, secret) = (
        format!("{}{}", server.http, put.webhook_path),
        put.account.unwrap().secret,
    );
    let post = async |chat: &str, id: &str| {
        let body = json!({"id": id, "chat": chat, "kind": "direct", "sender": {"id": "p"}, "text": "hi"})
            .to_string();
        let signature = generic::sign(body.as_bytes(), &secret);
        let call = tenant
            .http
            .post(&url)
            .header(generic::SIGNATURE_HEADER, signature);
        let answer = call.body(body).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 200);
        answer.json::<Value>().await.unwrap()
    };
    let (one, other) = (post("a:b", "c").await, post("a", "b:c").await);
    for answer in [&one, &other] {
        assert_eq!(
            (&answer["ok"], &answer["placement"]),
            (&json!(true), &json!("QUEUED")),
            "{answer}"
        );
    }
    assert_ne!(one["message_id"], other["message_id"]);
    assert_ne!(one["session_id"], other["session_id"]);
    let again = post("a:b", "c").await;
    assert_eq!(again["placement"], "DUPLICATE", "{again}");
    assert_eq!(again["message_id"], one["message_id"]);
}
