//! Random traffic: whatever comes, every message ends in exactly one place, in order.

use crate::simulator::{Session, event};
use colloquy_types::policy::{Policy, Profile};
use colloquy_types::queue::QueueMode;
use colloquy_types::{MessageId, Reason, UnixMillis};
use proptest::prelude::*;
use std::collections::HashSet;

#[derive(Debug, Clone)]
struct Step {
    after: i64,
    sender: u8,
    thread: u8,
    mode: Option<QueueMode>,
    debounce: Option<i64>,
    media: bool,
    command: u8,
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
    )
        .prop_map(|(after, sender, thread, mode, debounce, media, command)| Step {
            after,
            sender,
            thread,
            mode,
            debounce,
            media: media && command % 3 == 0,
            command,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_message_ends_once_and_in_order(
        steps in proptest::collection::vec(step(), 1..250),
        profile in 0_usize..3,
        turn_ms in 0_i64..5_000,
        capacity in 1_u32..6,
    ) {
        let overrides = format!("{{\"queue\":{{\"capacity\":{capacity}}}}}");
        let policy = Policy::resolve(Profile::ALL[profile], &[&overrides]).unwrap();
        let mut session = Session::new(turn_ms);
        let (mut accepted, mut now): (Vec<(MessageId, u8, u8)>, i64) = (Vec::new(), 0);
        for (number, step) in steps.iter().enumerate() {
            now += step.after;
            session.advance(now);
            session.state.now = UnixMillis(now);
            let text = match step.command {
                0 => "/stop".to_owned(),
                1 => "/stopall".to_owned(),
                2 => "/new".to_owned(),
                _ => number.to_string(),
            };
            let mut event = event(&text, &step.sender.to_string(), Some(&step.thread.to_string()));
            event.mode = step.mode;
            event.debounce_ms = step.debounce;
            event.has_media = step.media;
            let before = session.state.waiting.clone();
            match session.accept(&event, &policy) {
                Ok(_) => accepted.push((event.message, step.sender, step.thread)),
                Err(error) => {
                    prop_assert!(matches!(error.reason, Reason::QueueFull | Reason::Busy));
                    prop_assert_eq!(&session.state.waiting, &before, "a refusal changes nothing");
                }
            }
            for waiting in &session.state.waiting {
                prop_assert!(waiting.messages.len() == 1 || !waiting.messages.is_empty());
                prop_assert!(waiting.due.since(waiting.opened) <= 5 * 60_000);
            }
            prop_assert!(session.state.waiting.len() <= capacity as usize + 1);
        }
        session.advance(i64::MAX / 4);

        let mut place = HashSet::new();
        for (_, _, messages) in &session.started {
            let threads: HashSet<u8> =
                messages.iter().map(|id| accepted.iter().find(|(known, ..)| known == id).unwrap().2).collect();
            prop_assert_eq!(threads.len(), 1, "nothing merges across reply targets");
            for message in messages {
                prop_assert!(place.insert(*message), "a message ran twice");
            }
        }
        for (message, ..) in &accepted {
            prop_assert!(session.outcomes.contains_key(message), "a message without an outcome");
        }
        // What ran, ran in the order of its accept.
        let ran: Vec<MessageId> = session.started.iter().flat_map(|(_, _, messages)| messages.clone()).collect();
        let order: Vec<usize> =
            ran.iter().map(|id| accepted.iter().position(|(known, ..)| known == id).unwrap()).collect();
        prop_assert!(order.is_sorted(), "{order:?}");
    }
}
