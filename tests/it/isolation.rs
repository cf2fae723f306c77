//! Two tenants with equal agent, channel and chat ids: nothing of one is visible to or changes the other.

use colloquy_client::{Answer, v1};
use colloquy_proto::METHODS;
use colloquy_tests::both_ways;
use colloquy_tests::people::{Tenant, check_echoes};
use colloquy_tests::raw::{is_internal, name};
use colloquy_tests::server::Server;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;
use tonic::{Code, Status};

both_ways! {
    a_tenant_is_invisible_to_another_in_every_method,
}

const SOON: Duration = Duration::from_secs(20);

/// What was called with a foreign id.
#[derive(Default)]
struct Foreign(BTreeSet<&'static str>);

impl Foreign {
    /// A foreign id answers exactly like one that does not exist.
    fn hidden<T>(&mut self, method: &'static str, answer: Result<T, Status>) {
        let status = answer
            .err()
            .unwrap_or_else(|| panic!("{method} answered for a foreign id"));
        assert_eq!(status.code(), Code::NotFound, "{method}: {status}");
        self.0.insert(method);
    }

    fn seen(&mut self, method: &'static str) {
        self.0.insert(method);
    }
}

async fn a_tenant_is_invisible_to_another_in_every_method(server: Server) {
    let overrides = json!({"queue": {"debounce_ms": 0}, "memory": {"extract_delay_ms": 0}});
    let ours = Tenant::create(&server.operator, &server.http, overrides.clone()).await;
    let theirs = Tenant::create(&server.operator, &server.http, overrides).await;
    // A finished turn with a memory and a job, and one that is held, for each.
    let mut sessions = Vec::new();
    for (tenant, text) in [(&ours, "I prefer tea"), (&theirs, "I prefer coffee")] {
        let echo = tenant.start_echo(&server.operator, Duration::ZERO);
        tenant.say(5, 1, text).await;
        tenant.settled(5, SOON).await;
        echo.stop().await;
        let session = tenant.session(5).await.unwrap().session_id;
        let remember = v1::RememberRequest {
            session_id: session.clone(),
            text: text.into(),
            ..Default::default()
        };
        let memory = tenant
            .admin
            .memory()
            .remember(remember)
            .await
            .unwrap()
            .into_inner()
            .memory
            .unwrap();
        let compact = v1::CompactRequest {
            session_id: session.clone(),
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
        tenant.say(5, 2, "wait").await;
        let wait = Some(colloquy_proto::convert::duration(5_000));
        let ask = v1::AcquireTurnRequest {
            worker: "hand".into(),
            wait,
            ..Default::default()
        };
        let worker = tenant.worker_client(&server.operator);
        let turn = worker
            .router()
            .acquire_turn(ask)
            .await
            .unwrap()
            .into_inner()
            .turn
            .unwrap();
        // Leaves a receipt.
        let build = v1::BuildContextRequest {
            subject: Some(v1::build_context_request::Subject::TurnId(turn.turn_id.clone())),
            fence: turn.fence,
            ..Default::default()
        };
        worker.build_context(&build).await.unwrap();
        sessions.push((session, memory.memory_id, job.job_id, turn));
    }
    let (session, memory, job, turn) = sessions[0].clone();
    let (admin, worker) = (&theirs.admin, theirs.worker_client(&server.operator));
    let mut foreign = Foreign::default();
    history(&mut foreign, &theirs, &session, &turn, &worker).await;
    turns(&mut foreign, &theirs, &session, &turn, &worker).await;
    memories(&mut foreign, &theirs, &session, &memory).await;
    jobs(&mut foreign, &theirs, &session, &job).await;
    control(&mut foreign, &ours, &theirs).await;
    channels(&mut foreign, &ours, &theirs).await;

    // Nothing was changed by any of it, and each still sees its own.
    let talk = ours.talk(5).await;
    check_echoes(5, &["I prefer tea".into()], &talk);
    assert_eq!(ours.session(5).await.unwrap().running, 1);
    let listed = admin
        .history()
        .list_sessions(v1::ListSessionsRequest::default())
        .await
        .unwrap()
        .into_inner();
    assert_eq!(listed.sessions.len(), 1);
    assert_eq!(listed.sessions[0].session_id, sessions[1].0);
    check_complete(&foreign);
}

async fn history(
    foreign: &mut Foreign,
    theirs: &Tenant,
    session: &str,
    turn: &v1::Turn,
    worker: &colloquy_client::Client,
) {
    let (own, mut api) = (session.to_owned(), theirs.admin.history());
    let by_id = || Some(v1::get_session_request::Session::SessionId(own.clone()));
    foreign.hidden(
        "GetSession",
        api.get_session(v1::GetSessionRequest { session: by_id() }).await,
    );
    foreign.seen("ListSessions");
    let update = v1::UpdateSessionRequest {
        session_id: own.clone(),
        label: "x".into(),
        ..Default::default()
    };
    foreign.hidden("UpdateSession", api.update_session(update).await);
    foreign.hidden(
        "ResetSession",
        api.reset_session(v1::ResetSessionRequest {
            session_id: own.clone(),
        })
        .await,
    );
    let list = v1::ListEntriesRequest {
        session_id: own.clone(),
        ..Default::default()
    };
    foreign.hidden("ListEntries", api.list_entries(list).await);
    // A transcript of another session is no way in either.
    let mine = theirs.session(5).await.unwrap().session_id;
    let crossed = v1::ListEntriesRequest {
        session_id: mine,
        transcript_id: turn.transcript_id.clone(),
        branch_id: turn.branch_id.clone(),
        ..Default::default()
    };
    foreign.hidden("ListEntries", api.list_entries(crossed).await);
    let label = v1::EntryBody {
        body: Some(v1::entry_body::Body::Label(v1::Label { label: "x".into() })),
    };
    let append = v1::AppendEntriesRequest {
        session_id: own.clone(),
        entries: vec![label],
    };
    foreign.hidden("AppendEntries", api.append_entries(append).await);
    let of_session = v1::BuildContextRequest {
        subject: Some(v1::build_context_request::Subject::SessionId(own)),
        ..Default::default()
    };
    foreign.hidden("BuildContext", api.build_context(of_session).await);
    let of_turn = v1::BuildContextRequest {
        subject: Some(v1::build_context_request::Subject::TurnId(turn.turn_id.clone())),
        fence: turn.fence,
        ..Default::default()
    };
    foreign.hidden("BuildContext", worker.history().build_context(of_turn).await);
    let receipt = v1::GetReceiptRequest {
        turn_id: turn.turn_id.clone(),
        build: 0,
    };
    foreign.hidden("GetReceipt", api.get_receipt(receipt).await);
    let rebuild = v1::RebuildContextRequest {
        turn_id: turn.turn_id.clone(),
        build: 0,
    };
    foreign.hidden("RebuildContext", api.rebuild_context(rebuild).await);
    let stage = v1::StageEntriesRequest {
        turn_id: turn.turn_id.clone(),
        fence: turn.fence,
        first: 1,
        entries: Answer::text("x").entries,
    };
    foreign.hidden("StageEntries", worker.history().stage_entries(stage).await);
    foreign.seen("CountTokens");
}

async fn turns(
    foreign: &mut Foreign,
    theirs: &Tenant,
    session: &str,
    turn: &v1::Turn,
    worker: &colloquy_client::Client,
) {
    let (turn_id, fence) = (turn.turn_id.clone(), turn.fence);
    let renew = v1::RenewTurnRequest {
        turn_id: turn_id.clone(),
        fence,
        steer_through: 0,
    };
    foreign.hidden("RenewTurn", worker.router().renew_turn(renew).await);
    let commit = v1::CommitTurnRequest {
        turn_id: turn_id.clone(),
        fence,
        ..Default::default()
    };
    foreign.hidden("CommitTurn", worker.router().commit_turn(commit).await);
    let release = v1::ReleaseTurnRequest {
        turn_id,
        fence,
        kind: v1::ReleaseKind::Fail.into(),
        error: String::new(),
    };
    foreign.hidden("ReleaseTurn", worker.router().release_turn(release).await);
    let stop = v1::StopTurnsRequest {
        session_id: session.to_owned(),
        scope: v1::StopScope::All.into(),
    };
    foreign.hidden("StopTurns", theirs.admin.router().stop_turns(stop).await);
    let queue = v1::GetQueueRequest {
        session_id: session.to_owned(),
        outcomes: 0,
    };
    foreign.hidden("GetQueue", theirs.admin.router().get_queue(queue).await);
    // Nothing of ours is offered to their worker.
    let ask = v1::AcquireTurnRequest {
        worker: "spy".into(),
        ..Default::default()
    };
    assert!(
        worker
            .router()
            .acquire_turn(ask)
            .await
            .unwrap()
            .into_inner()
            .turn
            .is_none()
    );
    foreign.seen("AcquireTurn");
}

async fn memories(foreign: &mut Foreign, theirs: &Tenant, session: &str, memory: &str) {
    let (session_id, memory_id, mut api) = (session.to_owned(), memory.to_owned(), theirs.admin.memory());
    let remember = v1::RememberRequest {
        session_id: session_id.clone(),
        text: "x".into(),
        ..Default::default()
    };
    foreign.hidden("Remember", api.remember(remember).await);
    let recall = v1::RecallRequest {
        session_id: session_id.clone(),
        query: "tea".into(),
        ..Default::default()
    };
    foreign.hidden("Recall", api.recall(recall).await);
    let list = v1::ListMemoriesRequest {
        session_id: session_id.clone(),
        ..Default::default()
    };
    foreign.hidden("ListMemories", api.list_memories(list).await);
    foreign.hidden(
        "GetMemory",
        api.get_memory(v1::GetMemoryRequest {
            memory_id: memory_id.clone(),
        })
        .await,
    );
    let update = v1::UpdateMemoryRequest {
        memory_id: memory_id.clone(),
        text: "x".into(),
        ..Default::default()
    };
    foreign.hidden("UpdateMemory", api.update_memory(update).await);
    foreign.hidden(
        "DeleteMemory",
        api.delete_memory(v1::DeleteMemoryRequest { memory_id }).await,
    );
    foreign.hidden(
        "Extract",
        api.extract(v1::ExtractRequest {
            session_id,
            ..Default::default()
        })
        .await,
    );
}

async fn jobs(foreign: &mut Foreign, theirs: &Tenant, session: &str, job: &str) {
    let (job_id, mut api) = (job.to_owned(), theirs.admin.compactor());
    let compact = v1::CompactRequest {
        session_id: session.to_owned(),
        ..Default::default()
    };
    foreign.hidden("Compact", api.compact(compact).await);
    foreign.hidden(
        "GetJob",
        api.get_job(v1::GetJobRequest {
            job_id: job_id.clone(),
        })
        .await,
    );
    foreign.hidden(
        "ReplayJob",
        api.replay_job(v1::ReplayJobRequest {
            job_id: job_id.clone(),
        })
        .await,
    );
    foreign.hidden(
        "CancelJob",
        api.cancel_job(v1::CancelJobRequest {
            job_id: job_id.clone(),
        })
        .await,
    );
    let listed = api
        .list_jobs(v1::ListJobsRequest::default())
        .await
        .unwrap()
        .into_inner()
        .jobs;
    assert!(!listed.is_empty() && listed.iter().all(|other| other.job_id != job_id));
    foreign.seen("ListJobs");
}

async fn control(foreign: &mut Foreign, ours: &Tenant, theirs: &Tenant) {
    let mut api = theirs.admin.control();
    let keys = ours
        .admin
        .control()
        .list_api_keys(v1::ListApiKeysRequest {})
        .await
        .unwrap()
        .into_inner()
        .api_keys;
    let key_id = keys[0].key_id.clone();
    foreign.hidden(
        "RevokeApiKey",
        api.revoke_api_key(v1::RevokeApiKeyRequest {
            key_id: key_id.clone(),
        })
        .await,
    );
    let listed = api
        .list_api_keys(v1::ListApiKeysRequest {})
        .await
        .unwrap()
        .into_inner()
        .api_keys;
    assert!(listed.iter().all(|key| key.key_id != key_id));
    let bound = v1::CreateApiKeyRequest {
        name: "stolen".into(),
        roles: vec![v1::Role::Channel.into()],
        account: ours.account.clone(),
        ..Default::default()
    };
    foreign.hidden("CreateApiKey", api.create_api_key(bound).await);
    let explain = v1::ExplainPolicyRequest {
        agent_id: "default".into(),
        account_id: ours.account.clone(),
        ..Default::default()
    };
    foreign.hidden("ExplainPolicy", api.explain_policy(explain).await);
    let account = v1::ChannelAccount {
        account_id: ours.account.clone(),
        channel: "telegram".into(),
        agent: "default".into(),
        name: "stolen".into(),
        ..Default::default()
    };
    let put = v1::PutChannelAccountRequest {
        account: Some(account),
    };
    foreign.hidden("PutChannelAccount", api.put_channel_account(put).await);
    let accounts = api
        .list_channel_accounts(v1::ListChannelAccountsRequest {})
        .await
        .unwrap()
        .into_inner()
        .accounts;
    assert!(accounts.iter().all(|account| account.account_id != ours.account));
    // Agents are named by words of the tenant's own: theirs is found, ours is not changed.
    let agent = v1::Agent {
        agent_id: "default".into(),
        display_name: "theirs".into(),
        ..Default::default()
    };
    api.put_agent(v1::PutAgentRequest { agent: Some(agent) })
        .await
        .unwrap();
    let get = v1::GetAgentRequest {
        agent_id: "default".into(),
    };
    let agent = ours
        .admin
        .control()
        .get_agent(get)
        .await
        .unwrap()
        .into_inner()
        .agent
        .unwrap();
    assert_eq!(agent.display_name, "");
    for method in [
        "CreateApiKey",
        "ListApiKeys",
        "PutAgent",
        "GetAgent",
        "ListAgents",
        "PutChannelAccount",
        "ListChannelAccounts",
    ] {
        foreign.seen(method);
    }
}

async fn channels(foreign: &mut Foreign, ours: &Tenant, theirs: &Tenant) {
    let mut api = theirs.admin.ingress();
    let target = v1::SubmitTarget {
        account: ours.account.clone(),
        chat_kind: "direct".into(),
        chat: "5".into(),
        ..Default::default()
    };
    let submit = v1::SubmitRequest {
        target: Some(v1::submit_request::Target::Route(target)),
        message: Some(v1::Message {
            role: 1,
            parts: Answer::text("x").reply,
            ..Default::default()
        }),
        idempotency_key: "k".into(),
        ..Default::default()
    };
    foreign.hidden("Submit", api.submit(submit).await);
    let stream = v1::StreamDeliveriesRequest {
        account: ours.account.clone(),
    };
    foreign.hidden("StreamDeliveries", api.stream_deliveries(stream).await);
    let stream = v1::StreamDeliveriesRequest {
        account: ours.account.clone(),
    };
    let mut deliveries = ours
        .admin
        .ingress()
        .stream_deliveries(stream)
        .await
        .unwrap()
        .into_inner();
    let delivery_id = deliveries
        .message()
        .await
        .unwrap()
        .unwrap()
        .delivery
        .unwrap()
        .delivery_id;
    let ack = v1::AckDeliveryRequest {
        delivery_id,
        result: v1::DeliveryResult::Dead.into(),
        ..Default::default()
    };
    foreign.hidden("AckDelivery", api.ack_delivery(ack).await);
}

/// Every method a tenant may call was tried, or is not served yet.
fn check_complete(foreign: &Foreign) {
    for method in METHODS.iter().filter(|method| !is_internal(method)) {
        let known = foreign.0.contains(name(method)) || super::contract::unserved().contains(&name(method));
        assert!(known, "{} is not tried with a foreign id", method.path);
    }
}
