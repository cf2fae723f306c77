//! Makes every tool result directly follow its call, in the view only. Minimal: what is in order is not
//! touched; idempotent: repairing a repaired view changes nothing.
//!
//! - A result belongs to the nearest call of its id before it that has none yet; ids may repeat.
//! - A call without a result gets an error result that says so; a real result wins over one, even a late one.
//! - A message that was aborted or failed loses its calls and their results; so does a malformed call.
//! - Results without a call and second results are left out.

mod json;
mod pairing;
mod plain;
mod view;

use crate::item::{Count, Item, is_blank};
use colloquy_types::Seq;
use colloquy_types::message::{Completion, Message, ToolCall};
pub(crate) use json::is_json;
use pairing::Pairing;
use serde::{Deserialize, Serialize};
use std::fmt;
use view::Repair;

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
    Repair::new(items, pairing, count).run()
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

/// Whether repair takes the message's calls out because the message did not finish.
fn is_unfinished(message: &Message) -> bool {
    message.completion != Completion::Complete
}
