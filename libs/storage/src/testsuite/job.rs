//! Background work: the outbox and the queue of record.

use super::fixture::*;
use crate::*;
use colloquy_types::{BranchId, JobId, Reason, SessionId, TenantId, TranscriptId};

pub(super) const LEASE_MS: i64 = 30_000;
pub(super) const REPUBLISH_MS: i64 = 60_000;

pub(super) async fn enqueue(talk: &Talk, kind: JobKind, delay_ms: i64) -> JobId {
    let session = match talk.store().find_session(talk.tenant, &talk.key).await.unwrap() {
        Some(session) => session,
        None => {
            talk.exchange("one", "1").await;
            talk.session().await
        }
    };
    let job = new_job(session.id, session.transcript, session.branch, kind, delay_ms);
    talk.store().enqueue_job(talk.tenant, &job).await.unwrap()
}

fn new_job(
    session: SessionId,
    transcript: TranscriptId,
    branch: BranchId,
    kind: JobKind,
    delay_ms: i64,
) -> NewJob {
    let payload_json = r#"{"instructions":"short"}"#.to_owned();
    NewJob {
        id: JobId::new(),
        kind,
        session,
        transcript,
        branch,
        delay_ms,
        payload_json,
    }
}

pub(super) async fn job(talk: &Talk, id: JobId) -> Job {
    talk.store().get_job(talk.tenant, id).await.unwrap().unwrap()
}

pub(super) async fn start(talk: &Talk, id: JobId) -> Job {
    match talk.store().start_job(talk.tenant, id, LEASE_MS).await.unwrap() {
        Started::Run(job) => *job,
        other => panic!("not started but {other:?}"),
    }
}

pub(super) async fn publishable(f: &Fixture) -> Vec<(TenantId, JobId)> {
    f.store.list_publishable(10, 100, REPUBLISH_MS).await.unwrap()
}

pub(super) fn failed(error: &str) -> JobEnd {
    JobEnd::Failed {
        error: error.to_owned(),
        retry_ms: 1_000,
    }
}

pub async fn a_job_is_stored_whole(f: &Fixture) {
    let talk = f.talk();
    let id = enqueue(&talk, JobKind::Compaction, 250).await;
    let (session, now) = (talk.session().await, f.store.now().await.unwrap());
    let expected = Job {
        id,
        tenant: talk.tenant,
        kind: JobKind::Compaction,
        session: session.id,
        transcript: session.transcript,
        branch: session.branch,
        state: JobState::Queued,
        attempts: 0,
        publish_no: 0,
        due: now.plus(250),
        payload_json: r#"{"instructions":"short"}"#.to_owned(),
        result_json: "{}".to_owned(),
        error: String::new(),
        created: now,
        updated: now,
    };
    assert_eq!(job(&talk, id).await, expected);
    assert_eq!(f.store.get_job(talk.tenant, JobId::new()).await.unwrap(), None);
}

pub async fn one_job_of_a_kind_is_active_per_session(f: &Fixture) {
    let talk = f.talk();
    let first = enqueue(&talk, JobKind::Compaction, 0).await;
    assert_eq!(enqueue(&talk, JobKind::Compaction, 0).await, first);
    assert_ne!(enqueue(&talk, JobKind::MemoryExtract, 0).await, first);
    start(&talk, first).await;
    assert_eq!(enqueue(&talk, JobKind::Compaction, 0).await, first);
    f.store
        .end_job(
            talk.tenant,
            first,
            &JobEnd::Done {
                result_json: "{}".to_owned(),
            },
        )
        .await
        .unwrap();
    assert_ne!(enqueue(&talk, JobKind::Compaction, 0).await, first);
    let unknown = new_job(
        SessionId::new(),
        TranscriptId::new(),
        BranchId::new(),
        JobKind::Compaction,
        0,
    );
    refused(f.store.enqueue_job(talk.tenant, &unknown).await, Reason::NotFound);
}

pub async fn parallel_enqueues_are_one_job(f: &Fixture) {
    let talk = f.talk();
    talk.exchange("one", "1").await;
    let session = talk.session().await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let job = new_job(
            session.id,
            session.transcript,
            session.branch,
            JobKind::Compaction,
            0,
        );
        let (store, tenant) = (f.store.clone(), talk.tenant);
        tasks.spawn(async move { store.enqueue_job(tenant, &job).await });
    }
    let mut ids = std::collections::BTreeSet::new();
    while let Some(done) = tasks.join_next().await {
        ids.insert(done.unwrap().unwrap());
    }
    assert_eq!(ids.len(), 1);
}

pub async fn a_due_job_is_published_once(f: &Fixture) {
    let talk = f.talk();
    let id = enqueue(&talk, JobKind::Compaction, 500).await;
    assert!(publishable(f).await.is_empty());
    assert_eq!(
        f.store
            .mark_published(talk.tenant, id, REPUBLISH_MS)
            .await
            .unwrap(),
        None
    );
    f.advance(500).await;
    assert_eq!(publishable(f).await, [(talk.tenant, id)]);
    let published = f
        .store
        .mark_published(talk.tenant, id, REPUBLISH_MS)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (published.job.id, published.job.state, published.job.publish_no),
        (id, JobState::Published, 1)
    );
    assert!(publishable(f).await.is_empty());
    assert_eq!(
        f.store
            .mark_published(talk.tenant, id, REPUBLISH_MS)
            .await
            .unwrap(),
        None
    );
    assert_eq!(
        f.store
            .mark_published(talk.tenant, JobId::new(), REPUBLISH_MS)
            .await
            .unwrap(),
        None
    );
}

pub async fn a_published_job_that_nobody_starts_is_published_again(f: &Fixture) {
    let talk = f.talk();
    let id = enqueue(&talk, JobKind::Compaction, 0).await;
    f.store
        .mark_published(talk.tenant, id, REPUBLISH_MS)
        .await
        .unwrap()
        .unwrap();
    f.advance(REPUBLISH_MS + 1).await;
    assert_eq!(publishable(f).await, [(talk.tenant, id)]);
    let again = f
        .store
        .mark_published(talk.tenant, id, REPUBLISH_MS)
        .await
        .unwrap()
        .unwrap();
    assert_eq!((again.job.publish_no, again.job.attempts), (2, 0));
}

pub async fn the_relay_is_fair_between_tenants(f: &Fixture) {
    let busy = TenantId::new();
    for peer in ["1", "2", "3"] {
        enqueue(&f.talk_of(busy, "default", peer), JobKind::Compaction, 0).await;
    }
    f.advance(1).await;
    let quiet = f.talk();
    let late = enqueue(&quiet, JobKind::Compaction, 0).await;
    let listed = f.store.list_publishable(2, 10, REPUBLISH_MS).await.unwrap();
    assert_eq!(
        listed.iter().map(|(tenant, _)| *tenant).collect::<Vec<_>>(),
        [busy, busy, quiet.tenant]
    );
    assert_eq!(listed[2].1, late);
    assert_eq!(
        f.store.list_publishable(2, 1, REPUBLISH_MS).await.unwrap().len(),
        1
    );
}

pub async fn a_job_runs_under_a_lease(f: &Fixture) {
    let talk = f.talk();
    let id = enqueue(&talk, JobKind::Compaction, 0).await;
    f.store
        .mark_published(talk.tenant, id, REPUBLISH_MS)
        .await
        .unwrap();
    let started = start(&talk, id).await;
    assert_eq!((started.state, started.attempts), (JobState::Running, 0));
    assert_eq!(
        f.store.start_job(talk.tenant, id, LEASE_MS).await.unwrap(),
        Started::Busy
    );
    f.advance(LEASE_MS - 1).await;
    f.store.renew_job(talk.tenant, id, LEASE_MS).await.unwrap();
    f.advance(LEASE_MS - 1).await;
    assert_eq!(
        f.store.start_job(talk.tenant, id, LEASE_MS).await.unwrap(),
        Started::Busy
    );
    assert!(publishable(f).await.is_empty());
    refused(
        f.store.start_job(talk.tenant, JobId::new(), LEASE_MS).await,
        Reason::NotFound,
    );
}

pub async fn jobs_are_listed_newest_first(f: &Fixture) {
    let talk = f.talk();
    let first = enqueue(&talk, JobKind::Compaction, 0).await;
    f.advance(1).await;
    let second = enqueue(&talk, JobKind::MemoryExtract, 0).await;
    f.advance(1).await;
    let other = f.talk_of(talk.tenant, "default", "other");
    let third = enqueue(&other, JobKind::Compaction, 0).await;
    f.store.cancel_job(talk.tenant, first).await.unwrap();

    let list = async |filter: JobFilter| -> Vec<JobId> {
        let page = f
            .store
            .list_jobs(talk.tenant, &filter, &PageRequest::default())
            .await
            .unwrap();
        page.items.into_iter().map(|job| job.id).collect()
    };
    let all = JobFilter::default;
    assert_eq!(list(all()).await, [third, second, first]);
    assert_eq!(
        list(JobFilter {
            state: Some(JobState::Cancelled),
            ..all()
        })
        .await,
        [first]
    );
    assert_eq!(
        list(JobFilter {
            kind: Some(JobKind::Compaction),
            ..all()
        })
        .await,
        [third, first]
    );
    assert_eq!(
        list(JobFilter {
            session: Some(other.session().await.id),
            ..all()
        })
        .await,
        [third]
    );

    let page = PageRequest { size: 2, token: None };
    let start = f.store.list_jobs(talk.tenant, &all(), &page).await.unwrap();
    let page = PageRequest {
        size: 2,
        token: start.next,
    };
    let rest = f.store.list_jobs(talk.tenant, &all(), &page).await.unwrap();
    assert_eq!((start.items.len(), rest.items.len(), rest.next), (2, 1, None));
    assert_eq!(rest.items[0].id, first);
}
