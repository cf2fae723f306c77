//! Entries: windows, pages, notes.

use crate::block::{self, BranchRow, EntryRow, Line, NewLine};
use crate::fault::Fault;
use crate::{PgStore, Tx, json, session};
use async_trait::async_trait;
use colloquy_storage::{EntryPage, Order, Transcripts, Window};
use colloquy_types::{
    BranchId, Entry, EntryBody, EntryId, Error, NewEntry, Reason, Result, Seq, SessionId, TenantId,
    TranscriptId, TurnId, UnixMillis,
};
use sqlx::FromRow;
use sqlx::types::Json;
use uuid::Uuid;

/// Bodies of one page.
const PAGE_BYTES: i64 = 2 << 20;

#[async_trait]
impl Transcripts for PgStore {
    async fn window(
        &self,
        tenant: TenantId,
        transcript: TranscriptId,
        branch: BranchId,
        up_to: Option<Seq>,
    ) -> Result<Window> {
        let line = Line {
            tenant,
            transcript,
            branch,
        };
        if let Some(window) = self.read_window(line, up_to).await? {
            return Ok(window);
        }
        Ok(window(&mut self.read(tenant).await?, line, up_to).await?)
    }

    async fn session_of(&self, tenant: TenantId, transcript: TranscriptId) -> Result<Option<SessionId>> {
        Ok(session_of(&mut self.read(tenant).await?, tenant, transcript).await?)
    }

    async fn list_entries(
        &self,
        tenant: TenantId,
        transcript: TranscriptId,
        branch: BranchId,
        order: Order,
        limit: u32,
    ) -> Result<EntryPage> {
        let line = Line {
            tenant,
            transcript,
            branch,
        };
        Ok(list(&mut self.read(tenant).await?, line, order, limit).await?)
    }

    async fn append_entries(
        &self,
        tenant: TenantId,
        session: SessionId,
        entries: &[NewEntry],
    ) -> Result<Seq> {
        let mut tx = self.write(tenant).await?;
        let head = append_notes(&mut tx, tenant, session, entries).await?;
        tx.commit().await?;
        Ok(head)
    }
}

/// The first row is the branch, the others are entries.
#[derive(Debug, FromRow)]
struct WindowRow {
    line: Option<Json<BranchRow>>,
    rare: bool,
    seq: Option<i64>,
    id: Option<Uuid>,
    turn: Option<Uuid>,
    body: Option<Vec<u8>>,
    tokens: Option<i64>,
    tokenizer: Option<String>,
    at: Option<i64>,
}

impl WindowRow {
    fn entry(self) -> Result<Entry> {
        let broken = || Error::internal("an entry of a window is incomplete");
        Ok(Entry {
            id: EntryId(self.id.ok_or_else(broken)?),
            seq: Seq(self.seq.ok_or_else(broken)?),
            body: json::from_bytes(&self.body.ok_or_else(broken)?)?,
            turn: self.turn.map(TurnId),
            tokens: u32::try_from(self.tokens.ok_or_else(broken)?).map_err(|_| broken())?,
            tokenizer: self.tokenizer.ok_or_else(broken)?,
            at: UnixMillis(self.at.ok_or_else(broken)?),
        })
    }
}

impl PgStore {
    /// `None` when a compaction came behind `up_to`, so that an older summary says what the window was.
    async fn read_window(&self, line: Line, up_to: Option<Seq>) -> Result<Option<Window>, Fault> {
        let sql = "/* read_window */ SELECT * FROM history.read_window($1, $2, $3, $4)";
        let query = sqlx::query_as(sql)
            .bind(line.tenant.0)
            .bind(line.transcript.0)
            .bind(line.branch.0);
        let rows: Vec<WindowRow> = query.bind(up_to.map(|seq| seq.0)).fetch_all(&self.pool).await?;
        let mut rows = rows.into_iter();
        let first = rows.next();
        let rare = first.as_ref().is_some_and(|row| row.rare);
        let Some(Json(branch)) = first.and_then(|row| row.line) else {
            return Err(Error::not_found("branch", line.branch).into());
        };
        if rare {
            return Ok(None);
        }
        let mut entries = rows.map(WindowRow::entry).collect::<Result<Vec<_>>>()?;
        let compacted = branch.compaction_seq.is_some() && !entries.is_empty();
        let summary = compacted.then(|| entries.remove(0));
        Ok(Some(Window {
            branch: branch.into(),
            summary,
            entries,
        }))
    }
}

async fn window(tx: &mut Tx, line: Line, up_to: Option<Seq>) -> Result<Window, Fault> {
    let branch = block::load(tx, line).await?;
    let up_to = up_to.map_or(branch.head, |up_to| up_to.0.min(branch.head));
    let summary = newest_compaction(tx, line, &branch, up_to).await?;
    let own = summary.as_ref().map_or(0, |entry| entry.seq.0);
    let first_kept = match summary.as_ref().map(|entry| &entry.body) {
        Some(_) if branch.compaction_seq == Some(own) => branch.first_kept,
        Some(EntryBody::Compaction(compaction)) => compaction.first_kept.0,
        _ => 1,
    };
    let sql = "/* window */ SELECT * FROM entries WHERE tenant = $1 AND transcript = $2 AND branch = $3 \
               AND seq BETWEEN $4 AND $5 AND seq <> $6 ORDER BY seq";
    let query = sqlx::query_as(sql)
        .bind(line.tenant.0)
        .bind(line.transcript.0)
        .bind(line.branch.0);
    let rows = query
        .bind(first_kept)
        .bind(up_to)
        .bind(own)
        .fetch_all(tx.conn())
        .await?;
    Ok(Window {
        branch: branch.into(),
        summary,
        entries: entries(rows)?,
    })
}

async fn session_of(
    tx: &mut Tx,
    tenant: TenantId,
    transcript: TranscriptId,
) -> Result<Option<SessionId>, Fault> {
    let sql = "/* session_of */ SELECT session FROM branches WHERE tenant = $1 AND transcript = $2 LIMIT 1";
    let session = sqlx::query_scalar(sql)
        .bind(tenant.0)
        .bind(transcript.0)
        .fetch_optional(tx.conn())
        .await?;
    Ok(session.map(SessionId))
}

/// The branch's pointer, or what it was at an earlier head.
async fn newest_compaction(
    tx: &mut Tx,
    line: Line,
    branch: &BranchRow,
    up_to: i64,
) -> Result<Option<Entry>, Fault> {
    let Some(newest) = branch.compaction_seq else {
        return Ok(None);
    };
    let sql = "/* newest_compaction */ SELECT * FROM entries WHERE tenant = $1 AND transcript = $2 AND branch = $3 \
               AND kind = 'compaction' AND seq <= $4 ORDER BY seq DESC LIMIT 1";
    let query = sqlx::query_as(sql)
        .bind(line.tenant.0)
        .bind(line.transcript.0)
        .bind(line.branch.0);
    let row: Option<EntryRow> = query.bind(newest.min(up_to)).fetch_optional(tx.conn()).await?;
    Ok(row.map(Entry::try_from).transpose()?)
}

fn entries(rows: Vec<EntryRow>) -> Result<Vec<Entry>> {
    rows.into_iter().map(Entry::try_from).collect()
}

async fn list(tx: &mut Tx, line: Line, order: Order, limit: u32) -> Result<EntryPage, Fault> {
    block::load(tx, line).await?;
    // Sizes first, so that no more than a page is read.
    let (sizes, bodies, place) = match order {
        Order::After(seq) => (
            "/* list_entries */ SELECT length(body)::bigint FROM entries WHERE tenant = $1 AND transcript = $2 \
             AND branch = $3 AND seq > $4 ORDER BY seq LIMIT $5",
            "/* list_entries */ SELECT * FROM entries WHERE tenant = $1 AND transcript = $2 \
             AND branch = $3 AND seq > $4 ORDER BY seq LIMIT $5",
            seq,
        ),
        Order::Before(seq) => (
            "/* list_entries */ SELECT length(body)::bigint FROM entries WHERE tenant = $1 AND transcript = $2 \
             AND branch = $3 AND seq < $4 ORDER BY seq DESC LIMIT $5",
            "/* list_entries */ SELECT * FROM entries WHERE tenant = $1 AND transcript = $2 \
             AND branch = $3 AND seq < $4 ORDER BY seq DESC LIMIT $5",
            seq,
        ),
    };
    let limit = i64::from(limit.clamp(1, 500));
    let query = sqlx::query_scalar(sizes)
        .bind(line.tenant.0)
        .bind(line.transcript.0)
        .bind(line.branch.0);
    let sizes: Vec<i64> = query.bind(place.0).bind(limit + 1).fetch_all(tx.conn()).await?;
    let fit = fitting(&sizes, limit);
    let query = sqlx::query_as(bodies)
        .bind(line.tenant.0)
        .bind(line.transcript.0)
        .bind(line.branch.0);
    let rows = query.bind(place.0).bind(fit).fetch_all(tx.conn()).await?;
    let more = i64::try_from(sizes.len()).is_ok_and(|found| found > fit);
    Ok(EntryPage {
        entries: entries(rows)?,
        more,
    })
}

/// How many of the entries make a page: at least one, if there is one.
fn fitting(sizes: &[i64], limit: i64) -> i64 {
    let mut bytes = 0;
    let mut count = 0;
    for size in sizes {
        bytes += size;
        if count == limit || (count > 0 && bytes > PAGE_BYTES) {
            break;
        }
        count += 1;
    }
    count
}

async fn append_notes(
    tx: &mut Tx,
    tenant: TenantId,
    id: SessionId,
    entries: &[NewEntry],
) -> Result<Seq, Fault> {
    let session = session::load(tx, tenant, id).await?;
    if session.running > 0 {
        return Err(Error::new(
            Reason::Conflict,
            "a turn of the session runs; append when it has ended",
        )
        .into());
    }
    let lines = entries.iter().map(NewLine::new).collect::<Result<Vec<_>>>()?;
    let branch = block::append(tx, session.line(), None, &lines).await?;
    if !lines.is_empty() {
        session::touch(tx, tenant, id).await?;
    }
    Ok(Seq(branch.head))
}
