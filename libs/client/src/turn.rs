//! A turn in a worker's hands.

use crate::Client;
use crate::context::BuiltContext;
use crate::error::Result;
use colloquy_proto::v1;
use std::sync::atomic::{AtomicI64, Ordering};
use tokio_util::sync::CancellationToken;
use v1::build_context_request::Subject;

/// What a build needs to know of the model.
#[derive(Debug, Clone, Default)]
pub struct BuildOptions {
    pub format: v1::ContextFormat,
    /// 0 = the policy's.
    pub window_tokens: u32,
    pub reserve_tokens: Option<u32>,
    /// System prompt and tool schemas.
    pub overhead_tokens: u32,
    pub model: String,
    /// From `recall`; the same in each build of the turn.
    pub recall_block: String,
}

/// A turn under its fence. Dropping it does not end the turn; its worker loop does.
pub struct TurnHandle {
    pub turn: v1::Turn,
    pub(crate) client: Client,
    pub(crate) cancelled: CancellationToken,
    staged: AtomicI64,
}

impl TurnHandle {
    pub(crate) fn new(client: Client, turn: v1::Turn, cancelled: CancellationToken) -> Self {
        Self {
            turn,
            client,
            cancelled,
            staged: AtomicI64::new(0),
        }
    }

    /// Text of the user's messages, joined by newline.
    pub fn text(&self) -> String {
        let parts = self
            .turn
            .messages
            .iter()
            .filter_map(|message| message.message.as_ref())
            .flat_map(|m| &m.parts);
        let texts: Vec<&str> = parts
            .filter_map(|part| match &part.part {
                Some(v1::part::Part::Text(text)) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        texts.join("\n")
    }

    /// Ends when the turn is being stopped or was lost; the agent should give up then.
    pub async fn cancelled(&self) {
        self.cancelled.cancelled().await;
    }

    pub fn is_cancelled(&self) -> bool {
        self.cancelled.is_cancelled()
    }

    /// Exactly the messages to send for the next model call.
    ///
    /// # Errors
    /// `FENCED` when the turn was lost.
    pub async fn build_context(&self, options: &BuildOptions) -> Result<BuiltContext> {
        let request = v1::BuildContextRequest {
            subject: Some(Subject::TurnId(self.turn.turn_id.clone())),
            fence: self.turn.fence,
            window_tokens: options.window_tokens,
            reserve_tokens: options.reserve_tokens,
            overhead_tokens: options.overhead_tokens,
            format: options.format.into(),
            model: options.model.clone(),
            recall_block: options.recall_block.clone(),
            ..Default::default()
        };
        self.client.build_context(&request).await
    }

    /// Keeps entries with the turn as it goes: they survive the worker's death. Repeated until stored.
    ///
    /// # Errors
    /// `FENCED` when the turn was lost, `TOO_LARGE`.
    pub async fn stage(&self, entries: Vec<v1::EntryBody>) -> Result<()> {
        let count = i64::try_from(entries.len()).unwrap_or(i64::MAX);
        let first = self.staged.fetch_add(count, Ordering::SeqCst) + 1;
        let request = v1::StageEntriesRequest {
            turn_id: self.turn.turn_id.clone(),
            fence: self.turn.fence,
            first,
            entries,
        };
        let call = || {
            let (mut history, request) = (self.client.history(), request.clone());
            async move { history.stage_entries(request).await }
        };
        self.client.retry.call(call).await.map(|_| ())
    }

    /// What is remembered about the query in the turn's session.
    ///
    /// # Errors
    /// Those of the memory service.
    pub async fn recall(&self, query: &str) -> Result<v1::RecallResponse> {
        let request = v1::RecallRequest {
            session_id: self.turn.session_id.clone(),
            query: query.to_owned(),
            ..Default::default()
        };
        let call = || {
            let (mut memory, request) = (self.client.memory(), request.clone());
            async move { memory.recall(request).await }
        };
        self.client.retry.call(call).await
    }
}
