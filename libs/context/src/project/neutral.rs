//! The product's own messages, for workers that render them themselves.

use super::{Messages, Projected};
use crate::item::{Item, is_blank};
use colloquy_types::message::Part;

pub(super) fn project(items: &[Item<'_>]) -> Projected {
    let mut messages = Messages::default();
    for (at, item) in items.iter().enumerate() {
        let says_nothing = |part: &Part| matches!(part, Part::Text { text } if is_blank(text));
        if !item.message.parts.iter().all(says_nothing) {
            let json = serde_json::to_string(&*item.message).expect("a message always has a JSON form");
            messages.push(json, at);
        }
    }
    messages.finish()
}
