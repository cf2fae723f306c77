//! Compaction: one at a time, resumable, applied once.

use super::fixture::*;
use crate::*;
use colloquy_types::entry::Compaction;
use colloquy_types::{EntryBody, Epoch, JobId, NewEntry, Reason, Seq, SessionId};

const LEASE_MS: i64 = 60_000;

pub(super) struct Run {
    pub job: JobId,
    pub marker: Marker,
    pub snapshot: Snapshot,
    pub chunks: Vec<Chunk>,
}

/// Three exchanges: 6 entries, 60 tokens.
pub(super) async fn conversation(f: &Fixture) -> Talk {
    let talk = f.talk();
    for text in ["one", "two", "three"] {
        talk.exchange(text, "reply").await;
    }
    talk
}

pub(super) async fn enqueue(talk: &Talk) -> JobId {
    let session = talk.session().await;
    let job = NewJob {
        id: JobId::new(),
        kind: JobKind::Compaction,
        session: session.id,
        transcript: session.transcript,
        branch: session.branch,
        delay_ms: 0,
        payload_json: "{}".to_owned(),
    };
    talk.store().enqueue_job(talk.tenant, &job).await.unwrap()
}

pub(super) async fn begin(talk: &Talk, job: JobId) -> Begun {
    let session = talk.session().await.id;
    let begin = BeginCompaction {
        tenant: talk.tenant,
        session,
        job,
        lease_ms: LEASE_MS,
    };
    talk.store().begin_compaction(&begin).await.unwrap()
}

pub(super) async fn run_job(talk: &Talk, job: JobId) -> Run {
    match begin(talk, job).await {
        Begun::Run {
            marker,
            snapshot,
            chunks,
        } => Run {
            job,
            marker,
            snapshot: *snapshot,
            chunks,
        },
        Begun::Skipped(reason) => panic!("skipped: {reason:?}"),
    }
}

pub(super) async fn run(talk: &Talk) -> Run {
    let job = enqueue(talk).await;
    run_job(talk, job).await
}

fn summary(text: &str, first_kept: i64, job: JobId) -> NewEntry {
    let body = Compaction {
        summary: text.to_owned(),
        first_kept: Seq(first_kept),
        tokens_before: 60,
        tokens_after: 25,
        model: "offline".to_owned(),
        job,
        degraded: false,
    };
    entry_of(EntryBody::Compaction(body), 5)
}

pub(super) fn apply_input(talk: &Talk, run: &Run, text: &str, first_kept: i64) -> ApplyCompaction {
    let branch = &run.snapshot.branch;
    ApplyCompaction {
        tenant: talk.tenant,
        session: run.snapshot.session,
        job: run.job,
        marker: run.marker,
        transcript: branch.transcript,
        branch: branch.branch,
        epoch: branch.epoch,
        entry: summary(text, first_kept, run.job),
        first_kept: Seq(first_kept),
        result_json: r#"{"chunks":1}"#.to_owned(),
    }
}

pub(super) fn fail_input(talk: &Talk, run: &Run, reason: &str) -> FailCompaction {
    FailCompaction {
        tenant: talk.tenant,
        session: run.snapshot.session,
        job: run.job,
        marker: run.marker,
        reason: reason.to_owned(),
        retry_ms: 1_000,
    }
}

pub async fn a_compaction_starts_on_a_snapshot(f: &Fixture) {
    let talk = conversation(f).await;
    let run = run(&talk).await;
    let session = talk.session().await;
    let window = f
        .store
        .window(talk.tenant, session.transcript, session.branch, None)
        .await
        .unwrap();
    let expected = Snapshot {
        session: session.id,
        branch: window.branch,
        policy: Some(talk.input("x").policy),
    };
    assert_eq!(run.snapshot, expected);
    assert!(run.chunks.is_empty());
    let job = f.store.get_job(talk.tenant, run.job).await.unwrap().unwrap();
    assert_eq!(job.state, JobState::Running);
    let begin = BeginCompaction {
        tenant: talk.tenant,
        session: SessionId::new(),
        job: run.job,
        lease_ms: 1,
    };
    refused(f.store.begin_compaction(&begin).await, Reason::NotFound);
}

pub async fn one_compaction_runs_at_a_time(f: &Fixture) {
    let talk = conversation(f).await;
    let run = run(&talk).await;
    assert_eq!(
        begin(&talk, run.job).await,
        Begun::Skipped(SkipReason::AlreadyRunning)
    );
    f.advance(LEASE_MS - 1).await;
    let renewed = f
        .store
        .renew_compaction(talk.tenant, run.snapshot.session, run.job, run.marker, LEASE_MS)
        .await;
    renewed.unwrap();
    f.advance(LEASE_MS - 1).await;
    assert_eq!(
        begin(&talk, run.job).await,
        Begun::Skipped(SkipReason::AlreadyRunning)
    );
}

pub async fn a_lost_marker_is_taken_over_with_its_chunks(f: &Fixture) {
    let talk = conversation(f).await;
    let lost = run(&talk).await;
    let chunk = |index, summary: &str| Chunk {
        index,
        from: Seq(1),
        to: Seq(2),
        summary: summary.to_owned(),
    };
    let save = async |run: &Run, chunk: Chunk| {
        f.store
            .save_chunk(talk.tenant, run.snapshot.session, run.job, run.marker, &chunk)
            .await
    };
    save(&lost, chunk(1, "second")).await.unwrap();
    save(&lost, chunk(0, "first")).await.unwrap();
    save(&lost, chunk(0, "first again")).await.unwrap();
    f.advance(LEASE_MS).await;
    let taken = run_job(&talk, lost.job).await;
    assert_ne!(taken.marker, lost.marker);
    assert_eq!(taken.chunks, [chunk(0, "first"), chunk(1, "second")]);
    assert_eq!(
        f.store
            .get_job(talk.tenant, lost.job)
            .await
            .unwrap()
            .unwrap()
            .attempts,
        1
    );

    let (session, job) = (lost.snapshot.session, lost.job);
    refused(
        f.store
            .renew_compaction(talk.tenant, session, job, lost.marker, 1)
            .await,
        Reason::Fenced,
    );
    refused(save(&lost, chunk(2, "late")).await, Reason::Fenced);
    refused(
        f.store
            .apply_compaction(&apply_input(&talk, &lost, "late", 5))
            .await,
        Reason::Fenced,
    );
    refused(
        f.store.fail_compaction(&fail_input(&talk, &lost, "late")).await,
        Reason::Fenced,
    );
    refused(
        f.store.skip_compaction(&fail_input(&talk, &lost, "late")).await,
        Reason::Fenced,
    );
    f.store
        .apply_compaction(&apply_input(&talk, &taken, "summary", 5))
        .await
        .unwrap();
}

pub async fn an_apply_moves_the_window(f: &Fixture) {
    let talk = conversation(f).await;
    let run = run(&talk).await;
    let before = talk.session().await;
    let branch = f
        .store
        .apply_compaction(&apply_input(&talk, &run, "so far", 5))
        .await
        .unwrap();
    let after = talk.session().await;
    let expected = Branch {
        transcript: before.transcript,
        branch: before.branch,
        epoch: Epoch(before.epoch.0 + 1),
        head: Seq(7),
        compaction: Some(Seq(7)),
        first_kept: Seq(5),
        marks: Marks::default(),
        window_messages: 3,
        window_tokens: 25,
    };
    assert_eq!(branch, expected);
    assert_eq!(
        (after.epoch, after.head, after.counters.compactions),
        (branch.epoch, Seq(7), 1)
    );
    assert_eq!((after.window_messages, after.window_tokens), (3, 25));
    assert!(after.version > before.version);
    let window = f
        .store
        .window(talk.tenant, after.transcript, after.branch, None)
        .await
        .unwrap();
    assert_eq!(window.branch, branch);
    assert_eq!(words(window.summary.as_slice()), ["compaction:so far"]);
    assert_eq!(words(&window.entries), ["user:three", "assistant:reply"]);
    assert_eq!(talk.entries().await.len(), 7, "nothing is deleted");
    let job = f.store.get_job(talk.tenant, run.job).await.unwrap().unwrap();
    assert_eq!(
        (job.state, job.result_json.as_str()),
        (JobState::Done, r#"{"chunks":1}"#)
    );
    assert_eq!(
        begin(&talk, run.job).await,
        Begun::Skipped(SkipReason::Superseded)
    );
}

pub async fn what_came_meanwhile_stays_verbatim(f: &Fixture) {
    let talk = conversation(f).await;
    talk.say("four").await;
    let turn = talk.run().await;
    let run = run(&talk).await;
    let old = f
        .store
        .window(talk.tenant, turn.transcript, turn.branch, Some(turn.head))
        .await
        .unwrap();
    f.store
        .apply_compaction(&apply_input(&talk, &run, "so far", 5))
        .await
        .unwrap();

    // The running turn goes on seeing what it saw, its block comes behind the summary's entry.
    let seen = f
        .store
        .window(talk.tenant, turn.transcript, turn.branch, Some(turn.head))
        .await
        .unwrap();
    assert_eq!((seen.summary, &seen.entries), (None, &old.entries));
    let committed = talk.commit(&turn, "4").await;
    assert_eq!(
        (committed.head, committed.window_messages, committed.window_tokens),
        (Seq(9), 5, 45)
    );
    let window = f
        .store
        .window(talk.tenant, turn.transcript, turn.branch, None)
        .await
        .unwrap();
    assert_eq!(
        words(&window.entries),
        ["user:three", "assistant:reply", "user:four", "assistant:4"]
    );
}

pub async fn an_apply_is_compare_and_set(f: &Fixture) {
    let talk = conversation(f).await;
    let run = run(&talk).await;
    let mut stale = apply_input(&talk, &run, "stale", 5);
    stale.epoch = Epoch(stale.epoch.0 - 1);
    refused(f.store.apply_compaction(&stale).await, Reason::Conflict);
    assert_eq!(talk.entries().await.len(), 6);
    f.store
        .apply_compaction(&apply_input(&talk, &run, "fresh", 5))
        .await
        .unwrap();
    refused(
        f.store
            .apply_compaction(&apply_input(&talk, &run, "fresh", 5))
            .await,
        Reason::Fenced,
    );
}
