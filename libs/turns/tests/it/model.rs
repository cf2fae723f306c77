//! Random traffic: whatever comes, every message ends in exactly one place, in order.

use crate::simulator::{Session, event};
use colloquy_types::message::Provenance;
use colloquy_types::policy::{Policy, Profile};
use colloquy_types::queue::{AcceptEvent, Placement, QueueMode, WaitingTurn};
use colloquy_types::{MessageId, Reason};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

#[derive(Debug, Clone)]
struct Step {
    after: i64,
    sender: u8,
    thread: u8,
    mode: Option<QueueMode>,
    debounce: Option<i64>,
    media: bool,
    command: u8,
    untrusted: bool,
}

fn step() -> impl Strategy<Value = Step> {
    let mode = prop_oneof![
        Just(QueueMode::Queue),
        Just(QueueMode::Followup),
        Just(QueueMode::Collect),
        Just(QueueMode::Steer),
        Just(QueueMode::Interrupt),
        Just(QueueMode::Reject)
    ];
    (
        0_i64..3_000,
        0_u8..3,
        0_u8..2,
        proptest::option::of(mode),
        proptest::option::of(0_i64..2_000),
        any::<bool>(),
        0_u8..40,
        proptest::bool::weighted(0.2),
    )
        .prop_map(
            |(after, sender, thread, mode, debounce, media, command, untrusted)| Step {
                after,
                sender,
                thread,
                mode,
                debounce,
                media: media && command % 3 == 0,
                command,
                untrusted,
            },
        )
}

fn event_of(step: &Step, number: usize) -> AcceptEvent {
    let text = match step.command {
        0 => "/stop".to_owned(),
        1 => "/stopall".to_owned(),
        2 => "/new".to_owned(),
        3 => "/new hello".to_owned(),
        _ => number.to_string(),
    };
    let mut event = event(&text, &step.sender.to_string(), Some(&step.thread.to_string()));
    event.mode = step.mode;
    event.debounce_ms = step.debounce;
    event.has_media = step.media;
    if step.untrusted {
        event.merge.authority = Provenance::Untrusted;
    }
    event
}

/// What counts against the capacity while messages of the mode come in.
fn weight(session: &Session, mode: QueueMode) -> usize {
    let by_message = matches!(mode, QueueMode::Followup | QueueMode::Collect);
    let weigh = |waiting: &WaitingTurn| if by_message { waiting.messages.len() } else { 1 };
    session.state.waiting.iter().map(weigh).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_message_ends_once_and_in_order(
        steps in proptest::collection::vec(step(), 1..150),
        profile in 0_usize..3,
        turn_ms in 0_i64..5_000,
        stop_ms in prop_oneof![Just(0_i64), 1_i64..10_000],
        renew_ms in prop_oneof![Just(0_i64), 1_i64..2_000],
        capacity in 1_u32..6,
        max_concurrent in 1_u32..3,
    ) {
        let overrides = format!(r#"{{"queue":{{"capacity":{capacity},"max_concurrent":{max_concurrent}}}}}"#);
        let policy = Policy::resolve(Profile::ALL[profile], &[&overrides]).unwrap();
        let mut session = Session::new(turn_ms).slow_to_stop(stop_ms);
        session.renew_ms = renew_ms;
        let (mut accepted, mut now): (Vec<AcceptEvent>, i64) = (Vec::new(), 0);
        for (number, step) in steps.iter().enumerate() {
            now += step.after;
            session.advance(now);
            let event = event_of(step, number);
            let mode = step.mode.unwrap_or(policy.queue.mode);
            let before = (session.state.clone(), weight(&session, mode));
            match session.accept(&event, &policy) {
                Ok(plan) => {
                    // What joins in its debounce adds no turn, and an unacknowledged steer waits beyond the count.
                    if plan.placement == Placement::Queued {
                        prop_assert!(weight(&session, mode) <= (capacity as usize).max(before.1));
                    }
                    accepted.push(event);
                }
                Err(error) => {
                    prop_assert!(matches!(error.reason, Reason::QueueFull | Reason::Busy));
                    prop_assert_eq!(&session.state, &before.0, "a refusal changes nothing");
                }
            }
            prop_assert!(session.state.running.len() <= max_concurrent as usize);
            for waiting in &session.state.waiting {
                prop_assert!(!waiting.messages.is_empty());
                prop_assert!(waiting.due.since(waiting.opened) <= 5 * 2_000);
            }
        }
        session.advance(i64::MAX / 4);

        let position: HashMap<MessageId, usize> =
            accepted.iter().enumerate().map(|(at, event)| (event.message, at)).collect();
        prop_assert!(session.state.waiting.is_empty() && session.state.running.is_empty());
        for event in &accepted {
            // The simulator refuses a second outcome.
            prop_assert!(session.outcomes.contains_key(&event.message), "a message without an outcome");
        }
        let steers = steps.iter().any(|step| step.mode == Some(QueueMode::Steer));
        let mut ran = HashSet::new();
        for (_, _, messages) in &session.started {
            let keys: HashSet<_> = messages.iter().map(|id| &accepted[position[id]].merge).collect();
            prop_assert!(keys.len() == 1 || steers, "nothing merges across authority or reply target");
            prop_assert!(messages.iter().all(|message| ran.insert(*message)), "a message ran twice");
        }
        // What ran, ran in the order of its accept; beside another turn a late steer may come after what followed it.
        let order: Vec<usize> = session.started.iter().flat_map(|(_, _, ids)| ids).map(|id| position[id]).collect();
        prop_assert!(order.is_sorted() || (steers && max_concurrent > 1), "{order:?}");
    }
}
