//! A build made again from its receipt.

use crate::growing::{any_turns, any_way, play};
use crate::support::{entries, entry};
use colloquy_context::{
    BuildError, BuildInput, BuildOptions, Format, PruneOptions, Rebuild, Receipt, TurnMessages, build,
    rebuild,
};
use colloquy_types::entry::Compaction;
use colloquy_types::message::Message;
use colloquy_types::{Entry, EntryBody, JobId, Seq};
use proptest::prelude::*;

/// A compaction of everything, as if it had happened since.
fn later_compaction(seq: i64) -> Entry {
    let compaction = Compaction {
        summary: "all of it".to_owned(),
        first_kept: Seq(seq),
        tokens_before: 9,
        tokens_after: 1,
        model: String::new(),
        job: JobId::new(),
        degraded: false,
    };
    entry(seq, EntryBody::Compaction(compaction))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_build_of_a_conversation_can_be_made_again_at_its_end(turns in any_turns(), way in any_way()) {
        let talk = play(&turns, way);
        let mut all = talk.entries.clone();
        all.push(later_compaction(all.len() as i64 + 1));
        for sent in &talk.sent {
            let from = Rebuild { receipt: &sent.receipt, entries: &all, options: way.options, turn: None };
            let again = rebuild(&from).unwrap();
            prop_assert!(again.matches && !again.is_other_version);
            prop_assert_eq!(&again.built.bytes, &sent.bytes);
            prop_assert!(sent.receipt.matches(&again.built.bytes));
            prop_assert_eq!(again.built.tokens.total(), sent.receipt.tokens.total());
            prop_assert_eq!(&again.built.receipt.segments, &sent.receipt.segments);
        }
    }
}

fn receipt_of(history: &[Entry], pending: &[Message]) -> Receipt {
    let input = BuildInput {
        pending,
        ..BuildInput::new(history, 2_000, Format::OpenaiChat)
    };
    build(&input).unwrap().receipt
}

#[test]
fn a_running_turns_messages_can_be_given() {
    let history = entries([Message::user("q"), Message::assistant("a")]);
    let pending = [Message::user("p")];
    let receipt = receipt_of(&history, &pending);
    let mut from = Rebuild {
        receipt: &receipt,
        entries: &history,
        options: BuildOptions::goclaw(),
        turn: None,
    };
    assert!(matches!(
        rebuild(&from),
        Err(BuildError::Input { field: "entries", .. })
    ));
    from.turn = Some(TurnMessages {
        pending: &pending,
        staged: &[],
    });
    assert!(rebuild(&from).unwrap().matches);
}

#[test]
fn other_entries_or_another_policy_do_not_match() {
    let history = entries([Message::user("q"), Message::assistant("a")]);
    let receipt = receipt_of(&history, &[]);
    let rebuilt = |entries: &[Entry], receipt: &Receipt| {
        let options = BuildOptions::goclaw();
        let from = Rebuild {
            receipt,
            entries,
            options,
            turn: None,
        };
        rebuild(&from).map(|again| (again.matches, again.is_other_version))
    };
    assert_eq!(rebuilt(&history, &receipt), Ok((true, false)));
    let erased = entries([Message::user("q"), Message::assistant("[erased]")]);
    assert_eq!(rebuilt(&erased, &receipt), Ok((false, false)));
    let old = Receipt {
        projection_version: 0,
        ..receipt.clone()
    };
    assert_eq!(rebuilt(&history, &old), Ok((true, true)));
    let compacted = Receipt {
        compaction: Some(Seq(99)),
        ..receipt
    };
    assert!(rebuilt(&history, &compacted).is_err());
}

#[test]
fn the_marks_of_then_hold_whatever_the_ratios_say_now() {
    let mut messages = vec![
        Message::user("q"),
        crate::support::calls(vec![crate::support::call("c1", "f", "{}")]),
    ];
    messages.push(crate::support::tool("c1", &"word ".repeat(1_600)));
    messages.extend(["a", "b", "c"].map(Message::assistant));
    let history = entries(messages);
    let receipt = receipt_of(&history, &[]);
    assert!(receipt.watermarks.soft > Seq(0));
    let options = BuildOptions {
        prune: PruneOptions {
            enabled: false,
            soft_ratio: 1.0,
            hard_ratio: 1.0,
            ..PruneOptions::goclaw()
        },
        ..BuildOptions::goclaw()
    };
    let from = Rebuild {
        receipt: &receipt,
        entries: &history,
        options,
        turn: None,
    };
    assert!(rebuild(&from).unwrap().matches);
}
