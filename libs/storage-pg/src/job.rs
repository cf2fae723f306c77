//! Background work: the outbox and the queue of record.

use crate::cursor::{self, Cursor};
use crate::fault::Fault;
use crate::{PgStore, Tx, job_run, json, session};
use async_trait::async_trait;
use colloquy_storage::{
    Job, JobEnd, JobFilter, JobKind, JobState, Jobs, NewJob, Page, PageRequest, Published, Started,
};
use colloquy_types::{BranchId, Error, JobId, Result, SessionId, TenantId, TranscriptId, UnixMillis};
use sqlx::{FromRow, Postgres, QueryBuilder};
use uuid::Uuid;

#[derive(Debug, FromRow)]
pub(crate) struct JobRow {
    pub tenant: Uuid,
    pub id: Uuid,
    pub kind: String,
    pub session: Uuid,
    pub transcript: Uuid,
    branch: Uuid,
    pub state: String,
    pub attempts: i32,
    publish_no: i64,
    pub due: i64,
    pub published: Option<i64>,
    lease_until: Option<i64>,
    payload: Vec<u8>,
    result: Vec<u8>,
    error: String,
    created: i64,
    updated: i64,
}

impl JobRow {
    pub fn state(&self) -> Result<JobState> {
        JobState::parse(&self.state).ok_or_else(|| Error::internal("a job is in an unknown state"))
    }

    pub fn ended(&self) -> Result<bool> {
        Ok(matches!(
            self.state()?,
            JobState::Done | JobState::Cancelled | JobState::Dead
        ))
    }

    pub fn lease_passed(&self, now: UnixMillis) -> bool {
        self.lease_until.is_none_or(|until| until <= now.0)
    }
}

impl TryFrom<JobRow> for Job {
    type Error = Error;

    fn try_from(row: JobRow) -> Result<Self> {
        Ok(Self {
            state: row.state()?,
            id: JobId(row.id),
            tenant: TenantId(row.tenant),
            kind: JobKind::parse(&row.kind).ok_or_else(|| Error::internal("a job is of an unknown kind"))?,
            session: SessionId(row.session),
            transcript: TranscriptId(row.transcript),
            branch: BranchId(row.branch),
            attempts: row.attempts,
            publish_no: row.publish_no,
            due: UnixMillis(row.due),
            payload_json: json::text(row.payload)?,
            result_json: json::text(row.result)?,
            error: row.error,
            created: UnixMillis(row.created),
            updated: UnixMillis(row.updated),
        })
    }
}

#[async_trait]
impl Jobs for PgStore {
    async fn enqueue_job(&self, tenant: TenantId, job: &NewJob) -> Result<JobId> {
        let mut tx = self.write(tenant).await?;
        session::load(&mut tx, tenant, job.session).await?;
        let id = enqueue(&mut tx, tenant, job).await?;
        tx.commit().await?;
        Ok(id)
    }

    async fn list_publishable(
        &self,
        per_tenant: u32,
        limit: u32,
        republish_ms: i64,
    ) -> Result<Vec<(TenantId, JobId)>> {
        Ok(publishable(&mut self.sweep().await?, per_tenant, limit, republish_ms).await?)
    }

    async fn mark_published(
        &self,
        tenant: TenantId,
        id: JobId,
        republish_ms: i64,
    ) -> Result<Option<Published>> {
        let mut tx = self.write(tenant).await?;
        let published = job_run::mark_published(&mut tx, tenant, id, republish_ms).await?;
        tx.commit().await?;
        Ok(published)
    }

    async fn start_job(&self, tenant: TenantId, id: JobId, lease_ms: i64) -> Result<Started> {
        let mut tx = self.write(tenant).await?;
        let started = job_run::start(&mut tx, tenant, id, lease_ms).await?;
        tx.commit().await?;
        Ok(started)
    }

    async fn renew_job(&self, tenant: TenantId, id: JobId, lease_ms: i64) -> Result<()> {
        let mut tx = self.write(tenant).await?;
        job_run::renew(&mut tx, tenant, id, lease_ms).await?;
        Ok(tx.commit().await?)
    }

    async fn end_job(&self, tenant: TenantId, id: JobId, end: &JobEnd) -> Result<JobState> {
        let mut tx = self.write(tenant).await?;
        let state = job_run::finish(&mut tx, tenant, id, end).await?;
        tx.commit().await?;
        Ok(state)
    }

    async fn get_job(&self, tenant: TenantId, id: JobId) -> Result<Option<Job>> {
        get(&mut self.read(tenant).await?, tenant, id)
            .await?
            .map(Job::try_from)
            .transpose()
    }

    async fn list_jobs(&self, tenant: TenantId, filter: &JobFilter, page: &PageRequest) -> Result<Page<Job>> {
        Ok(list(&mut self.read(tenant).await?, tenant, filter, page).await?)
    }

    async fn replay_job(&self, tenant: TenantId, id: JobId) -> Result<Job> {
        let mut tx = self.write(tenant).await?;
        job_run::replay(&mut tx, tenant, id).await?;
        let job = load(&mut tx, tenant, id).await?;
        tx.commit().await?;
        job.try_into()
    }

    async fn cancel_job(&self, tenant: TenantId, id: JobId) -> Result<Job> {
        let mut tx = self.write(tenant).await?;
        job_run::cancel(&mut tx, tenant, id).await?;
        let job = load(&mut tx, tenant, id).await?;
        tx.commit().await?;
        job.try_into()
    }
}

pub(crate) async fn get(tx: &mut Tx, tenant: TenantId, id: JobId) -> Result<Option<JobRow>, Fault> {
    if tx.writes {
        lock(tx, tenant, id).await?;
    }
    let sql = "/* get_job */ SELECT * FROM jobs WHERE tenant = $1 AND id = $2";
    Ok(sqlx::query_as(sql)
        .bind(tenant.0)
        .bind(id.0)
        .fetch_optional(tx.conn())
        .await?)
}

/// The session first, then the job: the order of every change.
async fn lock(tx: &mut Tx, tenant: TenantId, id: JobId) -> Result<(), Fault> {
    let sql = "/* lock_job */ SELECT session FROM jobs WHERE tenant = $1 AND id = $2";
    let session: Option<Uuid> = sqlx::query_scalar(sql)
        .bind(tenant.0)
        .bind(id.0)
        .fetch_optional(tx.conn())
        .await?;
    if let Some(session) = session {
        session::lock(tx, tenant, SessionId(session)).await?;
    }
    Ok(())
}

/// `NOT_FOUND` when there is none.
pub(crate) async fn load(tx: &mut Tx, tenant: TenantId, id: JobId) -> Result<JobRow, Fault> {
    get(tx, tenant, id)
        .await?
        .ok_or_else(|| Error::not_found("job", id).into())
}

/// The session's job of the kind that has not ended.
pub(crate) async fn active(
    tx: &mut Tx,
    tenant: TenantId,
    session: SessionId,
    kind: JobKind,
) -> Result<Option<JobId>, Fault> {
    let sql = "/* active_job */ SELECT id FROM jobs WHERE tenant = $1 AND session = $2 AND kind = $3 \
               AND state IN ('queued', 'published', 'running')";
    let query = sqlx::query_scalar(sql)
        .bind(tenant.0)
        .bind(session.0)
        .bind(kind.as_str());
    Ok(query.fetch_optional(tx.conn()).await?.map(JobId))
}

/// The id of the job that is active then: this one, or the one that was before.
pub(crate) async fn enqueue(tx: &mut Tx, tenant: TenantId, job: &NewJob) -> Result<JobId, Fault> {
    if let Some(active) = active(tx, tenant, job.session, job.kind).await? {
        return Ok(active);
    }
    let (now, due) = (tx.now, tx.now.plus(job.delay_ms));
    let sql = "/* enqueue_job */ INSERT INTO jobs \
               (tenant, id, kind, session, transcript, branch, state, due, payload, result, created, updated) \
               VALUES ($1, $2, $3, $4, $5, $6, 'queued', $7, $8, $9, $10, $11)";
    let query = sqlx::query(sql)
        .bind(tenant.0)
        .bind(job.id.0)
        .bind(job.kind.as_str())
        .bind(job.session.0);
    let query = query
        .bind(job.transcript.0)
        .bind(job.branch.0)
        .bind(due.0)
        .bind(job.payload_json.as_bytes());
    query
        .bind(b"{}".as_slice())
        .bind(now.0)
        .bind(now.0)
        .execute(tx.conn())
        .await?;
    Ok(job.id)
}

async fn publishable(
    tx: &mut Tx,
    per_tenant: u32,
    limit: u32,
    republish_ms: i64,
) -> Result<Vec<(TenantId, JobId)>, Fault> {
    let (now, before) = (tx.now.0, tx.now.plus(-republish_ms).0);
    let sql = "/* list_publishable */ SELECT tenant, id FROM history.list_publishable($1, $2, $3, $4)";
    let query = sqlx::query_as(sql)
        .bind(now)
        .bind(before)
        .bind(i64::from(per_tenant))
        .bind(i64::from(limit));
    let rows: Vec<(Uuid, Uuid)> = query.fetch_all(tx.conn()).await?;
    Ok(rows
        .into_iter()
        .map(|(tenant, id)| (TenantId(tenant), JobId(id)))
        .collect())
}

async fn list(
    tx: &mut Tx,
    tenant: TenantId,
    filter: &JobFilter,
    page: &PageRequest,
) -> Result<Page<Job>, Fault> {
    let after = Cursor::of(page, Cursor::LAST)?;
    let mut query = QueryBuilder::<Postgres>::new("/* list_jobs */ SELECT * FROM jobs WHERE tenant = ");
    query.push_bind(tenant.0);
    query
        .push(" AND (created, id) < (")
        .push_bind(after.at)
        .push(", ")
        .push_bind(after.id)
        .push(")");
    if let Some(state) = filter.state {
        query.push(" AND state = ").push_bind(state.as_str());
    }
    if let Some(kind) = filter.kind {
        query.push(" AND kind = ").push_bind(kind.as_str());
    }
    if let Some(session) = filter.session {
        query.push(" AND session = ").push_bind(session.0);
    }
    query
        .push(" ORDER BY created DESC, id DESC LIMIT ")
        .push_bind(cursor::rows(page));
    let rows: Vec<JobRow> = query.build_query_as().fetch_all(tx.conn()).await?;
    let jobs = rows.into_iter().map(Job::try_from).collect::<Result<_>>()?;
    Ok(cursor::page(jobs, page, |job: &Job| Cursor {
        at: job.created.0,
        id: job.id.0,
    }))
}
