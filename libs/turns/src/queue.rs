//! The queue modes.

use crate::{count, drain, stop};
use colloquy_types::policy::{Drop, Policy};
use colloquy_types::queue::{
    AcceptEvent, AcceptPlan, AcceptState, Effect, Outcome, Placement, QueueMode, RunningTurn, TurnState,
    WaitingTurn,
};
use colloquy_types::{Error, Reason, Result, TurnId, UnixMillis};

/// The longest wait of a debounce, in windows.
const LONGEST_WINDOWS: i64 = 5;
/// What stands for a message that was dropped by `summarize`.
const SUMMARY_LINE: &str = "[an earlier message was dropped: the queue was full]";

/// What a placement is made from.
struct Placing<'a> {
    state: &'a AcceptState,
    event: &'a AcceptEvent,
    policy: &'a Policy,
    mode: QueueMode,
    /// Quiet time before the turn starts; media flush it.
    window_ms: i64,
    fresh: TurnId,
}

/// Places an ordinary message. After a reset (`apart`) it never joins what waits in the old transcript.
pub fn place(
    state: &AcceptState,
    event: &AcceptEvent,
    policy: &Policy,
    fresh: TurnId,
    apart: bool,
) -> Result<AcceptPlan> {
    let window = event.debounce_ms.unwrap_or(policy.queue.debounce_ms);
    let placing = Placing {
        state,
        event,
        policy,
        mode: event.mode.unwrap_or(policy.queue.mode),
        window_ms: if event.has_media { 0 } else { window },
        fresh,
    };
    let newest = state.waiting.last().filter(|_| !apart);
    let joined = newest.filter(|waiting| placing.may_join(waiting));
    match placing.mode {
        QueueMode::Reject if joined.is_none() && !(state.running.is_empty() && state.waiting.is_empty()) => {
            Err(Error::new(
                Reason::Busy,
                "the session is busy; try again when it has answered",
            )
            .retry_after(1_000))
        }
        QueueMode::Interrupt if joined.is_none() => Ok(placing.interrupt()),
        _ => match (placing.steered().filter(|_| !apart), joined) {
            (Some(running), _) => Ok(placing.steer(running)),
            (None, Some(waiting)) => placing.join(waiting),
            (None, None) => placing.open(),
        },
    }
}

impl Placing<'_> {
    /// Authority, reply target and kind must be the same; while the debounce runs the sender too, and behind
    /// a running turn only the merging modes go on.
    fn may_join(&self, waiting: &WaitingTurn) -> bool {
        if waiting.closed || waiting.attempt > 0 || waiting.merge != self.event.merge {
            return false;
        }
        let in_window =
            waiting.due > self.state.now && waiting.sender.as_ref() == Some(&self.event.sender.id);
        match self.mode {
            QueueMode::Followup | QueueMode::Collect => true,
            QueueMode::Interrupt => in_window && waiting.mode == QueueMode::Interrupt,
            QueueMode::Queue | QueueMode::Steer | QueueMode::Reject => in_window,
        }
    }

    fn due(&self, opened: UnixMillis) -> UnixMillis {
        let longest = opened.plus(self.window_ms.saturating_mul(LONGEST_WINDOWS));
        self.state
            .now
            .plus(self.window_ms)
            .min(longest)
            .max(self.state.now)
    }

    fn join(&self, waiting: &WaitingTurn) -> Result<AcceptPlan> {
        // A turn whose window is over keeps its place; one that still waits for quiet waits on.
        let due = if waiting.due > self.state.now {
            self.due(waiting.opened)
        } else {
            waiting.due
        };
        let mut effects = vec![Effect::JoinTurn {
            turn: waiting.turn,
            due,
        }];
        let mut dropped = 0;
        if self.counts_messages() {
            dropped = self.overflow(Some(waiting))?;
            effects.extend(self.drop_oldest(dropped));
        }
        let position = self.state.running.len() + self.state.waiting.len() - dropped - 1;
        Ok(self.plan(Placement::Merged, waiting.turn, position, effects))
    }

    fn open(&self) -> Result<AcceptPlan> {
        let dropped = self.overflow(None)?;
        let mut effects = Vec::new();
        if let Some(newest) = self.state.waiting[dropped..]
            .last()
            .filter(|waiting| !waiting.closed)
        {
            effects.push(Effect::CloseTurn { turn: newest.turn });
        }
        // Opened first: a summary line may have to go in front of it.
        effects.push(self.open_turn());
        effects.extend(self.drop_oldest(dropped));
        let position = self.state.running.len() + self.state.waiting.len() - dropped;
        Ok(self.plan(Placement::Queued, self.fresh, position, effects))
    }

    fn open_turn(&self) -> Effect {
        let due = self.due(self.state.now);
        Effect::OpenTurn {
            turn: self.fresh,
            due,
            lane: self.event.merge.lane,
            mode: self.mode,
        }
    }

    fn interrupt(&self) -> AcceptPlan {
        let mut effects = stop(self.state, Outcome::CancelledInterrupt, usize::MAX);
        effects.extend(drain(self.state, Outcome::CancelledInterrupt));
        let cancels = !effects.is_empty();
        effects.push(self.open_turn());
        let placement = if cancels {
            Placement::Interrupted
        } else {
            Placement::Queued
        };
        self.plan(placement, self.fresh, 0, effects)
    }

    /// The turn that a steer goes into: the newest that runs, when nothing waits before it. Never one of another
    /// lane: a person's words are no part of a heartbeat.
    fn steered(&self) -> Option<TurnId> {
        if self.mode != QueueMode::Steer || !self.state.waiting.is_empty() {
            return None;
        }
        let open = |running: &&RunningTurn| {
            running.state == TurnState::Running && running.lane == self.event.merge.lane
        };
        self.state.running.iter().rfind(open).map(|running| running.turn)
    }

    fn steer(&self, turn: TurnId) -> AcceptPlan {
        self.plan(Placement::Steered, turn, 0, vec![Effect::Steer { turn }])
    }

    fn plan(&self, placement: Placement, turn: TurnId, position: usize, effects: Vec<Effect>) -> AcceptPlan {
        AcceptPlan {
            placement,
            turn: Some(turn),
            position: count(position),
            effects,
            text: None,
        }
    }

    /// Capacity counts messages under the merging modes, else turns: what the debounce merged is one.
    fn counts_messages(&self) -> bool {
        matches!(self.mode, QueueMode::Followup | QueueMode::Collect)
    }

    fn weight(&self, waiting: &WaitingTurn) -> usize {
        if self.counts_messages() {
            waiting.messages.len()
        } else {
            1
        }
    }

    /// How many of the oldest waiting turns must go for one more to fit. The one to be joined stays: a turn is not
    /// cut in two, the newcomer is refused instead.
    fn overflow(&self, joined: Option<&WaitingTurn>) -> Result<usize> {
        let mut left: usize = self
            .state
            .waiting
            .iter()
            .map(|waiting| self.weight(waiting))
            .sum();
        let capacity = self.policy.queue.capacity as usize;
        let mut dropped = 0;
        while left >= capacity {
            let oldest = self.state.waiting.get(dropped);
            let droppable = oldest.filter(|oldest| joined.is_none_or(|joined| joined.turn != oldest.turn));
            match droppable.filter(|_| self.policy.queue.drop != Drop::New) {
                Some(oldest) => left -= self.weight(oldest),
                None => {
                    let message = format!("{left} messages wait already");
                    return Err(Error::new(Reason::QueueFull, message).retry_after(5_000));
                }
            }
            dropped += 1;
        }
        Ok(dropped)
    }

    fn drop_oldest(&self, dropped: usize) -> impl Iterator<Item = Effect> {
        // A line goes in front of whatever is answered next.
        let into = self
            .state
            .waiting
            .get(dropped)
            .map_or(self.fresh, |next| next.turn);
        self.state.waiting[..dropped]
            .iter()
            .map(move |oldest| match self.policy.queue.drop {
                Drop::Summarize => Effect::SummarizeTurn {
                    turn: oldest.turn,
                    into,
                    line: SUMMARY_LINE.into(),
                },
                Drop::Old | Drop::New => Effect::EndTurn {
                    turn: oldest.turn,
                    outcome: Outcome::DroppedQueueFull,
                },
            })
    }
}
