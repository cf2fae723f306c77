//! Compaction: the marker, the chunks, the apply.

use crate::block::{self, BranchRow, Line, NewLine};
use crate::fault::Fault;
use crate::session::{self, SessionRow};
use crate::{PgStore, Tx, job, job_run, json};
use async_trait::async_trait;
use colloquy_storage::{
    ApplyCompaction, BeginCompaction, Begun, Branch, Chunk, Compactions, FailCompaction, JobEnd, JobState,
    Marker, PolicyId, SkipReason, Snapshot,
};
use colloquy_types::{Error, Fence, JobId, Reason, Result, Seq, SessionId, TenantId};
use sqlx::FromRow;

#[async_trait]
impl Compactions for PgStore {
    async fn begin_compaction(&self, begin: &BeginCompaction) -> Result<Begun> {
        let mut tx = self.write(begin.tenant).await?;
        let begun = begin_run(&mut tx, begin).await?;
        tx.commit().await?;
        Ok(begun)
    }

    async fn renew_compaction(
        &self,
        tenant: TenantId,
        session: SessionId,
        job: JobId,
        marker: Marker,
        lease_ms: i64,
    ) -> Result<()> {
        let mut tx = self.write(tenant).await?;
        held(&mut tx, tenant, session, job, marker).await?;
        job_run::renew(&mut tx, tenant, job, lease_ms).await?;
        let until = tx.now.plus(lease_ms).0;
        extend_marker(&mut tx, tenant, session, until).await?;
        Ok(tx.commit().await?)
    }

    async fn save_chunk(
        &self,
        tenant: TenantId,
        session: SessionId,
        job: JobId,
        marker: Marker,
        chunk: &Chunk,
    ) -> Result<()> {
        let mut tx = self.write(tenant).await?;
        held(&mut tx, tenant, session, job, marker).await?;
        insert_chunk(&mut tx, tenant, job, chunk).await?;
        Ok(tx.commit().await?)
    }

    async fn apply_compaction(&self, apply: &ApplyCompaction) -> Result<Branch> {
        let mut tx = self.write(apply.tenant).await?;
        let branch = apply_entry(&mut tx, apply).await?;
        tx.commit().await?;
        Ok(branch.into())
    }

    async fn fail_compaction(&self, fail: &FailCompaction) -> Result<()> {
        let mut tx = self.write(fail.tenant).await?;
        held(&mut tx, fail.tenant, fail.session, fail.job, fail.marker).await?;
        let end = JobEnd::Failed {
            error: fail.reason.clone(),
            retry_ms: fail.retry_ms,
        };
        job_run::finish(&mut tx, fail.tenant, fail.job, &end).await?;
        record_error(&mut tx, fail).await?;
        drop_marker(&mut tx, fail.tenant, fail.session).await?;
        Ok(tx.commit().await?)
    }

    async fn skip_compaction(&self, fail: &FailCompaction) -> Result<()> {
        let mut tx = self.write(fail.tenant).await?;
        held(&mut tx, fail.tenant, fail.session, fail.job, fail.marker).await?;
        let result_json = serde_json::json!({ "skipped": fail.reason }).to_string();
        job_run::finish(&mut tx, fail.tenant, fail.job, &JobEnd::Done { result_json }).await?;
        drop_chunks(&mut tx, fail.tenant, fail.job).await?;
        drop_marker(&mut tx, fail.tenant, fail.session).await?;
        Ok(tx.commit().await?)
    }
}

async fn begin_run(tx: &mut Tx, begin: &BeginCompaction) -> Result<Begun, Fault> {
    let (tenant, id) = (begin.tenant, begin.job);
    let session = session::load(tx, tenant, begin.session).await?;
    let row = job::load(tx, tenant, id).await?;
    if row.ended()? {
        return Ok(Begun::Skipped(SkipReason::Superseded));
    }
    if row.transcript != session.transcript {
        job_run::cancel(tx, tenant, id).await?;
        return Ok(Begun::Skipped(SkipReason::Superseded));
    }
    let held = session.marker_job.is_some() && session.marker_until.is_some_and(|until| until > tx.now.0);
    if held {
        return Ok(Begun::Skipped(SkipReason::AlreadyRunning));
    }
    if row.state()? == JobState::Running && job_run::fail_run(tx, &row, "lease expired", 0).await? {
        return Ok(Begun::Skipped(SkipReason::Superseded));
    }
    job_run::run(tx, tenant, id, begin.lease_ms).await?;
    let marker = take_marker(tx, begin, &session).await?;
    let chunks = load_chunks(tx, tenant, id).await?;
    let branch = block::load(tx, session.line()).await?.into();
    let snapshot = Snapshot {
        session: begin.session,
        branch,
        policy: session.policy.map(PolicyId),
    };
    Ok(Begun::Run {
        marker,
        snapshot: Box::new(snapshot),
        chunks,
    })
}

async fn take_marker(tx: &mut Tx, begin: &BeginCompaction, session: &SessionRow) -> Result<Marker, Fault> {
    let (marker, until) = (session.marker + 1, tx.now.plus(begin.lease_ms).0);
    let sql = "/* take_marker */ UPDATE sessions SET marker = $1, marker_job = $2, marker_until = $3 \
               WHERE tenant = $4 AND id = $5";
    let query = sqlx::query(sql).bind(marker).bind(begin.job.0).bind(until);
    query
        .bind(begin.tenant.0)
        .bind(begin.session.0)
        .execute(tx.conn())
        .await?;
    Ok(Marker(Fence(marker)))
}

/// The session, if the marker is still this run's; `FENCED` else.
async fn held(
    tx: &mut Tx,
    tenant: TenantId,
    id: SessionId,
    job: JobId,
    marker: Marker,
) -> Result<SessionRow, Fault> {
    let session = session::load(tx, tenant, id).await?;
    if session.marker != marker.0.0 || session.marker_job != Some(job.0) {
        return Err(Error::new(
            Reason::Fenced,
            "the compaction was taken over or ended; drop this run",
        )
        .into());
    }
    Ok(session)
}

async fn extend_marker(tx: &mut Tx, tenant: TenantId, session: SessionId, until: i64) -> Result<(), Fault> {
    let sql = "/* extend_marker */ UPDATE sessions SET marker_until = $1 WHERE tenant = $2 AND id = $3";
    sqlx::query(sql)
        .bind(until)
        .bind(tenant.0)
        .bind(session.0)
        .execute(tx.conn())
        .await?;
    Ok(())
}

async fn drop_marker(tx: &mut Tx, tenant: TenantId, session: SessionId) -> Result<(), Fault> {
    let sql = "/* drop_marker */ UPDATE sessions SET marker_job = NULL, marker_until = NULL \
               WHERE tenant = $1 AND id = $2";
    sqlx::query(sql)
        .bind(tenant.0)
        .bind(session.0)
        .execute(tx.conn())
        .await?;
    Ok(())
}

#[derive(FromRow)]
struct ChunkRow {
    idx: i32,
    from_seq: i64,
    to_seq: i64,
    summary: Vec<u8>,
}

async fn load_chunks(tx: &mut Tx, tenant: TenantId, job: JobId) -> Result<Vec<Chunk>, Fault> {
    let sql = "/* load_chunks */ SELECT idx, from_seq, to_seq, summary FROM compaction_chunks \
               WHERE tenant = $1 AND job = $2 ORDER BY idx";
    let rows: Vec<ChunkRow> = sqlx::query_as(sql)
        .bind(tenant.0)
        .bind(job.0)
        .fetch_all(tx.conn())
        .await?;
    let chunks = rows.into_iter().map(|row| {
        let (from, to) = (Seq(row.from_seq), Seq(row.to_seq));
        Ok(Chunk {
            index: row.idx,
            from,
            to,
            summary: json::text(row.summary)?,
        })
    });
    Ok(chunks.collect::<Result<_>>()?)
}

async fn insert_chunk(tx: &mut Tx, tenant: TenantId, job: JobId, chunk: &Chunk) -> Result<(), Fault> {
    let sql = "/* save_chunk */ INSERT INTO compaction_chunks (tenant, job, idx, from_seq, to_seq, summary) \
               VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING";
    let query = sqlx::query(sql).bind(tenant.0).bind(job.0).bind(chunk.index);
    let query = query
        .bind(chunk.from.0)
        .bind(chunk.to.0)
        .bind(chunk.summary.as_bytes());
    query.execute(tx.conn()).await?;
    Ok(())
}

async fn drop_chunks(tx: &mut Tx, tenant: TenantId, job: JobId) -> Result<(), Fault> {
    let sql = "/* drop_chunks */ DELETE FROM compaction_chunks WHERE tenant = $1 AND job = $2";
    sqlx::query(sql)
        .bind(tenant.0)
        .bind(job.0)
        .execute(tx.conn())
        .await?;
    Ok(())
}

async fn apply_entry(tx: &mut Tx, apply: &ApplyCompaction) -> Result<BranchRow, Fault> {
    let session = held(tx, apply.tenant, apply.session, apply.job, apply.marker).await?;
    let line = session.line();
    let same =
        line.transcript == apply.transcript && line.branch == apply.branch && session.epoch == apply.epoch.0;
    if !same {
        return Err(Error::new(
            Reason::Conflict,
            "the transcript has changed since the plan; plan again",
        )
        .into());
    }
    let head = block::append(tx, line, None, &[NewLine::new(&apply.entry)?])
        .await?
        .head;
    move_pointer(tx, line, head, apply).await?;
    let sql = "/* count_compaction */ UPDATE sessions SET epoch = epoch + 1, compactions = compactions + 1, \
               compaction_error = NULL WHERE tenant = $1 AND id = $2";
    sqlx::query(sql)
        .bind(apply.tenant.0)
        .bind(apply.session.0)
        .execute(tx.conn())
        .await?;
    session::touch(tx, apply.tenant, apply.session).await?;
    let end = JobEnd::Done {
        result_json: apply.result_json.clone(),
    };
    job_run::finish(tx, apply.tenant, apply.job, &end).await?;
    drop_chunks(tx, apply.tenant, apply.job).await?;
    drop_marker(tx, apply.tenant, apply.session).await?;
    block::load(tx, line).await
}

/// The window is the summary, one message, and what is kept verbatim behind it.
async fn move_pointer(tx: &mut Tx, line: Line, summary: i64, apply: &ApplyCompaction) -> Result<(), Fault> {
    let sql = "/* count_window */ SELECT count(*), coalesce(sum(tokens), 0)::bigint FROM entries \
               WHERE tenant = $1 AND transcript = $2 AND branch = $3 AND seq >= $4 \
               AND kind IN ('message', 'custom_message')";
    let query = sqlx::query_as(sql)
        .bind(line.tenant.0)
        .bind(line.transcript.0)
        .bind(line.branch.0);
    let (messages, tokens): (i64, i64) = query.bind(apply.first_kept.0).fetch_one(tx.conn()).await?;
    let sql = "/* move_pointer */ UPDATE branches SET compaction_seq = $1, first_kept = $2, soft = 0, hard = 0, \
               window_messages = $3, window_tokens = $4 WHERE tenant = $5 AND transcript = $6 AND branch = $7";
    let query = sqlx::query(sql)
        .bind(summary)
        .bind(apply.first_kept.0)
        .bind(messages + 1);
    let query = query.bind(tokens + i64::from(apply.entry.tokens));
    query
        .bind(line.tenant.0)
        .bind(line.transcript.0)
        .bind(line.branch.0)
        .execute(tx.conn())
        .await?;
    Ok(())
}

async fn record_error(tx: &mut Tx, fail: &FailCompaction) -> Result<(), Fault> {
    let sql = "/* record_error */ UPDATE sessions SET compaction_error = $1 WHERE tenant = $2 AND id = $3";
    let query = sqlx::query(sql)
        .bind(&fail.reason)
        .bind(fail.tenant.0)
        .bind(fail.session.0);
    query.execute(tx.conn()).await?;
    session::bump(tx, fail.tenant, fail.session).await
}
