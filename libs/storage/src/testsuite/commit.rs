//! Committing a turn.

use super::fixture::*;
use crate::*;
use colloquy_types::queue::Outcome;
use colloquy_types::{EntryBody, Fence, JobId, Reason, Seq, TurnId};

pub async fn a_commit_appends_one_block(f: &Fixture) {
    let talk = f.talk();
    let first = talk.accept("one", &join_newest).await;
    let second = talk.accept("two", &join_newest).await;
    f.advance(800).await;
    let turn = talk.claim().await;
    talk.stage(&turn, 1, &["a", "b"]).await.unwrap();
    let mut commit = talk.commit_input(&turn, "c");
    let note = EntryBody::Custom {
        kind: "note".to_owned(),
        json: "{}".to_owned(),
    };
    commit.entries.push(entry_of(note, 0));
    let committed = f.store.commit(&commit).await.unwrap();
    assert_eq!(
        (committed.session, committed.head, committed.replayed),
        (turn.session, Seq(6), false)
    );
    assert_eq!((committed.window_messages, committed.window_tokens), (5, 50));
    assert_eq!((committed.compacting, committed.next_due), (false, None));

    let entries = talk.entries().await;
    assert_eq!(
        words(&entries),
        [
            "user:one",
            "user:two",
            "assistant:a",
            "assistant:b",
            "assistant:c",
            "custom"
        ]
    );
    let now = f.store.now().await.unwrap();
    assert!(
        entries
            .iter()
            .all(|entry| entry.turn == Some(turn.turn) && entry.at == now)
    );
    assert_eq!(
        entries.iter().map(|entry| entry.seq.0).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5, 6]
    );
    assert_eq!((entries[4].id, entries[4].tokens), (commit.entries[0].id, TOKENS));
    for message in [first.message, second.message] {
        assert_eq!(talk.outcome(message).await, Some(Outcome::Answered));
    }
    let session = talk.session().await;
    assert_eq!(
        (session.head, session.window_messages, session.window_tokens),
        (Seq(6), 5, 50)
    );
    assert_eq!((session.waiting, session.running), (0, 0));
}

pub async fn a_repeated_commit_gets_the_same_answer(f: &Fixture) {
    let talk = f.talk();
    talk.say("one").await;
    let turn = talk.claim().await;
    let committed = talk.commit(&turn, "1").await;
    talk.exchange("two", "2").await;
    let again = f.store.commit(&talk.commit_input(&turn, "1")).await.unwrap();
    assert_eq!(
        again,
        Committed {
            replayed: true,
            ..committed
        }
    );
    refused(
        f.store.commit(&talk.commit_input(&turn, "other")).await,
        Reason::IdempotencyMismatch,
    );
    let mut stale = talk.commit_input(&turn, "1");
    stale.fence = Fence(7);
    refused(f.store.commit(&stale).await, Reason::Fenced);
    assert_eq!(talk.entries().await.len(), 4);
}

pub async fn a_commit_counts_usage(f: &Fixture) {
    let talk = f.talk();
    talk.say("one").await;
    let turn = talk.claim().await;
    let mut commit = talk.commit_input(&turn, "1");
    commit.usage = Usage {
        input_tokens: 100,
        output_tokens: 20,
        context_tokens: 90,
        window_tokens: 200_000,
        provider: "anthropic".to_owned(),
        model: "claude".to_owned(),
        ..Usage::default()
    };
    commit.outcome = Outcome::NotSentPolicy;
    let committed = f.store.commit(&commit).await.unwrap();
    assert_eq!((committed.input_tokens, committed.output_tokens), (100, 20));
    assert_eq!(
        talk.outcome(turn.messages[0].0).await,
        Some(Outcome::NotSentPolicy)
    );
    talk.exchange("two", "2").await; // reports nothing, so what was reported stays
    let session = talk.session().await;
    let counters = session.counters;
    assert_eq!(
        (counters.input_tokens, counters.output_tokens, counters.turns),
        (100, 20, 2)
    );
    assert_eq!(
        (counters.last_prompt_tokens, counters.context_window),
        (Some(90), Some(200_000))
    );
    assert_eq!(
        (session.model.as_str(), session.provider.as_str()),
        ("claude", "anthropic")
    );
}

pub async fn a_commit_says_when_the_next_turn_is_due(f: &Fixture) {
    let talk = f.talk();
    talk.say("one").await;
    let turn = talk.claim().await;
    let next = TurnId::new();
    let answer = talk
        .accept("two", &move |state| Ok(open_with(state, next, 800, vec![])))
        .await;
    assert_eq!(talk.commit(&turn, "1").await.next_due, answer.due);
}

pub async fn a_commit_writes_jobs(f: &Fixture) {
    let talk = f.talk();
    talk.say("one").await;
    let turn = talk.claim().await;
    let mut commit = talk.commit_input(&turn, "1");
    let (unneeded, extract) = (JobId::new(), JobId::new());
    commit.compact = Some(CompactAbove {
        messages: 2,
        tokens: 20,
        job: unneeded,
    });
    commit.extract = Some(extract);
    commit.extract_delay_ms = 500;
    assert!(
        !f.store.commit(&commit).await.unwrap().compacting,
        "neither is exceeded"
    );
    assert_eq!(f.store.get_job(talk.tenant, unneeded).await.unwrap(), None);
    let job = f.store.get_job(talk.tenant, extract).await.unwrap().unwrap();
    assert_eq!(
        (job.kind, job.state, job.session),
        (JobKind::MemoryExtract, JobState::Queued, turn.session)
    );
    assert_eq!((job.transcript, job.branch), (turn.transcript, turn.branch));
    assert_eq!(job.due, f.store.now().await.unwrap().plus(500));

    let mut ids = Vec::new();
    for (text, above) in [("two", (2, 1_000)), ("three", (1_000, 20))] {
        talk.say(text).await;
        let turn = talk.claim().await;
        let mut commit = talk.commit_input(&turn, "reply");
        let job = JobId::new();
        commit.compact = Some(CompactAbove {
            messages: above.0,
            tokens: above.1,
            job,
        });
        commit.extract = Some(JobId::new());
        assert!(f.store.commit(&commit).await.unwrap().compacting);
        ids.push(f.store.get_job(talk.tenant, job).await.unwrap());
    }
    assert!(
        ids[0].as_ref().is_some_and(|job| job.kind == JobKind::Compaction),
        "above the messages"
    );
    assert_eq!(ids[1], None, "one is under way");
    let all = f
        .store
        .list_jobs(talk.tenant, &JobFilter::default(), &PageRequest::default())
        .await
        .unwrap();
    assert_eq!(all.items.len(), 2);
}

pub async fn watermarks_only_move_forward(f: &Fixture) {
    let talk = f.talk();
    talk.exchange("one", "1").await;
    talk.say("two").await;
    let turn = talk.claim().await;
    let marks = |soft, hard| {
        Some(Marks {
            soft: Seq(soft),
            hard: Seq(hard),
        })
    };
    let input = StageInput {
        tenant: talk.tenant,
        turn: turn.turn,
        fence: turn.fence,
        first: 1,
        entries: vec![],
        marks: marks(2, 1),
    };
    f.store.stage(&input).await.unwrap();
    let window = f
        .store
        .window(talk.tenant, turn.transcript, turn.branch, None)
        .await
        .unwrap();
    assert_eq!(Some(window.branch.marks), marks(2, 1));
    let mut commit = talk.commit_input(&turn, "2");
    commit.marks = marks(1, 2);
    f.store.commit(&commit).await.unwrap();
    let window = f
        .store
        .window(talk.tenant, turn.transcript, turn.branch, None)
        .await
        .unwrap();
    assert_eq!(Some(window.branch.marks), marks(2, 2));
}
