//! Replies for adapters: claimed under a lease, streamed, acknowledged.

use crate::service::Ingress;
use colloquy_proto::convert::duration;
use colloquy_proto::v1::{self, history_service_ack_delivery_request::Ack};
use colloquy_service_kit::client::request;
use colloquy_service_kit::{from_status, to_status};
use colloquy_types::{Error, Principal, Result, TenantId};
use std::time::Duration;
use tokio::sync::mpsc;
use tonic::Status;

/// Pauses between looks when nothing was there: short after something was, longer while idle.
const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_millis(500);
const BATCH: u32 = 32;
/// Pause before a retry that the adapter named none for.
const RETRY_MS: i64 = 5_000;

pub type Sender = mpsc::Sender<Result<v1::StreamDeliveriesResponse, Status>>;

/// The account, when it is the caller's to serve.
pub async fn check_account(
    ingress: &Ingress,
    principal: &Principal,
    tenant: TenantId,
    account: &str,
) -> Result<()> {
    let found = ingress.accounts.find(account).await?;
    let foreign = found.tenant != tenant || principal.account.as_ref().is_some_and(|own| *own != found.id);
    if foreign {
        Err(Error::not_found("account", account))
    } else {
        Ok(())
    }
}

/// Feeds a stream until its reader is gone or the stop begins.
pub async fn feed(ingress: Ingress, tenant: TenantId, account: String, sender: Sender) {
    let mut pause = SHORTEST;
    while !sender.is_closed() {
        match claim(&ingress, tenant, &account).await {
            Ok(claimed) if claimed.is_empty() => pause = (pause * 2).min(LONGEST),
            Ok(claimed) => {
                pause = SHORTEST;
                for delivery in claimed {
                    let response = v1::StreamDeliveriesResponse {
                        delivery: Some(delivery),
                    };
                    if sender.send(Ok(response)).await.is_err() {
                        return;
                    }
                }
            }
            Err(error) => {
                tracing::warn!(%error, "deliveries cannot be claimed");
                pause = LONGEST;
            }
        }
        tokio::select! {
            slept = ingress.shutdown.sleep(pause) => if !slept {
                let _ = sender.send(Err(to_status(Error::unavailable("the server is stopping")))).await;
                return;
            },
            () = sender.closed() => return,
        }
    }
}

async fn claim(ingress: &Ingress, tenant: TenantId, account: &str) -> Result<Vec<v1::Delivery>> {
    let message = v1::ClaimDeliveriesRequest {
        account: account.to_owned(),
        limit: BATCH,
        lease: None,
    };
    let claimed = ingress
        .history()
        .claim_deliveries(request(tenant, message))
        .await
        .map_err(from_status)?;
    let wire = |delivery: v1::ClaimedDelivery| v1::Delivery {
        delivery_id: delivery.delivery_id,
        turn_id: delivery.turn_id,
        session_id: delivery.session_id,
        route: delivery.route,
        parts: delivery.parts,
        attempt: delivery.attempt,
    };
    Ok(claimed.into_inner().deliveries.into_iter().map(wire).collect())
}

pub async fn ack(
    ingress: &Ingress,
    principal: &Principal,
    tenant: TenantId,
    message: v1::AckDeliveryRequest,
) -> Result<()> {
    let ack = match message.result() {
        v1::DeliveryResult::Unspecified => return Err(Error::invalid("result", "is required")),
        v1::DeliveryResult::Delivered => Ack::Delivered(true),
        v1::DeliveryResult::Retry => {
            Ack::RetryAfter(message.retry_after.unwrap_or_else(|| duration(RETRY_MS)))
        }
        v1::DeliveryResult::Dead => Ack::Dead(true),
    };
    let (delivery_id, detail) = (message.delivery_id, message.detail);
    let message = v1::HistoryServiceAckDeliveryRequest {
        delivery_id,
        detail,
        ack: Some(ack),
        account: principal
            .account
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
    };
    ingress
        .history()
        .ack_delivery(request(tenant, message))
        .await
        .map_err(from_status)
        .map(|_| ())
}
