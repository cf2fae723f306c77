//! Lines of a transcript: append-only, in one order per branch.

use crate::clock::UnixMillis;
use crate::ids::{EntryId, JobId, Seq, TurnId};
use crate::message::Message;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EntryBody {
    Message(Message),
    /// In the model's context, may be hidden from people.
    CustomMessage {
        kind: String,
        message: Message,
    },
    /// State of an agent or an operator; never in context. `json` is checked on receipt.
    Custom {
        kind: String,
        json: String,
    },
    Compaction(Compaction),
    BranchSummary {
        summary: String,
    },
    Reset {
        reason: String,
    },
    /// A turn that was stopped or lost, with what it had staged.
    Interrupted {
        reason: String,
        attempt: u32,
        staged: Vec<Message>,
    },
    Label {
        label: String,
    },
    ModelChange {
        provider: String,
        model: String,
    },
}

/// Stands for every entry before `first_kept` in the window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compaction {
    pub summary: String,
    /// First entry that stays verbatim behind the summary.
    pub first_kept: Seq,
    pub tokens_before: u32,
    pub tokens_after: u32,
    pub model: String,
    pub job: JobId,
    /// The model failed and the extractive summary stands in until it is redone.
    #[serde(default)]
    pub degraded: bool,
}

impl EntryBody {
    /// The stored discriminator, the same word as in the JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Message(_) => "message",
            Self::CustomMessage { .. } => "custom_message",
            Self::Custom { .. } => "custom",
            Self::Compaction(_) => "compaction",
            Self::BranchSummary { .. } => "branch_summary",
            Self::Reset { .. } => "reset",
            Self::Interrupted { .. } => "interrupted",
            Self::Label { .. } => "label",
            Self::ModelChange { .. } => "model_change",
        }
    }

    /// The message a model call sees for this entry, if any.
    pub fn message(&self) -> Option<&Message> {
        match self {
            Self::Message(message) | Self::CustomMessage { message, .. } => Some(message),
            _ => None,
        }
    }
}

/// An entry that has no place in a transcript yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewEntry {
    pub id: EntryId,
    pub body: EntryBody,
    /// Tokens of the body, counted once by the named tokenizer.
    pub tokens: u32,
    pub tokenizer: String,
}

/// A stored entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub id: EntryId,
    pub seq: Seq,
    pub body: EntryBody,
    /// The turn that wrote it; none for compactions, resets and notes.
    pub turn: Option<TurnId>,
    pub tokens: u32,
    pub tokenizer: String,
    pub at: UnixMillis,
}
