//! gRPC: compaction on request, and the jobs, through history.

use colloquy_proto::convert::{duration_ms, required};
use colloquy_proto::v1::history_service_client::HistoryServiceClient;
use colloquy_proto::v1::{
    self, compaction_service_server::CompactionService, get_session_request::Session as Asked,
};
use colloquy_service_kit::auth::{principal_of, tenant_of_request};
use colloquy_service_kit::client::request;
use colloquy_service_kit::status::{to_status, unimplemented};
use colloquy_service_kit::{InternalChannel, from_status};
use colloquy_types::{Error, Principal, Reason, Result, SessionKey, TenantId};
use std::time::Duration;
use tokio::time::Instant;
use tonic::{Request, Response, Status};

/// Longest wait of one `Compact`.
const LONGEST: Duration = Duration::from_secs(50);
const LOOK: Duration = Duration::from_millis(200);

pub struct Compaction {
    history: HistoryServiceClient<InternalChannel>,
}

type Answer<T> = Result<Response<T>, Status>;

impl Compaction {
    pub fn new(history: InternalChannel) -> Self {
        Self {
            history: HistoryServiceClient::new(history),
        }
    }

    async fn job(&self, tenant: TenantId, job_id: String) -> Result<v1::Job> {
        let message = v1::HistoryServiceGetJobRequest { job_id };
        let found = self
            .history
            .clone()
            .get_job(request(tenant, message))
            .await
            .map_err(from_status)?;
        required("job", found.into_inner().job)
    }

    /// Whether the session exists for the caller.
    async fn check_session(&self, principal: &Principal, tenant: TenantId, id: &str) -> Result<()> {
        if principal.sees_whole_tenant() {
            return Ok(());
        }
        let message = v1::GetSessionRequest {
            session: Some(Asked::SessionId(id.to_owned())),
        };
        let found = self.history.clone().get_session(request(tenant, message)).await;
        let session = required("session", found.map_err(from_status)?.into_inner().session)?;
        if principal.may_see(&SessionKey::parse(&session.key)?) {
            Ok(())
        } else {
            Err(Error::not_found("session", id))
        }
    }

    /// The job, if there is one and the caller may see its session.
    async fn visible(&self, principal: &Principal, tenant: TenantId, job_id: String) -> Result<v1::Job> {
        let job = self.job(tenant, job_id).await?;
        match self.check_session(principal, tenant, &job.session_id).await {
            Err(error) if error.reason == Reason::NotFound => Err(Error::not_found("job", job.job_id)),
            checked => checked.map(|()| job),
        }
    }

    async fn order(&self, tenant: TenantId, message: v1::CompactRequest) -> Result<v1::Job> {
        if message.instructions.chars().count() > 2_000 {
            return Err(Error::too_large("instructions", "2,000 characters"));
        }
        let wait = message.wait.as_ref().map_or(0, duration_ms).max(0);
        let enqueue = v1::EnqueueJobRequest {
            kind: v1::JobKind::Compaction.into(),
            session_id: message.session_id,
            payload_json: serde_json::json!({ "instructions": message.instructions }).to_string(),
        };
        let written = self
            .history
            .clone()
            .enqueue_job(request(tenant, enqueue))
            .await
            .map_err(from_status)?;
        let mut job = required("job", written.into_inner().job)?;
        let end = Instant::now() + Duration::from_millis(wait.unsigned_abs()).min(LONGEST);
        while Instant::now() < end && !has_ended(&job) {
            tokio::time::sleep(LOOK).await;
            job = self.job(tenant, job.job_id).await?;
        }
        Ok(job)
    }
}

/// Whether there is nothing to wait for: the job ended, or its run failed and it backs off.
fn has_ended(job: &v1::Job) -> bool {
    matches!(
        job.state(),
        v1::JobState::Done | v1::JobState::Cancelled | v1::JobState::Dead
    ) || job.attempts > 0
}

fn answer<T>(result: Result<T>) -> Answer<T> {
    result.map(Response::new).map_err(to_status)
}

#[tonic::async_trait]
impl CompactionService for Compaction {
    async fn compact(&self, request: Request<v1::CompactRequest>) -> Answer<v1::CompactResponse> {
        let tenant = tenant_of_request(&request).map_err(to_status)?;
        let principal = principal_of(&request).map_err(to_status)?;
        let request = request.into_inner();
        let checked = self.check_session(&principal, tenant, &request.session_id).await;
        checked.map_err(to_status)?;
        let job = self.order(tenant, request).await;
        answer(job.map(|job| v1::CompactResponse { job: Some(job) }))
    }

    async fn get_job(&self, request: Request<v1::GetJobRequest>) -> Answer<v1::GetJobResponse> {
        let tenant = tenant_of_request(&request).map_err(to_status)?;
        let principal = principal_of(&request).map_err(to_status)?;
        let job = self
            .visible(&principal, tenant, request.into_inner().job_id)
            .await;
        answer(job.map(|job| v1::GetJobResponse { job: Some(job) }))
    }

    async fn list_jobs(&self, call: Request<v1::ListJobsRequest>) -> Answer<v1::ListJobsResponse> {
        let tenant = tenant_of_request(&call).map_err(to_status)?;
        let message = call.into_inner();
        let message = v1::HistoryServiceListJobsRequest {
            state: message.state,
            kind: message.kind,
            session_id: message.session_id,
            page_size: message.page_size,
            page_token: message.page_token,
        };
        let listed = self
            .history
            .clone()
            .list_jobs(request(tenant, message))
            .await
            .map_err(from_status);
        answer(listed.map(|listed| {
            let listed = listed.into_inner();
            v1::ListJobsResponse {
                jobs: listed.jobs,
                next_page_token: listed.next_page_token,
            }
        }))
    }

    async fn replay_job(&self, call: Request<v1::ReplayJobRequest>) -> Answer<v1::ReplayJobResponse> {
        let tenant = tenant_of_request(&call).map_err(to_status)?;
        let message = v1::HistoryServiceReplayJobRequest {
            job_id: call.into_inner().job_id,
        };
        let job = self
            .history
            .clone()
            .replay_job(request(tenant, message))
            .await
            .map_err(from_status);
        answer(job.map(|job| v1::ReplayJobResponse {
            job: job.into_inner().job,
        }))
    }

    async fn cancel_job(&self, call: Request<v1::CancelJobRequest>) -> Answer<v1::CancelJobResponse> {
        let tenant = tenant_of_request(&call).map_err(to_status)?;
        let message = v1::HistoryServiceCancelJobRequest {
            job_id: call.into_inner().job_id,
        };
        let job = self
            .history
            .clone()
            .cancel_job(request(tenant, message))
            .await
            .map_err(from_status);
        answer(job.map(|job| v1::CancelJobResponse {
            job: job.into_inner().job,
        }))
    }

    async fn list_checkpoints(
        &self,
        _: Request<v1::ListCheckpointsRequest>,
    ) -> Answer<v1::ListCheckpointsResponse> {
        Err(unimplemented("ListCheckpoints"))
    }

    async fn restore_checkpoint(
        &self,
        _: Request<v1::RestoreCheckpointRequest>,
    ) -> Answer<v1::RestoreCheckpointResponse> {
        Err(unimplemented("RestoreCheckpoint"))
    }
}
