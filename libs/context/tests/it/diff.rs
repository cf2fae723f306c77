//! Receipts as tables and compared.

use crate::growing::{any_turns, any_way, play};
use crate::support::{call, calls, entries, tool};
use colloquy_context::receipt::{Action, ActionChange, rows};
use colloquy_context::{BuildInput, BuildOptions, Format, PruneOptions, Receipt, build, diff};
use colloquy_types::message::Message;
use colloquy_types::{Entry, Seq};
use proptest::prelude::*;

fn heavy() -> Vec<Entry> {
    let mut messages = vec![Message::user("q"), calls(vec![call("c1", "f", "{}")])];
    messages.push(tool("c1", &"word ".repeat(1_600)));
    messages.extend(["a", "b", "c"].map(Message::assistant));
    messages.push(calls(vec![call("c2", "f", "{}")]));
    entries(messages)
}

fn receipt(history: &[Entry], prune: PruneOptions) -> Receipt {
    let options = BuildOptions {
        prune,
        ..BuildOptions::goclaw()
    };
    let input = BuildInput {
        options,
        overhead: 7,
        recalled: "a memory",
        ..BuildInput::new(history, 5_000, Format::OpenaiChat)
    };
    build(&input).unwrap().receipt
}

#[test]
fn another_policy_shows_where_and_how_many_tokens_it_saves() {
    let history = heavy();
    let off = PruneOptions {
        enabled: false,
        ..PruneOptions::goclaw()
    };
    let (before, after) = (receipt(&history, off), receipt(&history, PruneOptions::goclaw()));
    let found = diff(&before, &after);
    assert!(!found.is_same_bytes);
    assert_eq!(found.blocks.len(), 1);
    let block = &found.blocks[0];
    assert_eq!((block.from, block.through), (Seq(1), Seq(7)));
    assert_eq!(
        block.changes,
        [ActionChange {
            from: Seq(3),
            through: Seq(3),
            before: Some(Action::Kept),
            after: Some(Action::Trimmed),
        }]
    );
    let saved = i64::from(block.tokens_before) - i64::from(block.tokens_after);
    assert!(saved > 900, "{saved}");
    assert_eq!(found.tokens_added(), -saved);
    assert!(found.repairs_gone.is_empty() && found.repairs_new.is_empty());
}

#[test]
fn a_longer_conversation_shows_its_new_entries_and_repairs() {
    let history = heavy();
    let (before, after) = (
        receipt(&history[..6], PruneOptions::goclaw()),
        receipt(&history, PruneOptions::goclaw()),
    );
    let found = diff(&before, &after);
    let new = found.blocks.last().unwrap();
    assert_eq!(new.changes[0].before, None);
    assert_eq!((new.changes[0].from, new.through), (Seq(7), Seq(7)));
    assert_eq!(found.repairs_new[0].to_string(), "c2 synthesized");
    let same = diff(&after, &after);
    assert!(same.is_same_bytes && same.blocks.is_empty() && same.tokens_added() == 0);
}

#[test]
fn the_table_of_a_receipt_reads_from_the_top_of_the_request() {
    let table = rows(&receipt(&heavy(), PruneOptions::goclaw()));
    let lines: Vec<(&str, u64, &str, &str)> = table
        .iter()
        .map(|row| (row.segment.as_str(), row.entries, row.action, row.reason.as_str()))
        .collect();
    assert_eq!(
        lines,
        [
            ("overhead", 0, "sent", "system prompt and tools"),
            ("entries 1-2", 2, "kept", "window"),
            ("entry 3", 1, "trimmed", "soft_ratio"),
            ("entries 4-7", 4, "kept", "window"),
            ("made up", 1, "sent", "repair"),
            ("recall", 0, "sent", "memory"),
        ]
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tables_and_differences_add_up(turns in any_turns(), way in any_way()) {
        let talk = play(&turns, way);
        for sent in &talk.sent {
            let shown = rows(&sent.receipt).into_iter().filter(|row| row.is_shown);
            prop_assert_eq!(shown.map(|row| row.tokens).sum::<u32>(), sent.receipt.tokens.total());
        }
        for pair in talk.sent.windows(2) {
            let (before, after) = (&pair[0].receipt, &pair[1].receipt);
            let found = diff(before, after);
            let shown = |receipt: &Receipt| -> i64 {
                let shown = receipt.segments.iter().filter(|segment| segment.action.is_shown());
                shown.map(|segment| i64::from(segment.tokens)).sum()
            };
            let moved = found.blocks.iter().map(|block| i64::from(block.tokens_after) - i64::from(block.tokens_before));
            prop_assert_eq!(moved.sum::<i64>(), shown(after) - shown(before));
            prop_assert_eq!(found.tokens_added(), i64::from(after.tokens.total()) - i64::from(before.tokens.total()));
        }
    }
}
