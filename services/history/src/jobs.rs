//! The job table over gRPC.

use crate::convert::{self, job_kind, job_state, wire_job_state};
use colloquy_proto::convert::{duration_ms, id, optional_id};
use colloquy_proto::v1;
use colloquy_storage::{HistoryStore, Job, JobEnd, JobFilter, NewJob, Started};
use colloquy_types::{Error, JobId, Result, TenantId};

const LEASE_MS: i64 = 60_000;
/// Back-off after a failed run when the worker names none.
const RETRY_MS: i64 = 60_000;

/// An absent lease is 60 s; it is never shorter than 1 s.
pub fn lease(lease: Option<&prost_types::Duration>) -> i64 {
    lease.map_or(LEASE_MS, duration_ms).clamp(1_000, 3_600_000)
}

pub async fn enqueue(
    store: &dyn HistoryStore,
    tenant: TenantId,
    request: v1::EnqueueJobRequest,
) -> Result<Job> {
    let kind = job_kind(request.kind()).ok_or_else(|| Error::invalid("kind", "is required"))?;
    let unknown = || Error::not_found("session", &request.session_id);
    let session = store
        .get_session(tenant, id("session_id", &request.session_id)?)
        .await?
        .ok_or_else(unknown)?;
    let job = NewJob {
        id: JobId::new(),
        kind,
        session: session.id,
        transcript: session.transcript,
        branch: session.branch,
        delay_ms: 0,
        payload_json: if request.payload_json.is_empty() {
            "{}".into()
        } else {
            request.payload_json
        },
    };
    get(store, tenant, store.enqueue_job(tenant, &job).await?).await
}

async fn get(store: &dyn HistoryStore, tenant: TenantId, job: JobId) -> Result<Job> {
    store
        .get_job(tenant, job)
        .await?
        .ok_or_else(|| Error::not_found("job", job))
}

pub async fn get_by_text(store: &dyn HistoryStore, tenant: TenantId, text: &str) -> Result<v1::Job> {
    get(store, tenant, id("job_id", text)?).await.map(convert::job)
}

pub async fn start(
    store: &dyn HistoryStore,
    tenant: TenantId,
    request: v1::StartJobRequest,
) -> Result<v1::StartJobResponse> {
    let job = id("job_id", &request.job_id)?;
    Ok(
        match store
            .start_job(tenant, job, lease(request.lease.as_ref()))
            .await?
        {
            Started::Run(job) => v1::StartJobResponse {
                busy: false,
                job: Some(convert::job(*job)),
            },
            Started::Busy => v1::StartJobResponse {
                busy: true,
                job: None,
            },
            Started::Ended => v1::StartJobResponse {
                busy: false,
                job: None,
            },
        },
    )
}

pub async fn renew(store: &dyn HistoryStore, tenant: TenantId, request: v1::RenewJobRequest) -> Result<()> {
    store
        .renew_job(
            tenant,
            id("job_id", &request.job_id)?,
            lease(request.lease.as_ref()),
        )
        .await
}

pub async fn end(
    store: &dyn HistoryStore,
    tenant: TenantId,
    request: v1::EndJobRequest,
) -> Result<v1::EndJobResponse> {
    let job = id("job_id", &request.job_id)?;
    let end = if request.error.is_empty() {
        JobEnd::Done {
            result_json: if request.result_json.is_empty() {
                "{}".into()
            } else {
                request.result_json
            },
        }
    } else {
        let error = request.error.chars().filter(|c| *c != '\0').take(1_000).collect();
        JobEnd::Failed {
            error,
            retry_ms: request.retry_after.as_ref().map_or(RETRY_MS, duration_ms),
        }
    };
    let state = store.end_job(tenant, job, &end).await?;
    Ok(v1::EndJobResponse {
        state: wire_job_state(state).into(),
    })
}

pub async fn list(
    store: &dyn HistoryStore,
    tenant: TenantId,
    request: v1::HistoryServiceListJobsRequest,
) -> Result<v1::HistoryServiceListJobsResponse> {
    let filter = JobFilter {
        state: job_state(request.state()),
        kind: job_kind(request.kind()),
        session: optional_id(&request.session_id)?,
    };
    let page = store
        .list_jobs(
            tenant,
            &filter,
            &convert::page(request.page_size, request.page_token),
        )
        .await?;
    Ok(v1::HistoryServiceListJobsResponse {
        jobs: page.items.into_iter().map(convert::job).collect(),
        next_page_token: page.next.unwrap_or_default(),
    })
}
