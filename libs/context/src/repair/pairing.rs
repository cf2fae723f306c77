//! Which result belongs to which call.

use super::{RESULT_MISSING, RepairKind, is_malformed, is_unfinished};
use crate::item::Item;
use colloquy_types::message::{Part, Role, ToolResult};
use std::collections::HashMap;
use std::ops::Range;

/// A part of an item, ordered as in the transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub item: usize,
    pub part: usize,
}

/// What becomes of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It stays, with the call by its number.
    Answers(usize),
    /// It goes with its call.
    FollowsDropped,
    Dropped(RepairKind),
}

#[derive(Debug)]
pub(super) struct Call {
    pub place: Place,
    /// Why the call is left out.
    pub dropped: Option<RepairKind>,
    pub answer: Option<Place>,
    /// The next older call in the same list of its id: of those that wait, or of those with a made-up answer.
    older: Option<usize>,
}

/// Calls and results in the order of the transcript.
#[derive(Debug)]
pub(super) struct Pairing {
    pub calls: Vec<Call>,
    results: Vec<(Place, Verdict)>,
}

/// Calls of one id, newest first: those without a result, and those whose result a repair made up, which a real
/// one replaces.
#[derive(Default, Clone, Copy)]
struct SameId {
    waiting: Option<usize>,
    made_up: Option<usize>,
}

impl Pairing {
    pub(super) fn of(items: &[Item<'_>]) -> Self {
        let mut pairing = Self {
            calls: Vec::with_capacity(items.len() / 2),
            results: Vec::with_capacity(items.len() / 2),
        };
        let mut ids: HashMap<&str, SameId> = HashMap::with_capacity(items.len() / 2);
        for (item, content) in items.iter().enumerate() {
            for (part, content) in content.message.parts.iter().enumerate() {
                let place = Place { item, part };
                match content {
                    Part::ToolCall(call) => {
                        let same = ids.entry(&call.id).or_default();
                        let dropped = if items[item].message.role != Role::Assistant || is_malformed(call) {
                            Some(RepairKind::Malformed)
                        } else {
                            is_unfinished(&items[item].message).then_some(RepairKind::Aborted)
                        };
                        pairing.add_call(place, dropped, same);
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

    /// The numbers of an item's calls, those that are left out included.
    pub(super) fn calls_of(&self, item: usize) -> Range<usize> {
        let start = self.calls.partition_point(|call| call.place.item < item);
        let of_item = self.calls[start..]
            .iter()
            .take_while(|call| call.place.item == item);
        start..start + of_item.count()
    }

    /// Why a call is left out, if it is.
    pub(super) fn dropped(&self, place: Place) -> Option<RepairKind> {
        let found = self.calls.binary_search_by_key(&place, |call| call.place);
        found.ok().and_then(|at| self.calls[at].dropped)
    }

    /// The verdict on a result.
    pub(super) fn verdict(&self, place: Place) -> Option<Verdict> {
        let found = self.results.binary_search_by_key(&place, |(place, _)| *place);
        found.ok().map(|at| self.results[at].1)
    }

    /// The items of every call that stays and of its result, where they are different.
    pub(super) fn spans(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let answered = self.calls.iter().filter(|call| call.dropped.is_none());
        answered.filter_map(|call| call.answer.map(|answer| (call.place.item, answer.item)))
    }

    fn add_call(&mut self, place: Place, dropped: Option<RepairKind>, same: &mut SameId) {
        let older = same.waiting.replace(self.calls.len());
        self.calls.push(Call {
            place,
            dropped,
            answer: None,
            older,
        });
    }

    fn add_result(&mut self, place: Place, result: &ToolResult, same: &mut SameId) {
        let made_up = is_made_up(result);
        if let Some(call) = self.take_nearest(&mut same.waiting) {
            self.answer(call, place, made_up, same);
        } else if !made_up && let Some(call) = self.take_nearest(&mut same.made_up) {
            if let Some(before) = self.calls[call].answer
                && let Ok(at) = self.results.binary_search_by_key(&before, |(place, _)| *place)
            {
                self.results[at].1 = Verdict::Dropped(RepairKind::Duplicate);
            }
            self.answer(call, place, made_up, same);
        } else {
            self.drop(place, RepairKind::Duplicate);
        }
    }

    fn answer(&mut self, call: usize, place: Place, made_up: bool, same: &mut SameId) {
        if made_up {
            self.list(call, &mut same.made_up);
        }
        self.calls[call].answer = Some(place);
        let verdict = if self.calls[call].dropped.is_none() {
            Verdict::Answers(call)
        } else {
            Verdict::FollowsDropped
        };
        self.results.push((place, verdict));
    }

    /// The first call in the nearest message: within one message results come in call order.
    fn take_nearest(&mut self, list: &mut Option<usize>) -> Option<usize> {
        let mut found = (*list)?;
        let nearest = self.calls[found].place.item;
        let mut newer = None;
        while let Some(older) = self.calls[found].older
            && self.calls[older].place.item == nearest
        {
            newer = Some(found);
            found = older;
        }
        let rest = self.calls[found].older.take();
        match newer {
            Some(newer) => self.calls[newer].older = rest,
            None => *list = rest,
        }
        Some(found)
    }

    /// Puts a call into a list, newest first.
    fn list(&mut self, call: usize, list: &mut Option<usize>) {
        let mut newer = None;
        let mut next = *list;
        while let Some(at) = next.filter(|&at| at > call) {
            newer = Some(at);
            next = self.calls[at].older;
        }
        self.calls[call].older = next;
        match newer {
            Some(newer) => self.calls[newer].older = Some(call),
            None => *list = Some(call),
        }
    }

    fn drop(&mut self, place: Place, kind: RepairKind) {
        self.results.push((place, Verdict::Dropped(kind)));
    }
}

fn is_made_up(result: &ToolResult) -> bool {
    result.is_error && matches!(result.parts.as_slice(), [Part::Text { text }] if text == RESULT_MISSING)
}
