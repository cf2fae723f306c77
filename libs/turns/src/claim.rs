//! Which waiting turn may start.

use colloquy_types::queue::AcceptState;
use colloquy_types::{Policy, TurnId, UnixMillis};

/// What a worker that asks a session for a turn gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claimable {
    /// This turn may start now.
    Now(TurnId),
    /// The first waiting turn is due then; those behind it wait for it.
    DueAt(UnixMillis),
    /// All places are taken; a turn that is stopping keeps its place until it has ended.
    Full,
    /// Nothing waits.
    Nothing,
}

/// The first waiting turn, once it is due and there is a place. `context_use` is the share of the model's window
/// that the session uses, where it is known: a long conversation runs one turn at a time.
pub fn claimable(state: &AcceptState, policy: &Policy, context_use: Option<f64>) -> Claimable {
    let Some(first) = state.waiting.first() else {
        return Claimable::Nothing;
    };
    let single = context_use.is_some_and(|used| used >= policy.queue.single_from_ratio);
    let places = if single { 1 } else { policy.queue.max_concurrent };
    if state.running.len() >= places as usize {
        Claimable::Full
    } else if first.due > state.now {
        Claimable::DueAt(first.due)
    } else {
        Claimable::Now(first.turn)
    }
}
