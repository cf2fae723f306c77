//! What lists and look-ups show, and windows of any size.

use colloquy_client::v1;
use colloquy_proto::convert::{millis, timestamp};
use colloquy_tests::both_ways;
use colloquy_tests::people::Tenant;
use colloquy_tests::server::Server;
use serde_json::json;
use std::time::Duration;

both_ways! {
    sessions_are_found_by_person_and_activity,
    a_policy_is_explained_for_a_kind_of_chat,
    a_recall_waits_for_what_was_just_said,
    a_window_of_many_megabytes_is_compacted,
}

const SOON: Duration = Duration::from_secs(60);

async fn sessions_are_found_by_person_and_activity(server: Server) {
    let overrides = json!({"queue": {"debounce_ms": 0}});
    let tenant = Tenant::create(&server.operator, &server.http, overrides).await;
    for chat in [5, 6] {
        tenant.say(chat, 1, "hello").await;
    }
    let list = async |ask: v1::ListSessionsRequest| {
        let page = tenant
            .admin
            .history()
            .list_sessions(ask)
            .await
            .unwrap()
            .into_inner();
        page.sessions
            .into_iter()
            .map(|session| session.key)
            .collect::<Vec<_>>()
    };
    let person = v1::ListSessionsRequest {
        person: "6".into(),
        ..Default::default()
    };
    assert_eq!(list(person).await, ["agent:default:telegram:direct:6"]);
    let last = tenant.session(6).await.unwrap().updated_at.unwrap();
    let since = |seconds: i64| v1::ListSessionsRequest {
        active_since: Some(timestamp(millis(&last).plus(seconds * 1_000))),
        ..Default::default()
    };
    assert_eq!(list(since(-60)).await.len(), 2);
    assert_eq!(list(since(60)).await.len(), 0);
}

async fn a_policy_is_explained_for_a_kind_of_chat(server: Server) {
    let overrides = json!({"reset": {"by_chat_kind": {"group": {"idle": {"minutes": 5}}}}});
    let tenant = Tenant::create(&server.operator, &server.http, overrides).await;
    let explain = async |ask: v1::ExplainPolicyRequest| {
        let values = tenant
            .admin
            .control()
            .explain_policy(ask)
            .await
            .map(|found| found.into_inner().values);
        values.map(|values| {
            values
                .into_iter()
                .find(|value| value.path == "reset.idle.minutes")
        })
    };
    let ask = v1::ExplainPolicyRequest {
        agent_id: "default".into(),
        chat_kind: "group".into(),
        ..Default::default()
    };
    let idle = explain(ask.clone()).await.unwrap().unwrap();
    assert_eq!((idle.value_json.as_str(), idle.origin.as_str()), ("5", "agent"));
    assert_eq!(idle.rule, "reset.by_chat_kind.group.idle.minutes");
    let key = v1::ExplainPolicyRequest {
        session_key: "agent:default:telegram:group:7".into(),
        chat_kind: String::new(),
        ..ask.clone()
    };
    assert_eq!(explain(key).await.unwrap().unwrap(), idle);
    let direct = v1::ExplainPolicyRequest {
        chat_kind: "direct".into(),
        ..ask.clone()
    };
    assert_ne!(
        explain(direct).await.unwrap().map(|idle| idle.value_json),
        Some("5".into())
    );
    for wrong in [("grup", ""), ("", "agent:other:main")] {
        let ask = v1::ExplainPolicyRequest {
            chat_kind: wrong.0.into(),
            session_key: wrong.1.into(),
            ..ask.clone()
        };
        assert_eq!(
            explain(ask).await.unwrap_err().code(),
            tonic::Code::InvalidArgument
        );
    }
}

async fn a_recall_waits_for_what_was_just_said(server: Server) {
    let overrides = json!({"queue": {"debounce_ms": 0}, "memory": {"extract_delay_ms": 300}});
    let tenant = Tenant::create(&server.operator, &server.http, overrides).await;
    let echo = tenant.start_echo(&server.operator, Duration::ZERO);
    tenant.say(5, 1, "Remember: my locker code is 4711.").await;
    tenant.settled(5, SOON).await;
    let session = tenant.session(5).await.unwrap();
    let ask = |entry, wait| v1::RecallRequest {
        session_id: session.session_id.clone(),
        query: "locker code".into(),
        wait_for_entry: entry,
        wait: Some(colloquy_proto::convert::duration(wait)),
        ..Default::default()
    };
    let recall = async |ask| tenant.admin.memory().recall(ask).await.unwrap().into_inner();
    let found = recall(ask(session.head_seq, 20_000)).await;
    assert!(found.extracted_through >= session.head_seq);
    assert!(found.block.contains("4711"), "{}", found.block);
    // An entry that is never written: the wait ends, and what is known is answered.
    let late = recall(ask(session.head_seq + 100, 300)).await;
    assert!(late.extracted_through < session.head_seq + 100);
    assert!(late.block.contains("4711"));
    echo.stop().await;
}

async fn a_window_of_many_megabytes_is_compacted(server: Server) {
    let overrides = json!({"queue": {"debounce_ms": 0}, "compaction": {"enabled": false}});
    let tenant = Tenant::create(&server.operator, &server.http, overrides).await;
    let echo = tenant.start_echo(&server.operator, Duration::ZERO);
    let filler = "the shelf in aisle nine holds blue paint. ".repeat(6_000);
    for turn in 1..=8 {
        tenant.say(5, turn, &format!("note {turn}: {filler}")).await;
        tenant.settled(5, SOON).await;
    }
    let session = tenant.session(5).await.unwrap();
    let compact = v1::CompactRequest {
        session_id: session.session_id.clone(),
        ..Default::default()
    };
    let job = tenant
        .admin
        .compactor()
        .compact(compact)
        .await
        .unwrap()
        .into_inner()
        .job
        .unwrap();
    let ask = v1::GetJobRequest { job_id: job.job_id };
    let ended = tokio::time::timeout(SOON, async {
        loop {
            let job = tenant
                .admin
                .compactor()
                .get_job(ask.clone())
                .await
                .unwrap()
                .into_inner()
                .job
                .unwrap();
            match job.state() {
                v1::JobState::Queued | v1::JobState::Published | v1::JobState::Running => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                _ => return job,
            }
        }
    });
    let ended = ended.await.unwrap();
    assert_eq!(ended.state(), v1::JobState::Done, "{ended:?}");
    assert_eq!(tenant.session(5).await.unwrap().compactions, 1, "{ended:?}");
    echo.stop().await;
}
