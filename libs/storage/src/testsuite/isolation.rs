//! A foreign id behaves exactly like one that does not exist.

use super::fixture::*;
use crate::*;
use colloquy_types::message::Part;
use colloquy_types::queue::ResetReason;
use colloquy_types::{DeliveryId, JobId, MemoryId, Reason, Seq, TenantId};

/// A conversation with a running turn, a delivery under way and a job, and a stranger who knows every id.
async fn scene(f: &Fixture) -> (Talk, ClaimedTurn, TenantId) {
    let talk = f.talk();
    talk.exchange("one", "1").await;
    talk.say("two").await;
    let turn = talk.run().await;
    f.talk().exchange("a stranger's", "own").await;
    (talk, turn, TenantId::new())
}

pub async fn sessions_of_others_do_not_exist(f: &Fixture) {
    let (talk, turn, stranger) = scene(f).await;
    let before = talk.session().await;
    let session = turn.session;
    assert_eq!(f.store.get_session(stranger, session).await.unwrap(), None);
    assert_eq!(f.store.find_session(stranger, &talk.key).await.unwrap(), None);
    let listed = f
        .store
        .list_sessions(stranger, &SessionFilter::default(), &PageRequest::default())
        .await
        .unwrap();
    assert!(listed.items.is_empty());
    let patch = SessionPatch {
        label: Some("mine".to_owned()),
        display_name: None,
    };
    refused(
        f.store.update_session(stranger, session, &patch).await,
        Reason::NotFound,
    );
    refused(
        f.store
            .reset_session(stranger, session, ResetReason::Api, 1)
            .await,
        Reason::NotFound,
    );
    refused(
        f.store.append_entries(stranger, session, &[assistant("x")]).await,
        Reason::NotFound,
    );
    refused(
        f.store.stop(stranger, session, StopScope::All, 1).await,
        Reason::NotFound,
    );
    refused(f.store.queue(stranger, session, 10).await, Reason::NotFound);
    assert!(
        f.store
            .list_inbox(stranger, session, 10)
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(f.store.get_policy(stranger, &turn.policy).await.unwrap(), None);
    assert_eq!(talk.session().await, before);
}

pub async fn transcripts_of_others_do_not_exist(f: &Fixture) {
    let (_, turn, stranger) = scene(f).await;
    let (transcript, branch) = (turn.transcript, turn.branch);
    refused(
        f.store.window(stranger, transcript, branch, None).await,
        Reason::NotFound,
    );
    let listed = f
        .store
        .list_entries(stranger, transcript, branch, Order::After(Seq(0)), 10)
        .await;
    refused(listed, Reason::NotFound);
}

pub async fn turns_of_others_do_not_exist(f: &Fixture) {
    let (talk, turn, stranger) = scene(f).await;
    let request = ClaimRequest {
        tenant: stranger,
        session: turn.session,
        worker: "thief".to_owned(),
        agents: vec![],
        offer_ms: 1_000,
        lease_ms: None,
    };
    assert_eq!(f.store.claim(&request).await.unwrap(), Claimed::Nothing);
    let (id, fence) = (turn.turn, turn.fence);
    refused(f.store.renew(stranger, id, fence, 0).await, Reason::NotFound);
    refused(f.store.view(stranger, id, fence).await, Reason::NotFound);
    let entries = vec![assistant("x")];
    let stage = StageInput {
        tenant: stranger,
        turn: id,
        fence,
        first: 1,
        entries,
        marks: None,
    };
    refused(f.store.stage(&stage).await, Reason::NotFound);
    let commit = CommitInput {
        tenant: stranger,
        ..talk.commit_input(&turn, "x")
    };
    refused(f.store.commit(&commit).await, Reason::NotFound);
    let fail = Release::Fail {
        error: "x".to_owned(),
    };
    refused(
        f.store.release(stranger, id, fence, &fail).await,
        Reason::NotFound,
    );
    f.advance(LIMITS.lease_ms).await;
    refused(f.store.expire(stranger, id).await, Reason::NotFound);
    talk.commit(&turn, "2").await;
}

pub async fn deliveries_of_others_do_not_exist(f: &Fixture) {
    let (talk, turn, stranger) = scene(f).await;
    let mut commit = talk.commit_input(&turn, "2");
    let id = DeliveryId::new();
    let to = route("chat");
    commit.deliveries.push(NewDelivery {
        id,
        route: to.clone(),
        part: 0,
        parts: vec![Part::text("2")],
    });
    f.store.commit(&commit).await.unwrap();
    assert!(
        f.store
            .claim_deliveries(stranger, &to.account, 10, 1_000)
            .await
            .unwrap()
            .is_empty()
    );
    refused(
        f.store.ack_delivery(stranger, id, None, &Ack::Delivered).await,
        Reason::NotFound,
    );
    assert_eq!(
        f.store
            .claim_deliveries(talk.tenant, &to.account, 10, 1_000)
            .await
            .unwrap()
            .len(),
        1
    );
}

pub async fn jobs_of_others_do_not_exist(f: &Fixture) {
    let (talk, turn, stranger) = scene(f).await;
    let mut job = NewJob {
        id: JobId::new(),
        kind: JobKind::Compaction,
        session: turn.session,
        transcript: turn.transcript,
        branch: turn.branch,
        delay_ms: 0,
        payload_json: "{}".to_owned(),
    };
    let id = f.store.enqueue_job(talk.tenant, &job).await.unwrap();
    job.id = JobId::new();
    refused(f.store.enqueue_job(stranger, &job).await, Reason::NotFound);
    assert_eq!(f.store.get_job(stranger, id).await.unwrap(), None);
    let listed = f
        .store
        .list_jobs(stranger, &JobFilter::default(), &PageRequest::default())
        .await
        .unwrap();
    assert!(listed.items.is_empty());
    assert_eq!(f.store.mark_published(stranger, id, 1).await.unwrap(), None);
    refused(f.store.start_job(stranger, id, 1_000).await, Reason::NotFound);
    refused(f.store.renew_job(stranger, id, 1_000).await, Reason::NotFound);
    refused(
        f.store
            .end_job(
                stranger,
                id,
                &JobEnd::Done {
                    result_json: "{}".into(),
                },
            )
            .await,
        Reason::NotFound,
    );
    refused(f.store.cancel_job(stranger, id).await, Reason::NotFound);
    refused(f.store.replay_job(stranger, id).await, Reason::NotFound);
    let begin = BeginCompaction {
        tenant: stranger,
        session: turn.session,
        job: id,
        lease_ms: 1_000,
    };
    refused(f.store.begin_compaction(&begin).await, Reason::NotFound);
    let marker = Marker(colloquy_types::Fence(1));
    let renewed = f
        .store
        .renew_compaction(stranger, turn.session, id, marker, 1_000)
        .await;
    refused(renewed, Reason::NotFound);
    assert_eq!(
        f.store.get_job(talk.tenant, id).await.unwrap().unwrap().state,
        JobState::Queued
    );
}

pub async fn memories_of_others_do_not_exist(f: &Fixture) {
    let (tenant, stranger) = (TenantId::new(), TenantId::new());
    let memory = Memory {
        id: MemoryId::new(),
        tenant,
        agent: agent("default"),
        scope: MemoryScope::Agent,
        kind: MemoryKind::Knowledge,
        text: "the office is in Berlin".to_owned(),
        importance: 0.5,
        confidence: 0.5,
        provenance: colloquy_types::Provenance::Owner,
        sources: vec![],
        valid_from: colloquy_types::UnixMillis(1),
        valid_to: None,
        supersedes: None,
        recall_count: 0,
        created: colloquy_types::UnixMillis(0),
        updated: colloquy_types::UnixMillis(0),
    };
    let stored = f.store.put_memory(&memory).await.unwrap();
    let filter = MemoryFilter {
        agent: agent("default"),
        scopes: vec![MemoryScope::Agent],
        kind: None,
        include_ended: true,
    };
    assert_eq!(f.store.get_memory(stranger, stored.id).await.unwrap(), None);
    assert!(
        f.store
            .list_memories(stranger, &filter, &PageRequest::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
    assert!(
        f.store
            .search_memories(stranger, &filter, "office Berlin", 10)
            .await
            .unwrap()
            .is_empty()
    );
    let theft = Memory {
        tenant: stranger,
        text: "stolen".to_owned(),
        ..stored.clone()
    };
    refused(f.store.update_memory(&theft).await, Reason::NotFound);
    refused(f.store.delete_memory(stranger, stored.id).await, Reason::NotFound);
    f.store.count_recalls(stranger, &[stored.id]).await.unwrap();
    assert_eq!(f.store.get_memory(tenant, stored.id).await.unwrap(), Some(stored));
}

pub async fn control_data_of_others_does_not_exist(f: &Fixture) {
    let (tenant, stranger) = (TenantId::new(), TenantId::new());
    f.store.create_tenant(tenant, "owner").await.unwrap();
    f.store.create_tenant(stranger, "stranger").await.unwrap();
    let default = Agent {
        tenant,
        id: agent("default"),
        display_name: String::new(),
        profile: "goclaw".to_owned(),
        overrides_json: "{}".to_owned(),
        version: 0,
        created: colloquy_types::UnixMillis(0),
        updated: colloquy_types::UnixMillis(0),
    };
    f.store.put_agent(&default).await.unwrap();
    assert_eq!(f.store.get_agent(stranger, &default.id).await.unwrap(), None);
    assert!(f.store.list_agents(stranger).await.unwrap().is_empty());
    let key = ApiKey {
        id: colloquy_types::KeyId::new(),
        tenant,
        secret_hash: vec![1],
        name: "key".to_owned(),
        roles: vec![],
        subject: "s".to_owned(),
        account: None,
        agents: vec![],
        created: colloquy_types::UnixMillis(0),
        revoked: None,
    };
    f.store.create_key(&key).await.unwrap();
    assert_eq!(f.store.get_key(stranger, key.id).await.unwrap(), None);
    assert!(f.store.list_keys(stranger).await.unwrap().is_empty());
    refused(f.store.revoke_key(stranger, key.id).await, Reason::NotFound);
    assert!(f.store.list_accounts(stranger).await.unwrap().is_empty());
    assert_eq!(
        f.store.get_key(tenant, key.id).await.unwrap().unwrap().revoked,
        None
    );
}
