//! The runs of a job: handed to the bus, started, renewed, ended, begun again.

use crate::Tx;
use crate::fault::Fault;
use crate::job::{JobRow, active, get, load};
use colloquy_storage::{Job, JobEnd, JobKind, JobState, Published, Started};
use colloquy_types::{Error, JobId, Reason, Result, SessionId, TenantId};

/// Failed runs after which a job is a dead letter.
const MAX_RUNS: i32 = 5;
const LEASE_EXPIRED: &str = "lease expired";

pub(crate) async fn mark_published(
    tx: &mut Tx,
    tenant: TenantId,
    id: JobId,
    republish_ms: i64,
) -> Result<Option<Published>, Fault> {
    let Some(row) = get(tx, tenant, id).await? else {
        return Ok(None);
    };
    let (now, before) = (tx.now, tx.now.plus(-republish_ms).0);
    let ready = match row.state()? {
        JobState::Queued => row.due <= now.0,
        JobState::Published => row.published.is_none_or(|published| published < before),
        JobState::Running => row.lease_passed(now) && !fail_run(tx, &row, LEASE_EXPIRED, 0).await?,
        JobState::Done | JobState::Cancelled | JobState::Dead => false,
    };
    if !ready {
        return Ok(None);
    }
    let sql = "/* mark_published */ UPDATE jobs SET state = 'published', publish_no = publish_no + 1, published = $1, \
               updated = $2 WHERE tenant = $3 AND id = $4 RETURNING *";
    let query = sqlx::query_as::<_, JobRow>(sql)
        .bind(now.0)
        .bind(now.0)
        .bind(tenant.0)
        .bind(id.0);
    let job = query.fetch_one(tx.conn()).await?.try_into()?;
    Ok(Some(Published { job }))
}

pub(crate) async fn start(tx: &mut Tx, tenant: TenantId, id: JobId, lease_ms: i64) -> Result<Started, Fault> {
    let row = load(tx, tenant, id).await?;
    if row.ended()? {
        return Ok(Started::Ended);
    }
    if row.state()? == JobState::Running {
        if !row.lease_passed(tx.now) {
            return Ok(Started::Busy);
        }
        if fail_run(tx, &row, LEASE_EXPIRED, 0).await? {
            return Ok(Started::Ended);
        }
    }
    Ok(Started::Run(Box::new(run(tx, tenant, id, lease_ms).await?)))
}

/// Marks the job running under a lease.
pub(crate) async fn run(tx: &mut Tx, tenant: TenantId, id: JobId, lease_ms: i64) -> Result<Job, Fault> {
    let now = tx.now;
    let sql = "/* run_job */ UPDATE jobs SET state = 'running', lease_until = $1, updated = $2 \
               WHERE tenant = $3 AND id = $4 RETURNING *";
    let query = sqlx::query_as::<_, JobRow>(sql)
        .bind(now.plus(lease_ms).0)
        .bind(now.0);
    let row = query.bind(tenant.0).bind(id.0).fetch_one(tx.conn()).await?;
    Ok(row.try_into()?)
}

/// Counts a failed run: queued again after the delay, or dead (`true`).
pub(crate) async fn fail_run(tx: &mut Tx, row: &JobRow, error: &str, retry_ms: i64) -> Result<bool, Fault> {
    let attempts = row.attempts + 1;
    let dead = attempts >= MAX_RUNS;
    let state = if dead { JobState::Dead } else { JobState::Queued };
    let (now, due) = (tx.now, tx.now.plus(retry_ms));
    let sql = "/* fail_run */ UPDATE jobs SET state = $1, attempts = $2, error = $3, due = $4, lease_until = NULL, \
               updated = $5 WHERE tenant = $6 AND id = $7";
    let query = sqlx::query(sql)
        .bind(state.as_str())
        .bind(attempts)
        .bind(error)
        .bind(due.0)
        .bind(now.0);
    query.bind(row.tenant).bind(row.id).execute(tx.conn()).await?;
    Ok(dead)
}

/// `FENCED` when the job does not run any more.
pub(crate) async fn renew(tx: &mut Tx, tenant: TenantId, id: JobId, lease_ms: i64) -> Result<(), Fault> {
    let row = load(tx, tenant, id).await?;
    if row.state()? != JobState::Running {
        return Err(Error::new(Reason::Fenced, "the job was taken away; drop this run").into());
    }
    let (now, until) = (tx.now.0, tx.now.plus(lease_ms).0);
    let sql = "/* renew_job */ UPDATE jobs SET lease_until = $1, updated = $2 WHERE tenant = $3 AND id = $4";
    sqlx::query(sql)
        .bind(until)
        .bind(now)
        .bind(tenant.0)
        .bind(id.0)
        .execute(tx.conn())
        .await?;
    Ok(())
}

pub(crate) async fn finish(
    tx: &mut Tx,
    tenant: TenantId,
    id: JobId,
    end: &JobEnd,
) -> Result<JobState, Fault> {
    let row = load(tx, tenant, id).await?;
    if row.ended()? {
        return Ok(row.state()?);
    }
    match end {
        JobEnd::Failed { error, retry_ms } if row.state()? == JobState::Running => {
            let dead = fail_run(tx, &row, error, *retry_ms).await?;
            Ok(if dead { JobState::Dead } else { JobState::Queued })
        }
        // Its run was counted as lost when it was taken away.
        JobEnd::Failed { .. } => Ok(row.state()?),
        JobEnd::Done { result_json } => {
            end_as(tx, &row, JobState::Done, result_json).await?;
            Ok(JobState::Done)
        }
    }
}

async fn end_as(tx: &mut Tx, row: &JobRow, state: JobState, result_json: &str) -> Result<(), Fault> {
    let now = tx.now.0;
    let sql = "/* end_job */ UPDATE jobs SET state = $1, result = $2, error = CASE $3 WHEN 'done' THEN '' ELSE error END, \
               lease_until = NULL, updated = $4 WHERE tenant = $5 AND id = $6";
    let query = sqlx::query(sql)
        .bind(state.as_str())
        .bind(result_json.as_bytes())
        .bind(state.as_str());
    query
        .bind(now)
        .bind(row.tenant)
        .bind(row.id)
        .execute(tx.conn())
        .await?;
    Ok(())
}

pub(crate) async fn replay(tx: &mut Tx, tenant: TenantId, id: JobId) -> Result<(), Fault> {
    let row = load(tx, tenant, id).await?;
    if !matches!(row.state()?, JobState::Dead | JobState::Cancelled) {
        return Err(Error::new(Reason::Conflict, "only a dead or cancelled job can be replayed").into());
    }
    let kind = JobKind::parse(&row.kind).ok_or_else(|| Error::internal("a job is of an unknown kind"))?;
    if active(tx, tenant, SessionId(row.session), kind).await?.is_some() {
        return Err(Error::new(
            Reason::Conflict,
            "another job of the kind is active for the session",
        )
        .into());
    }
    let now = tx.now.0;
    let sql = "/* replay_job */ UPDATE jobs SET state = 'queued', attempts = 0, error = '', due = $1, updated = $2 \
               WHERE tenant = $3 AND id = $4";
    sqlx::query(sql)
        .bind(now)
        .bind(now)
        .bind(tenant.0)
        .bind(id.0)
        .execute(tx.conn())
        .await?;
    Ok(())
}

/// A compaction under way loses the session's marker with its job.
pub(crate) async fn cancel(tx: &mut Tx, tenant: TenantId, id: JobId) -> Result<(), Fault> {
    let row = load(tx, tenant, id).await?;
    if row.ended()? {
        return Ok(());
    }
    end_as(tx, &row, JobState::Cancelled, "{}").await?;
    let sql = "/* cancel_job */ UPDATE sessions SET marker_job = NULL, marker_until = NULL \
               WHERE tenant = $1 AND id = $2 AND marker_job = $3";
    sqlx::query(sql)
        .bind(tenant.0)
        .bind(row.session)
        .bind(id.0)
        .execute(tx.conn())
        .await?;
    Ok(())
}
