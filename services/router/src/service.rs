//! gRPC: translate, call, map.

use crate::policies::Policies;
use crate::{Deps, acquire, route, turns};
use colloquy_coord::Coord;
use colloquy_proto::v1::history_service_client::HistoryServiceClient;
use colloquy_proto::v1::{self, router_service_server::RouterService};
use colloquy_service_kit::auth::{principal_of, tenant_of_request};
use colloquy_service_kit::server::message_limit;
use colloquy_service_kit::status::{to_status, unimplemented};
use colloquy_service_kit::{InternalChannel, Shutdown};
use colloquy_types::{Principal, Result, TenantId};
use std::sync::Arc;
use tonic::{Request, Response, Status};

#[derive(Clone)]
pub struct Router {
    pub policies: Policies,
    pub coord: Arc<dyn Coord>,
    pub shutdown: Shutdown,
    history: HistoryServiceClient<InternalChannel>,
}

impl Router {
    pub fn new(deps: Deps, shutdown: Shutdown) -> Self {
        let history = HistoryServiceClient::new(deps.history)
            .max_decoding_message_size(message_limit())
            .max_encoding_message_size(message_limit());
        Self {
            policies: Policies::new(deps.control),
            coord: deps.coord,
            shutdown,
            history,
        }
    }

    pub fn history(&self) -> HistoryServiceClient<InternalChannel> {
        self.history.clone()
    }
}

type Answer<T> = Result<Response<T>, Status>;
type NoSignals = tokio_stream::Empty<Result<v1::WatchTurnResponse, Status>>;

fn answer<T>(result: Result<T>) -> Answer<T> {
    result.map(Response::new).map_err(to_status)
}

fn open<T>(request: Request<T>) -> Result<(Principal, TenantId, T), Status> {
    let tenant = tenant_of_request(&request).map_err(to_status)?;
    let principal = principal_of(&request).map_err(to_status)?;
    Ok((principal, tenant, request.into_inner()))
}

#[tonic::async_trait]
impl RouterService for Router {
    type WatchTurnStream = NoSignals;

    async fn acquire_turn(
        &self,
        request: Request<v1::AcquireTurnRequest>,
    ) -> Answer<v1::AcquireTurnResponse> {
        let (caller, tenant, message) = open(request)?;
        answer(acquire::acquire(self, &caller, tenant, message).await)
    }

    async fn renew_turn(&self, request: Request<v1::RenewTurnRequest>) -> Answer<v1::RenewTurnResponse> {
        let (_, tenant, message) = open(request)?;
        answer(turns::renew(self, tenant, message).await)
    }

    async fn watch_turn(&self, _: Request<v1::WatchTurnRequest>) -> Answer<Self::WatchTurnStream> {
        Err(unimplemented("WatchTurn"))
    }

    async fn commit_turn(&self, request: Request<v1::CommitTurnRequest>) -> Answer<v1::CommitTurnResponse> {
        let (_, tenant, message) = open(request)?;
        answer(turns::commit(self, tenant, message).await)
    }

    async fn publish_delta(&self, _: Request<v1::PublishDeltaRequest>) -> Answer<v1::PublishDeltaResponse> {
        Err(unimplemented("PublishDelta"))
    }

    async fn release_turn(
        &self,
        request: Request<v1::ReleaseTurnRequest>,
    ) -> Answer<v1::ReleaseTurnResponse> {
        let (_, tenant, message) = open(request)?;
        answer(turns::release(self, tenant, message).await)
    }

    async fn stop_turns(&self, request: Request<v1::StopTurnsRequest>) -> Answer<v1::StopTurnsResponse> {
        let (caller, tenant, message) = open(request)?;
        answer(turns::stop(self, &caller, tenant, message).await)
    }

    async fn get_queue(&self, request: Request<v1::GetQueueRequest>) -> Answer<v1::GetQueueResponse> {
        let (caller, tenant, message) = open(request)?;
        answer(turns::queue(self, &caller, tenant, message).await)
    }

    async fn route_message(
        &self,
        request: Request<v1::RouteMessageRequest>,
    ) -> Answer<v1::RouteMessageResponse> {
        let (_, tenant, message) = open(request)?;
        let accepted = route::route(self, tenant, message).await;
        answer(accepted.map(|accepted| v1::RouteMessageResponse {
            accepted: Some(accepted),
        }))
    }
}
