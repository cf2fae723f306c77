//! What the messages of a turn get when it ends.

use colloquy_types::MessageId;
use colloquy_types::queue::Outcome;

/// How a turn ended for good. A lost lease with attempts left is no end: its messages wait on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Committed; `sent` is false where the send policy kept the reply back.
    Committed { sent: bool },
    /// Stopped by a command, an interrupt or a reset; the outcome is that of the stop.
    Stopped(Outcome),
    /// No attempts left, or given up by its worker.
    Failed,
}

/// A message of the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    pub message: MessageId,
    /// Its number when it was steered into the turn, from 1.
    pub steer: Option<i64>,
}

/// Where a message of the ended turn goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Ends(Outcome),
    /// Into a turn of its own, in the place of the one that ended.
    Waits,
}

/// The fate of each message, in their order. `acknowledged` is the number of the last steer that the worker took in;
/// what a commit leaves behind it becomes the next turn, what a stop or a failure leaves ends with the rest.
pub fn fates(end: End, messages: &[Bound], acknowledged: i64) -> Vec<(MessageId, Fate)> {
    let fate = |bound: &Bound| match (end, bound.steer) {
        (End::Committed { .. }, Some(number)) if number > acknowledged => Fate::Waits,
        (End::Committed { .. }, Some(_)) => Fate::Ends(Outcome::Steered),
        (End::Committed { sent: true }, None) => Fate::Ends(Outcome::Answered),
        (End::Committed { sent: false }, None) => Fate::Ends(Outcome::NotSentPolicy),
        (End::Stopped(outcome), _) => Fate::Ends(outcome),
        (End::Failed, _) => Fate::Ends(Outcome::Failed),
    };
    messages
        .iter()
        .map(|bound| (bound.message, fate(bound)))
        .collect()
}
