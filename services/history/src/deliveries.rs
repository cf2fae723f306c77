//! Replies on their way to adapters.

use colloquy_proto::convert::{duration_ms, id, non_empty, required};
use colloquy_proto::v1::{self, history_service_ack_delivery_request::Ack as WireAck};
use colloquy_storage::{Ack, HistoryStore};
use colloquy_types::{AccountId, Error, Result, TenantId};

const LEASE_MS: i64 = 30_000;

pub async fn claim(
    store: &dyn HistoryStore,
    tenant: TenantId,
    request: v1::ClaimDeliveriesRequest,
) -> Result<v1::ClaimDeliveriesResponse> {
    let account = AccountId::parse(&request.account)?;
    let lease_ms = request.lease.as_ref().map_or(LEASE_MS, duration_ms);
    let claimed = store
        .claim_deliveries(tenant, &account, request.limit.clamp(1, 500), lease_ms)
        .await?;
    let wire = |delivery: colloquy_storage::Delivery| v1::ClaimedDelivery {
        delivery_id: delivery.id.to_string(),
        turn_id: delivery.turn.to_string(),
        session_id: delivery.session.to_string(),
        route: Some(delivery.route.into()),
        parts: delivery.parts.into_iter().map(Into::into).collect(),
        attempt: delivery.attempt,
    };
    Ok(v1::ClaimDeliveriesResponse {
        deliveries: claimed.into_iter().map(wire).collect(),
    })
}

pub async fn ack(
    store: &dyn HistoryStore,
    tenant: TenantId,
    request: v1::HistoryServiceAckDeliveryRequest,
) -> Result<()> {
    let delivery = id("delivery_id", &request.delivery_id)?;
    let detail: String = request
        .detail
        .chars()
        .filter(|c| *c != '\0')
        .take(1_000)
        .collect();
    let ack = match required("ack", request.ack)? {
        WireAck::Delivered(true) => Ack::Delivered,
        WireAck::RetryAfter(delay) => Ack::Retry {
            delay_ms: duration_ms(&delay).clamp(0, 86_400_000),
            detail,
        },
        WireAck::Dead(true) => Ack::Dead { detail },
        WireAck::Delivered(false) | WireAck::Dead(false) => {
            return Err(Error::invalid("ack", "must be true"));
        }
    };
    let account = non_empty(request.account)
        .map(|account| AccountId::parse(&account))
        .transpose()?;
    store.ack_delivery(tenant, delivery, account.as_ref(), &ack).await
}
