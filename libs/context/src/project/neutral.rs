//! The product's own messages, for workers that render them themselves.

use super::Projected;
use super::out::Out;
use crate::item::{Item, is_blank};
use colloquy_types::message::Part;

pub(super) fn project(items: &[Item<'_>]) -> Projected {
    let mut out = Out::new(items);
    for (at, item) in items.iter().enumerate() {
        let says_nothing = |part: &Part| matches!(part, Part::Text { text } if is_blank(text));
        if !item.message.parts.iter().all(says_nothing) {
            out.message();
            out.source(at);
            out.value(&*item.message);
        }
    }
    out.finish()
}
