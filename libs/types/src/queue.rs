//! The state of a session's queue and what an accepted message does to it, as data.
//!
//! `turns` decides on [`AcceptState`], the stores carry the [`AcceptPlan`] out in one transaction.

use crate::clock::UnixMillis;
use crate::ids::{BranchId, Epoch, Fence, MessageId, Seq, SessionId, TranscriptId, TurnId};
use crate::message::{Author, Provenance, Route};
use serde::{Deserialize, Serialize};

/// How a waiting message relates to what runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueMode {
    #[default]
    Queue,
    Followup,
    Collect,
    Steer,
    Interrupt,
    Reject,
}

/// Dispatch class, most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lane {
    #[default]
    User,
    Subagent,
    Cron,
    Heartbeat,
    Background,
}

/// A person's message, or one of the system's own (cron, heartbeat, hook): those neither reset nor count as activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    #[default]
    User,
    SystemEvent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnState {
    /// In the queue; claimable from its due time.
    Waiting,
    /// Offered to or held by a worker, until its lease runs out.
    Running,
    /// Being stopped: commits are refused, staging and release still accepted until the deadline.
    Stopping,
    Committed,
    Cancelled,
    Failed,
}

impl TurnState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Committed => "committed",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [
            Self::Waiting,
            Self::Running,
            Self::Stopping,
            Self::Committed,
            Self::Cancelled,
            Self::Failed,
        ]
        .into_iter()
        .find(|state| state.as_str() == text)
    }
}

/// The recorded end of an accepted message. `None` in a row means it still waits or runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Outcome {
    Answered,
    Merged,
    Steered,
    Command,
    DroppedQueueFull,
    Summarized,
    CancelledStop,
    CancelledInterrupt,
    CancelledReset,
    NotSentPolicy,
    Failed,
    Erased,
}

impl Outcome {
    pub const ALL: [Self; 12] = [
        Self::Answered,
        Self::Merged,
        Self::Steered,
        Self::Command,
        Self::DroppedQueueFull,
        Self::Summarized,
        Self::CancelledStop,
        Self::CancelledInterrupt,
        Self::CancelledReset,
        Self::NotSentPolicy,
        Self::Failed,
        Self::Erased,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "ANSWERED",
            Self::Merged => "MERGED",
            Self::Steered => "STEERED",
            Self::Command => "COMMAND",
            Self::DroppedQueueFull => "DROPPED_QUEUE_FULL",
            Self::Summarized => "SUMMARIZED",
            Self::CancelledStop => "CANCELLED_STOP",
            Self::CancelledInterrupt => "CANCELLED_INTERRUPT",
            Self::CancelledReset => "CANCELLED_RESET",
            Self::NotSentPolicy => "NOT_SENT_POLICY",
            Self::Failed => "FAILED",
            Self::Erased => "ERASED",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == text)
    }
}

/// What decides whether two messages may share a turn.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MergeKey {
    pub authority: Provenance,
    /// The route of the reply; `None` for messages without one.
    pub reply_to: Option<Route>,
    pub kind: MessageKind,
    pub lane: Lane,
}

/// The message to be placed, as far as the decision needs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptEvent {
    pub message: MessageId,
    pub sender: Author,
    /// First line of the text for a drop summary, and the whole text where a command is looked for.
    pub text: String,
    pub has_media: bool,
    pub merge: MergeKey,
    /// A mode or window that this message asks for instead of the policy's.
    pub mode: Option<QueueMode>,
    pub debounce_ms: Option<i64>,
    /// Whether the sender may use commands (`/new`, `/stop`, …); for others they are ordinary text.
    pub authorised: bool,
}

/// A turn that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingTurn {
    pub turn: TurnId,
    /// Place in the session's queue: turns start in this order.
    pub order: i64,
    /// When its first message was accepted.
    pub opened: UnixMillis,
    pub due: UnixMillis,
    pub merge: MergeKey,
    /// The sender of its messages while they are all of one sender.
    pub sender: Option<String>,
    pub messages: Vec<MessageId>,
    /// Takes no more messages.
    pub closed: bool,
    /// It was running before (lost lease, retry): it takes no more messages either.
    pub attempt: u32,
    /// Mode of the message that opened it.
    pub mode: QueueMode,
}

/// A turn that a worker holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningTurn {
    pub turn: TurnId,
    pub order: i64,
    pub fence: Fence,
    pub attempt: u32,
    pub state: TurnState,
    pub lane: Lane,
    pub started: UnixMillis,
    pub lease_until: UnixMillis,
}

/// A session as a decision sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionHead {
    pub session: SessionId,
    /// Grows with every write that a decision could depend on.
    pub version: i64,
    pub transcript: TranscriptId,
    pub branch: BranchId,
    pub epoch: Epoch,
    pub head: Seq,
    pub last_user_activity: Option<UnixMillis>,
}

/// Everything a placement depends on; `now` is the database's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptState {
    pub now: UnixMillis,
    /// `None` before the first message of a key.
    pub session: Option<SessionHead>,
    /// In queue order.
    pub waiting: Vec<WaitingTurn>,
    /// Running and stopping, oldest first.
    pub running: Vec<RunningTurn>,
}

/// One change of the queue. A plan's effects are applied in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    /// Open a waiting turn at the end of the queue with the accepted message in it.
    OpenTurn {
        turn: TurnId,
        due: UnixMillis,
        lane: Lane,
        mode: QueueMode,
    },
    /// Put the accepted message into a waiting turn; `due` may move.
    JoinTurn { turn: TurnId, due: UnixMillis },
    /// The turn takes no more messages.
    CloseTurn { turn: TurnId },
    /// Move a waiting turn's due time.
    MoveDue { turn: TurnId, due: UnixMillis },
    /// End a waiting turn; its messages get the outcome and stay readable.
    EndTurn { turn: TurnId, outcome: Outcome },
    /// Replace a waiting turn's messages by one-line summaries in front of the next turn.
    SummarizeTurn {
        turn: TurnId,
        into: TurnId,
        line: String,
    },
    /// Running → stopping with a deadline; the outcome is what its messages get at the end.
    StopTurn {
        turn: TurnId,
        outcome: Outcome,
        deadline: UnixMillis,
    },
    /// Bind the accepted message to a running turn.
    Steer { turn: TurnId },
    /// Start a new transcript; `zero_counters` always, label and toggles stay.
    Reset { reason: ResetReason },
    /// Record the accepted message's end at once (a command).
    Finish { outcome: Outcome },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResetReason {
    Command,
    Daily,
    Idle,
    Api,
}

impl ResetReason {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Daily => "daily",
            Self::Idle => "idle",
            Self::Api => "api",
        }
    }
}

/// What the sender is told at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Placement {
    Queued,
    Merged,
    Steered,
    Interrupted,
    Command,
    /// Recorded as refused: the queue had no place for it.
    Dropped,
}

/// What to do with an accepted message. A refusal is an `Err` of the decision, and leaves no row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptPlan {
    pub placement: Placement,
    /// The turn the message is in; none for a command alone.
    pub turn: Option<TurnId>,
    /// Turns that start before it.
    pub position: u32,
    pub effects: Vec<Effect>,
    /// Text that replaces the message's own (the rest behind `/new`).
    pub text: Option<String>,
}
