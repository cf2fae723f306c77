//! Sessions: rows, lists, resets.

use crate::block::{self, Line, NewLine};
use crate::cursor::{self, Cursor};
use crate::fault::Fault;
use crate::{PgStore, Tx, queue_state};
use async_trait::async_trait;
use colloquy_storage::{
    Counters, Page, PageRequest, PolicyId, Session, SessionFilter, SessionPatch, Sessions,
};
use colloquy_types::queue::{Outcome, ResetReason};
use colloquy_types::{
    BranchId, EntryBody, EntryId, Epoch, Error, Fence, Result, Seq, SessionId, SessionKey, TenantId,
    TranscriptId, UnixMillis,
};
use sqlx::{FromRow, Postgres, QueryBuilder};
use uuid::Uuid;

#[derive(Debug, FromRow)]
pub(crate) struct SessionRow {
    pub tenant: Uuid,
    pub id: Uuid,
    pub key: String,
    label: String,
    display_name: String,
    pub transcript: Uuid,
    pub branch: Uuid,
    pub epoch: i64,
    pub version: i64,
    pub fence: i64,
    input_tokens: i64,
    output_tokens: i64,
    turns: i64,
    compactions: i64,
    last_prompt_tokens: Option<i64>,
    context_window: Option<i64>,
    pub model: String,
    pub provider: String,
    pub policy: Option<String>,
    pub marker: i64,
    pub marker_job: Option<Uuid>,
    pub marker_until: Option<i64>,
    compaction_error: Option<String>,
    created: i64,
    updated: i64,
    pub last_user_activity: Option<i64>,
    pub head: i64,
    window_messages: i64,
    window_tokens: i64,
    pub waiting: i64,
    pub running: i64,
}

impl SessionRow {
    /// Its current branch.
    pub fn line(&self) -> Line {
        Line {
            tenant: TenantId(self.tenant),
            transcript: TranscriptId(self.transcript),
            branch: BranchId(self.branch),
        }
    }

    pub fn input_tokens(&self) -> i64 {
        self.input_tokens
    }

    pub fn output_tokens(&self) -> i64 {
        self.output_tokens
    }
}

impl TryFrom<SessionRow> for Session {
    type Error = Error;

    fn try_from(row: SessionRow) -> Result<Self> {
        Ok(Self {
            id: SessionId(row.id),
            tenant: TenantId(row.tenant),
            key: SessionKey::parse(&row.key)?,
            label: row.label,
            display_name: row.display_name,
            transcript: TranscriptId(row.transcript),
            branch: BranchId(row.branch),
            epoch: Epoch(row.epoch),
            version: row.version,
            fence: Fence(row.fence),
            counters: Counters {
                input_tokens: row.input_tokens,
                output_tokens: row.output_tokens,
                turns: row.turns,
                compactions: row.compactions,
                last_prompt_tokens: row.last_prompt_tokens,
                context_window: row.context_window,
            },
            head: Seq(row.head),
            window_messages: row.window_messages,
            window_tokens: row.window_tokens,
            waiting: row.waiting,
            running: row.running,
            policy: row.policy.map(PolicyId),
            compaction_error: row.compaction_error,
            model: row.model,
            provider: row.provider,
            created: UnixMillis(row.created),
            updated: UnixMillis(row.updated),
            last_user_activity: row.last_user_activity.map(UnixMillis),
        })
    }
}

#[async_trait]
impl Sessions for PgStore {
    async fn get_session(&self, tenant: TenantId, id: SessionId) -> Result<Option<Session>> {
        let row = get(&mut self.read(tenant).await?, tenant, id).await?;
        row.map(Session::try_from).transpose()
    }

    async fn find_session(&self, tenant: TenantId, key: &SessionKey) -> Result<Option<Session>> {
        let row = find(&mut self.read(tenant).await?, tenant, key).await?;
        row.map(Session::try_from).transpose()
    }

    async fn list_sessions(
        &self,
        tenant: TenantId,
        filter: &SessionFilter,
        page: &PageRequest,
    ) -> Result<Page<Session>> {
        Ok(list(&mut self.read(tenant).await?, tenant, filter, page).await?)
    }

    async fn update_session(&self, tenant: TenantId, id: SessionId, patch: &SessionPatch) -> Result<Session> {
        let mut tx = self.write(tenant).await?;
        update(&mut tx, tenant, id, patch).await?;
        let session = load(&mut tx, tenant, id).await?;
        tx.commit().await?;
        session.try_into()
    }

    async fn reset_session(
        &self,
        tenant: TenantId,
        id: SessionId,
        reason: ResetReason,
        stop_deadline_ms: i64,
    ) -> Result<Session> {
        let mut tx = self.write(tenant).await?;
        reset(&mut tx, tenant, id, reason, stop_deadline_ms).await?;
        let session = load(&mut tx, tenant, id).await?;
        tx.commit().await?;
        session.try_into()
    }
}

/// A session's row with the head of its branch and the length of its queue.
macro_rules! select_session {
    ($name:literal, $rest:literal) => {
        concat!(
            "/* ",
            $name,
            " */ SELECT s.*, b.head, b.window_messages, b.window_tokens, ",
            "(SELECT count(*) FROM turns t WHERE t.tenant = s.tenant AND t.session = s.id AND t.ended IS NULL ",
            "AND t.state = 'waiting') AS waiting, ",
            "(SELECT count(*) FROM turns t WHERE t.tenant = s.tenant AND t.session = s.id AND t.ended IS NULL ",
            "AND t.state <> 'waiting') AS running ",
            "FROM sessions s JOIN branches b ",
            "ON b.tenant = s.tenant AND b.transcript = s.transcript AND b.branch = s.branch ",
            $rest
        )
    };
}

pub(crate) async fn get(tx: &mut Tx, tenant: TenantId, id: SessionId) -> Result<Option<SessionRow>, Fault> {
    if tx.writes {
        lock(tx, tenant, id).await?;
    }
    let sql = select_session!("get_session", "WHERE s.tenant = $1 AND s.id = $2");
    Ok(sqlx::query_as(sql)
        .bind(tenant.0)
        .bind(id.0)
        .fetch_optional(tx.conn())
        .await?)
}

/// Holds the session until the end of the transaction; what is read afterwards is as fresh as the lock.
pub(crate) async fn lock(tx: &mut Tx, tenant: TenantId, id: SessionId) -> Result<(), Fault> {
    let sql = "/* lock_session */ SELECT id FROM sessions WHERE tenant = $1 AND id = $2 FOR UPDATE";
    let _: Option<Uuid> = sqlx::query_scalar(sql)
        .bind(tenant.0)
        .bind(id.0)
        .fetch_optional(tx.conn())
        .await?;
    Ok(())
}

/// `NOT_FOUND` when there is none.
pub(crate) async fn load(tx: &mut Tx, tenant: TenantId, id: SessionId) -> Result<SessionRow, Fault> {
    get(tx, tenant, id)
        .await?
        .ok_or_else(|| Error::not_found("session", id).into())
}

pub(crate) async fn find(
    tx: &mut Tx,
    tenant: TenantId,
    key: &SessionKey,
) -> Result<Option<SessionRow>, Fault> {
    if tx.writes {
        // Nothing of the session is read before the lock is held.
        let sql = "/* lock_key */ SELECT id FROM sessions WHERE tenant = $1 AND key = $2 FOR UPDATE";
        let query = sqlx::query_scalar(sql).bind(tenant.0).bind(key.to_string());
        let _: Option<Uuid> = query.fetch_optional(tx.conn()).await?;
    }
    let sql = select_session!("find_session", "WHERE s.tenant = $1 AND s.key = $2");
    Ok(sqlx::query_as(sql)
        .bind(tenant.0)
        .bind(key.to_string())
        .fetch_optional(tx.conn())
        .await?)
}

async fn list(
    tx: &mut Tx,
    tenant: TenantId,
    filter: &SessionFilter,
    page: &PageRequest,
) -> Result<Page<Session>, Fault> {
    let after = Cursor::of(page, Cursor::LAST)?;
    let mut query = QueryBuilder::<Postgres>::new(select_session!("list_sessions", "WHERE s.tenant = "));
    query.push_bind(tenant.0);
    query
        .push(" AND (s.updated, s.id) < (")
        .push_bind(after.at)
        .push(", ")
        .push_bind(after.id)
        .push(")");
    if let Some(agent) = &filter.agent {
        query.push(" AND s.agent = ").push_bind(agent.as_str().to_owned());
    }
    let equal = [
        (" AND s.channel = ", &filter.channel),
        (" AND s.kind = ", &filter.kind),
        (" AND s.chat = ", &filter.chat),
    ];
    for (sql, value) in equal {
        if let Some(value) = value {
            query.push(sql).push_bind(value.clone());
        }
    }
    if let Some(prefix) = &filter.label_prefix {
        query
            .push(" AND substr(s.label, 1, length(")
            .push_bind(prefix.clone());
        query.push(")) = ").push_bind(prefix.clone());
    }
    if let Some(since) = filter.active_since {
        query.push(" AND s.updated >= ").push_bind(since.0);
    }
    query
        .push(" ORDER BY s.updated DESC, s.id DESC LIMIT ")
        .push_bind(cursor::rows(page));
    let rows: Vec<SessionRow> = query.build_query_as().fetch_all(tx.conn()).await?;
    let sessions = rows.into_iter().map(Session::try_from).collect::<Result<_>>()?;
    Ok(cursor::page(sessions, page, |session: &Session| Cursor {
        at: session.updated.0,
        id: session.id.0,
    }))
}

async fn update(tx: &mut Tx, tenant: TenantId, id: SessionId, patch: &SessionPatch) -> Result<(), Fault> {
    let now = tx.now.0;
    let sql = "/* update_session */ UPDATE sessions SET label = coalesce($1, label), \
               display_name = coalesce($2, display_name), updated = $3 WHERE tenant = $4 AND id = $5";
    let query = sqlx::query(sql)
        .bind(&patch.label)
        .bind(&patch.display_name)
        .bind(now);
    query.bind(tenant.0).bind(id.0).execute(tx.conn()).await?;
    Ok(())
}

async fn reset(
    tx: &mut Tx,
    tenant: TenantId,
    id: SessionId,
    reason: ResetReason,
    stop_deadline_ms: i64,
) -> Result<(), Fault> {
    load(tx, tenant, id).await?;
    let deadline = tx.now.plus(stop_deadline_ms);
    queue_state::end_all_waiting(tx, tenant, id, Outcome::CancelledReset).await?;
    queue_state::stop_all_running(tx, tenant, id, Outcome::CancelledReset, deadline).await?;
    start_transcript(tx, tenant, id, reason).await?;
    touch(tx, tenant, id).await
}

/// Points the session at a new transcript whose first entry says why; a running compaction loses its marker.
pub(crate) async fn start_transcript(
    tx: &mut Tx,
    tenant: TenantId,
    id: SessionId,
    reason: ResetReason,
) -> Result<Line, Fault> {
    let line = Line {
        tenant,
        transcript: TranscriptId::new(),
        branch: BranchId::new(),
    };
    insert_branch(tx, line, id).await?;
    let sql = "/* start_transcript */ UPDATE sessions SET transcript = $1, branch = $2, epoch = epoch + 1, \
               input_tokens = 0, output_tokens = 0, turns = 0, compactions = 0, last_prompt_tokens = NULL, \
               context_window = NULL, marker_job = NULL, marker_until = NULL, compaction_error = NULL \
               WHERE tenant = $3 AND id = $4";
    let query = sqlx::query(sql)
        .bind(line.transcript.0)
        .bind(line.branch.0)
        .bind(tenant.0)
        .bind(id.0);
    query.execute(tx.conn()).await?;
    let body = EntryBody::Reset {
        reason: reason.as_str().to_owned(),
    };
    block::append(tx, line, None, &[NewLine::of(EntryId::new(), &body, 0, "")?]).await?;
    Ok(line)
}

pub(crate) async fn insert_branch(tx: &mut Tx, line: Line, session: SessionId) -> Result<(), Fault> {
    let sql = "/* insert_branch */ INSERT INTO branches (tenant, transcript, branch, session) VALUES ($1, $2, $3, $4)";
    let query = sqlx::query(sql)
        .bind(line.tenant.0)
        .bind(line.transcript.0)
        .bind(line.branch.0);
    query.bind(session.0).execute(tx.conn()).await?;
    Ok(())
}

/// Something happened that people see: the version and the last activity move.
pub(crate) async fn touch(tx: &mut Tx, tenant: TenantId, id: SessionId) -> Result<(), Fault> {
    let now = tx.now.0;
    let sql =
        "/* touch */ UPDATE sessions SET version = version + 1, updated = $1 WHERE tenant = $2 AND id = $3";
    sqlx::query(sql)
        .bind(now)
        .bind(tenant.0)
        .bind(id.0)
        .execute(tx.conn())
        .await?;
    Ok(())
}

/// The queue changed, which is no activity.
pub(crate) async fn bump(tx: &mut Tx, tenant: TenantId, id: SessionId) -> Result<(), Fault> {
    let sql = "/* bump */ UPDATE sessions SET version = version + 1 WHERE tenant = $1 AND id = $2";
    sqlx::query(sql)
        .bind(tenant.0)
        .bind(id.0)
        .execute(tx.conn())
        .await?;
    Ok(())
}
