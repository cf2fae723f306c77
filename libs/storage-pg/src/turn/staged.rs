//! What a turn keeps before it ends, and the block it becomes.

use super::lease;
use crate::Tx;
use crate::block::{self, NewLine};
use crate::fault::Fault;
use crate::json;
use crate::queue_state::{self, TurnRow};
use colloquy_storage::StageInput;
use colloquy_types::{EntryBody, EntryId, Error, Message, Result, Seq};
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

pub(super) async fn stage(tx: &mut Tx, input: &StageInput) -> Result<i64, Fault> {
    let mut row = lease::held(tx, input.tenant, input.turn, input.fence).await?;
    lease::confirm(tx, &mut row).await?;
    let sql = "/* stage */ SELECT coalesce(max(n), 0) FROM staged_entries WHERE tenant = $1 AND turn = $2 AND fence = $3";
    let query = sqlx::query_scalar(sql)
        .bind(row.tenant)
        .bind(row.id)
        .bind(row.fence);
    let highest: i64 = query.fetch_one(tx.conn()).await?;
    if input.first < 1 || input.first > highest + 1 {
        return Err(Error::invalid(
            "first",
            format!("the next entry of this attempt is {}", highest + 1),
        )
        .into());
    }
    let sql = "/* stage */ INSERT INTO staged_entries (tenant, turn, fence, n, attempt, id, body, tokens, tokenizer) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING";
    let mut last = highest;
    for (n, entry) in (input.first..).zip(&input.entries) {
        let query = sqlx::query(sql)
            .bind(row.tenant)
            .bind(row.id)
            .bind(row.fence)
            .bind(n)
            .bind(i64::from(row.attempt));
        let query = query.bind(entry.id.0).bind(json::to_bytes(&entry.body)?);
        query
            .bind(i64::from(entry.tokens))
            .bind(&entry.tokenizer)
            .execute(tx.conn())
            .await?;
        last = last.max(n);
    }
    if let Some(marks) = input.marks {
        block::move_marks(tx, row.line(), marks, Seq(row.head_at_claim)).await?;
    }
    Ok(last)
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
