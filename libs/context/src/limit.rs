//! Keeps the last user turns.

use crate::item::{Item, Origin};
use crate::receipt::{Action, Segment};
use colloquy_types::message::Role;

/// Keeps the last `turns` user turns of the stored history with all that belongs to them; 0 = no limit. The
/// summary and the system messages at the start stay: they stand for no turn. Returns what was left out.
pub fn limit(items: &mut Vec<Item<'_>>, turns: u32) -> Vec<Segment> {
    let mut left_out = Vec::new();
    let Some(cut) = cut(items, turns) else {
        return left_out;
    };
    let head = items.iter().take_while(|item| stands_for_no_turn(item)).count();
    if head < cut {
        for item in items.drain(head..cut) {
            if let Some(seq) = item.seq() {
                Segment::append(&mut left_out, seq, Action::Limited, item.tokens, "limit_turns");
            }
        }
    }
    left_out
}

/// Where the last `turns` user turns start; none when there are no more than that.
fn cut(items: &[Item<'_>], turns: u32) -> Option<usize> {
    let nth = usize::try_from(turns).ok()?.checked_sub(1)?;
    let mut starts = (0..items.len()).rev().filter(|&index| starts_turn(items, index));
    let cut = starts.nth(nth)?;
    starts.next().map(|_| cut)
}

/// A user message opens a turn unless it belongs to the turn of the message before it: several messages merge
/// into one turn, and a steer arrives in the middle of one.
pub(crate) fn starts_turn(items: &[Item<'_>], index: usize) -> bool {
    let item = &items[index];
    if item.message.role != Role::User || item.origin == Origin::Summary {
        return false;
    }
    let Some(before) = index.checked_sub(1).map(|before| &items[before]) else {
        return true;
    };
    match (before.turn, item.turn) {
        (Some(one), Some(other)) => one != other,
        _ => before.message.role != Role::User || before.origin == Origin::Summary,
    }
}

fn stands_for_no_turn(item: &Item<'_>) -> bool {
    item.origin == Origin::Summary || item.message.role == Role::System
}
