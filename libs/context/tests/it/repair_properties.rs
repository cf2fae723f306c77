//! What repair may never do, over conversations that no one would write on purpose.

use crate::generated::any_conversation;
use crate::support::{items, quarter_chars};
use colloquy_context::Item;
use colloquy_context::repair::{RepairAction, RepairKind, repair};
use colloquy_types::message::{Message, Part, Role};
use proptest::prelude::*;

/// What people and the system said, in order.
fn said<'m>(messages: impl Iterator<Item = &'m Message>) -> Vec<&'m Part> {
    let theirs = messages.filter(|message| matches!(message.role, Role::User | Role::System));
    let parts = theirs.flat_map(|message| &message.parts);
    parts
        .filter(|part| !matches!(part, Part::ToolResult(_) | Part::ToolCall(_)))
        .collect()
}

fn calls<'m>(messages: impl Iterator<Item = &'m Message>) -> usize {
    messages.flat_map(Message::tool_calls).count()
}

fn results<'m>(messages: impl Iterator<Item = &'m Message>) -> usize {
    messages.flat_map(Message::tool_results).count()
}

fn count(actions: &[RepairAction], kinds: &[RepairKind]) -> usize {
    actions
        .iter()
        .filter(|action| kinds.contains(&action.kind))
        .count()
}

/// Ids of a view's calls, each with the id of the result that stands in its place behind the message.
fn pairs(view: &[Item<'_>]) -> Vec<(String, Option<String>)> {
    let mut pairs = Vec::new();
    for (at, item) in view.iter().enumerate() {
        let behind = view[at + 1..]
            .iter()
            .take_while(|item| item.message.role == Role::Tool);
        let mut answers = behind.flat_map(|item| item.message.tool_results());
        pairs.extend(item.message.tool_calls().map(|call| {
            let answer = answers.next().map(|result| result.call_id.clone());
            (call.id.clone(), answer)
        }));
    }
    pairs
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn people_lose_nothing_and_every_action_is_named(history in any_conversation(16)) {
        let (view, actions) = repair(items(&history, &quarter_chars), &quarter_chars);
        let shown = || view.iter().map(|item| item.message.as_ref());
        prop_assert_eq!(said(shown()), said(history.iter()));

        let left_out = count(&actions, &[RepairKind::Malformed, RepairKind::Aborted]);
        prop_assert_eq!(calls(shown()) + left_out, calls(history.iter()));

        let dropped = count(&actions, &[RepairKind::Orphan, RepairKind::Duplicate]);
        let made_up = count(&actions, &[RepairKind::Synthesized]);
        let real = results(shown()) - made_up;
        prop_assert!(real + dropped <= results(history.iter()));
        prop_assert!(real + dropped + left_out >= results(history.iter()), "a result went with no call of its own");
    }

    #[test]
    fn every_call_is_followed_by_its_result(history in any_conversation(16)) {
        let (view, _) = repair(items(&history, &quarter_chars), &quarter_chars);
        prop_assert_eq!(results(view.iter().map(|item| item.message.as_ref())), pairs(&view).len());
        for (call, answer) in pairs(&view) {
            prop_assert_eq!(answer, Some(call));
        }
    }
}
