//! Which result belongs to which call.

use super::{RESULT_MISSING, RepairKind, is_malformed, is_unfinished};
use crate::item::Item;
use colloquy_types::message::{Part, Role, ToolResult};
use std::collections::HashMap;

/// A part of an item, ordered as in the transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    pub item: usize,
    pub part: usize,
}

/// What becomes of a call or a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// A call that stays.
    Open,
    /// A result that stays, with the item of its call.
    Answers(usize),
    Dropped(RepairKind),
}

#[derive(Debug)]
pub(super) struct Call {
    pub place: Place,
    dropped: Option<RepairKind>,
    pub answer: Option<Place>,
    /// The answer is one that a repair made up: a real one takes its place.
    made_up: bool,
}

#[derive(Debug)]
pub(super) struct Pairing {
    pub calls: Vec<Call>,
    verdicts: HashMap<Place, Verdict>,
    by_item: HashMap<usize, Vec<usize>>,
}

/// Calls of one id, by whether a result was found yet.
#[derive(Default)]
struct SameId {
    waiting: Vec<usize>,
    made_up: Vec<usize>,
}

impl Pairing {
    pub(super) fn of(items: &[Item<'_>]) -> Self {
        let mut pairing = Self {
            calls: Vec::new(),
            verdicts: HashMap::new(),
            by_item: HashMap::new(),
        };
        let mut ids: HashMap<&str, SameId> = HashMap::new();
        for (at, item) in items.iter().enumerate() {
            for (part, content) in item.message.parts.iter().enumerate() {
                let place = Place { item: at, part };
                match content {
                    Part::ToolCall(call) => {
                        let dropped = if item.message.role != Role::Assistant || is_malformed(call) {
                            Some(RepairKind::Malformed)
                        } else {
                            is_unfinished(&item.message).then_some(RepairKind::Aborted)
                        };
                        ids.entry(&call.id).or_default().waiting.push(pairing.calls.len());
                        pairing.add_call(place, dropped);
                    }
                    Part::ToolResult(result) => match ids.get_mut(result.call_id.as_str()) {
                        Some(same) => pairing.add_result(place, result, same),
                        None => pairing.drop(place, RepairKind::Orphan),
                    },
                    _ => {}
                }
            }
        }
        pairing
    }

    pub(super) fn verdict(&self, place: Place) -> Option<Verdict> {
        self.verdicts.get(&place).copied()
    }

    /// The calls of an item that stay, in call order.
    pub(super) fn open_calls_of(&self, item: usize) -> impl Iterator<Item = usize> + '_ {
        let calls = self.by_item.get(&item).into_iter().flatten().copied();
        calls.filter(|&call| self.calls[call].dropped.is_none())
    }

    /// The first place behind an item's calls where something stands that stays and is no result of theirs.
    pub(super) fn results_end(&self, items: &[Item<'_>], call_item: usize) -> Place {
        for (at, item) in items.iter().enumerate().skip(call_item) {
            if at > call_item && item.message.parts.is_empty() && item.message.role != Role::Tool {
                return Place { item: at, part: 0 };
            }
            for (part, content) in item.message.parts.iter().enumerate() {
                let place = Place { item: at, part };
                let passes = match (content, self.verdict(place)) {
                    (Part::ToolResult(_), Some(Verdict::Answers(owner))) => owner == call_item,
                    (Part::ToolResult(_), _) => true,
                    // A message that loses its calls still stands here, as text or placeholder.
                    _ => at == call_item || item.message.role == Role::Tool,
                };
                if !passes {
                    return place;
                }
            }
        }
        Place {
            item: items.len(),
            part: 0,
        }
    }

    /// The items of every call that stays and of its result, where they are different.
    pub(super) fn spans(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let answered = self.calls.iter().filter(|call| call.dropped.is_none());
        answered.filter_map(|call| call.answer.map(|answer| (call.place.item, answer.item)))
    }

    fn add_call(&mut self, place: Place, dropped: Option<RepairKind>) {
        self.verdicts
            .insert(place, dropped.map_or(Verdict::Open, Verdict::Dropped));
        self.by_item.entry(place.item).or_default().push(self.calls.len());
        self.calls.push(Call {
            place,
            dropped,
            answer: None,
            made_up: false,
        });
    }

    fn add_result(&mut self, place: Place, result: &ToolResult, same: &mut SameId) {
        let made_up = is_made_up(result);
        if let Some(call) = self.take_nearest(&mut same.waiting) {
            self.answer(call, place, made_up, same);
        } else if !made_up && let Some(call) = self.take_nearest(&mut same.made_up) {
            if let Some(before) = self.calls[call].answer {
                self.drop(before, RepairKind::Duplicate);
            }
            self.answer(call, place, made_up, same);
        } else {
            self.drop(place, RepairKind::Duplicate);
        }
    }

    fn answer(&mut self, call: usize, place: Place, made_up: bool, same: &mut SameId) {
        let owner = &mut self.calls[call];
        owner.answer = Some(place);
        owner.made_up = made_up;
        if made_up {
            same.made_up.push(call);
            same.made_up.sort_unstable();
        }
        let verdict = owner
            .dropped
            .map_or(Verdict::Answers(owner.place.item), Verdict::Dropped);
        self.verdicts.insert(place, verdict);
    }

    /// The first call in the nearest message: within one message results come in call order.
    fn take_nearest(&self, waiting: &mut Vec<usize>) -> Option<usize> {
        let nearest = self.calls[*waiting.last()?].place.item;
        let first = waiting
            .iter()
            .position(|&call| self.calls[call].place.item == nearest)?;
        Some(waiting.remove(first))
    }

    fn drop(&mut self, place: Place, kind: RepairKind) {
        self.verdicts.insert(place, Verdict::Dropped(kind));
    }
}

fn is_made_up(result: &ToolResult) -> bool {
    result.is_error && matches!(result.parts.as_slice(), [Part::Text { text }] if text == RESULT_MISSING)
}

/// Deeper arguments would pass the parser's own limit once they are embedded in a request.
const MAX_DEPTH: usize = 100;

/// Whether the text is one JSON value of reasonable depth.
pub(crate) fn is_json(text: &str) -> bool {
    depth(text) <= MAX_DEPTH && serde_json::from_str::<serde_json::Value>(text).is_ok()
}

fn depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}
