//! Compactions one after another, and those that are not applied.

use super::compaction::*;
use super::fixture::*;
use crate::*;
use colloquy_types::queue::ResetReason;
use colloquy_types::{Reason, Seq};

pub async fn a_second_compaction_stands_on_the_first(f: &Fixture) {
    let talk = conversation(f).await;
    let first = run(&talk).await;
    f.store
        .apply_compaction(&apply_input(&talk, &first, "first", 5))
        .await
        .unwrap();
    talk.exchange("four", "reply").await;
    let second = run(&talk).await;
    assert_eq!(
        (
            second.snapshot.branch.compaction,
            second.snapshot.branch.first_kept
        ),
        (Some(Seq(7)), Seq(5))
    );
    let branch = f
        .store
        .apply_compaction(&apply_input(&talk, &second, "second", 8))
        .await
        .unwrap();
    assert_eq!(
        (branch.head, branch.window_messages, branch.window_tokens),
        (Seq(10), 3, 25)
    );
    let (transcript, id) = (branch.transcript, branch.branch);
    let now = f.store.window(talk.tenant, transcript, id, None).await.unwrap();
    assert_eq!(words(now.summary.as_slice()), ["compaction:second"]);
    assert_eq!(words(&now.entries), ["user:four", "assistant:reply"]);
    let then = f
        .store
        .window(talk.tenant, transcript, id, Some(Seq(9)))
        .await
        .unwrap();
    assert_eq!(words(then.summary.as_slice()), ["compaction:first"]);
    assert_eq!(
        words(&then.entries),
        ["user:three", "assistant:reply", "user:four", "assistant:reply"]
    );
}

pub async fn an_apply_clears_the_watermarks(f: &Fixture) {
    let talk = conversation(f).await;
    talk.say("four").await;
    let turn = talk.claim().await;
    let mut commit = talk.commit_input(&turn, "4");
    commit.marks = Some(Marks {
        soft: Seq(4),
        hard: Seq(2),
    });
    f.store.commit(&commit).await.unwrap();
    talk.say("five").await;
    let turn = talk.claim().await;
    let run = run(&talk).await;
    let branch = f
        .store
        .apply_compaction(&apply_input(&talk, &run, "so far", 5))
        .await
        .unwrap();
    assert_eq!(branch.marks, Marks::default());
    let mut commit = talk.commit_input(&turn, "5");
    commit.marks = Some(Marks {
        soft: Seq(6),
        hard: Seq(6),
    });
    f.store.commit(&commit).await.unwrap();
    let window = f
        .store
        .window(talk.tenant, turn.transcript, turn.branch, None)
        .await
        .unwrap();
    assert_eq!(
        window.branch.marks,
        Marks::default(),
        "a build from before the compaction moves nothing"
    );
}

pub async fn a_failure_leaves_history_untouched(f: &Fixture) {
    let talk = conversation(f).await;
    let failing = run(&talk).await;
    f.store
        .fail_compaction(&fail_input(&talk, &failing, "no model"))
        .await
        .unwrap();
    let session = talk.session().await;
    assert_eq!(
        (session.compaction_error.as_deref(), session.counters.compactions),
        (Some("no model"), 0)
    );
    assert_eq!(talk.entries().await.len(), 6);
    let job = f.store.get_job(talk.tenant, failing.job).await.unwrap().unwrap();
    assert_eq!(
        (job.state, job.attempts, job.error.as_str()),
        (JobState::Queued, 1, "no model")
    );
    assert_eq!(job.due, f.store.now().await.unwrap().plus(1_000));
    refused(
        f.store
            .fail_compaction(&fail_input(&talk, &failing, "again"))
            .await,
        Reason::Fenced,
    );
    f.advance(1_000).await;
    let again = run_job(&talk, failing.job).await;
    f.store
        .apply_compaction(&apply_input(&talk, &again, "so far", 5))
        .await
        .unwrap();
    assert_eq!(talk.session().await.compaction_error, None);
}

pub async fn nothing_to_do_is_done(f: &Fixture) {
    let talk = conversation(f).await;
    let run = run(&talk).await;
    f.store
        .skip_compaction(&fail_input(&talk, &run, "nothing to compact"))
        .await
        .unwrap();
    assert_eq!(talk.session().await.compaction_error, None);
    let job = f.store.get_job(talk.tenant, run.job).await.unwrap().unwrap();
    assert_eq!((job.state, job.attempts), (JobState::Done, 0));
    assert_eq!(job.result_json, r#"{"skipped":"nothing to compact"}"#);
    assert_ne!(enqueue(&talk).await, run.job);
}

pub async fn a_reset_ends_the_compaction(f: &Fixture) {
    let talk = conversation(f).await;
    let running = run(&talk).await;
    let session = running.snapshot.session;
    f.store
        .reset_session(talk.tenant, session, ResetReason::Api, 1_000)
        .await
        .unwrap();
    refused(
        f.store
            .apply_compaction(&apply_input(&talk, &running, "late", 5))
            .await,
        Reason::Fenced,
    );
    assert_eq!(words(&talk.entries().await), ["reset:api"]);
    assert_eq!(
        begin(&talk, running.job).await,
        Begun::Skipped(SkipReason::Superseded)
    );
    let job = f.store.get_job(talk.tenant, running.job).await.unwrap().unwrap();
    assert_eq!(job.state, JobState::Cancelled);
    assert_ne!(
        enqueue(&talk).await,
        running.job,
        "the new transcript can be compacted"
    );
}

pub async fn a_cancelled_job_loses_its_marker(f: &Fixture) {
    let talk = conversation(f).await;
    let running = run(&talk).await;
    f.store.cancel_job(talk.tenant, running.job).await.unwrap();
    let session = running.snapshot.session;
    let renewed = f
        .store
        .renew_compaction(talk.tenant, session, running.job, running.marker, 1)
        .await;
    refused(renewed, Reason::Fenced);
    run(&talk).await;
}
