//! gRPC: translate, call, map.

use crate::Deps;
use crate::accounts::Accounts;
use crate::{deliveries, submit};
use colloquy_proto::convert::required;
use colloquy_proto::v1::history_service_client::HistoryServiceClient;
use colloquy_proto::v1::router_service_client::RouterServiceClient;
use colloquy_proto::v1::{self, ingress_service_server::IngressService};
use colloquy_service_kit::auth::{principal_of, tenant_of_request};
use colloquy_service_kit::client::request;
use colloquy_service_kit::server::message_limit;
use colloquy_service_kit::status::unimplemented;
use colloquy_service_kit::{InternalChannel, Shutdown, from_status, to_status};
use colloquy_types::{Result, TenantId};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

#[derive(Clone)]
pub struct Ingress {
    pub accounts: Accounts,
    pub shutdown: Shutdown,
    router: RouterServiceClient<InternalChannel>,
    history: HistoryServiceClient<InternalChannel>,
}

impl Ingress {
    pub fn new(deps: Deps, shutdown: Shutdown) -> Self {
        Self {
            accounts: Accounts::new(deps.control),
            shutdown,
            router: RouterServiceClient::new(deps.router).max_encoding_message_size(message_limit()),
            history: HistoryServiceClient::new(deps.history).max_decoding_message_size(message_limit()),
        }
    }

    pub fn history(&self) -> HistoryServiceClient<InternalChannel> {
        self.history.clone()
    }

    /// Hands a normalised message to the router.
    ///
    /// # Errors
    /// The router's; see `Submit`.
    pub async fn route(
        &self,
        tenant: TenantId,
        message: v1::RouteMessageRequest,
    ) -> Result<v1::AcceptResult> {
        let routed = self
            .router
            .clone()
            .route_message(request(tenant, message))
            .await
            .map_err(from_status)?;
        required("accepted", routed.into_inner().accepted)
    }
}

type Answer<T> = Result<Response<T>, Status>;
type Events<T> = ReceiverStream<Result<T, Status>>;

#[tonic::async_trait]
impl IngressService for Ingress {
    type SubmitAndWaitStream = Events<v1::SubmitAndWaitResponse>;
    type StreamDeliveriesStream = Events<v1::StreamDeliveriesResponse>;

    async fn submit(&self, request: Request<v1::SubmitRequest>) -> Answer<v1::SubmitResponse> {
        let tenant = tenant_of_request(&request).map_err(to_status)?;
        let principal = principal_of(&request).map_err(to_status)?;
        let accepted = submit::submit(self, &principal, tenant, request.into_inner())
            .await
            .map_err(to_status)?;
        Ok(Response::new(v1::SubmitResponse {
            accepted: Some(accepted),
        }))
    }

    async fn submit_and_wait(
        &self,
        _: Request<v1::SubmitAndWaitRequest>,
    ) -> Answer<Self::SubmitAndWaitStream> {
        Err(unimplemented("SubmitAndWait"))
    }

    async fn stream_deliveries(
        &self,
        request: Request<v1::StreamDeliveriesRequest>,
    ) -> Answer<Self::StreamDeliveriesStream> {
        let tenant = tenant_of_request(&request).map_err(to_status)?;
        let principal = principal_of(&request).map_err(to_status)?;
        let account = request.into_inner().account;
        deliveries::check_account(self, &principal, tenant, &account)
            .await
            .map_err(to_status)?;
        let (sender, receiver) = mpsc::channel(64);
        self.shutdown.spawn(
            "deliveries",
            deliveries::feed(self.clone(), tenant, account, sender),
        );
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn ack_delivery(
        &self,
        request: Request<v1::AckDeliveryRequest>,
    ) -> Answer<v1::AckDeliveryResponse> {
        let tenant = tenant_of_request(&request).map_err(to_status)?;
        let principal = principal_of(&request).map_err(to_status)?;
        let acked = deliveries::ack(self, &principal, tenant, request.into_inner())
            .await
            .map_err(to_status);
        acked.map(|()| Response::new(v1::AckDeliveryResponse {}))
    }
}
