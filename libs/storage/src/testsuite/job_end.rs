//! How jobs end, and begin again.

use super::fixture::*;
use super::job::*;
use crate::*;
use colloquy_types::{JobId, Reason};

pub async fn a_lost_run_counts_as_failed(f: &Fixture) {
    let talk = f.talk();
    let id = enqueue(&talk, JobKind::Compaction, 0).await;
    start(&talk, id).await;
    f.advance(LEASE_MS).await;
    assert_eq!(publishable(f).await, [(talk.tenant, id)]);
    let published = f
        .store
        .mark_published(talk.tenant, id, REPUBLISH_MS)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (published.job.state, published.job.attempts),
        (JobState::Published, 1)
    );
    start(&talk, id).await;
    f.advance(LEASE_MS).await;
    assert_eq!(start(&talk, id).await.attempts, 2, "taken over without the relay");
}

pub async fn a_late_failure_of_a_lost_run_does_not_count_twice(f: &Fixture) {
    let talk = f.talk();
    let id = enqueue(&talk, JobKind::Compaction, 0).await;
    start(&talk, id).await;
    f.advance(LEASE_MS).await;
    f.store
        .mark_published(talk.tenant, id, REPUBLISH_MS)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        f.store.end_job(talk.tenant, id, &failed("late")).await.unwrap(),
        JobState::Published
    );
    assert_eq!(job(&talk, id).await.attempts, 1);
    refused(f.store.renew_job(talk.tenant, id, LEASE_MS).await, Reason::Fenced);
}

pub async fn five_failed_runs_are_a_dead_letter(f: &Fixture) {
    let talk = f.talk();
    let id = enqueue(&talk, JobKind::Compaction, 0).await;
    for run in 1..=5 {
        start(&talk, id).await;
        let state = f
            .store
            .end_job(talk.tenant, id, &failed("no model"))
            .await
            .unwrap();
        let ended = job(&talk, id).await;
        assert_eq!(
            (ended.attempts, ended.error.as_str(), ended.state),
            (run, "no model", state)
        );
        assert_eq!(
            state,
            if run == 5 {
                JobState::Dead
            } else {
                JobState::Queued
            }
        );
        if run < 5 {
            assert_eq!(ended.due, f.store.now().await.unwrap().plus(1_000));
        }
        f.advance(1_000).await;
    }
    assert_eq!(
        f.store.start_job(talk.tenant, id, LEASE_MS).await.unwrap(),
        Started::Ended
    );
    assert!(publishable(f).await.is_empty());
}

pub async fn five_lost_runs_are_a_dead_letter(f: &Fixture) {
    let talk = f.talk();
    let id = enqueue(&talk, JobKind::MemoryExtract, 0).await;
    for _ in 0..5 {
        f.store
            .mark_published(talk.tenant, id, REPUBLISH_MS)
            .await
            .unwrap()
            .unwrap();
        start(&talk, id).await;
        f.advance(LEASE_MS).await;
    }
    assert_eq!(
        f.store
            .mark_published(talk.tenant, id, REPUBLISH_MS)
            .await
            .unwrap(),
        None
    );
    let dead = job(&talk, id).await;
    assert_eq!((dead.state, dead.attempts), (JobState::Dead, 5));
    assert!(!dead.error.is_empty());
}

pub async fn a_done_job_stays_done(f: &Fixture) {
    let talk = f.talk();
    let id = enqueue(&talk, JobKind::MemoryExtract, 0).await;
    start(&talk, id).await;
    let done = JobEnd::Done {
        result_json: r#"{"added":2}"#.to_owned(),
    };
    assert_eq!(
        f.store.end_job(talk.tenant, id, &done).await.unwrap(),
        JobState::Done
    );
    assert_eq!(
        f.store.end_job(talk.tenant, id, &failed("late")).await.unwrap(),
        JobState::Done
    );
    let ended = job(&talk, id).await;
    assert_eq!(
        (ended.result_json.as_str(), ended.error.as_str()),
        (r#"{"added":2}"#, "")
    );
    assert_eq!(
        f.store.start_job(talk.tenant, id, LEASE_MS).await.unwrap(),
        Started::Ended
    );
    refused(f.store.renew_job(talk.tenant, id, LEASE_MS).await, Reason::Fenced);
    refused(f.store.replay_job(talk.tenant, id).await, Reason::Conflict);
    refused(
        f.store.end_job(talk.tenant, JobId::new(), &done).await,
        Reason::NotFound,
    );
}

pub async fn a_cancelled_job_tells_its_worker(f: &Fixture) {
    let talk = f.talk();
    let id = enqueue(&talk, JobKind::MemoryExtract, 0).await;
    start(&talk, id).await;
    assert_eq!(
        f.store.cancel_job(talk.tenant, id).await.unwrap().state,
        JobState::Cancelled
    );
    refused(f.store.renew_job(talk.tenant, id, LEASE_MS).await, Reason::Fenced);
    assert_eq!(
        f.store.end_job(talk.tenant, id, &failed("late")).await.unwrap(),
        JobState::Cancelled
    );
    assert_eq!(
        f.store.cancel_job(talk.tenant, id).await.unwrap().state,
        JobState::Cancelled
    );
    refused(
        f.store.cancel_job(talk.tenant, JobId::new()).await,
        Reason::NotFound,
    );
}

pub async fn a_dead_or_cancelled_job_is_replayed(f: &Fixture) {
    let talk = f.talk();
    let id = enqueue(&talk, JobKind::Compaction, 0).await;
    f.store
        .mark_published(talk.tenant, id, REPUBLISH_MS)
        .await
        .unwrap()
        .unwrap();
    start(&talk, id).await;
    f.store.end_job(talk.tenant, id, &failed("once")).await.unwrap();
    refused(f.store.replay_job(talk.tenant, id).await, Reason::Conflict);
    f.store.cancel_job(talk.tenant, id).await.unwrap();
    let other = enqueue(&talk, JobKind::Compaction, 0).await;
    refused(f.store.replay_job(talk.tenant, id).await, Reason::Conflict);
    f.store.cancel_job(talk.tenant, other).await.unwrap();
    let replayed = f.store.replay_job(talk.tenant, id).await.unwrap();
    assert_eq!((replayed.state, replayed.attempts), (JobState::Queued, 0));
    assert_eq!(
        (replayed.due, replayed.error.as_str()),
        (f.store.now().await.unwrap(), "")
    );
    let published = f
        .store
        .mark_published(talk.tenant, id, REPUBLISH_MS)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        published.job.publish_no, 2,
        "a publish number is never used again"
    );
    refused(
        f.store.replay_job(talk.tenant, JobId::new()).await,
        Reason::NotFound,
    );
}
