//! Bytes sent before are sent again, or the receipt says why not.

use crate::growing::{Sent, any_turns, any_way, play};
use crate::support::{call, calls, entries, tool};
use colloquy_context::receipt::BreakReason;
use colloquy_context::{BuildInput, Built, Format, Receipt, build};
use colloquy_types::message::Message;
use colloquy_types::{BranchId, Entry, Seq};
use proptest::prelude::*;

/// Where a longer request may go on: before what closes the last message and the list.
fn open_ended(bytes: &[u8]) -> &[u8] {
    let closing = |byte: &&u8| matches!(byte, b']' | b'}' | b'"');
    &bytes[..bytes.len() - bytes.iter().rev().take_while(closing).count()]
}

fn check(before: &Sent, now: &Sent) -> Result<(), TestCaseError> {
    let is_same = now.bytes.starts_with(open_ended(&before.bytes));
    let said = &now.receipt.prefix_break;
    prop_assert_eq!(is_same, said.is_none(), "{:?}", said);
    prop_assert_eq!(now.receipt.follows.as_ref(), Some(&before.receipt.sha256));
    if let Some(said) = said {
        // Where the place is known to several messages only, a neighbour's reason may be named, but never none.
        let is_excused = now.excuses.contains(&said.reason)
            || (said.message < said.last_message
                && said.reason != BreakReason::Unexplained
                && !now.excuses.is_empty());
        prop_assert!(is_excused, "{:?}, excused are {:?}", said, now.excuses);
        let kept = usize::try_from(said.kept_bytes).unwrap();
        prop_assert_eq!(&now.bytes[..kept], &before.bytes[..kept]);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes_sent_before_change_only_for_a_reason_that_the_receipt_names(
        turns in any_turns(),
        way in any_way(),
    ) {
        let talk = play(&turns, way);
        for pair in talk.sent.windows(2) {
            check(&pair[0], &pair[1])?;
        }
    }
}

fn built<'a>(history: &'a [Entry], previous: Option<&'a Receipt>) -> Built<'a> {
    build(&BuildInput {
        previous,
        ..BuildInput::new(history, 100_000, Format::OpenaiChat)
    })
    .unwrap()
}

fn reason(receipt: &Receipt) -> Option<BreakReason> {
    receipt.prefix_break.as_ref().map(|broken| broken.reason)
}

#[test]
fn the_place_of_a_break_is_named_with_its_entry() {
    let open = [
        Message::user("q"),
        calls(vec![call("c1", "f", "{}")]),
        Message::user("still there?"),
    ];
    let first = entries(open.clone());
    let first = built(&first, None);
    let later = entries(open.into_iter().chain([tool("c1", "late")]));
    let second = built(&later, Some(&first.receipt));
    let broken = second.receipt.prefix_break.unwrap();
    let result = first
        .bytes
        .windows(6)
        .position(|bytes| bytes == b"\"tool\"")
        .unwrap();
    assert_eq!((broken.reason, broken.message), (BreakReason::LateResult, 2));
    assert_eq!(broken.seq, Some(Seq(4)));
    assert!(broken.kept_bytes.abs_diff(result as u64) < 40, "{broken:?}");
}

#[test]
fn a_rewind_another_format_and_another_policy_are_told_apart() {
    let long = entries(["a", "b", "c"].map(Message::user));
    let short = entries(["a", "x"].map(Message::user));
    let first = built(&long, None).receipt;
    assert_eq!(
        reason(&built(&short, Some(&first)).receipt),
        Some(BreakReason::Rewind)
    );
    let branched = BuildInput {
        branch: Some(BranchId::new()),
        previous: Some(&first),
        ..BuildInput::new(&short, 100_000, Format::OpenaiChat)
    };
    assert_eq!(
        reason(&build(&branched).unwrap().receipt),
        Some(BreakReason::Rewind)
    );
    let switched = BuildInput {
        previous: Some(&first),
        ..BuildInput::new(&long, 100_000, Format::Anthropic)
    };
    assert_eq!(
        reason(&build(&switched).unwrap().receipt),
        Some(BreakReason::Format)
    );
    let other = entries(["a", "y", "c"].map(Message::user));
    let governed = BuildInput {
        policy_version: "2",
        previous: Some(&first),
        ..BuildInput::new(&other, 100_000, Format::OpenaiChat)
    };
    assert_eq!(
        reason(&build(&governed).unwrap().receipt),
        Some(BreakReason::Policy)
    );
}

#[test]
fn a_change_of_the_history_that_nothing_explains_is_called_so() {
    let talk = |second: &str| entries(["a", second, "c"].map(|text| Message::user(text.repeat(50))));
    let (history, tampered) = (talk("b"), talk("B"));
    let first = built(&history, None).receipt;
    let now = built(&tampered, Some(&first)).receipt;
    let broken = now.prefix_break.unwrap();
    assert_eq!(broken.reason, BreakReason::Unexplained);
    assert_eq!((broken.message, broken.seq), (1, Some(Seq(2))));
}

#[test]
fn a_receipt_stays_small_however_long_the_conversation_is() {
    let history = entries((0..2_000).map(|at| Message::user(format!("message {at}"))));
    let receipt = built(&history, None).receipt;
    assert!(receipt.prefix.marks.len() <= 65, "{}", receipt.prefix.marks.len());
    assert!(serde_json::to_string(&receipt).unwrap().len() < 4_096);
}
