//! The repaired view: messages move over as they are wherever nothing has to change.

use super::pairing::{Pairing, Place, Verdict};
use super::{CALLS_OMITTED, RESULT_MISSING, RepairAction, RepairKind};
use crate::item::{Count, Item, Origin, is_blank, rescaled, with_parts};
use crate::receipt::Action;
use colloquy_types::Seq;
use colloquy_types::message::{Message, Part, Role, ToolCall, ToolResult};
use std::borrow::Cow;
use std::ops::Range;

pub(super) struct Repair<'c, 'a> {
    /// None once an item has moved over.
    items: Vec<Option<Item<'a>>>,
    pairing: Pairing,
    count: Count<'c>,
    view: Vec<Item<'a>>,
    actions: Vec<RepairAction>,
    /// Kept for its room.
    run: Vec<Place>,
}

impl<'c, 'a> Repair<'c, 'a> {
    pub(super) fn new(items: Vec<Item<'a>>, pairing: Pairing, count: Count<'c>) -> Self {
        Self {
            view: Vec::with_capacity(items.len()),
            items: items.into_iter().map(Some).collect(),
            pairing,
            count,
            actions: Vec::new(),
            run: Vec::new(),
        }
    }

    pub(super) fn run(mut self) -> (Vec<Item<'a>>, Vec<RepairAction>) {
        for at in 0..self.items.len() {
            if self.items[at].is_some() {
                self.visit(at);
            }
        }
        (self.view, self.actions)
    }

    fn message(&self, at: usize) -> Option<&Message> {
        self.items[at].as_ref().map(|item| item.message.as_ref())
    }

    fn part(&self, place: Place) -> Option<&Part> {
        self.message(place.item)?.parts.get(place.part)
    }

    fn seq(&self, at: usize) -> Option<Seq> {
        self.items[at].as_ref().and_then(Item::seq)
    }

    fn visit(&mut self, at: usize) {
        let Some(message) = self.message(at) else { return };
        let is_tool = message.role == Role::Tool;
        let has_results = message.tool_results().next().is_some();
        let calls = self.pairing.calls_of(at);
        if !is_tool && !has_results && calls.is_empty() {
            self.move_over(at);
            return;
        }
        self.report(at, is_tool);
        self.report_moves(at, calls.clone());
        let made_up = self.made_up(at, calls.clone());
        self.report_made_up(self.seq(at), &made_up);
        if !is_tool {
            self.push_rest(at, has_results, calls.clone());
        }
        self.push_results(calls, made_up);
    }

    fn move_over(&mut self, at: usize) {
        if let Some(item) = self.items[at].take() {
            self.view.push(item);
        }
    }

    /// Names what is left out of this message.
    fn report(&mut self, at: usize, is_tool: bool) {
        let Some(item) = &self.items[at] else { return };
        for (part, content) in item.message.parts.iter().enumerate() {
            let place = Place { item: at, part };
            let kind = match content {
                Part::ToolCall(_) => self.pairing.dropped(place),
                Part::ToolResult(_) => match self.pairing.verdict(place) {
                    Some(Verdict::Dropped(kind)) => Some(kind),
                    _ => None,
                },
                _ => is_tool.then_some(RepairKind::Stray),
            };
            if let Some(kind) = kind {
                self.actions.push(RepairAction {
                    call_id: call_id(content).to_owned(),
                    kind,
                    seq: item.seq(),
                });
            }
        }
    }

    /// The message itself: without results, which follow their calls, and without calls that are left out.
    fn push_rest(&mut self, at: usize, has_results: bool, calls: Range<usize>) {
        let lost_calls = self.pairing.calls[calls]
            .iter()
            .any(|call| call.dropped.is_some());
        if !has_results && !lost_calls {
            self.move_over(at);
            return;
        }
        let Some(message) = self.message(at) else { return };
        let stays = |(part, content): &(usize, &Part)| match content {
            Part::ToolResult(_) => false,
            Part::ToolCall(_) => self
                .pairing
                .dropped(Place {
                    item: at,
                    part: *part,
                })
                .is_none(),
            _ => true,
        };
        let mut parts: Vec<Part> = message
            .parts
            .iter()
            .enumerate()
            .filter(stays)
            .map(|(_, content)| content.clone())
            .collect();
        if lost_calls && message.role == Role::Assistant && !parts.iter().any(says_something) {
            parts.retain(|part| !matches!(part, Part::Text { .. }));
            parts.push(Part::text(CALLS_OMITTED));
        }
        if !parts.is_empty() {
            self.push_changed(at, message.role, parts);
        }
    }

    /// The results of a message's calls, in call order. Neighbours that came in one message stay in one.
    fn push_results(&mut self, calls: Range<usize>, made_up: Vec<Item<'a>>) {
        let mut made_up = made_up.into_iter();
        let mut run = std::mem::take(&mut self.run);
        for call in calls {
            if self.pairing.calls[call].dropped.is_some() {
                continue;
            }
            match self.pairing.calls[call].answer {
                Some(place) => {
                    if run.last().is_some_and(|last| last.item != place.item) {
                        self.push_run(&run);
                        run.clear();
                    }
                    run.push(place);
                }
                None => {
                    self.push_run(&run);
                    run.clear();
                    self.view.extend(made_up.next());
                }
            }
        }
        self.push_run(&run);
        run.clear();
        self.run = run;
    }

    fn push_run(&mut self, run: &[Place]) {
        let Some(first) = run.first() else { return };
        let Some(message) = self.message(first.item) else {
            return;
        };
        let is_whole = run.iter().map(|place| place.part).eq(0..message.parts.len());
        if is_whole && message.role == Role::Tool {
            self.move_over(first.item);
            return;
        }
        let parts = run
            .iter()
            .map(|place| message.parts[place.part].clone())
            .collect();
        self.push_changed(first.item, Role::Tool, parts);
    }

    /// Error results for the calls of an item that have none.
    fn made_up(&self, at: usize, calls: Range<usize>) -> Vec<Item<'a>> {
        let Some(item) = &self.items[at] else {
            return Vec::new();
        };
        let open = self.pairing.calls[calls]
            .iter()
            .filter(|call| call.dropped.is_none() && call.answer.is_none());
        let made_up = open.filter_map(|call| match &item.message.parts[call.place.part] {
            Part::ToolCall(call) => Some(self.missing_result(item, call)),
            _ => None,
        });
        made_up.collect()
    }

    fn missing_result(&self, item: &Item<'_>, call: &ToolCall) -> Item<'a> {
        let result = ToolResult {
            call_id: call.id.clone(),
            name: call.name.clone(),
            parts: vec![Part::text(RESULT_MISSING)],
            is_error: true,
        };
        let mut message = Message::new(Role::Tool, vec![Part::ToolResult(result)]);
        message.at = item.message.at;
        let tokens = (self.count)(&message);
        Item {
            turn: item.turn,
            ..Item::new(Origin::Synthetic, Cow::Owned(message), tokens)
        }
    }

    fn report_made_up(&mut self, seq: Option<Seq>, made_up: &[Item<'_>]) {
        let results = made_up.iter().flat_map(|item| item.message.tool_results());
        self.actions.extend(results.map(|result| RepairAction {
            call_id: result.call_id.clone(),
            kind: RepairKind::Synthesized,
            seq,
        }));
    }

    /// A result has moved when it did not stand behind its call before anything else, or stood out of order.
    fn report_moves(&mut self, at: usize, calls: Range<usize>) {
        let mut last = Place { item: at, part: 0 };
        let end = self.results_end(at);
        for call in calls {
            let call = &self.pairing.calls[call];
            let Some(place) = call.answer.filter(|_| call.dropped.is_none()) else {
                continue;
            };
            if place < end && place > last {
                last = place;
            } else if let Some(part) = self.part(place) {
                self.actions.push(RepairAction {
                    call_id: call_id(part).to_owned(),
                    kind: RepairKind::Moved,
                    seq: self.seq(place.item),
                });
            }
        }
    }

    /// The first place behind an item's calls where something stands that stays and is no result of theirs.
    fn results_end(&self, call_item: usize) -> Place {
        for (at, item) in self.items.iter().enumerate().skip(call_item) {
            let begin = Place { item: at, part: 0 };
            // What has moved over already belongs to an older call.
            let Some(item) = item else { return begin };
            let is_tool = item.message.role == Role::Tool;
            if at > call_item && item.message.parts.is_empty() && !is_tool {
                return begin;
            }
            for (part, content) in item.message.parts.iter().enumerate() {
                let place = Place { part, ..begin };
                let passes = match (content, self.pairing.verdict(place)) {
                    (Part::ToolResult(_), Some(Verdict::Answers(call))) => {
                        self.pairing.calls[call].place.item == call_item
                    }
                    (Part::ToolResult(_), _) => true,
                    // A message that loses its calls still stands here, as text or placeholder.
                    _ => at == call_item || is_tool,
                };
                if !passes {
                    return place;
                }
            }
        }
        Place {
            item: self.items.len(),
            part: 0,
        }
    }

    fn push_changed(&mut self, at: usize, role: Role, parts: Vec<Part>) {
        let Some(item) = &self.items[at] else { return };
        let message = with_parts(&item.message, role, parts);
        let changed = Item {
            origin: item.origin,
            tokens: rescaled(item.tokens, &item.message, &message, self.count),
            turn: item.turn,
            action: if item.action == Action::Kept {
                Action::Repaired
            } else {
                item.action
            },
            message: Cow::Owned(message),
        };
        self.view.push(changed);
    }
}

fn call_id(part: &Part) -> &str {
    match part {
        Part::ToolCall(call) => &call.id,
        Part::ToolResult(result) => &result.call_id,
        _ => "",
    }
}

fn says_something(part: &Part) -> bool {
    match part {
        Part::Text { text } => !is_blank(text),
        Part::Media(_) | Part::ToolCall(_) => true,
        Part::ToolResult(_) | Part::Thinking(_) => false,
    }
}
