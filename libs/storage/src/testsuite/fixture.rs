//! A store under test, and the small things that the cases say over and over.

use crate::*;
use async_trait::async_trait;
use colloquy_types::message::Route;
use colloquy_types::queue::{
    AcceptEvent, AcceptPlan, AcceptState, Effect, Lane, MergeKey, MessageKind, Outcome, Placement, QueueMode,
};
use colloquy_types::{
    AccountId, AgentId, Author, ChannelName, Entry, EntryBody, EntryId, Error, Message, MessageId, NewEntry,
    Provenance, Reason, Result, SessionKey, TenantId, TurnId,
};
use std::fmt::Debug;
use std::sync::Arc;

/// Everything a backend implements.
pub trait Store: ControlStore + HistoryStore + MemoryStore {}
impl<T: ControlStore + HistoryStore + MemoryStore> Store for T {}

/// The hand on the clock that the store under test reads.
#[async_trait]
pub trait DatabaseClock: Send + Sync {
    /// Moves the database's time forward.
    async fn advance(&self, millis: i64);
}

/// What a backend's factory makes for one case: an empty store and its clock, which stands still otherwise.
#[derive(Clone)]
pub struct Fixture {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn DatabaseClock>,
}

impl Fixture {
    pub(super) async fn advance(&self, millis: i64) {
        self.clock.advance(millis).await;
    }

    /// A conversation of a new tenant with the agent `default`.
    pub(super) fn talk(&self) -> Talk {
        self.talk_of(TenantId::new(), "default", "386246614")
    }

    pub(super) fn talk_of(&self, tenant: TenantId, agent: &str, peer: &str) -> Talk {
        Talk {
            fixture: self.clone(),
            tenant,
            key: session_key(agent, peer),
            limits: LIMITS,
        }
    }
}

pub(super) fn session_key(agent: &str, peer: &str) -> SessionKey {
    SessionKey::parse(&format!("agent:{agent}:telegram:direct:{peer}")).expect("a canonical key")
}

pub(super) const LIMITS: TurnLimits = TurnLimits {
    lease_ms: 60_000,
    max_attempts: 3,
    max_turn_ms: 1_800_000,
    max_concurrent: 1,
    retry_ms: 1_000,
    resume_continue: false,
};

/// Each message of the cases counts as many tokens.
pub(super) const TOKENS: u32 = 10;
pub(super) const OFFER_MS: i64 = 5_000;

pub(super) fn agent(id: &str) -> AgentId {
    AgentId::parse(id).expect("an agent id")
}

pub(super) fn route(chat: &str) -> Route {
    Route {
        channel: ChannelName::parse("telegram").expect("a channel name"),
        account: AccountId::parse("bot").expect("an account id"),
        chat: chat.to_owned(),
        thread: None,
    }
}

pub(super) fn new_entry(message: Message) -> NewEntry {
    entry_of(EntryBody::Message(message), TOKENS)
}

pub(super) fn entry_of(body: EntryBody, tokens: u32) -> NewEntry {
    NewEntry {
        id: EntryId::new(),
        body,
        tokens,
        tokenizer: "o200k".to_owned(),
    }
}

pub(super) fn assistant(text: &str) -> NewEntry {
    new_entry(Message::assistant(text))
}

#[track_caller]
pub(super) fn refused<T: Debug>(result: Result<T>, reason: Reason) -> Error {
    let error = result.expect_err("a refusal");
    assert_eq!(error.reason, reason, "{error}");
    error
}

/// Entries as one word each: `user:text`, `assistant:text`, or the kind.
pub(super) fn words(entries: &[Entry]) -> Vec<String> {
    entries.iter().map(|entry| word(&entry.body)).collect()
}

fn word(body: &EntryBody) -> String {
    match body {
        EntryBody::Message(message) => {
            let role = format!("{:?}", message.role).to_lowercase();
            format!("{role}:{}", message.text())
        }
        EntryBody::Interrupted {
            reason,
            attempt,
            staged,
        } => {
            let staged: Vec<String> = staged.iter().map(Message::text).collect();
            format!("interrupted:{reason}:{attempt}:{}", staged.join(","))
        }
        EntryBody::Reset { reason } => format!("reset:{reason}"),
        EntryBody::Compaction(compaction) => format!("compaction:{}", compaction.summary),
        other => other.kind().to_owned(),
    }
}

/// A turn of its own, due at once.
pub(super) fn open_turn(state: &AcceptState) -> Result<AcceptPlan> {
    Ok(open_with(state, TurnId::new(), 0, vec![]))
}

/// A turn of its own behind other effects, due after `delay`.
pub(super) fn open_with(
    state: &AcceptState,
    turn: TurnId,
    delay: i64,
    mut effects: Vec<Effect>,
) -> AcceptPlan {
    let due = state.now.plus(delay);
    effects.push(Effect::OpenTurn {
        turn,
        due,
        lane: Lane::User,
        mode: QueueMode::Queue,
    });
    let position = u32::try_from(state.waiting.len() + state.running.len()).expect("a small queue");
    AcceptPlan {
        placement: Placement::Queued,
        turn: Some(turn),
        position,
        effects,
        text: None,
    }
}

/// Joins the newest waiting turn if it takes more, else opens one.
pub(super) fn join_newest(state: &AcceptState) -> Result<AcceptPlan> {
    match state.waiting.last() {
        Some(last) if !last.closed => Ok(AcceptPlan {
            placement: Placement::Merged,
            turn: Some(last.turn),
            position: 0,
            effects: vec![Effect::JoinTurn {
                turn: last.turn,
                due: state.now.plus(800),
            }],
            text: None,
        }),
        _ => open_turn(state),
    }
}

/// One conversation as a case drives it.
pub(super) struct Talk {
    pub fixture: Fixture,
    pub tenant: TenantId,
    pub key: SessionKey,
    pub limits: TurnLimits,
}

impl Talk {
    pub fn store(&self) -> &dyn Store {
        &*self.fixture.store
    }

    /// A message not sent before.
    pub fn input(&self, text: &str) -> AcceptInput {
        let message_id = MessageId::new();
        let sender = Author {
            id: "386246614".to_owned(),
            name: "Ada".to_owned(),
        };
        let mut message = Message::user(text);
        message.author = sender.clone();
        let merge = MergeKey {
            authority: Provenance::Owner,
            reply_to: Some(route("386246614")),
            kind: MessageKind::User,
            lane: Lane::User,
        };
        AcceptInput {
            tenant: self.tenant,
            key: self.key.clone(),
            message_id,
            message,
            tokens: TOKENS,
            tokenizer: "o200k".to_owned(),
            dedupe_key: format!("bot/{message_id}"),
            content_hash: text.as_bytes().to_vec(),
            event: AcceptEvent {
                message: message_id,
                sender,
                text: text.to_owned(),
                has_media: false,
                merge,
                mode: None,
                debounce_ms: None,
                authorised: true,
            },
            route: Some(route("386246614")),
            policy: PolicyId("0123456789abcdef0123456789abcdef".to_owned()),
            policy_json: r#"{"profile":"goclaw"}"#.to_owned(),
            limits: self.limits,
        }
    }

    pub async fn accept(&self, text: &str, decide: Decide<'_>) -> Acceptance {
        match self
            .store()
            .accept(&self.input(text), decide)
            .await
            .expect("accepted")
        {
            Accepted::New(acceptance) => acceptance,
            Accepted::Duplicate(_) => panic!("the message is not a duplicate"),
        }
    }

    /// A message that opens a turn of its own.
    pub async fn say(&self, text: &str) -> Acceptance {
        self.accept(text, &open_turn).await
    }

    pub async fn say_with(&self, text: &str, effects: Vec<Effect>) -> Acceptance {
        let turn = TurnId::new();
        self.accept(text, &move |state| Ok(open_with(state, turn, 0, effects.clone())))
            .await
    }

    pub async fn session(&self) -> Session {
        self.store()
            .find_session(self.tenant, &self.key)
            .await
            .expect("found")
            .expect("a session")
    }

    pub async fn try_claim(&self) -> Claimed {
        let request = ClaimRequest {
            tenant: self.tenant,
            session: self.session().await.id,
            worker: "worker-1".to_owned(),
            agents: vec![],
            offer_ms: OFFER_MS,
            lease_ms: None,
        };
        self.store().claim(&request).await.expect("claimed")
    }

    pub async fn claim(&self) -> ClaimedTurn {
        match self.try_claim().await {
            Claimed::Turn(turn) => *turn,
            other => panic!("no turn but {other:?}"),
        }
    }

    /// Claims and confirms.
    pub async fn run(&self) -> ClaimedTurn {
        let turn = self.claim().await;
        self.store()
            .renew(self.tenant, turn.turn, turn.fence, 0)
            .await
            .expect("confirmed");
        turn
    }

    pub async fn stage(&self, turn: &ClaimedTurn, first: i64, texts: &[&str]) -> Result<i64> {
        let entries = texts.iter().map(|text| assistant(text)).collect();
        let input = StageInput {
            tenant: self.tenant,
            turn: turn.turn,
            fence: turn.fence,
            first,
            entries,
            marks: None,
        };
        self.store().stage(&input).await
    }

    pub fn commit_input(&self, turn: &ClaimedTurn, reply: &str) -> CommitInput {
        CommitInput {
            tenant: self.tenant,
            turn: turn.turn,
            fence: turn.fence,
            entries: vec![assistant(reply)],
            usage: Usage::default(),
            deliveries: vec![],
            outcome: Outcome::Answered,
            steer_through: 0,
            marks: None,
            compact: None,
            extract: None,
            extract_delay_ms: 0,
            content_hash: reply.as_bytes().to_vec(),
        }
    }

    pub async fn commit(&self, turn: &ClaimedTurn, reply: &str) -> Committed {
        self.store()
            .commit(&self.commit_input(turn, reply))
            .await
            .expect("committed")
    }

    /// A whole exchange: 2 entries.
    pub async fn exchange(&self, text: &str, reply: &str) -> Committed {
        self.say(text).await;
        let turn = self.claim().await;
        self.commit(&turn, reply).await
    }

    /// The current branch from its start.
    pub async fn entries(&self) -> Vec<Entry> {
        let session = self.session().await;
        self.entries_of(session.transcript, session.branch).await
    }

    pub async fn entries_of(
        &self,
        transcript: colloquy_types::TranscriptId,
        branch: colloquy_types::BranchId,
    ) -> Vec<Entry> {
        let order = Order::After(colloquy_types::Seq(0));
        self.store()
            .list_entries(self.tenant, transcript, branch, order, 500)
            .await
            .expect("listed")
            .entries
    }

    pub async fn outcome(&self, message: MessageId) -> Option<Outcome> {
        self.row(message).await.outcome
    }

    pub async fn row(&self, message: MessageId) -> InboxRow {
        let session = self.session().await.id;
        let rows = self
            .store()
            .list_inbox(self.tenant, session, 500)
            .await
            .expect("listed");
        rows.into_iter()
            .find(|row| row.message_id == message)
            .expect("an inbox row")
    }

    pub async fn queue(&self) -> Queue {
        self.store()
            .queue(self.tenant, self.session().await.id, 20)
            .await
            .expect("a queue")
    }
}

/// A tenant with something in the tables of a conversation, for a backend's own tests of isolation.
pub async fn populate(f: &Fixture, tenant: TenantId) {
    f.talk_of(tenant, "default", "1").exchange("one", "1").await;
}
