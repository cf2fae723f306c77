//! The history mode `calls_only`: of earlier turns' tool work only the names of the calls stay.

use crate::item::{Count, Item, Origin, is_blank, with_parts};
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
    let mut calls = Calls::default();
    let mut view = Vec::with_capacity(items.len());
    for (mut item, starts) in std::mem::take(items).into_iter().zip(starts) {
        let is_earlier = running.is_none() || item.turn != running;
        if starts || !is_earlier {
            calls = Calls::default();
        }
        if !is_earlier || !matches!(item.origin, Origin::Entry { .. }) {
            view.push(item);
            continue;
        }
        match condensed(&item.message, &mut calls) {
            None => view.push(item),
            Some(message) if message.parts.is_empty() => {
                if let Some(seq) = item.seq() {
                    Segment::append(
                        &mut left_out,
                        seq,
                        Action::LeftOut,
                        item.tokens,
                        Action::Condensed.reason(),
                    );
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
fn condensed(message: &Message, calls: &mut Calls) -> Option<Message> {
    let is_tool_part = |part: &Part| matches!(part, Part::ToolCall(_) | Part::ToolResult(_));
    let says_text = |part: &Part| matches!(part, Part::Text { text } if !is_blank(text));
    let is_reply = message.role == Role::Assistant && message.parts.iter().any(says_text);
    let is_changed = message.role == Role::Tool || message.parts.iter().any(is_tool_part);
    let names_calls = is_reply && !calls.named.is_empty();
    if !is_changed && !names_calls {
        return None;
    }
    let mut parts = Vec::new();
    if message.role != Role::Tool {
        if names_calls {
            parts.push(Part::text(std::mem::take(calls).line()));
        }
        // Thinking is signed together with the calls behind it and is worth nothing without them.
        let stays = |part: &&Part| !is_tool_part(part) && !matches!(part, Part::Thinking(_));
        parts.extend(message.parts.iter().filter(stays).cloned());
    }
    if message.completion == Completion::Complete {
        message
            .tool_calls()
            .filter(|call| !is_malformed(call))
            .for_each(|call| calls.add(call));
    }
    let says_nothing = |part: &Part| matches!(part, Part::Text { text } if is_blank(text));
    if parts.iter().all(says_nothing) {
        parts.clear();
    }
    Some(with_parts(message, message.role, parts))
}

/// The calls that the next reply names.
#[derive(Default)]
struct Calls {
    /// The first different ones, each with how often it was made.
    named: Vec<(String, usize)>,
    more: usize,
}

impl Calls {
    fn add(&mut self, call: &ToolCall) {
        let mut named = format!("{} ", call.name);
        named.extend(on_one_line(&call.arguments).take(MAX_ARGUMENT_CHARS));
        match self.named.iter().position(|(known, _)| *known == named) {
            Some(at) => self.named[at].1 += 1,
            None if self.named.len() < MAX_NAMED => self.named.push((named, 1)),
            None => self.more += 1,
        }
    }

    /// `[called: search {"q":"x"} ×2; read {}; 3 more]`
    fn line(self) -> String {
        let once_or_more = |(named, times): (String, usize)| match times {
            1 => named,
            _ => format!("{named} ×{times}"),
        };
        let mut named: Vec<String> = self.named.into_iter().map(once_or_more).collect();
        if self.more > 0 {
            named.push(format!("{} more", self.more));
        }
        format!("[called: {}]", named.join("; "))
    }
}

/// The text with white space of any length as one blank.
fn on_one_line(text: &str) -> impl Iterator<Item = char> + '_ {
    text.split_whitespace().enumerate().flat_map(blank_before)
}

fn blank_before((at, word): (usize, &str)) -> impl Iterator<Item = char> + '_ {
    (at > 0).then_some(' ').into_iter().chain(word.chars())
}
