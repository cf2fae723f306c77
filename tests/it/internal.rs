//! What services ask each other names its tenant: under another tenant an id does not exist there either.

use colloquy_client::{Answer, Client, v1};
use colloquy_proto::METHODS;
use colloquy_tests::both_ways;
use colloquy_tests::people::Tenant;
use colloquy_tests::raw::{Caller, is_internal, name};
use colloquy_tests::server::Server;
use serde_json::json;
use std::time::Duration;
use tonic::{Code, Status};

both_ways! {
    a_service_in_the_name_of_one_tenant_reaches_nothing_of_another,
    a_service_that_names_no_tenant_and_a_tenant_that_names_one_are_refused,
}

/// Everything of a tenant that has an id.
#[derive(Clone)]
struct Ids {
    session: String,
    turn: String,
    fence: i64,
    transcript: String,
    branch: String,
    job: String,
    delivery: String,
}

impl Ids {
    /// Of the same form, and nobody's.
    fn made_up(&self) -> Self {
        let other = |id: &str| format!("{}{}", &id[..id.len() - 4], "beef");
        Self {
            session: other(&self.session),
            turn: other(&self.turn),
            fence: self.fence,
            transcript: other(&self.transcript),
            branch: other(&self.branch),
            job: other(&self.job),
            delivery: other(&self.delivery),
        }
    }
}

/// A session with an answered turn, a waiting delivery, a job, and a turn in a worker's hands.
async fn fill(server: &Server, tenant: &Tenant) -> (Ids, v1::Turn) {
    let echo = tenant.start_echo(&server.operator, Duration::ZERO);
    tenant.say(5, 1, "I prefer tea").await;
    tenant.settled(5, Duration::from_secs(20)).await;
    echo.stop().await;
    let stream = v1::StreamDeliveriesRequest {
        account: tenant.account.clone(),
    };
    let mut deliveries = tenant
        .admin
        .ingress()
        .stream_deliveries(stream)
        .await
        .unwrap()
        .into_inner();
    let delivery = deliveries
        .message()
        .await
        .unwrap()
        .unwrap()
        .delivery
        .unwrap()
        .delivery_id;
    let session = tenant.session(5).await.unwrap().session_id;
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
        .unwrap()
        .job_id;
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
    let ids = Ids {
        session,
        turn: turn.turn_id.clone(),
        fence: turn.fence,
        transcript: turn.transcript_id.clone(),
        branch: turn.branch_id.clone(),
        job,
        delivery,
    };
    (ids, turn)
}

type Answers = Vec<(&'static str, Result<(), Status>)>;

macro_rules! asked {
    ($api:expr, $caller:expr, $($name:literal $method:ident $message:expr),+ $(,)?) => {
        vec![$(($name, $api.$method($caller.request($message)).await.map(drop))),+]
    };
}

async fn of_turns(client: &Client, caller: &Caller, ids: &Ids) -> Answers {
    let (mut api, fence) = (client.history(), ids.fence);
    let (session_id, turn_id) = (|| ids.session.clone(), || ids.turn.clone());
    let entries = Answer::text("x").entries;
    asked![
        api, caller,
        "GetSession" get_session v1::GetSessionRequest {
            session: Some(v1::get_session_request::Session::SessionId(session_id())),
        },
        "ListEntries" list_entries v1::ListEntriesRequest { session_id: session_id(), ..Default::default() },
        "AppendEntries" append_entries v1::AppendEntriesRequest { session_id: session_id(), entries: entries.clone() },
        "RenewTurn" renew_turn v1::HistoryServiceRenewTurnRequest { turn_id: turn_id(), fence, steer_through: 0 },
        "CommitTurn" commit_turn v1::HistoryServiceCommitTurnRequest { turn_id: turn_id(), fence, entries, ..Default::default() },
        "ReleaseTurn" release_turn v1::HistoryServiceReleaseTurnRequest { turn_id: turn_id(), fence, ..Default::default() },
        "StopTurns" stop_turns v1::HistoryServiceStopTurnsRequest { session_id: session_id(), all: true },
        "ExpireTurn" expire_turn v1::ExpireTurnRequest { turn_id: turn_id() },
        "GetQueue" get_queue v1::HistoryServiceGetQueueRequest { session_id: session_id(), outcomes: 5 },
        "AckDelivery" ack_delivery v1::HistoryServiceAckDeliveryRequest {
            delivery_id: ids.delivery.clone(),
            ack: Some(v1::history_service_ack_delivery_request::Ack::Dead(true)),
            ..Default::default()
        },
    ]
}

async fn of_jobs(client: &Client, caller: &Caller, ids: &Ids) -> Answers {
    let (mut api, marker) = (client.history(), 1);
    let (session_id, job_id) = (|| ids.session.clone(), || ids.job.clone());
    let lease = Some(colloquy_proto::convert::duration(5_000));
    asked![
        api, caller,
        "BeginCompaction" begin_compaction v1::BeginCompactionRequest { session_id: session_id(), job_id: job_id(), lease },
        "RenewCompaction" renew_compaction v1::RenewCompactionRequest {
            session_id: session_id(), job_id: job_id(), marker, lease,
        },
        "SaveCompactionChunk" save_compaction_chunk v1::SaveCompactionChunkRequest {
            session_id: session_id(), job_id: job_id(), marker, chunk: Some(v1::CompactionChunk::default()),
        },
        "ApplyCompaction" apply_compaction v1::ApplyCompactionRequest {
            session_id: session_id(),
            job_id: job_id(),
            marker,
            transcript_id: ids.transcript.clone(),
            branch_id: ids.branch.clone(),
            compaction: Some(v1::Compaction {
                summary: "x".into(), first_kept_seq: 2, job_id: job_id(), ..Default::default()
            }),
            ..Default::default()
        },
        "FailCompaction" fail_compaction v1::FailCompactionRequest {
            session_id: session_id(), job_id: job_id(), marker, reason: "x".into(), ..Default::default()
        },
        "EnqueueJob" enqueue_job v1::EnqueueJobRequest {
            kind: v1::JobKind::Compaction.into(), session_id: session_id(), payload_json: "{}".into(),
        },
        "StartJob" start_job v1::StartJobRequest { job_id: job_id(), lease },
        "RenewJob" renew_job v1::RenewJobRequest { job_id: job_id(), lease },
        "EndJob" end_job v1::EndJobRequest { job_id: job_id(), ..Default::default() },
        "GetJob" get_job v1::HistoryServiceGetJobRequest { job_id: job_id() },
        "ReplayJob" replay_job v1::HistoryServiceReplayJobRequest { job_id: job_id() },
        "CancelJob" cancel_job v1::HistoryServiceCancelJobRequest { job_id: job_id() },
    ]
}

/// A list of something foreign is empty, or it does not exist.
fn nothing<T>(method: &str, answer: Result<Vec<T>, Status>) {
    match answer {
        Ok(listed) => assert!(listed.is_empty(), "{method} lists what is foreign"),
        Err(status) => assert_eq!(status.code(), Code::NotFound, "{method}: {status}"),
    }
}

async fn a_service_in_the_name_of_one_tenant_reaches_nothing_of_another(server: Server) {
    let overrides = json!({"queue": {"debounce_ms": 0}});
    let ours = Tenant::create(&server.operator, &server.http, overrides.clone()).await;
    let theirs = Tenant::create(&server.operator, &server.http, overrides).await;
    let (ids, turn) = fill(&server, &ours).await;
    fill(&server, &theirs).await;
    let caller = Caller {
        key: server.service_key.clone(),
        tenant: Some(theirs.id.clone()),
    };
    // The caller's own metadata is what counts; the client underneath has the service's key as well.
    let client = server.operator.with_key(&server.service_key).unwrap();
    let mut foreign = of_turns(&client, &caller, &ids).await;
    foreign.extend(of_jobs(&client, &caller, &ids).await);
    let mut unknown = of_turns(&client, &caller, &ids.made_up()).await;
    unknown.extend(of_jobs(&client, &caller, &ids.made_up()).await);
    let code = |answer: &Result<(), Status>| answer.as_ref().err().map_or(Code::Ok, Status::code);
    let answers = foreign
        .iter()
        .zip(&unknown)
        .map(|((method, foreign), (_, unknown))| (method, code(foreign), code(unknown)));
    let visible: Vec<_> = answers
        .filter(|(_, foreign, unknown)| [*foreign, *unknown] != [Code::NotFound; 2])
        .collect();
    assert!(
        visible.is_empty(),
        "method, code for a foreign id, code for an id of nobody: {visible:?}"
    );
    let mut history = client.history();
    // A hint which session to try may be stale: for one that is not there nothing waits.
    let claim = v1::ClaimTurnRequest {
        session_id: ids.session.clone(),
        worker: "spy".into(),
        ..Default::default()
    };
    let claimed = history.claim_turn(caller.request(claim)).await;
    nothing(
        "ClaimTurn",
        claimed.map(|answer| answer.into_inner().claim.into_iter().collect()),
    );
    let claim = v1::ClaimDeliveriesRequest {
        account: ours.account.clone(),
        limit: 10,
        lease: None,
    };
    let claimed = history.claim_deliveries(caller.request(claim)).await;
    nothing(
        "ClaimDeliveries",
        claimed.map(|answer| answer.into_inner().deliveries),
    );
    let list = v1::HistoryServiceListJobsRequest {
        session_id: ids.session.clone(),
        ..Default::default()
    };
    let listed = history.list_jobs(caller.request(list)).await;
    nothing("ListJobs", listed.map(|answer| answer.into_inner().jobs));

    // None of it changed anything: the turn is still held, and its own worker commits it.
    assert_eq!(ours.session(5).await.unwrap().running, 1);
    let answer = Answer::text("in peace");
    let commit = v1::CommitTurnRequest {
        turn_id: turn.turn_id,
        fence: turn.fence,
        entries: answer.entries,
        ..Default::default()
    };
    ours.worker_client(&server.operator)
        .router()
        .commit_turn(commit)
        .await
        .unwrap();
    assert_eq!(ours.talk(5).await.len(), 4);
    check_complete(&foreign);
}

/// Every internal method of history was tried, but those that are not about something a tenant has already.
fn check_complete(tried: &Answers) {
    // The first makes what it names, the second looks across tenants on purpose and returns ids alone; the others
    // answer with lists, which were found empty.
    let elsewhere = [
        "AcceptMessage",
        "ListRunnable",
        "ClaimTurn",
        "ClaimDeliveries",
        "ListJobs",
    ];
    for method in METHODS
        .iter()
        .filter(|method| is_internal(method) && method.path.contains("HistoryService"))
    {
        let known =
            tried.iter().any(|(tried, _)| *tried == name(method)) || elsewhere.contains(&name(method));
        assert!(known, "{} is not tried with a foreign id", method.path);
    }
}

async fn a_service_that_names_no_tenant_and_a_tenant_that_names_one_are_refused(server: Server) {
    let ours = Tenant::create(&server.operator, &server.http, json!({})).await;
    let theirs = Tenant::create(&server.operator, &server.http, json!({})).await;
    let client = server.operator.clone();
    let ask = || v1::ListSessionsRequest::default();
    let nameless = Caller {
        key: server.service_key.clone(),
        tenant: None,
    };
    let job = v1::HistoryServiceListJobsRequest::default();
    let refused = client
        .with_key(&nameless.key)
        .unwrap()
        .history()
        .list_jobs(nameless.request(job))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    let posing = Caller {
        key: ours.admin_key.clone(),
        tenant: Some(theirs.id.clone()),
    };
    let refused = ours
        .admin
        .history()
        .list_sessions(posing.request(ask()))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
}
