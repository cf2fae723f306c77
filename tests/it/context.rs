//! Contexts over the wire: receipts, the same bytes again, what past calls teach.

use colloquy_client::{Answer, Client, v1};
use colloquy_tests::both_ways;
use colloquy_tests::people::Tenant;
use colloquy_tests::server::Server;
use colloquy_types::EntryBody;
use colloquy_types::message::{Message, Part, Role, ToolCall};
use serde_json::{Value, json};
use std::time::Duration;
use tonic::Code;
use v1::build_context_request::Subject;

both_ways! {
    a_build_is_made_again_whatever_came_since,
    another_policy_is_previewed_and_changes_nothing,
    reports_of_the_provider_correct_the_counts,
}

const SOON: Duration = Duration::from_secs(30);

/// A turn in hand.
struct Hand {
    worker: Client,
    turn: v1::Turn,
}

impl Hand {
    async fn take(tenant: &Tenant, server: &Server) -> Self {
        let worker = tenant.worker_client(&server.operator);
        let ask = v1::AcquireTurnRequest {
            worker: "by hand".into(),
            wait: Some(colloquy_proto::convert::duration(20_000)),
            ..Default::default()
        };
        let turn = worker.router().acquire_turn(ask).await.unwrap().into_inner().turn;
        Self {
            worker,
            turn: turn.unwrap(),
        }
    }

    fn request(&self) -> v1::BuildContextRequest {
        v1::BuildContextRequest {
            subject: Some(Subject::TurnId(self.turn.turn_id.clone())),
            fence: self.turn.fence,
            window_tokens: 100_000,
            format: v1::ContextFormat::Anthropic.into(),
            model: "claude-test".into(),
            recall_block: "What is remembered: the shop closes at six.".into(),
            ..Default::default()
        }
    }

    async fn stage(&self, first: i64, messages: Vec<Message>) {
        let stage = v1::StageEntriesRequest {
            turn_id: self.turn.turn_id.clone(),
            fence: self.turn.fence,
            first,
            entries: messages
                .into_iter()
                .map(|message| EntryBody::Message(message).into())
                .collect(),
        };
        self.worker.history().stage_entries(stage).await.unwrap();
    }

    async fn commit(&self, text: &str, context_tokens: i64) {
        let answer = Answer::text(text);
        let commit = v1::CommitTurnRequest {
            turn_id: self.turn.turn_id.clone(),
            fence: self.turn.fence,
            entries: answer.entries,
            reply: answer.reply,
            usage: Some(v1::Usage {
                context_tokens,
                window_tokens: 100_000,
                ..Default::default()
            }),
            ..Default::default()
        };
        self.worker.router().commit_turn(commit).await.unwrap();
    }
}

fn tool_work() -> Vec<Message> {
    let call = ToolCall {
        id: "call_1".into(),
        name: "look".into(),
        arguments: "{\"shelf\":9}".into(),
    };
    vec![
        Message::new(Role::Assistant, vec![Part::ToolCall(call)]),
        Message::tool_result("call_1", "look", "blue paint. ".repeat(900)),
    ]
}

async fn a_build_is_made_again_whatever_came_since(server: Server) {
    let overrides = json!({"queue": {"debounce_ms": 0}, "compaction": {"enabled": false}});
    let tenant = Tenant::create(&server.operator, &server.http, overrides).await;
    let mut made: Vec<(String, u32, Vec<u8>)> = Vec::new();
    for number in 1..=5 {
        tenant.say(5, number, &format!("question {number}")).await;
        let hand = Hand::take(&tenant, &server).await;
        for (build, staged) in [(1, tool_work()), (2, vec![])] {
            let built = hand.worker.build_context(&hand.request()).await.unwrap();
            assert_eq!(built.header.build, build);
            made.push((hand.turn.turn_id.clone(), build, built.body));
            if !staged.is_empty() {
                hand.stage(1, staged).await;
            }
        }
        // While the turn still runs, too.
        again(&tenant.admin, &made[made.len() - 2..]).await;
        hand.commit(&format!("answer {number}"), 0).await;
    }
    again(&tenant.admin, &made).await;
    let other =
        json!({"queue": {"debounce_ms": 0}, "context": {"limit_turns": 1, "prune": {"enabled": false}}});
    put_agent(&tenant, &other).await;
    compact(&tenant).await;
    tenant.say(5, 6, "question 6").await;
    let hand = Hand::take(&tenant, &server).await;
    let built = hand.worker.build_context(&hand.request()).await.unwrap();
    made.push((hand.turn.turn_id.clone(), 1, built.body));
    hand.commit("answer 6", 0).await;
    again(&tenant.admin, &made).await;
    let bytes: std::collections::HashSet<&[u8]> = made.iter().map(|(_, _, body)| body.as_slice()).collect();
    assert_eq!(bytes.len(), made.len(), "builds that differ");
    let missing = v1::GetReceiptRequest {
        turn_id: made[0].0.clone(),
        build: 9,
    };
    let status = tenant.admin.history().get_receipt(missing).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
}

/// Every build gives its bytes again, and its receipt says so.
async fn again(client: &Client, made: &[(String, u32, Vec<u8>)]) {
    for (turn_id, build, body) in made {
        let ask = v1::RebuildContextRequest {
            turn_id: turn_id.clone(),
            build: *build,
        };
        let (rebuilt, matches) = client.rebuild_context(&ask).await.unwrap();
        let (then, now) = (
            String::from_utf8_lossy(body),
            String::from_utf8_lossy(&rebuilt.body),
        );
        assert_eq!(then, now, "build {build} of {turn_id}");
        assert!(matches);
        let ask = v1::GetReceiptRequest {
            turn_id: turn_id.clone(),
            build: *build,
        };
        let receipt = client.history().get_receipt(ask).await.unwrap().into_inner();
        let receipt: Value = serde_json::from_str(&receipt.receipt_json).unwrap();
        assert_eq!(receipt["sha256"], rebuilt.header.sha256.as_str());
    }
}

async fn put_agent(tenant: &Tenant, overrides: &Value) {
    let agent = v1::Agent {
        agent_id: "default".into(),
        policy: Some(v1::Policy {
            profile: String::new(),
            overrides_json: overrides.to_string(),
        }),
        ..Default::default()
    };
    let put = v1::PutAgentRequest { agent: Some(agent) };
    tenant.admin.control().put_agent(put).await.unwrap();
}

async fn compact(tenant: &Tenant) {
    let session = tenant.session(5).await.unwrap();
    let compact = v1::CompactRequest {
        session_id: session.session_id,
        wait: Some(colloquy_proto::convert::duration(20_000)),
        ..Default::default()
    };
    tenant.admin.compactor().compact(compact).await.unwrap();
    assert_eq!(tenant.session(5).await.unwrap().compactions, 1);
}

async fn another_policy_is_previewed_and_changes_nothing(server: Server) {
    let overrides = json!({"queue": {"debounce_ms": 0}});
    let tenant = Tenant::create(&server.operator, &server.http, overrides).await;
    let echo = tenant.start_echo(&server.operator, Duration::ZERO);
    for number in 1..=4 {
        tenant.say(5, number, &format!("question {number}")).await;
        tenant.settled(5, SOON).await;
    }
    echo.stop().await;
    let session = tenant.session(5).await.unwrap();
    let ask = |policy: &str| v1::BuildContextRequest {
        subject: Some(Subject::SessionId(session.session_id.clone())),
        policy_json: policy.into(),
        ..Default::default()
    };
    let build = async |policy: &str| tenant.admin.build_context(&ask(policy)).await;
    let now = build("").await.unwrap();
    let then = build(r#"{"context":{"limit_turns":1}}"#).await.unwrap();
    assert_eq!((now.header.messages, then.header.messages), (8, 2));
    assert!(then.header.expected_tokens < now.header.expected_tokens);
    assert_eq!(build("").await.unwrap().body, now.body);
    let wrong = build(r#"{"context":{"limit_turn":1}}"#).await.unwrap_err();
    assert_eq!(
        (wrong.code, wrong.field.as_deref()),
        (Code::InvalidArgument, Some("context.limit_turn"))
    );
    tenant.say(5, 5, "question 5").await;
    let hand = Hand::take(&tenant, &server).await;
    let mut request = hand.request();
    request.policy_json = r#"{"context":{"limit_turns":1}}"#.into();
    let refused = hand.worker.build_context(&request).await.unwrap_err();
    assert_eq!(refused.field.as_deref(), Some("policy_json"));
}

async fn reports_of_the_provider_correct_the_counts(server: Server) {
    let overrides = json!({"queue": {"debounce_ms": 0}});
    let tenant = Tenant::create(&server.operator, &server.http, overrides).await;
    let filler = "the red bicycle waits at dock seven for its new chain. ".repeat(60);
    let counted = |header: &v1::ContextHeader| i64::from(header.tokens_out + header.overhead_tokens);
    // A provider that counts half as much again as we do.
    for number in 1..=8 {
        tenant.say(5, number, &format!("{number}: {filler}")).await;
        let hand = Hand::take(&tenant, &server).await;
        let built = hand.worker.build_context(&hand.request()).await.unwrap();
        hand.commit(
            &format!("answer {number}: {filler}"),
            counted(&built.header) * 3 / 2,
        )
        .await;
    }
    // Anchored: the last report, and what is new.
    tenant.say(5, 9, "and now?").await;
    let hand = Hand::take(&tenant, &server).await;
    let built = hand.worker.build_context(&hand.request()).await.unwrap();
    let (expected, plain) = (i64::from(built.header.expected_tokens), counted(&built.header));
    let real = plain * 3 / 2;
    assert!(
        (expected - real).abs() * 20 < real,
        "{expected} of {real}, counted {plain}"
    );
    hand.commit("answer 9", 0).await;
    // Calibrated: another session of the tenant and model, of which nothing was reported.
    let waited = tokio::time::timeout(SOON, async {
        for number in 1.. {
            tenant.say(6, number, &format!("{number}: {filler}")).await;
            let hand = Hand::take(&tenant, &server).await;
            let header = hand.worker.build_context(&hand.request()).await.unwrap().header;
            hand.commit("answer", 0).await;
            // What is learned is in use within seconds on every replica.
            if i64::from(header.expected_tokens) * 100 >= counted(&header) * 130 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    });
    waited.await.expect("the counts are corrected");
}
