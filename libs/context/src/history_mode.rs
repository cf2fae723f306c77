//! The history mode `calls_only`: of earlier turns' tool work only the names of the calls stay.

use crate::item::{Count, Item, Origin, is_blank};
use crate::limit::starts_turn;
use crate::receipt::{Action, Segment};
use crate::repair::is_malformed;
use colloquy_types::TurnId;
use colloquy_types::message::{Completion, Message, Part, Role, ToolCall};
use colloquy_types::policy::HistoryMode;

/// Most different calls that a line names; the others are counted.
const MAX_NAMED: usize = 8;
/// Most characters of a call's arguments in the line.
const MAX_ARGUMENT_CHARS: usize = 200;

/// Under `calls_only` leaves out tool calls and results of earlier turns; each reply starts with one line that
/// names the calls behind it. Stored entries of the `running` turn keep theirs. Returns what was left out.
pub fn apply(
    items: &mut Vec<Item<'_>>,
    mode: HistoryMode,
    running: Option<TurnId>,
    count: Count<'_>,
) -> Vec<Segment> {
    let mut left_out = Vec::new();
    if mode == HistoryMode::Full {
        return left_out;
    }
    let starts: Vec<bool> = (0..items.len()).map(|at| starts_turn(items, at)).collect();
    let mut calls: Vec<ToolCall> = Vec::new();
    let mut view = Vec::with_capacity(items.len());
    for (mut item, starts) in std::mem::take(items).into_iter().zip(starts) {
        let is_earlier = running.is_none() || item.turn != running;
        if starts || !is_earlier {
            calls.clear();
        }
        if !is_earlier || !matches!(item.origin, Origin::Entry { .. }) {
            view.push(item);
            continue;
        }
        match condensed(&item.message, &mut calls) {
            None => view.push(item),
            Some(message) if message.parts.is_empty() => {
                if let Some(seq) = item.seq() {
                    Segment::append(&mut left_out, seq, Action::Condensed, item.tokens, "calls_only");
                }
            }
            Some(message) => {
                item.replace(message, count);
                item.action = Action::Condensed;
                view.push(item);
            }
        }
    }
    *items = view;
    left_out
}

/// The message without calls and results, and with the line of the calls before it where it is a reply; none
/// when that changes nothing. Its own calls are added to those that the next reply names.
fn condensed(message: &Message, calls: &mut Vec<ToolCall>) -> Option<Message> {
    let is_tool_part = |part: &Part| matches!(part, Part::ToolCall(_) | Part::ToolResult(_));
    let is_reply = message.role == Role::Assistant && !is_blank(&message.text());
    let is_changed = message.role == Role::Tool || message.parts.iter().any(is_tool_part);
    let names_calls = is_reply && !calls.is_empty();
    if !is_changed && !names_calls {
        return None;
    }
    let mut parts = Vec::new();
    if message.role != Role::Tool {
        if names_calls {
            parts.push(Part::text(line(calls)));
            calls.clear();
        }
        // Thinking is signed together with the calls behind it and is worth nothing without them.
        let stays = |part: &&Part| !is_tool_part(part) && !matches!(part, Part::Thinking(_));
        parts.extend(message.parts.iter().filter(stays).cloned());
    }
    if message.completion == Completion::Complete {
        calls.extend(message.tool_calls().filter(|call| !is_malformed(call)).cloned());
    }
    let says_nothing = |part: &Part| matches!(part, Part::Text { text } if is_blank(text));
    if parts.iter().all(says_nothing) {
        parts.clear();
    }
    Some(Message {
        parts,
        ..message.clone()
    })
}

/// `[called: search {"q":"x"} ×2; read {}; 3 more]`
fn line(calls: &[ToolCall]) -> String {
    let mut distinct: Vec<(String, usize)> = Vec::new();
    for call in calls {
        let words: Vec<&str> = call.arguments.split_whitespace().collect();
        let arguments: String = words.join(" ").chars().take(MAX_ARGUMENT_CHARS).collect();
        let named = format!("{} {arguments}", call.name);
        match distinct.iter_mut().find(|(known, _)| *known == named) {
            Some((_, times)) => *times += 1,
            None => distinct.push((named, 1)),
        }
    }
    let mut named: Vec<String> = distinct
        .iter()
        .take(MAX_NAMED)
        .map(|(named, times)| {
            if *times > 1 {
                format!("{named} ×{times}")
            } else {
                named.clone()
            }
        })
        .collect();
    let more: usize = distinct.iter().skip(MAX_NAMED).map(|(_, times)| times).sum();
    if more > 0 {
        named.push(format!("{more} more"));
    }
    format!("[called: {}]", named.join("; "))
}
