//! gRPC: translate, call, map.

use crate::calibration::Calibrations;
use crate::finish::TurnFacts;
use crate::policies::Policies;
use crate::{claim, compaction, context, convert, deliveries, entries, finish, jobs, sessions};
use colloquy_proto::convert::id;
use colloquy_proto::v1::{self, history_service_server::HistoryService};
use colloquy_service_kit::auth::{principal_of, tenant_of_request};
use colloquy_service_kit::status::{to_status, unimplemented};
use colloquy_storage::HistoryStore;
use colloquy_types::{Principal, Result, TenantId};
use futures::Stream;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::Notify;
use tonic::{Request, Response, Status, Streaming};

#[derive(Clone)]
pub struct History {
    pub store: Arc<dyn HistoryStore>,
    pub policies: Policies,
    pub calibrations: Calibrations,
    pub turns: TurnFacts,
    /// Wakes the relay of this replica.
    pub jobs_written: Arc<Notify>,
}

type Answer<T> = Result<Response<T>, Status>;
type Boxed<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

fn answer<T>(result: Result<T>) -> Answer<T> {
    result.map(Response::new).map_err(to_status)
}

/// Caller, tenant and message of a request.
fn open<T>(request: Request<T>) -> Result<(Principal, TenantId, T), Status> {
    let tenant = tenant_of_request(&request).map_err(to_status)?;
    let principal = principal_of(&request).map_err(to_status)?;
    Ok((principal, tenant, request.into_inner()))
}

/// Pieces that are all there, as a stream.
fn streamed<T: Send + 'static>(pieces: Vec<Result<T, Status>>) -> Boxed<T> {
    Box::pin(futures::stream::iter(pieces))
}

#[tonic::async_trait]
impl HistoryService for History {
    type ExportSessionStream = Boxed<v1::ExportSessionResponse>;
    type WatchSessionStream = Boxed<v1::WatchSessionResponse>;
    type BuildContextStream = Boxed<v1::BuildContextResponse>;
    type RebuildContextStream = Boxed<v1::RebuildContextResponse>;

    async fn get_session(&self, request: Request<v1::GetSessionRequest>) -> Answer<v1::GetSessionResponse> {
        let (caller, tenant, message) = open(request)?;
        let session = sessions::get(&*self.store, &caller, tenant, message).await;
        answer(session.map(|session| v1::GetSessionResponse {
            session: Some(session),
        }))
    }

    async fn list_sessions(
        &self,
        request: Request<v1::ListSessionsRequest>,
    ) -> Answer<v1::ListSessionsResponse> {
        let (caller, tenant, message) = open(request)?;
        answer(sessions::list(&*self.store, &caller, tenant, message).await)
    }

    async fn update_session(
        &self,
        request: Request<v1::UpdateSessionRequest>,
    ) -> Answer<v1::UpdateSessionResponse> {
        let (caller, tenant, message) = open(request)?;
        let session = sessions::update(&*self.store, &caller, tenant, message).await;
        answer(session.map(|session| v1::UpdateSessionResponse {
            session: Some(session),
        }))
    }

    async fn reset_session(
        &self,
        request: Request<v1::ResetSessionRequest>,
    ) -> Answer<v1::ResetSessionResponse> {
        let (caller, tenant, message) = open(request)?;
        let session = sessions::reset(&*self.store, &caller, tenant, message).await;
        answer(session.map(|session| v1::ResetSessionResponse {
            session: Some(session),
        }))
    }

    async fn fork_session(&self, _: Request<v1::ForkSessionRequest>) -> Answer<v1::ForkSessionResponse> {
        Err(unimplemented("ForkSession"))
    }

    async fn rewind_session(
        &self,
        _: Request<v1::RewindSessionRequest>,
    ) -> Answer<v1::RewindSessionResponse> {
        Err(unimplemented("RewindSession"))
    }

    async fn delete_session(
        &self,
        _: Request<v1::DeleteSessionRequest>,
    ) -> Answer<v1::DeleteSessionResponse> {
        Err(unimplemented("DeleteSession"))
    }

    async fn import_session(
        &self,
        _: Request<Streaming<v1::ImportSessionRequest>>,
    ) -> Answer<v1::ImportSessionResponse> {
        Err(unimplemented("ImportSession"))
    }

    async fn export_session(
        &self,
        _: Request<v1::ExportSessionRequest>,
    ) -> Answer<Self::ExportSessionStream> {
        Err(unimplemented("ExportSession"))
    }

    async fn list_entries(
        &self,
        request: Request<v1::ListEntriesRequest>,
    ) -> Answer<v1::ListEntriesResponse> {
        let (caller, tenant, message) = open(request)?;
        answer(entries::list_entries(&*self.store, &caller, tenant, message).await)
    }

    async fn search_entries(
        &self,
        _: Request<v1::SearchEntriesRequest>,
    ) -> Answer<v1::SearchEntriesResponse> {
        Err(unimplemented("SearchEntries"))
    }

    async fn watch_session(&self, _: Request<v1::WatchSessionRequest>) -> Answer<Self::WatchSessionStream> {
        Err(unimplemented("WatchSession"))
    }

    async fn append_entries(
        &self,
        request: Request<v1::AppendEntriesRequest>,
    ) -> Answer<v1::AppendEntriesResponse> {
        let (_, tenant, message) = open(request)?;
        answer(entries::append(&*self.store, tenant, message).await)
    }

    async fn build_context(
        &self,
        request: Request<v1::BuildContextRequest>,
    ) -> Answer<Self::BuildContextStream> {
        let (caller, tenant, message) = open(request)?;
        let (store, policies) = (&*self.store, &self.policies);
        let built =
            context::build_context(store, policies, &self.calibrations, &caller, tenant, message).await;
        answer(built.map(streamed))
    }

    async fn count_tokens(
        &self,
        request: Request<v1::CountTokensRequest>,
    ) -> Answer<v1::CountTokensResponse> {
        answer(context::count_tokens(request.into_inner()))
    }

    async fn stage_entries(
        &self,
        request: Request<v1::StageEntriesRequest>,
    ) -> Answer<v1::StageEntriesResponse> {
        let (_, tenant, message) = open(request)?;
        answer(finish::stage(&*self.store, &self.policies, &self.turns, tenant, message).await)
    }

    async fn report_overflow(
        &self,
        _: Request<v1::ReportOverflowRequest>,
    ) -> Answer<v1::ReportOverflowResponse> {
        Err(unimplemented("ReportOverflow"))
    }

    async fn get_receipt(&self, request: Request<v1::GetReceiptRequest>) -> Answer<v1::GetReceiptResponse> {
        let (caller, tenant, message) = open(request)?;
        answer(context::get_receipt(&*self.store, &caller, tenant, message).await)
    }

    async fn rebuild_context(
        &self,
        request: Request<v1::RebuildContextRequest>,
    ) -> Answer<Self::RebuildContextStream> {
        let (caller, tenant, message) = open(request)?;
        let rebuilt = context::rebuild_context(&*self.store, &self.policies, &caller, tenant, message).await;
        answer(rebuilt.map(streamed))
    }

    async fn accept_message(
        &self,
        request: Request<v1::AcceptMessageRequest>,
    ) -> Answer<v1::AcceptMessageResponse> {
        let (_, tenant, message) = open(request)?;
        answer(crate::accept::accept(&*self.store, &self.policies, tenant, message).await)
    }

    async fn claim_turn(&self, request: Request<v1::ClaimTurnRequest>) -> Answer<v1::ClaimTurnResponse> {
        let (_, tenant, message) = open(request)?;
        answer(claim::claim(&*self.store, &self.policies, &self.turns, tenant, message).await)
    }

    async fn renew_turn(
        &self,
        request: Request<v1::HistoryServiceRenewTurnRequest>,
    ) -> Answer<v1::HistoryServiceRenewTurnResponse> {
        let (_, tenant, message) = open(request)?;
        answer(claim::renew(&*self.store, tenant, message).await)
    }

    async fn commit_turn(
        &self,
        request: Request<v1::HistoryServiceCommitTurnRequest>,
    ) -> Answer<v1::HistoryServiceCommitTurnResponse> {
        let (_, tenant, message) = open(request)?;
        let is_measured = message
            .usage
            .as_ref()
            .is_some_and(|usage| usage.context_tokens > 0);
        let committed = finish::commit(&*self.store, &self.policies, &self.turns, tenant, message).await;
        if let Ok(committed) = &committed
            && is_measured
            && let Ok(session) = committed.session_id.parse()
        {
            self.calibrations.reported(tenant, session);
        }
        self.jobs_written.notify_one();
        answer(committed)
    }

    async fn release_turn(
        &self,
        request: Request<v1::HistoryServiceReleaseTurnRequest>,
    ) -> Answer<v1::HistoryServiceReleaseTurnResponse> {
        let (_, tenant, message) = open(request)?;
        answer(finish::release(&*self.store, tenant, message).await)
    }

    async fn stop_turns(
        &self,
        request: Request<v1::HistoryServiceStopTurnsRequest>,
    ) -> Answer<v1::HistoryServiceStopTurnsResponse> {
        let (_, tenant, message) = open(request)?;
        answer(finish::stop(&*self.store, tenant, message).await)
    }

    async fn expire_turn(&self, request: Request<v1::ExpireTurnRequest>) -> Answer<v1::ExpireTurnResponse> {
        let (_, tenant, message) = open(request)?;
        answer(finish::expire(&*self.store, tenant, message).await)
    }

    async fn list_runnable(
        &self,
        request: Request<v1::ListRunnableRequest>,
    ) -> Answer<v1::ListRunnableResponse> {
        let tenant = principal_of(&request).map_err(to_status)?.tenant;
        answer(claim::runnable(&*self.store, tenant, request.into_inner()).await)
    }

    async fn get_queue(
        &self,
        request: Request<v1::HistoryServiceGetQueueRequest>,
    ) -> Answer<v1::HistoryServiceGetQueueResponse> {
        let (_, tenant, message) = open(request)?;
        answer(claim::queue(&*self.store, tenant, message).await)
    }

    async fn claim_deliveries(
        &self,
        request: Request<v1::ClaimDeliveriesRequest>,
    ) -> Answer<v1::ClaimDeliveriesResponse> {
        let (_, tenant, message) = open(request)?;
        answer(deliveries::claim(&*self.store, tenant, message).await)
    }

    async fn ack_delivery(
        &self,
        request: Request<v1::HistoryServiceAckDeliveryRequest>,
    ) -> Answer<v1::HistoryServiceAckDeliveryResponse> {
        let (_, tenant, message) = open(request)?;
        let acked = deliveries::ack(&*self.store, tenant, message).await;
        answer(acked.map(|()| v1::HistoryServiceAckDeliveryResponse {}))
    }

    async fn begin_compaction(
        &self,
        request: Request<v1::BeginCompactionRequest>,
    ) -> Answer<v1::BeginCompactionResponse> {
        let (_, tenant, message) = open(request)?;
        answer(compaction::begin(&*self.store, &self.policies, tenant, message).await)
    }

    async fn renew_compaction(
        &self,
        request: Request<v1::RenewCompactionRequest>,
    ) -> Answer<v1::RenewCompactionResponse> {
        let (_, tenant, message) = open(request)?;
        let renewed = compaction::renew(&*self.store, tenant, message).await;
        answer(renewed.map(|()| v1::RenewCompactionResponse {}))
    }

    async fn save_compaction_chunk(
        &self,
        request: Request<v1::SaveCompactionChunkRequest>,
    ) -> Answer<v1::SaveCompactionChunkResponse> {
        let (_, tenant, message) = open(request)?;
        let saved = compaction::save(&*self.store, tenant, message).await;
        answer(saved.map(|()| v1::SaveCompactionChunkResponse {}))
    }

    async fn apply_compaction(
        &self,
        request: Request<v1::ApplyCompactionRequest>,
    ) -> Answer<v1::ApplyCompactionResponse> {
        let (_, tenant, message) = open(request)?;
        answer(compaction::apply(&*self.store, tenant, message).await)
    }

    async fn fail_compaction(
        &self,
        request: Request<v1::FailCompactionRequest>,
    ) -> Answer<v1::FailCompactionResponse> {
        let (_, tenant, message) = open(request)?;
        let failed = compaction::fail(&*self.store, tenant, message).await;
        answer(failed.map(|()| v1::FailCompactionResponse {}))
    }

    async fn enqueue_job(&self, request: Request<v1::EnqueueJobRequest>) -> Answer<v1::EnqueueJobResponse> {
        let (_, tenant, message) = open(request)?;
        let job = jobs::enqueue(&*self.store, tenant, message).await;
        self.jobs_written.notify_one();
        answer(job.map(|job| v1::EnqueueJobResponse {
            job: Some(convert::job(job)),
        }))
    }

    async fn start_job(&self, request: Request<v1::StartJobRequest>) -> Answer<v1::StartJobResponse> {
        let (_, tenant, message) = open(request)?;
        answer(jobs::start(&*self.store, tenant, message).await)
    }

    async fn renew_job(&self, request: Request<v1::RenewJobRequest>) -> Answer<v1::RenewJobResponse> {
        let (_, tenant, message) = open(request)?;
        answer(
            jobs::renew(&*self.store, tenant, message)
                .await
                .map(|()| v1::RenewJobResponse {}),
        )
    }

    async fn end_job(&self, request: Request<v1::EndJobRequest>) -> Answer<v1::EndJobResponse> {
        let (_, tenant, message) = open(request)?;
        answer(jobs::end(&*self.store, tenant, message).await)
    }

    async fn get_job(
        &self,
        request: Request<v1::HistoryServiceGetJobRequest>,
    ) -> Answer<v1::HistoryServiceGetJobResponse> {
        let (_, tenant, message) = open(request)?;
        let job = jobs::get_by_text(&*self.store, tenant, &message.job_id).await;
        answer(job.map(|job| v1::HistoryServiceGetJobResponse { job: Some(job) }))
    }

    async fn list_jobs(
        &self,
        request: Request<v1::HistoryServiceListJobsRequest>,
    ) -> Answer<v1::HistoryServiceListJobsResponse> {
        let (_, tenant, message) = open(request)?;
        answer(jobs::list(&*self.store, tenant, message).await)
    }

    async fn replay_job(
        &self,
        request: Request<v1::HistoryServiceReplayJobRequest>,
    ) -> Answer<v1::HistoryServiceReplayJobResponse> {
        let (_, tenant, message) = open(request)?;
        let job = self
            .store
            .replay_job(tenant, id("job_id", &message.job_id).map_err(to_status)?)
            .await;
        self.jobs_written.notify_one();
        answer(job.map(|job| v1::HistoryServiceReplayJobResponse {
            job: Some(convert::job(job)),
        }))
    }

    async fn cancel_job(
        &self,
        request: Request<v1::HistoryServiceCancelJobRequest>,
    ) -> Answer<v1::HistoryServiceCancelJobResponse> {
        let (_, tenant, message) = open(request)?;
        let job = self
            .store
            .cancel_job(tenant, id("job_id", &message.job_id).map_err(to_status)?)
            .await;
        answer(job.map(|job| v1::HistoryServiceCancelJobResponse {
            job: Some(convert::job(job)),
        }))
    }
}
