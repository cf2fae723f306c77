//! Pure decisions about turns: where an accepted message goes, and when a session starts over.
//!
//! Owns the queue rules. Must not know a store, a clock or a runtime: state and time come in, effects go out, and
//! the store carries them out in one transaction. To add a mode: a variant of `QueueMode` and its arm in `queue`.

mod claim;
mod fair;
mod outcome;
mod queue;
mod reset;

pub use claim::{Claimable, claimable};
pub use fair::{Candidate, FairChoice, Share};
pub use outcome::{Bound, End, Fate, fates};
pub use reset::due as reset_due;

use colloquy_types::command::{self, Command};
use colloquy_types::queue::{
    AcceptEvent, AcceptPlan, AcceptState, Effect, MessageKind, Outcome, Placement, ResetReason, TurnState,
};
use colloquy_types::{Policy, Result, SessionKey, TurnId};

/// How long a stopped turn may still stage and release, in milliseconds.
pub const STOP_DEADLINE_MS: i64 = 10_000;

/// Where an accepted message goes.
///
/// `turn` is the id that a new turn gets; deciding again on fresher state uses the same one.
///
/// # Errors
/// `QUEUE_FULL` and `BUSY`, which leave no trace.
pub fn accept(
    state: &AcceptState,
    event: &AcceptEvent,
    policy: &Policy,
    key: &SessionKey,
    turn: TurnId,
) -> Result<AcceptPlan> {
    match asked(event, policy) {
        Some(Command::Reset { rest }) => Ok(reset_by_command(state, event, policy, rest, turn)),
        Some(Command::Stop) => {
            let mut effects = stop(state, Outcome::CancelledStop, 1);
            effects.extend(flush(state, event));
            Ok(finish(effects))
        }
        Some(Command::StopAll) => {
            let mut effects = stop(state, Outcome::CancelledStop, usize::MAX);
            effects.extend(drain(state, Outcome::CancelledStop));
            Ok(finish(effects))
        }
        // What the queue does not carry out is the agent's to answer.
        Some(Command::Compact { .. } | Command::Status | Command::Queue(_)) | None => {
            let reset = reset_by_policy(state, event, policy, key);
            let mut plan = queue::place(state, event, policy, turn, reset.is_some())?;
            plan.effects.splice(0..0, reset);
            Ok(plan)
        }
    }
}

/// The command in a message, where its sender may give one.
fn asked(event: &AcceptEvent, policy: &Policy) -> Option<Command> {
    let may = policy.commands.enabled && event.authorised && event.merge.kind == MessageKind::User;
    may.then(|| command::parse(&event.text, &policy.reset.triggers))
        .flatten()
}

/// A command ends the quiet time of what its sender wrote before.
fn flush(state: &AcceptState, event: &AcceptEvent) -> Option<Effect> {
    let newest = state.waiting.last()?;
    let debounced = !newest.closed && newest.attempt == 0 && newest.due > state.now;
    (debounced && newest.sender.as_ref() == Some(&event.sender.id)).then_some(Effect::MoveDue {
        turn: newest.turn,
        due: state.now,
    })
}

/// Stops the oldest `count` running turns.
fn stop(state: &AcceptState, outcome: Outcome, count: usize) -> Vec<Effect> {
    let deadline = state.now.plus(STOP_DEADLINE_MS);
    let running = state
        .running
        .iter()
        .filter(|running| running.state == TurnState::Running);
    running
        .take(count)
        .map(|running| Effect::StopTurn {
            turn: running.turn,
            outcome,
            deadline,
        })
        .collect()
}

/// Ends everything that waits.
fn drain(state: &AcceptState, outcome: Outcome) -> impl Iterator<Item = Effect> {
    state.waiting.iter().map(move |waiting| Effect::EndTurn {
        turn: waiting.turn,
        outcome,
    })
}

/// What records a message that the queue refused, where its sender cannot be told to try again.
#[must_use]
pub fn dropped() -> AcceptPlan {
    AcceptPlan {
        placement: Placement::Dropped,
        turn: None,
        position: 0,
        effects: vec![Effect::Finish {
            outcome: Outcome::DroppedQueueFull,
        }],
        text: None,
    }
}

fn finish(mut effects: Vec<Effect>) -> AcceptPlan {
    effects.push(Effect::Finish {
        outcome: Outcome::Command,
    });
    AcceptPlan {
        placement: Placement::Command,
        turn: None,
        position: 0,
        effects,
        text: None,
    }
}

fn reset_by_command(
    state: &AcceptState,
    event: &AcceptEvent,
    policy: &Policy,
    rest: Option<String>,
    turn: TurnId,
) -> AcceptPlan {
    let mut effects = stop(state, Outcome::CancelledReset, usize::MAX);
    effects.extend(drain(state, Outcome::CancelledReset));
    if state.session.is_some() {
        effects.push(Effect::Reset {
            reason: ResetReason::Command,
        });
    }
    let Some(text) = rest else { return finish(effects) };
    let mode = event.mode.unwrap_or(policy.queue.mode);
    effects.push(Effect::OpenTurn {
        turn,
        due: state.now,
        lane: event.merge.lane,
        mode,
    });
    let position = count(state.running.len());
    AcceptPlan {
        placement: Placement::Queued,
        turn: Some(turn),
        position,
        effects,
        text: Some(text),
    }
}

fn reset_by_policy(
    state: &AcceptState,
    event: &AcceptEvent,
    policy: &Policy,
    key: &SessionKey,
) -> Option<Effect> {
    if event.merge.kind != MessageKind::User {
        return None;
    }
    let last = state.session.as_ref()?.last_user_activity?;
    let rule = policy.reset.rule(key);
    reset::due(&rule, last, state.now).map(|reason| Effect::Reset { reason })
}

/// A length as the wire counts.
fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
