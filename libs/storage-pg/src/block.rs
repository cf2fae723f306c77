//! Branches, and the contiguous blocks that are appended to them.

use crate::Tx;
use crate::fault::Fault;
use crate::json;
use colloquy_storage::{Branch, Marks};
use colloquy_types::{
    BranchId, Entry, EntryBody, EntryId, Epoch, Error, Message, NewEntry, Result, Seq, TenantId,
    TranscriptId, TurnId, UnixMillis,
};
use serde::Deserialize;
use sqlx::FromRow;
use uuid::Uuid;

/// Where entries stand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line {
    pub tenant: TenantId,
    pub transcript: TranscriptId,
    pub branch: BranchId,
}

#[derive(Debug, FromRow, Deserialize)]
pub(crate) struct BranchRow {
    pub transcript: Uuid,
    pub branch: Uuid,
    pub epoch: i64,
    pub head: i64,
    pub compaction_seq: Option<i64>,
    pub first_kept: i64,
    pub soft: i64,
    pub hard: i64,
    pub window_messages: i64,
    pub window_tokens: i64,
}

impl From<BranchRow> for Branch {
    fn from(row: BranchRow) -> Self {
        Self {
            transcript: TranscriptId(row.transcript),
            branch: BranchId(row.branch),
            epoch: Epoch(row.epoch),
            head: Seq(row.head),
            compaction: row.compaction_seq.map(Seq),
            first_kept: Seq(row.first_kept),
            marks: Marks {
                soft: Seq(row.soft),
                hard: Seq(row.hard),
            },
            window_messages: row.window_messages,
            window_tokens: row.window_tokens,
        }
    }
}

/// `NOT_FOUND` when there is no such branch.
pub(crate) async fn load(tx: &mut Tx, line: Line) -> Result<BranchRow, Fault> {
    let sql = "/* load_branch */ SELECT b.*, s.epoch FROM branches b \
               JOIN sessions s ON s.tenant = b.tenant AND s.id = b.session \
               WHERE b.tenant = $1 AND b.transcript = $2 AND b.branch = $3";
    let query = sqlx::query_as(sql)
        .bind(line.tenant.0)
        .bind(line.transcript.0)
        .bind(line.branch.0);
    query
        .fetch_optional(tx.conn())
        .await?
        .ok_or_else(|| Error::not_found("branch", line.branch).into())
}

#[derive(Debug, FromRow)]
pub(crate) struct EntryRow {
    seq: i64,
    id: Uuid,
    turn: Option<Uuid>,
    body: Vec<u8>,
    #[sqlx(try_from = "i64")]
    tokens: u32,
    tokenizer: String,
    at: i64,
}

impl TryFrom<EntryRow> for Entry {
    type Error = Error;

    fn try_from(row: EntryRow) -> Result<Self> {
        Ok(Self {
            id: EntryId(row.id),
            seq: Seq(row.seq),
            body: json::from_bytes(&row.body)?,
            turn: row.turn.map(TurnId),
            tokens: row.tokens,
            tokenizer: row.tokenizer,
            at: UnixMillis(row.at),
        })
    }
}

/// An entry ready to be appended.
#[derive(Debug)]
pub(crate) struct NewLine {
    pub id: EntryId,
    pub kind: &'static str,
    pub body: Vec<u8>,
    pub tokens: u32,
    pub tokenizer: String,
    /// Counts in the window.
    pub message: bool,
}

impl NewLine {
    pub fn new(entry: &NewEntry) -> Result<Self> {
        Self::of(entry.id, &entry.body, entry.tokens, &entry.tokenizer)
    }

    pub fn of(id: EntryId, body: &EntryBody, tokens: u32, tokenizer: &str) -> Result<Self> {
        Ok(Self {
            id,
            kind: body.kind(),
            body: json::to_bytes(body)?,
            tokens,
            tokenizer: tokenizer.to_owned(),
            message: body.message().is_some(),
        })
    }

    pub fn message(message: Message, tokens: u32, tokenizer: &str) -> Result<Self> {
        Self::of(EntryId::new(), &EntryBody::Message(message), tokens, tokenizer)
    }
}

/// Appends behind the head and moves the branch's counters. Returns the branch as it is then.
pub(crate) async fn append(
    tx: &mut Tx,
    line: Line,
    turn: Option<TurnId>,
    entries: &[NewLine],
) -> Result<BranchRow, Fault> {
    let mut branch = load(tx, line).await?;
    let now = tx.now.0;
    let sql = "/* append */ INSERT INTO entries \
               (tenant, transcript, branch, seq, id, turn, kind, body, tokens, tokenizer, at) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    for entry in entries {
        branch.head += 1;
        branch.window_messages += i64::from(entry.message);
        branch.window_tokens += if entry.message { i64::from(entry.tokens) } else { 0 };
        let query = sqlx::query(sql)
            .bind(line.tenant.0)
            .bind(line.transcript.0)
            .bind(line.branch.0);
        let query = query
            .bind(branch.head)
            .bind(entry.id.0)
            .bind(turn.map(|turn| turn.0))
            .bind(entry.kind);
        let query = query
            .bind(&entry.body)
            .bind(i64::from(entry.tokens))
            .bind(&entry.tokenizer)
            .bind(now);
        query.execute(tx.conn()).await?;
    }
    let sql = "/* append */ UPDATE branches SET head = $1, window_messages = $2, window_tokens = $3 \
               WHERE tenant = $4 AND transcript = $5 AND branch = $6";
    let query = sqlx::query(sql)
        .bind(branch.head)
        .bind(branch.window_messages)
        .bind(branch.window_tokens);
    query
        .bind(line.tenant.0)
        .bind(line.transcript.0)
        .bind(line.branch.0)
        .execute(tx.conn())
        .await?;
    Ok(branch)
}

/// Moves the watermarks forward, unless a compaction behind `seen` has cleared what they were made from.
pub(crate) async fn move_marks(tx: &mut Tx, line: Line, marks: Marks, seen: Seq) -> Result<(), Fault> {
    let sql = "/* move_marks */ UPDATE branches SET soft = greatest(soft, $1), hard = greatest(hard, $2) \
               WHERE tenant = $3 AND transcript = $4 AND branch = $5 AND coalesce(compaction_seq, 0) <= $6";
    let query = sqlx::query(sql).bind(marks.soft.0).bind(marks.hard.0);
    let query = query
        .bind(line.tenant.0)
        .bind(line.transcript.0)
        .bind(line.branch.0)
        .bind(seen.0);
    query.execute(tx.conn()).await?;
    Ok(())
}
