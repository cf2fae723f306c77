//! What a plan does to the queue, effect by effect.

use super::fixture::*;
use crate::*;
use colloquy_types::message::{Media, MediaData, MediaKind};
use colloquy_types::queue::{AcceptPlan, AcceptState, Effect, Outcome, Placement, ResetReason, TurnState};
use colloquy_types::{Epoch, Part, Seq};
use std::sync::Mutex;

pub async fn a_message_joins_a_waiting_turn(f: &Fixture) {
    let talk = f.talk();
    let first = talk.accept("one", &join_newest).await;
    f.advance(100).await;
    let second = talk.accept("two", &join_newest).await;
    assert_eq!((second.turn, second.placement), (first.turn, Placement::Merged));
    assert_eq!(second.due, Some(second.now.plus(800)));
    assert_eq!(
        talk.queue().await.waiting[0].messages,
        [first.message, second.message]
    );
    assert_eq!(talk.try_claim().await, Claimed::Later(second.now.plus(800)));
    f.advance(800).await;
    let turn = talk.claim().await;
    let texts: Vec<String> = turn.messages.iter().map(|(_, message)| message.text()).collect();
    assert_eq!(texts, ["one", "two"]);
}

pub async fn a_turn_of_two_senders_has_none(f: &Fixture) {
    let talk = f.talk();
    talk.accept("one", &join_newest).await;
    let mut other = talk.input("two");
    other.event.sender.id = "someone else".to_owned();
    talk.store().accept(&other, &join_newest).await.unwrap();
    let seen = Mutex::new(None);
    let decide = |state: &AcceptState| {
        *seen.lock().unwrap() = state.waiting.first().cloned();
        open_turn(state)
    };
    talk.store().accept(&talk.input("three"), &decide).await.unwrap();
    assert_eq!(seen.into_inner().unwrap().unwrap().sender, None);
}

pub async fn a_turn_is_closed_and_moved(f: &Fixture) {
    let talk = f.talk();
    let first = talk.say("one").await;
    let turn = first.turn.unwrap();
    let due = first.now.plus(300);
    talk.say_with(
        "two",
        vec![Effect::CloseTurn { turn }, Effect::MoveDue { turn, due }],
    )
    .await;
    assert_eq!(talk.try_claim().await, Claimed::Later(due));
    let seen = Mutex::new(None);
    let decide = |state: &AcceptState| {
        *seen.lock().unwrap() = Some(state.waiting.clone());
        open_turn(state)
    };
    talk.store().accept(&talk.input("three"), &decide).await.unwrap();
    let waiting = seen.into_inner().unwrap().unwrap();
    assert_eq!(
        (waiting[0].closed, waiting[0].due, waiting[1].closed),
        (true, due, false)
    );
}

pub async fn a_dropped_turn_keeps_its_outcome(f: &Fixture) {
    let talk = f.talk();
    let first = talk.say("one").await;
    let end = Effect::EndTurn {
        turn: first.turn.unwrap(),
        outcome: Outcome::DroppedQueueFull,
    };
    let second = talk.say_with("two", vec![end]).await;
    assert_eq!(talk.outcome(first.message).await, Some(Outcome::DroppedQueueFull));
    assert_eq!(talk.outcome(second.message).await, None);
    assert_eq!(talk.session().await.waiting, 1);
    assert_eq!(Some(talk.claim().await.turn), second.turn);
    assert!(talk.entries().await.is_empty());
}

pub async fn summaries_of_dropped_turns_lead_the_next(f: &Fixture) {
    let talk = f.talk();
    let first = talk.say("one").await;
    let second = talk.say("two").await;
    let (one, two) = (first.turn.unwrap(), second.turn.unwrap());
    let line = |text: &str| format!("- {text}");
    talk.say_with(
        "three",
        vec![Effect::SummarizeTurn {
            turn: one,
            into: two,
            line: line("one"),
        }],
    )
    .await;
    let third = talk.queue().await.waiting[1].turn;
    talk.say_with(
        "four",
        vec![Effect::SummarizeTurn {
            turn: two,
            into: third,
            line: line("two"),
        }],
    )
    .await;
    assert_eq!(talk.outcome(first.message).await, Some(Outcome::Summarized));
    assert_eq!(talk.outcome(second.message).await, Some(Outcome::Summarized));
    let turn = talk.claim().await;
    assert_eq!((turn.turn, turn.preface.as_str()), (third, "- one\n- two"));
    let view = talk
        .store()
        .view(talk.tenant, turn.turn, turn.fence)
        .await
        .unwrap();
    assert_eq!(view.preface, "- one\n- two");
}

pub async fn an_effect_stops_a_running_turn(f: &Fixture) {
    let talk = f.talk();
    talk.say("one").await;
    let running = talk.run().await;
    let deadline = f.store.now().await.unwrap().plus(10_000);
    let stop = Effect::StopTurn {
        turn: running.turn,
        outcome: Outcome::CancelledInterrupt,
        deadline,
    };
    let second = talk.say_with("two", vec![stop]).await;
    assert_eq!(second.stopping, [running.turn]);
    let queue = talk.queue().await;
    assert_eq!(
        (queue.running[0].state, queue.waiting.len()),
        (TurnState::Stopping, 1)
    );
    assert_eq!(talk.try_claim().await, Claimed::Nothing);
    let renewal = talk
        .store()
        .renew(talk.tenant, running.turn, running.fence, 0)
        .await
        .unwrap();
    assert_eq!(
        (renewal.state, renewal.stop),
        (TurnState::Stopping, Some(Outcome::CancelledInterrupt))
    );
    assert_eq!(renewal.lease_left_ms, 10_000);

    // One that is stopping already keeps its outcome and its deadline.
    let again = Effect::StopTurn {
        turn: running.turn,
        outcome: Outcome::CancelledReset,
        deadline: deadline.plus(1),
    };
    assert!(talk.say_with("three", vec![again]).await.stopping.is_empty());
    let repeated = talk
        .store()
        .renew(talk.tenant, running.turn, running.fence, 0)
        .await
        .unwrap();
    assert_eq!(repeated, renewal);
}

pub async fn a_command_is_finished_at_once(f: &Fixture) {
    let talk = f.talk();
    let finish = |_: &AcceptState| {
        Ok(AcceptPlan {
            placement: Placement::Command,
            turn: None,
            position: 0,
            effects: vec![Effect::Finish {
                outcome: Outcome::Command,
            }],
            text: None,
        })
    };
    let answer = talk.accept("/stop", &finish).await;
    assert_eq!(
        (answer.turn, answer.due, answer.outcome),
        (None, None, Some(Outcome::Command))
    );
    assert_eq!(talk.outcome(answer.message).await, Some(Outcome::Command));
    assert_eq!(talk.try_claim().await, Claimed::Nothing);
}

pub async fn a_reset_effect_starts_a_transcript(f: &Fixture) {
    let talk = f.talk();
    talk.exchange("one", "1").await;
    let before = talk.session().await;
    let fresh = talk
        .say_with(
            "two",
            vec![Effect::Reset {
                reason: ResetReason::Daily,
            }],
        )
        .await;
    let after = talk.session().await;
    assert_ne!(after.transcript, before.transcript);
    assert_eq!(fresh.transcript, after.transcript);
    assert_eq!((after.epoch, after.head), (Epoch(before.epoch.0 + 1), Seq(1)));
    assert_eq!((after.counters.turns, after.window_messages), (0, 0));
    assert_eq!(words(&talk.entries().await), ["reset:daily"]);
    let turn = talk.claim().await;
    assert_eq!(
        (Some(turn.turn), turn.transcript, turn.head),
        (fresh.turn, after.transcript, Seq(1))
    );
    talk.commit(&turn, "2").await;
    assert_eq!(
        words(&talk.entries().await),
        ["reset:daily", "user:two", "assistant:2"]
    );
}

pub async fn a_turn_commits_where_it_was_accepted(f: &Fixture) {
    let talk = f.talk();
    talk.exchange("one", "1").await;
    let before = talk.session().await;
    let waiting = talk.say("two").await;
    talk.say_with(
        "three",
        vec![Effect::Reset {
            reason: ResetReason::Daily,
        }],
    )
    .await;
    assert_eq!(waiting.transcript, before.transcript);
    let old = talk.run().await;
    assert_eq!(
        (Some(old.turn), old.transcript, old.head),
        (waiting.turn, before.transcript, Seq(2))
    );
    let mut commit = talk.commit_input(&old, "2");
    commit.usage.input_tokens = 7;
    let committed = talk.store().commit(&commit).await.unwrap();
    assert_eq!(
        (committed.head, committed.input_tokens),
        (Seq(4), 0),
        "the counters are the new transcript's"
    );
    assert_eq!(talk.session().await.head, Seq(1));
    let old_words = words(&talk.entries_of(before.transcript, before.branch).await);
    assert_eq!(old_words, ["user:one", "assistant:1", "user:two", "assistant:2"]);
}

pub async fn the_plans_text_replaces_the_messages(f: &Fixture) {
    let talk = f.talk();
    let mut input = talk.input("/new hello");
    let data = MediaData::Reference("file".to_owned());
    let media = Part::Media(Media {
        kind: MediaKind::Image,
        mime: String::new(),
        name: String::new(),
        data,
    });
    input.message.parts.push(media.clone());
    let decide = |state: &AcceptState| {
        open_turn(state).map(|plan| AcceptPlan {
            text: Some("hello".into()),
            ..plan
        })
    };
    talk.store().accept(&input, &decide).await.unwrap();
    assert_eq!(
        talk.claim().await.messages[0].1.parts,
        [Part::text("hello"), media]
    );
}
