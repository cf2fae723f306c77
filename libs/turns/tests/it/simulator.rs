//! A session in memory that carries plans out, and a clock that starts turns.

use colloquy_turns::accept;
use colloquy_types::message::{Author, Provenance, Route};
use colloquy_types::policy::{Policy, Profile};
use colloquy_types::queue::{
    AcceptEvent, AcceptPlan, AcceptState, Effect, Lane, MergeKey, MessageKind, Outcome, QueueMode,
    RunningTurn, TurnState, WaitingTurn,
};
use colloquy_types::{AccountId, ChannelName, Fence, MessageId, Result, SessionKey, TurnId, UnixMillis};
use serde_json::Value;
use std::collections::HashMap;

pub struct Session {
    pub state: AcceptState,
    pub texts: HashMap<MessageId, String>,
    pub outcomes: HashMap<MessageId, Outcome>,
    /// Start, text and messages of each turn that ran.
    pub started: Vec<(i64, String, Vec<MessageId>)>,
    running_messages: HashMap<TurnId, Vec<MessageId>>,
    ends: HashMap<TurnId, i64>,
    turn_ms: i64,
    order: i64,
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
            running_messages: HashMap::new(),
            ends: HashMap::new(),
            turn_ms,
            order: 0,
        }
    }

    /// Lets turns end and start until `to`.
    pub fn advance(&mut self, to: i64) {
        loop {
            let end = self.ends.iter().map(|(turn, at)| (*at, Some(*turn))).min();
            let start = self.next_start().map(|at| (at, None));
            let Some((at, ended)) = [end, start].into_iter().flatten().min_by_key(|(at, _)| *at) else {
                break;
            };
            if at > to {
                break;
            }
            self.state.now = UnixMillis(at.max(self.state.now.0));
            match ended {
                Some(turn) => self.end(turn, Outcome::Answered),
                None => self.start(),
            }
        }
        self.state.now = UnixMillis(to.max(self.state.now.0));
    }

    fn next_start(&self) -> Option<i64> {
        let first = self.state.waiting.first()?;
        self.state
            .running
            .is_empty()
            .then_some(first.due.0.max(self.state.now.0))
    }

    fn start(&mut self) {
        let waiting = self.state.waiting.remove(0);
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
        self.running_messages.insert(waiting.turn, waiting.messages);
        self.ends.insert(waiting.turn, self.state.now.0 + self.turn_ms);
    }

    fn end(&mut self, turn: TurnId, outcome: Outcome) {
        self.ends.remove(&turn);
        self.state.running.retain(|running| running.turn != turn);
        for message in self.running_messages.remove(&turn).unwrap_or_default() {
            self.outcomes.entry(message).or_insert(outcome);
        }
    }

    pub fn accept(&mut self, event: &AcceptEvent, policy: &Policy) -> Result<AcceptPlan> {
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
            Effect::SummarizeTurn { turn, .. } => self.drop_turn(*turn, Outcome::Summarized),
            // The worker gives it back at once.
            Effect::StopTurn { turn, outcome, .. } => self.end(*turn, *outcome),
            Effect::Steer { .. } => {
                self.outcomes.insert(event.message, Outcome::Steered);
            }
            Effect::Finish { outcome } => {
                self.outcomes.insert(event.message, *outcome);
            }
            Effect::Reset { .. } => {}
        }
    }

    fn drop_turn(&mut self, turn: TurnId, outcome: Outcome) {
        let at = self
            .state
            .waiting
            .iter()
            .position(|waiting| waiting.turn == turn)
            .expect("a waiting turn");
        for message in self.state.waiting.remove(at).messages {
            self.outcomes.insert(message, outcome);
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

fn mode(value: &Value) -> Option<QueueMode> {
    serde_json::from_value(value.clone()).ok()
}

#[test]
fn every_queue_case_holds() {
    for case in crate::cases("queue.jsonl") {
        check(&case);
    }
}

fn check(case: &Value) {
    let name = &case["name"];
    let overrides = match &case["policy"] {
        Value::Null => String::new(),
        policy => serde_json::json!({ "queue": policy }).to_string(),
    };
    let policy = Policy::resolve(Profile::Goclaw, &[&overrides]).unwrap();
    let mut session = Session::new(case["turn_ms"].as_i64().unwrap_or(0));
    let (mut ids, mut refused, mut seen) = (Vec::new(), HashMap::new(), HashMap::new());
    for raw in case["events"].as_array().unwrap() {
        let at = raw["at"].as_i64().unwrap();
        // A message that arrives with the start may be in either turn: here it comes before the start.
        session.advance(at - 1);
        session.state.now = UnixMillis(at);
        let text = match raw["kind"].as_str().unwrap() {
            "stop" => "/stop",
            "stopall" => "/stopall",
            _ => raw["text"].as_str().unwrap(),
        };
        let mut event = event(
            text,
            raw["sender"].as_str().unwrap_or("p1"),
            raw["thread"].as_str(),
        );
        event.mode = mode(&raw["mode"]);
        event.debounce_ms = raw["debounce"].as_i64();
        if let Some(id) = raw["id"].as_str()
            && seen.insert(id.to_owned(), ()).is_some()
        {
            // The inbox answers duplicates before any decision.
            ids.push(None);
            continue;
        }
        match session.accept(&event, &policy) {
            Ok(_) => ids.push(Some(event.message)),
            Err(error) => {
                refused.insert(text.to_owned(), error.reason.as_str());
                ids.push(None);
            }
        }
    }
    session.advance(10_000_000);
    expect_turns(case, &session);
    for (text, outcome) in case["outcomes"].as_object().into_iter().flatten() {
        if outcome == "DUPLICATE" {
            continue;
        }
        let found = session
            .texts
            .iter()
            .find(|(_, known)| *known == text)
            .map(|(id, _)| session.outcomes[id]);
        assert_eq!(found.map(Outcome::as_str), outcome.as_str(), "{name}: {text}");
    }
    for (text, error) in case["errors"].as_object().into_iter().flatten() {
        assert_eq!(refused.get(text).copied(), error.as_str(), "{name}: {text}");
    }
}

fn expect_turns(case: &Value, session: &Session) {
    let (name, expected) = (&case["name"], case["expect_turns"].as_array().unwrap());
    if case["tolerance"] == "edge" {
        let all: Vec<String> = session.started.iter().map(|(_, text, _)| text.clone()).collect();
        assert_eq!(all.join("\n"), "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11", "{name}");
        assert_eq!(session.started[0].0, 4_000, "{name}");
        return;
    }
    assert_eq!(
        session.started.len(),
        expected.len(),
        "{name}: {:?}",
        session.started
    );
    for (turn, want) in session.started.iter().zip(expected) {
        assert_eq!(turn.1, want[1].as_str().unwrap(), "{name}");
        if let Some(start) = want[0].as_i64() {
            assert_eq!(turn.0, start, "{name}: {}", turn.1);
        }
    }
}
