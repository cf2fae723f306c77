//! What a turn keeps before it ends, and the block it becomes.

use crate::Tx;
use crate::block::NewLine;
use crate::fault::Fault;
use crate::json;
use crate::queue_state::{self, TurnRow};
use colloquy_types::{EntryBody, EntryId, Message, Result};
use sqlx::FromRow;
use uuid::Uuid;

#[derive(Debug, FromRow)]
pub(super) struct StagedRow {
    pub fence: i64,
    #[sqlx(try_from = "i64")]
    pub attempt: u32,
    id: Uuid,
    body: Vec<u8>,
    #[sqlx(try_from = "i64")]
    pub tokens: u32,
    tokenizer: String,
}

impl StagedRow {
    pub fn body(&self) -> Result<EntryBody> {
        json::from_bytes(&self.body)
    }

    /// By the turn's current attempt: its own, and under `resume: continue` those of lost attempts.
    pub fn is_seen(&self, turn: &TurnRow) -> bool {
        self.fence == turn.fence || turn.resume_continue
    }
}

/// Of all attempts, in order.
pub(super) async fn load(tx: &mut Tx, turn: &TurnRow) -> Result<Vec<StagedRow>, Fault> {
    let sql = "/* load_staged */ SELECT fence, attempt, id, body, tokens, tokenizer FROM staged_entries \
               WHERE tenant = $1 AND turn = $2 ORDER BY fence, n";
    Ok(sqlx::query_as(sql)
        .bind(turn.tenant)
        .bind(turn.id)
        .fetch_all(tx.conn())
        .await?)
}

/// The head of a turn's block: an `interrupted` entry per lost attempt that is not resumed, then the messages.
pub(super) async fn opening(
    tx: &mut Tx,
    turn: &TurnRow,
    acked: i64,
    staged: &[StagedRow],
) -> Result<Vec<NewLine>, Fault> {
    let mut lines = Vec::new();
    for lost in staged
        .chunk_by(|a, b| a.fence == b.fence)
        .filter(|attempt| !attempt[0].is_seen(turn))
    {
        let attempt = lost[0].attempt;
        lines.push(interrupted(
            format!("lost attempt {attempt}"),
            attempt,
            lost.iter(),
        )?);
    }
    for message in queue_state::messages(tx, turn.tenant(), turn.turn()).await? {
        if message.is_own(acked) {
            lines.push(NewLine::message(
                message.message()?,
                message.tokens,
                &message.tokenizer,
            )?);
        }
    }
    Ok(lines)
}

/// What the ending attempt staged, as entries of their own.
pub(super) fn own_lines(turn: &TurnRow, staged: &[StagedRow]) -> Result<Vec<NewLine>> {
    let seen = staged.iter().filter(|entry| entry.is_seen(turn));
    seen.map(|entry| NewLine::of(EntryId(entry.id), &entry.body()?, entry.tokens, &entry.tokenizer))
        .collect()
}

/// One entry that holds what was staged; its tokens are those of what it holds.
pub(super) fn interrupted<'a>(
    reason: String,
    attempt: u32,
    staged: impl Iterator<Item = &'a StagedRow>,
) -> Result<NewLine> {
    let (mut messages, mut tokens, mut tokenizer): (Vec<Message>, u32, &str) = (vec![], 0, "");
    for entry in staged {
        tokens = tokens.saturating_add(entry.tokens);
        tokenizer = &entry.tokenizer;
        if let EntryBody::Message(message) | EntryBody::CustomMessage { message, .. } = entry.body()? {
            messages.push(message);
        }
    }
    let body = EntryBody::Interrupted {
        reason,
        attempt,
        staged: messages,
    };
    NewLine::of(EntryId::new(), &body, tokens, tokenizer)
}
