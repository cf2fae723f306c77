//! A session in memory that carries plans out, and a clock that starts turns.

use colloquy_turns::{Bound, Claimable, End, Fate, accept, claimable, fates};
use colloquy_types::message::{Author, Provenance, Route};
use colloquy_types::policy::{Policy, Profile};
use colloquy_types::queue::{
    AcceptEvent, AcceptPlan, AcceptState, Effect, Lane, MergeKey, MessageKind, Outcome, RunningTurn,
    SessionHead, TurnState, WaitingTurn,
};
use colloquy_types::{
    AccountId, BranchId, ChannelName, Epoch, Fence, MessageId, Result, Seq, SessionId, SessionKey,
    TranscriptId, TurnId, UnixMillis,
};
use std::collections::HashMap;

pub struct Session {
    pub state: AcceptState,
    pub texts: HashMap<MessageId, String>,
    pub outcomes: HashMap<MessageId, Outcome>,
    /// Start, text and messages of each turn that ran.
    pub started: Vec<(i64, String, Vec<MessageId>)>,
    /// Summary lines of dropped turns.
    pub lines: Vec<String>,
    pub policy: Policy,
    /// How often the worker renews; 0 = never.
    pub renew_ms: i64,
    running: HashMap<TurnId, Running>,
    turn_ms: i64,
    stop_ms: i64,
    order: i64,
}

struct Running {
    waited: WaitingTurn,
    messages: Vec<Bound>,
    /// When each steer came.
    steered: Vec<i64>,
    started: i64,
    ends: i64,
    end: End,
}

impl Session {
    pub fn new(turn_ms: i64) -> Self {
        Self {
            state: AcceptState {
                now: UnixMillis(0),
                session: None,
                waiting: vec![],
                running: vec![],
            },
            texts: HashMap::new(),
            outcomes: HashMap::new(),
            started: Vec::new(),
            lines: Vec::new(),
            policy: Policy::resolve(Profile::Goclaw, &[]).unwrap(),
            renew_ms: 0,
            running: HashMap::new(),
            turn_ms,
            stop_ms: 0,
            order: 0,
        }
    }

    /// Workers take this long to give a stopped turn back.
    pub fn slow_to_stop(mut self, stop_ms: i64) -> Self {
        self.stop_ms = stop_ms;
        self
    }

    /// The session exists and a person wrote last at `last`.
    pub fn open_transcript(&mut self, last: UnixMillis) {
        self.state.session = Some(SessionHead {
            session: SessionId::new(),
            version: 1,
            transcript: TranscriptId::new(),
            branch: BranchId::new(),
            epoch: Epoch(1),
            head: Seq(0),
            last_user_activity: Some(last),
        });
    }

    /// Outcome of the message with the text.
    pub fn outcome(&self, text: &str) -> Option<Outcome> {
        let (id, _) = self.texts.iter().find(|(_, known)| *known == text)?;
        self.outcomes.get(id).copied()
    }

    pub fn texts_started(&self) -> Vec<&str> {
        self.started.iter().map(|(_, text, _)| text.as_str()).collect()
    }

    /// Lets turns end and start until `to`.
    pub fn advance(&mut self, to: i64) {
        loop {
            let end = self
                .running
                .iter()
                .map(|(turn, running)| (running.ends, Some(*turn)))
                .min();
            let start = match claimable(&self.state, &self.policy, None) {
                Claimable::Now(_) => Some((self.state.now.0, None)),
                Claimable::DueAt(due) => Some((due.0, None)),
                Claimable::Full | Claimable::Nothing => None,
            };
            let Some((at, ended)) = [end, start].into_iter().flatten().min_by_key(|(at, _)| *at) else {
                break;
            };
            if at > to {
                break;
            }
            self.state.now = UnixMillis(at.max(self.state.now.0));
            match ended {
                Some(turn) => self.end(turn),
                None => self.start(),
            }
        }
        self.state.now = UnixMillis(to.max(self.state.now.0));
    }

    fn start(&mut self) {
        let Claimable::Now(turn) = claimable(&self.state, &self.policy, None) else {
            return;
        };
        let waiting = self.state.waiting.remove(0);
        assert_eq!(waiting.turn, turn, "turns start in their order");
        let texts: Vec<&str> = waiting
            .messages
            .iter()
            .map(|id| self.texts[id].as_str())
            .collect();
        self.started
            .push((self.state.now.0, texts.join("\n"), waiting.messages.clone()));
        self.state.running.push(RunningTurn {
            turn: waiting.turn,
            order: waiting.order,
            fence: Fence(waiting.order),
            attempt: 1,
            state: TurnState::Running,
            lane: waiting.merge.lane,
            started: self.state.now,
            lease_until: self.state.now,
        });
        let own = waiting.messages.iter().map(|message| Bound {
            message: *message,
            steer: None,
        });
        let running = Running {
            messages: own.collect(),
            steered: Vec::new(),
            started: self.state.now.0,
            ends: self.state.now.0 + self.turn_ms,
            end: End::Committed { sent: true },
            waited: waiting,
        };
        self.running.insert(turn, running);
    }

    fn end(&mut self, turn: TurnId) {
        let running = self.running.remove(&turn).expect("a running turn");
        self.state.running.retain(|running| running.turn != turn);
        let acknowledged = self.acknowledged(&running);
        let mut left = Vec::new();
        for (message, fate) in fates(running.end, &running.messages, acknowledged) {
            match fate {
                Fate::Ends(outcome) => assert_eq!(self.outcomes.insert(message, outcome), None),
                Fate::Waits => left.push(message),
            }
        }
        if !left.is_empty() {
            // In the place of the turn that ended.
            let next = WaitingTurn {
                turn: TurnId::new(),
                opened: self.state.now,
                due: self.state.now,
                sender: None,
                messages: left,
                closed: true,
                ..running.waited
            };
            let behind = |waiting: &WaitingTurn| waiting.order > next.order;
            let at = self.state.waiting.iter().position(behind);
            self.state
                .waiting
                .insert(at.unwrap_or(self.state.waiting.len()), next);
        }
    }

    /// The last steer that a renewal before the end brought to the worker.
    fn acknowledged(&self, running: &Running) -> i64 {
        if self.renew_ms == 0 {
            return 0;
        }
        let lasted = running.ends - running.started;
        let renewed = running.started + lasted / self.renew_ms * self.renew_ms;
        running.steered.iter().take_while(|at| **at <= renewed).count() as i64
    }

    /// The newest policy also decides how many turns run.
    pub fn accept(&mut self, event: &AcceptEvent, policy: &Policy) -> Result<AcceptPlan> {
        self.policy = policy.clone();
        let key = SessionKey::parse("agent:default:telegram:group:1").unwrap();
        let plan = accept(&self.state, event, policy, &key, TurnId::new())?;
        self.texts.insert(event.message, event.text.clone());
        for effect in &plan.effects {
            self.apply(effect, event);
        }
        Ok(plan)
    }

    fn waiting(&mut self, turn: TurnId) -> &mut WaitingTurn {
        self.state
            .waiting
            .iter_mut()
            .find(|waiting| waiting.turn == turn)
            .expect("a waiting turn")
    }

    fn apply(&mut self, effect: &Effect, event: &AcceptEvent) {
        match effect {
            Effect::OpenTurn { turn, due, mode, .. } => {
                self.order += 1;
                self.state.waiting.push(WaitingTurn {
                    turn: *turn,
                    order: self.order,
                    opened: self.state.now,
                    due: *due,
                    merge: event.merge.clone(),
                    sender: Some(event.sender.id.clone()),
                    messages: vec![event.message],
                    closed: false,
                    attempt: 0,
                    mode: *mode,
                });
            }
            Effect::JoinTurn { turn, due } => {
                let sender = event.sender.id.clone();
                let waiting = self.waiting(*turn);
                waiting.messages.push(event.message);
                waiting.due = *due;
                waiting.sender = waiting.sender.take().filter(|known| *known == sender);
            }
            Effect::CloseTurn { turn } => self.waiting(*turn).closed = true,
            Effect::MoveDue { turn, due } => self.waiting(*turn).due = *due,
            Effect::EndTurn { turn, outcome } => self.drop_turn(*turn, *outcome),
            Effect::SummarizeTurn { turn, into, line } => {
                assert!(self.state.waiting.iter().any(|waiting| waiting.turn == *into));
                self.lines.push(line.clone());
                self.drop_turn(*turn, Outcome::Summarized);
            }
            Effect::StopTurn {
                turn,
                outcome,
                deadline,
            } => self.stop(*turn, *outcome, *deadline),
            Effect::Steer { turn } => {
                let now = self.state.now.0;
                let running = self.running.get_mut(turn).expect("a running turn");
                running.steered.push(now);
                running.messages.push(Bound {
                    message: event.message,
                    steer: Some(running.steered.len() as i64),
                });
            }
            Effect::Finish { outcome } => {
                assert_eq!(self.outcomes.insert(event.message, *outcome), None);
            }
            Effect::Reset { .. } => {}
        }
    }

    fn stop(&mut self, turn: TurnId, outcome: Outcome, deadline: UnixMillis) {
        assert!(deadline.since(self.state.now) >= self.stop_ms);
        let running = self.running.get_mut(&turn).expect("a running turn");
        running.end = End::Stopped(outcome);
        running.ends = self.state.now.0 + self.stop_ms;
        if self.stop_ms == 0 {
            return self.end(turn);
        }
        let row = self.state.running.iter_mut().find(|running| running.turn == turn);
        row.expect("a running turn").state = TurnState::Stopping;
    }

    fn drop_turn(&mut self, turn: TurnId, outcome: Outcome) {
        let at = self
            .state
            .waiting
            .iter()
            .position(|waiting| waiting.turn == turn)
            .expect("a waiting turn");
        for message in self.state.waiting.remove(at).messages {
            assert_eq!(self.outcomes.insert(message, outcome), None);
        }
    }
}

pub fn event(text: &str, sender: &str, thread: Option<&str>) -> AcceptEvent {
    let reply_to = Route {
        channel: ChannelName::parse("telegram").unwrap(),
        account: AccountId::parse("bot").unwrap(),
        chat: "1".into(),
        thread: thread.map(str::to_owned),
    };
    AcceptEvent {
        message: MessageId::new(),
        sender: Author {
            id: sender.into(),
            name: String::new(),
        },
        text: text.into(),
        has_media: false,
        merge: MergeKey {
            authority: Provenance::Owner,
            reply_to: Some(reply_to),
            kind: MessageKind::User,
            lane: Lane::User,
        },
        mode: None,
        debounce_ms: None,
        authorised: true,
    }
}
