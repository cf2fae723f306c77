//! What a build is of: a running turn, or a session as it stands.

use crate::sessions;
use colloquy_proto::convert::{id, required};
use colloquy_proto::v1::{self, build_context_request::Subject as Asked};
use colloquy_storage::{HistoryStore, PolicyId, TurnView, Window};
use colloquy_types::message::Message;
use colloquy_types::{EntryBody, Error, Fence, Principal, Result, SessionId, TenantId, TurnId};

/// What a build is of.
pub struct Subject {
    pub session: SessionId,
    pub window: Window,
    pub policy: PolicyId,
    pub preface: String,
    pub pending: Messages,
    pub staged: Messages,
    /// The running turn: its builds move the watermarks and leave receipts.
    pub turn: Option<(TurnId, Fence)>,
}

/// Messages and their stored token counts.
#[derive(Default)]
pub struct Messages {
    pub messages: Vec<Message>,
    pub tokens: Vec<u32>,
}

impl FromIterator<(Message, u32)> for Messages {
    fn from_iter<T: IntoIterator<Item = (Message, u32)>>(counted: T) -> Self {
        let (messages, tokens) = counted.into_iter().unzip();
        Self { messages, tokens }
    }
}

/// What a running turn says: from people, and what it has staged.
pub fn of_turn(view: &mut TurnView) -> (Messages, Messages) {
    let said = std::mem::take(&mut view.messages);
    let staged = std::mem::take(&mut view.staged);
    let pending = said.into_iter().map(|(_, message, tokens)| (message, tokens));
    let staged = staged.into_iter().filter_map(|(body, tokens)| match body {
        EntryBody::Message(message) | EntryBody::CustomMessage { message, .. } => Some((message, tokens)),
        _ => None,
    });
    (pending.collect(), staged.collect())
}

pub async fn subject(
    store: &dyn HistoryStore,
    principal: &Principal,
    tenant: TenantId,
    request: &v1::BuildContextRequest,
) -> Result<Subject> {
    match required("subject", request.subject.as_ref())? {
        Asked::TurnId(text) => {
            let (turn, fence) = (id("turn_id", text)?, Fence(request.fence));
            let mut view = store.view(tenant, turn, fence).await?;
            let window = store
                .window(tenant, view.transcript, view.branch, Some(view.head))
                .await?;
            let (pending, staged) = of_turn(&mut view);
            Ok(Subject {
                session: view.session,
                window,
                policy: view.policy,
                preface: view.preface,
                pending,
                staged,
                turn: Some((turn, fence)),
            })
        }
        Asked::SessionId(text) => {
            let found = store.get_session(tenant, id("session_id", text)?).await?;
            let session = sessions::visible(principal, found, text)?;
            let policy = session.policy.clone();
            let window = store
                .window(tenant, session.transcript, session.branch, None)
                .await?;
            Ok(Subject {
                session: session.id,
                window,
                policy: policy.ok_or_else(|| Error::not_found("session", text))?,
                preface: String::new(),
                pending: Messages::default(),
                staged: Messages::default(),
                turn: None,
            })
        }
    }
}
