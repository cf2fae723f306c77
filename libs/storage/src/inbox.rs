//! Accepting a message: the one transaction after which it cannot be lost or doubled.

use async_trait::async_trait;
use colloquy_types::message::{Message, Part, Route};
use colloquy_types::queue::{AcceptEvent, AcceptPlan, AcceptState, Outcome, Placement};
use colloquy_types::{MessageId, Result, SessionId, SessionKey, TenantId, TranscriptId, TurnId, UnixMillis};
use serde::{Deserialize, Serialize};

/// Content address of an effective policy: the first 32 hex digits of the SHA-256 of its JSON.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PolicyId(pub String);

/// The numbers of the policy that claims, renewals and expiry need; kept in the turn's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnLimits {
    pub lease_ms: i64,
    pub max_attempts: u32,
    pub max_turn_ms: i64,
    pub max_concurrent: u32,
    /// Back-off before a lost or released turn is offered again.
    pub retry_ms: i64,
    /// `resume: continue`: the next attempt sees what the lost one staged.
    pub resume_continue: bool,
}

#[derive(Debug, Clone)]
pub struct AcceptInput {
    pub tenant: TenantId,
    pub key: SessionKey,
    pub message_id: MessageId,
    pub message: Message,
    /// Of the message as an entry, counted once.
    pub tokens: u32,
    pub tokenizer: String,
    /// Unique within the tenant: the principal or account, and the channel's message id.
    pub dedupe_key: String,
    /// SHA-256 of what makes two submissions the same.
    pub content_hash: Vec<u8>,
    pub event: AcceptEvent,
    pub route: Option<Route>,
    pub policy: PolicyId,
    /// Stored under `policy` when it is not there yet.
    pub policy_json: String,
    pub limits: TurnLimits,
}

/// The answer to an accept; a duplicate gets the first one's again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acceptance {
    pub message: MessageId,
    pub session: SessionId,
    pub transcript: TranscriptId,
    pub turn: Option<TurnId>,
    pub placement: Placement,
    pub position: u32,
    /// When the turn may start; `None` without a turn.
    pub due: Option<UnixMillis>,
    /// Already final for commands and for duplicates of answered messages.
    pub outcome: Option<Outcome>,
    pub content_hash: Vec<u8>,
    /// Turns that this message made stopping: their workers want a signal.
    pub stopping: Vec<TurnId>,
    pub now: UnixMillis,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accepted {
    New(Acceptance),
    /// The dedupe key was there; nothing was changed. Ids, placement, position and hash are the first answer's,
    /// the outcome is today's, and `stopping` is empty: the signals were the first one's business.
    Duplicate(Acceptance),
}

/// The pure decision, called one to a few times with fresher and fresher state. Its refusal leaves no row.
pub type Decide<'a> = &'a (dyn Fn(&AcceptState) -> Result<AcceptPlan> + Send + Sync);

/// An accepted message as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxRow {
    pub message_id: MessageId,
    pub session: SessionId,
    pub turn: Option<TurnId>,
    pub accepted: UnixMillis,
    pub outcome: Option<Outcome>,
    pub detail: String,
}

/// The message as it is stored under [`AcceptPlan::text`]: the text parts give way to one, media stay.
pub fn with_text(message: &Message, text: &str) -> Message {
    let mut replaced = message.clone();
    replaced.parts.retain(|part| !matches!(part, Part::Text { .. }));
    if !text.is_empty() {
        replaced.parts.insert(0, Part::text(text));
    }
    replaced
}

#[async_trait]
pub trait Inbox: Send + Sync {
    /// Loads the state of the session of `key`, lets `decide` place the message, and applies the plan by
    /// compare-and-set on the session's version: two accepts at the same instant see each other. After two
    /// misses the decision is taken under the session's lock, so it ends.
    ///
    /// The first message of a key creates the session, its transcript and its branch. A message of kind `User`
    /// moves the session's last user activity. A turn belongs to the transcript that is current when its
    /// [`OpenTurn`](colloquy_types::queue::Effect::OpenTurn) is applied, and so do the messages in it; `transcript`
    /// of the answer is that of the message's turn. Waiting turns that an effect ends leave no entries.
    async fn accept(&self, input: &AcceptInput, decide: Decide<'_>) -> Result<Accepted>;

    /// The effective policy stored under the id; immutable, so callers cache it.
    async fn get_policy(&self, tenant: TenantId, id: &PolicyId) -> Result<Option<String>>;

    /// Newest first, at most `limit` (≤ 500).
    async fn list_inbox(&self, tenant: TenantId, session: SessionId, limit: u32) -> Result<Vec<InboxRow>>;
}
