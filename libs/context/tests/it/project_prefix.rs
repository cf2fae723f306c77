//! What was sent stays: the bytes of a shorter conversation begin those of a longer one.

use crate::generated::any_conversation;
use crate::support::{items, quarter_chars};
use colloquy_context::project::project;
use colloquy_context::repair::repair;
use colloquy_context::validate::validate;
use colloquy_context::{BuildError, Format, Item};
use colloquy_types::message::{Message, Part, Role};
use proptest::prelude::*;

/// The bytes that a longer request starts with: the last message may grow, and its end is written last.
pub fn open_end(bytes: &[u8]) -> &[u8] {
    let to_be_continued = br#","prefix":true}]"#;
    let open = bytes.strip_suffix(&to_be_continued[..]).unwrap_or(bytes);
    let end = open
        .iter()
        .rposition(|byte| !b"]}\"".contains(byte))
        .map_or(0, |last| last + 1);
    &open[..end]
}

fn without_thinking(history: &[Message]) -> Vec<Message> {
    let stripped = |message: &Message| {
        let parts = message
            .parts
            .iter()
            .filter(|part| !matches!(part, Part::Thinking(_)));
        Message {
            parts: parts.cloned().collect(),
            ..message.clone()
        }
    };
    history.iter().map(stripped).collect()
}

fn bytes(format: Format, view: &[Item<'_>]) -> Option<Vec<u8>> {
    match project(format, view) {
        Ok(projected) => {
            let text = String::from_utf8_lossy(&projected.bytes);
            assert_eq!(validate(format, &projected.bytes), [], "{format}: {text}");
            assert_eq!(project(format, view).unwrap(), projected);
            Some(projected.bytes)
        }
        Err(error) => {
            assert_eq!(error, BuildError::NothingToSend);
            None
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_projected_does_not_change_when_messages_follow(history in any_conversation(12)) {
        let stripped = without_thinking(&history);
        for format in Format::ALL {
            // Anthropic's thinking is dropped once its loop is over; all else stays.
            let messages = if format == Format::Anthropic { &stripped } else { &history };
            let (view, _) = repair(items(messages, &quarter_chars), &quarter_chars);
            let Some(all) = bytes(format, &view) else { continue };
            // A request is not sent between a call and its results.
            let ends = (1..view.len()).filter(|&end| view[end].message.role != Role::Tool);
            for end in ends {
                if let Some(before) = bytes(format, &view[..end]) {
                    let text = String::from_utf8_lossy(&before);
                    prop_assert!(all.starts_with(open_end(&before)), "{format} at {end}: {text}");
                }
            }
        }
    }
}
