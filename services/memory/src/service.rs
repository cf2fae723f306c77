//! gRPC: translate, call, map.

use crate::sessions::Sessions;
use crate::{convert, extract, manage, recall};
use colloquy_llm::Extractor;
use colloquy_proto::v1::{self, memory_service_server::MemoryService};
use colloquy_service_kit::Shutdown;
use colloquy_service_kit::auth::{principal_of, tenant_of_request};
use colloquy_service_kit::status::{to_status, unimplemented};
use colloquy_storage::MemoryStore;
use colloquy_types::Result;
use std::sync::Arc;
use tonic::{Request, Response, Status};

#[derive(Clone)]
pub struct MemoryServer {
    pub store: Arc<dyn MemoryStore>,
    pub sessions: Sessions,
    pub extractor: Arc<dyn Extractor>,
    pub shutdown: Shutdown,
}

type Answer<T> = Result<Response<T>, Status>;

fn answer<T>(result: Result<T>) -> Answer<T> {
    result.map(Response::new).map_err(to_status)
}

#[tonic::async_trait]
impl MemoryService for MemoryServer {
    async fn remember(&self, request: Request<v1::RememberRequest>) -> Answer<v1::RememberResponse> {
        let tenant = tenant_of_request(&request).map_err(to_status)?;
        let principal = principal_of(&request).map_err(to_status)?;
        let memory = manage::remember(self, &principal, tenant, request.into_inner()).await;
        answer(memory.map(|memory| v1::RememberResponse { memory: Some(memory) }))
    }

    async fn recall(&self, request: Request<v1::RecallRequest>) -> Answer<v1::RecallResponse> {
        let tenant = tenant_of_request(&request).map_err(to_status)?;
        let principal = principal_of(&request).map_err(to_status)?;
        answer(recall::recall(self, &principal, tenant, request.into_inner()).await)
    }

    async fn list_memories(
        &self,
        request: Request<v1::ListMemoriesRequest>,
    ) -> Answer<v1::ListMemoriesResponse> {
        let tenant = tenant_of_request(&request).map_err(to_status)?;
        let principal = principal_of(&request).map_err(to_status)?;
        answer(manage::list(self, &principal, tenant, request.into_inner()).await)
    }

    async fn get_memory(&self, request: Request<v1::GetMemoryRequest>) -> Answer<v1::GetMemoryResponse> {
        let tenant = tenant_of_request(&request).map_err(to_status)?;
        let principal = principal_of(&request).map_err(to_status)?;
        let memory = manage::get(self, &principal, tenant, &request.into_inner().memory_id).await;
        answer(memory.map(|memory| v1::GetMemoryResponse {
            memory: Some(convert::memory(memory)),
        }))
    }

    async fn update_memory(
        &self,
        request: Request<v1::UpdateMemoryRequest>,
    ) -> Answer<v1::UpdateMemoryResponse> {
        let tenant = tenant_of_request(&request).map_err(to_status)?;
        let principal = principal_of(&request).map_err(to_status)?;
        let memory = manage::update(self, &principal, tenant, request.into_inner()).await;
        answer(memory.map(|memory| v1::UpdateMemoryResponse { memory: Some(memory) }))
    }

    async fn delete_memory(
        &self,
        request: Request<v1::DeleteMemoryRequest>,
    ) -> Answer<v1::DeleteMemoryResponse> {
        let tenant = tenant_of_request(&request).map_err(to_status)?;
        let principal = principal_of(&request).map_err(to_status)?;
        let deleted = manage::delete(self, &principal, tenant, &request.into_inner().memory_id).await;
        answer(deleted.map(|()| v1::DeleteMemoryResponse {}))
    }

    async fn extract(&self, request: Request<v1::ExtractRequest>) -> Answer<v1::ExtractResponse> {
        let tenant = tenant_of_request(&request).map_err(to_status)?;
        let principal = principal_of(&request).map_err(to_status)?;
        let request = request.into_inner();
        let visible = self
            .sessions
            .visible(&principal, tenant, &request.session_id)
            .await;
        visible.map_err(to_status)?;
        answer(extract::extract(self, tenant, request).await)
    }

    async fn consolidate(&self, _: Request<v1::ConsolidateRequest>) -> Answer<v1::ConsolidateResponse> {
        Err(unimplemented("Consolidate"))
    }

    async fn erase_subject(&self, _: Request<v1::EraseSubjectRequest>) -> Answer<v1::EraseSubjectResponse> {
        Err(unimplemented("EraseSubject"))
    }

    async fn get_erasure(&self, _: Request<v1::GetErasureRequest>) -> Answer<v1::GetErasureResponse> {
        Err(unimplemented("GetErasure"))
    }
}
