//! Bad input: a clear status each, nothing stored, nothing crashed.

use colloquy_client::v1;
use colloquy_tests::both_ways;
use colloquy_tests::people::{Tenant, check_echoes, update};
use colloquy_tests::raw::{Caller, call};
use colloquy_tests::server::Server;
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::{Code, Request};

both_ways! {
    webhooks_answer_bad_bodies_clearly,
    a_body_that_is_too_large_is_refused_as_soon_as_it_is,
    a_call_that_is_no_text_or_too_large_is_refused,
    a_submit_with_a_deadline_of_a_millisecond_can_be_repeated,
    submits_answer_bad_requests_clearly,
    a_deadline_of_a_millisecond_is_kept_and_harms_nothing,
    an_idempotency_key_stands_for_one_content,
    a_policy_that_cannot_work_is_refused_with_its_path,
}

fn submit(target: v1::submit_request::Target, text: &str) -> v1::SubmitRequest {
    v1::SubmitRequest {
        target: Some(target),
        sender: Some(v1::Author {
            id: "p".into(),
            name: String::new(),
        }),
        message: Some(v1::Message {
            role: v1::MessageRole::User.into(),
            parts: vec![v1::Part {
                part: Some(v1::part::Part::Text(text.into())),
            }],
            ..Default::default()
        }),
        idempotency_key: format!("key of {:?}", text.chars().take(20).collect::<String>()),
        ..Default::default()
    }
}

fn key(text: &str) -> v1::submit_request::Target {
    v1::submit_request::Target::SessionKey(text.into())
}

async fn nothing_stored(tenant: &Tenant) {
    let listed = tenant
        .admin
        .history()
        .list_sessions(v1::ListSessionsRequest::default())
        .await
        .unwrap();
    assert!(listed.into_inner().sessions.is_empty());
}

async fn webhooks_answer_bad_bodies_clearly(server: Server) {
    let tenant = Tenant::create(&server.operator, &server.http, json!({})).await;
    let good = update(5, 1, "hello").to_string();
    let post = |secret: Option<&str>, body: Vec<u8>| {
        let mut call = tenant.http.post(&tenant.webhook).body(body);
        if let Some(secret) = secret {
            call = call.header("x-telegram-bot-api-secret-token", secret);
        }
        async move { call.send().await.unwrap().status().as_u16() }
    };
    let secret = Some(tenant.secret.as_str());
    assert_eq!(post(None, good.clone().into()).await, 401);
    assert_eq!(post(Some("wrong"), good.clone().into()).await, 401);
    assert_eq!(post(secret, b"{".to_vec()).await, 400);
    assert_eq!(post(secret, b"\xff\xfe\x00".to_vec()).await, 400);
    // An update that will never be better is not asked for again, or the bot's queue would stand still.
    let no_chat = json!({"update_id": 1, "message": {"text": "x"}});
    let blank = json!({"update_id": 1, "message": {"message_id": 1, "text": "x", "chat": {"id": " ", "type": "private"}}});
    for (body, field) in [(no_chat, "message.chat.id"), (blank, "message.chat.id")] {
        let (status, answer) = tenant.post_raw(body.to_string()).await;
        assert_eq!((status, &answer["ok"]), (200, &json!(false)), "{answer}");
        assert_eq!(
            (&answer["reason"], &answer["field"]),
            (&json!("INVALID_FIELD"), &json!(field))
        );
    }
    // The server may answer before it has read everything, and then close.
    let huge = tenant
        .http
        .post(&tenant.webhook)
        .header("x-telegram-bot-api-secret-token", &tenant.secret);
    match huge.body(vec![b' '; 20 << 20]).send().await {
        Ok(answer) => assert_eq!(answer.status().as_u16(), 413),
        Err(error) => assert!(error.is_request() || error.is_body(), "{error:?}"),
    }
    let elsewhere = format!("{}/v1/channels/telegram/acc_nobody", server.http);
    assert_eq!(
        tenant
            .http
            .post(elsewhere)
            .body(good.clone())
            .send()
            .await
            .unwrap()
            .status()
            .as_u16(),
        404
    );
    let other_channel = tenant.webhook.replace("/telegram/", "/slack/");
    assert_eq!(
        tenant
            .http
            .post(other_channel)
            .body(good)
            .send()
            .await
            .unwrap()
            .status()
            .as_u16(),
        404
    );
    nothing_stored(&tenant).await;
}

async fn a_body_that_is_too_large_is_refused_as_soon_as_it_is(server: Server) {
    let tenant = Tenant::create(&server.operator, &server.http, json!({})).await;
    let host = server.http.trim_start_matches("http://");
    let path = tenant.webhook.trim_start_matches(server.http.as_str());
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n\
         x-telegram-bot-api-secret-token: {}\r\ncontent-length: {}\r\n\r\n",
        tenant.secret,
        20 << 20
    );
    let mut connection = TcpStream::connect(host).await.unwrap();
    connection.write_all(head.as_bytes()).await.unwrap();
    // Nothing of the body: the server knows its length.
    let mut answer = [0; 12];
    let read = tokio::time::timeout(Duration::from_secs(10), connection.read_exact(&mut answer)).await;
    read.expect("an answer before the whole body").unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
    nothing_stored(&tenant).await;
}

async fn a_call_that_is_no_text_or_too_large_is_refused(server: Server) {
    let tenant = Tenant::create(&server.operator, &server.http, json!({})).await;
    let caller = Caller {
        key: tenant.admin_key.clone(),
        tenant: None,
    };
    let path = "/colloquy.v1.HistoryService/ResetSession";
    let channel = &server.channel(path);
    let status = call(channel, path, &caller, b"ses_\xff\xfe".to_vec())
        .await
        .unwrap_err();
    assert!(status.message().contains("UTF-8"), "{status}");
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    assert!(colloquy_client::Error::from(status).is("INVALID_FIELD"));
    let status = call(channel, path, &caller, vec![b'x'; 20 << 20])
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    assert!(colloquy_client::Error::from(status).is("TOO_LARGE"));
    nothing_stored(&tenant).await;
}

async fn a_submit_with_a_deadline_of_a_millisecond_can_be_repeated(server: Server) {
    let tenant = Tenant::create(
        &server.operator,
        &server.http,
        json!({"queue": {"debounce_ms": 0}}),
    )
    .await;
    let admin = server.connect(&tenant.admin_key);
    let target = || key("agent:default:telegram:direct:5");
    let mut hurried = Request::new(submit(target(), "hello"));
    hurried.set_timeout(Duration::from_millis(1));
    // Either way: who was told nothing does not know, and asks again.
    if let Err(status) = admin.ingress().submit(hurried).await {
        assert!(
            matches!(status.code(), Code::DeadlineExceeded | Code::Cancelled),
            "{status}"
        );
    }
    admin.ingress().submit(submit(target(), "hello")).await.unwrap();
    let echo = tenant.start_echo(&server.operator, Duration::ZERO);
    tenant.settled(5, Duration::from_secs(20)).await;
    check_echoes(5, &["hello".into()], &tenant.talk(5).await);
    echo.stop().await;
}

async fn submits_answer_bad_requests_clearly(server: Server) {
    let tenant = Tenant::create(&server.operator, &server.http, json!({})).await;
    let admin = &tenant.admin;
    let app = || key("agent:default:app:p");
    let invalid = |field| (Code::InvalidArgument, Some(field));
    let cases = [
        (
            submit(key("agent:default:app: "), "blank chat"),
            (Code::InvalidArgument, None),
        ),
        (submit(key("nonsense"), "nonsense"), (Code::InvalidArgument, None)),
        (
            submit(key("agent:nobody:app:p"), "unknown agent"),
            (Code::NotFound, None),
        ),
        (submit(app(), ""), invalid("message.parts")),
        (submit(app(), " \n"), invalid("message.parts")),
        (submit(app(), &"x".repeat(2 << 20)), (Code::InvalidArgument, None)),
        (
            v1::SubmitRequest {
                idempotency_key: String::new(),
                ..submit(app(), "no key")
            },
            invalid("idempotency_key"),
        ),
        (
            v1::SubmitRequest {
                target: None,
                ..submit(app(), "no target")
            },
            invalid("target"),
        ),
        (
            v1::SubmitRequest {
                message: None,
                ..submit(app(), "no message")
            },
            invalid("message"),
        ),
    ];
    for (request, (code, field)) in cases {
        let what = request.idempotency_key.clone();
        let status = admin.ingress().submit(request).await.unwrap_err();
        assert_eq!(status.code(), code, "{what}: {status}");
        let error = colloquy_client::Error::from(status);
        assert!(
            field.is_none() || error.field.as_deref() == field,
            "{what}: {error:?}"
        );
    }
    let stranger = server.connect("clq_nobody");
    let status = stranger
        .ingress()
        .submit(submit(key("agent:default:app:p"), "x"))
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::Unauthenticated);
    let worker = tenant.worker_client(&server.operator);
    let status = worker
        .ingress()
        .submit(submit(key("agent:default:app:p"), "x"))
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied);
    nothing_stored(&tenant).await;
}

async fn a_deadline_of_a_millisecond_is_kept_and_harms_nothing(server: Server) {
    let tenant = Tenant::create(
        &server.operator,
        &server.http,
        json!({"queue": {"debounce_ms": 0}}),
    )
    .await;
    let network = server.connect(&tenant.agent_key);
    let wait = Some(colloquy_proto::convert::duration(20_000));
    let mut ask = Request::new(v1::AcquireTurnRequest {
        worker: "w".into(),
        wait,
        ..Default::default()
    });
    ask.set_timeout(Duration::from_millis(1));
    let before = tokio::time::Instant::now();
    let status = network.router().acquire_turn(ask).await.unwrap_err();
    assert!(
        matches!(status.code(), Code::DeadlineExceeded | Code::Cancelled),
        "{status}"
    );
    assert!(before.elapsed() < Duration::from_secs(5));
    // The server goes on.
    let echo = tenant.start_echo(&server.operator, Duration::ZERO);
    tenant.say(5, 1, "hello").await;
    tenant.settled(5, Duration::from_secs(20)).await;
    check_echoes(5, &["hello".into()], &tenant.talk(5).await);
    echo.stop().await;
}

async fn an_idempotency_key_stands_for_one_content(server: Server) {
    let tenant = Tenant::create(&server.operator, &server.http, json!({})).await;
    let mut request = submit(key("agent:default:app:p"), "one");
    let first = tenant
        .admin
        .ingress()
        .submit(request.clone())
        .await
        .unwrap()
        .into_inner()
        .accepted
        .unwrap();
    let again = tenant
        .admin
        .ingress()
        .submit(request.clone())
        .await
        .unwrap()
        .into_inner()
        .accepted
        .unwrap();
    assert_eq!(
        (again.placement(), again.message_id),
        (v1::Placement::Duplicate, first.message_id)
    );
    request.message.as_mut().unwrap().parts[0].part = Some(v1::part::Part::Text("two".into()));
    let status = tenant.admin.ingress().submit(request).await.unwrap_err();
    assert_eq!(status.code(), Code::AlreadyExists);
}

async fn a_policy_that_cannot_work_is_refused_with_its_path(server: Server) {
    let tenant = Tenant::create(&server.operator, &server.http, json!({})).await;
    for (overrides, path) in [
        ("{\"queue\":{\"capacity\":0}}", "queue.capacity"),
        ("{\"quue\":{}}", "quue"),
        ("{", "overrides_json"),
    ] {
        let policy = v1::Policy {
            profile: String::new(),
            overrides_json: overrides.into(),
        };
        let agent = v1::Agent {
            agent_id: "a".into(),
            policy: Some(policy),
            ..Default::default()
        };
        let status = tenant
            .admin
            .control()
            .put_agent(v1::PutAgentRequest { agent: Some(agent) })
            .await
            .unwrap_err();
        let error = colloquy_client::Error::from(status);
        assert!(error.field.as_deref().unwrap().ends_with(path), "{error:?}");
    }
}
