//! Queue words.

use crate::v1;
use colloquy_types::queue::{Lane, MessageKind, Outcome, Placement, QueueMode, TurnState};

impl From<Outcome> for v1::Outcome {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Answered => Self::Answered,
            Outcome::Merged => Self::Merged,
            Outcome::Steered => Self::Steered,
            Outcome::Command => Self::Command,
            Outcome::DroppedQueueFull => Self::DroppedQueueFull,
            Outcome::Summarized => Self::Summarized,
            Outcome::CancelledStop => Self::CancelledStop,
            Outcome::CancelledInterrupt => Self::CancelledInterrupt,
            Outcome::CancelledReset => Self::CancelledReset,
            Outcome::NotSentPolicy => Self::NotSentPolicy,
            Outcome::Failed => Self::Failed,
            Outcome::Erased => Self::Erased,
        }
    }
}

impl v1::Outcome {
    /// `None` while a message waits or runs.
    pub fn known(self) -> Option<Outcome> {
        Some(match self {
            Self::Unspecified => return None,
            Self::Answered => Outcome::Answered,
            Self::Merged => Outcome::Merged,
            Self::Steered => Outcome::Steered,
            Self::Command => Outcome::Command,
            Self::DroppedQueueFull => Outcome::DroppedQueueFull,
            Self::Summarized => Outcome::Summarized,
            Self::CancelledStop => Outcome::CancelledStop,
            Self::CancelledInterrupt => Outcome::CancelledInterrupt,
            Self::CancelledReset => Outcome::CancelledReset,
            Self::NotSentPolicy => Outcome::NotSentPolicy,
            Self::Failed => Outcome::Failed,
            Self::Erased => Outcome::Erased,
        })
    }
}

impl v1::QueueMode {
    /// `None` when the policy's mode is meant.
    pub fn known(self) -> Option<QueueMode> {
        Some(match self {
            Self::Unspecified => return None,
            Self::Queue => QueueMode::Queue,
            Self::Followup => QueueMode::Followup,
            Self::Collect => QueueMode::Collect,
            Self::Steer => QueueMode::Steer,
            Self::Interrupt => QueueMode::Interrupt,
            Self::Reject => QueueMode::Reject,
        })
    }
}

impl From<QueueMode> for v1::QueueMode {
    fn from(mode: QueueMode) -> Self {
        match mode {
            QueueMode::Queue => Self::Queue,
            QueueMode::Followup => Self::Followup,
            QueueMode::Collect => Self::Collect,
            QueueMode::Steer => Self::Steer,
            QueueMode::Interrupt => Self::Interrupt,
            QueueMode::Reject => Self::Reject,
        }
    }
}

impl From<v1::Lane> for Lane {
    fn from(lane: v1::Lane) -> Self {
        match lane {
            v1::Lane::Unspecified | v1::Lane::User => Self::User,
            v1::Lane::Subagent => Self::Subagent,
            v1::Lane::Cron => Self::Cron,
            v1::Lane::Heartbeat => Self::Heartbeat,
            v1::Lane::Background => Self::Background,
        }
    }
}

impl From<Lane> for v1::Lane {
    fn from(lane: Lane) -> Self {
        match lane {
            Lane::User => Self::User,
            Lane::Subagent => Self::Subagent,
            Lane::Cron => Self::Cron,
            Lane::Heartbeat => Self::Heartbeat,
            Lane::Background => Self::Background,
        }
    }
}

impl From<v1::MessageKind> for MessageKind {
    fn from(kind: v1::MessageKind) -> Self {
        match kind {
            v1::MessageKind::SystemEvent => Self::SystemEvent,
            v1::MessageKind::Unspecified | v1::MessageKind::User => Self::User,
        }
    }
}

impl From<MessageKind> for v1::MessageKind {
    fn from(kind: MessageKind) -> Self {
        match kind {
            MessageKind::User => Self::User,
            MessageKind::SystemEvent => Self::SystemEvent,
        }
    }
}

impl From<Placement> for v1::Placement {
    fn from(placement: Placement) -> Self {
        match placement {
            Placement::Queued => Self::Queued,
            Placement::Merged => Self::Merged,
            Placement::Steered => Self::Steered,
            Placement::Interrupted => Self::Interrupted,
            Placement::Command => Self::Command,
            Placement::Dropped => Self::Dropped,
        }
    }
}

impl v1::Placement {
    /// `None` for a duplicate (its first answer said where it went) and when not set.
    pub fn known(self) -> Option<Placement> {
        Some(match self {
            Self::Unspecified | Self::Duplicate => return None,
            Self::Queued => Placement::Queued,
            Self::Merged => Placement::Merged,
            Self::Steered => Placement::Steered,
            Self::Interrupted => Placement::Interrupted,
            Self::Command => Placement::Command,
            Self::Dropped => Placement::Dropped,
        })
    }
}

impl From<TurnState> for v1::TurnState {
    fn from(state: TurnState) -> Self {
        match state {
            TurnState::Waiting => Self::Waiting,
            TurnState::Running => Self::Running,
            TurnState::Stopping => Self::Stopping,
            TurnState::Committed => Self::Committed,
            TurnState::Cancelled => Self::Cancelled,
            TurnState::Failed => Self::Failed,
        }
    }
}

impl v1::TurnState {
    /// `None` when not set.
    pub fn known(self) -> Option<TurnState> {
        Some(match self {
            Self::Unspecified => return None,
            Self::Waiting => TurnState::Waiting,
            Self::Running => TurnState::Running,
            Self::Stopping => TurnState::Stopping,
            Self::Committed => TurnState::Committed,
            Self::Cancelled => TurnState::Cancelled,
            Self::Failed => TurnState::Failed,
        })
    }
}
