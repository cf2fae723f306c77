//! Makes every tool result directly follow its call, in the view only. Minimal: what is in order is not
//! touched; idempotent: repairing a repaired view changes nothing.
//!
//! - A result belongs to the nearest call of its id before it that has none yet; ids may repeat.
//! - A call without a result gets an error result that says so; a real result wins over one, even a late one.
//! - A message that was aborted or failed loses its calls and their results; so does a malformed call.
//! - Results without a call and second results are left out.

mod pairing;

use crate::item::{Count, Item, Origin, is_blank};
use crate::receipt::Action;
use colloquy_types::Seq;
use colloquy_types::message::{Completion, Message, Part, Role, ToolCall, ToolResult};
pub(crate) use pairing::is_json;
use pairing::{Pairing, Place, Verdict};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// What an assistant message reads when nothing but left-out calls was in it.
pub const CALLS_OMITTED: &str = "[tool calls omitted]";
/// What the error result of a call without a result reads.
pub const RESULT_MISSING: &str = "[no result: the tool call did not finish]";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RepairKind {
    /// A missing result was made up as an error.
    Synthesized,
    /// A result was moved behind its call.
    Moved,
    /// A result without a call was left out.
    Orphan,
    /// A second result of one call was left out.
    Duplicate,
    /// A call of an unfinished message was left out with its result.
    Aborted,
    /// A call without id, name or JSON arguments was left out with its result.
    Malformed,
    /// Content of a tool message that is no result was left out.
    Stray,
}

/// One action of a repair, for the receipt. Displays as `<call id> <kind>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairAction {
    pub call_id: String,
    pub kind: RepairKind,
    /// The entry it happened to; none for messages of the running turn.
    pub seq: Option<Seq>,
}

impl fmt::Display for RepairAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            RepairKind::Synthesized => "synthesized",
            RepairKind::Moved => "moved",
            RepairKind::Orphan => "orphan",
            RepairKind::Duplicate => "duplicate",
            RepairKind::Aborted => "aborted",
            RepairKind::Malformed => "malformed",
            RepairKind::Stray => "stray",
        };
        write!(f, "{} {kind}", self.call_id)
    }
}

/// Repairs a view; the actions are in the order of the messages they happened to.
#[must_use]
pub fn repair<'a>(items: Vec<Item<'a>>, count: Count<'_>) -> (Vec<Item<'a>>, Vec<RepairAction>) {
    let pairing = Pairing::of(&items);
    let mut repair = Repair {
        items: &items,
        pairing,
        count,
        view: Vec::with_capacity(items.len()),
        actions: Vec::new(),
    };
    for at in 0..items.len() {
        repair.visit(at);
    }
    let Repair { view, actions, .. } = repair;
    (view, actions)
}

/// Whether a call can be sent to a provider at all.
#[must_use]
pub fn is_malformed(call: &ToolCall) -> bool {
    is_blank(&call.id) || is_blank(&call.name) || !is_json(&call.arguments)
}

/// Item indexes of every call that stays and of its result: a transcript must not be cut between them.
pub(crate) fn pairs(items: &[Item<'_>]) -> Vec<(usize, usize)> {
    Pairing::of(items).spans().collect()
}

struct Repair<'r, 'a> {
    items: &'r [Item<'a>],
    pairing: Pairing,
    count: Count<'r>,
    view: Vec<Item<'a>>,
    actions: Vec<RepairAction>,
}

impl<'a> Repair<'_, 'a> {
    fn visit(&mut self, at: usize) {
        let item = &self.items[at];
        let is_tool_part = |part: &Part| matches!(part, Part::ToolCall(_) | Part::ToolResult(_));
        if item.message.role != Role::Tool && !item.message.parts.iter().any(is_tool_part) {
            self.view.push(item.clone());
            return;
        }
        self.report(at);
        self.push_rest(at);
        let calls: Vec<usize> = self.pairing.open_calls_of(at).collect();
        if !calls.is_empty() {
            self.push_results(at, &calls);
        }
    }

    /// Names what is left out of this message.
    fn report(&mut self, at: usize) {
        let item = &self.items[at];
        for (part, content) in item.message.parts.iter().enumerate() {
            let kind = match (content, self.pairing.verdict(Place { item: at, part })) {
                (Part::ToolCall(_), Some(Verdict::Dropped(kind))) => kind,
                (
                    Part::ToolResult(_),
                    Some(Verdict::Dropped(kind @ (RepairKind::Orphan | RepairKind::Duplicate))),
                ) => kind,
                (Part::Text { .. } | Part::Media(_) | Part::Thinking(_), _)
                    if item.message.role == Role::Tool =>
                {
                    RepairKind::Stray
                }
                _ => continue,
            };
            self.act(call_id(content), kind, item.seq());
        }
    }

    /// The message itself: without results, which follow their calls, and without calls that are left out.
    fn push_rest(&mut self, at: usize) {
        let item = &self.items[at];
        if item.message.role == Role::Tool {
            return;
        }
        let stays = |part: usize| match &item.message.parts[part] {
            Part::ToolResult(_) => false,
            Part::ToolCall(_) => matches!(
                self.pairing.verdict(Place { item: at, part }),
                Some(Verdict::Open)
            ),
            _ => true,
        };
        let kept: Vec<usize> = (0..item.message.parts.len())
            .filter(|&part| stays(part))
            .collect();
        if kept.len() == item.message.parts.len() {
            self.view.push(item.clone());
            return;
        }
        let lost_calls = item.message.tool_calls().count()
            > kept
                .iter()
                .filter(|&&part| is_call(&item.message.parts[part]))
                .count();
        let mut parts: Vec<Part> = kept
            .into_iter()
            .map(|part| item.message.parts[part].clone())
            .collect();
        if lost_calls && item.message.role == Role::Assistant && !parts.iter().any(says_something) {
            parts.retain(|part| !matches!(part, Part::Text { .. }));
            parts.push(Part::text(CALLS_OMITTED));
        }
        if !parts.is_empty() {
            self.push_changed(at, item.message.role, parts);
        }
    }

    /// The results of a message's calls, in call order. Neighbours that came in one message stay in one.
    fn push_results(&mut self, at: usize, calls: &[usize]) {
        self.report_moves(at, calls);
        let mut run: Vec<Place> = Vec::new();
        for &call in calls {
            match self.pairing.calls[call].answer {
                Some(place) => {
                    if run.last().is_some_and(|last| last.item != place.item) {
                        self.push_run(&std::mem::take(&mut run));
                    }
                    run.push(place);
                }
                None => {
                    self.push_run(&std::mem::take(&mut run));
                    self.push_synthetic(at, call);
                }
            }
        }
        self.push_run(&run);
    }

    fn push_run(&mut self, run: &[Place]) {
        let Some(first) = run.first() else { return };
        let item = &self.items[first.item];
        let whole = run.iter().map(|place| place.part).eq(0..item.message.parts.len());
        if whole && item.message.role == Role::Tool {
            self.view.push(item.clone());
            return;
        }
        let parts = run
            .iter()
            .map(|place| item.message.parts[place.part].clone())
            .collect();
        self.push_changed(first.item, Role::Tool, parts);
    }

    fn push_synthetic(&mut self, at: usize, call: usize) {
        let item = &self.items[at];
        let Part::ToolCall(call) = &item.message.parts[self.pairing.calls[call].place.part] else {
            return;
        };
        let result = ToolResult {
            call_id: call.id.clone(),
            name: call.name.clone(),
            parts: vec![Part::text(RESULT_MISSING)],
            is_error: true,
        };
        let mut message = Message::new(Role::Tool, vec![Part::ToolResult(result)]);
        message.at = item.message.at;
        let tokens = (self.count)(&message);
        self.view.push(Item {
            turn: item.turn,
            ..Item::new(Origin::Synthetic, Cow::Owned(message), tokens)
        });
        self.act(call.id.clone(), RepairKind::Synthesized, item.seq());
    }

    /// A result has moved when it did not stand behind its call before anything else, or stood out of order.
    fn report_moves(&mut self, at: usize, calls: &[usize]) {
        let mut last = Place { item: at, part: 0 };
        let end = self.pairing.results_end(self.items, at);
        for &call in calls {
            let call = &self.pairing.calls[call];
            let Some(place) = call.answer else { continue };
            if place < end && place > last {
                last = place;
            } else {
                let id = call_id(&self.items[place.item].message.parts[place.part]);
                self.act(id, RepairKind::Moved, self.items[place.item].seq());
            }
        }
    }

    fn push_changed(&mut self, at: usize, role: Role, parts: Vec<Part>) {
        let mut item = self.items[at].clone();
        let message = Message {
            role,
            parts,
            ..item.message.clone().into_owned()
        };
        item.replace(message, self.count);
        if item.action == Action::Kept {
            item.action = Action::Repaired;
        }
        self.view.push(item);
    }

    fn act(&mut self, call_id: String, kind: RepairKind, seq: Option<Seq>) {
        self.actions.push(RepairAction { call_id, kind, seq });
    }
}

fn call_id(part: &Part) -> String {
    match part {
        Part::ToolCall(call) => call.id.clone(),
        Part::ToolResult(result) => result.call_id.clone(),
        _ => String::new(),
    }
}

fn is_call(part: &Part) -> bool {
    matches!(part, Part::ToolCall(_))
}

fn says_something(part: &Part) -> bool {
    match part {
        Part::Text { text } => !is_blank(text),
        Part::Media(_) | Part::ToolCall(_) => true,
        Part::ToolResult(_) | Part::Thinking(_) => false,
    }
}

/// Whether repair takes the message's calls out because the message did not finish.
fn is_unfinished(message: &Message) -> bool {
    message.completion != Completion::Complete
}
