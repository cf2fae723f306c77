//! Replies on their way out: a row before anything is sent.

use async_trait::async_trait;
use colloquy_types::message::{Part, Route};
use colloquy_types::{AccountId, DeliveryId, Result, SessionId, TenantId, TurnId};

/// One part of a reply, written with the commit.
#[derive(Debug, Clone, PartialEq)]
pub struct NewDelivery {
    pub id: DeliveryId,
    pub route: Route,
    /// From 0 within the turn.
    pub part: i32,
    pub parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    pub id: DeliveryId,
    pub turn: TurnId,
    pub session: SessionId,
    pub route: Route,
    pub parts: Vec<Part>,
    /// From 1; above 1 the end of an earlier offer is unknown or was `Retry`.
    pub attempt: i32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ack {
    Delivered,
    /// Offered again after the delay.
    Retry {
        delay_ms: i64,
        detail: String,
    },
    /// Never offered again.
    Dead {
        detail: String,
    },
}

#[async_trait]
pub trait Deliveries: Send + Sync {
    /// Offers what is due for the account under a lease: per route only the oldest that has not ended, in order.
    async fn claim_deliveries(
        &self,
        tenant: TenantId,
        account: &AccountId,
        limit: u32,
        lease_ms: i64,
    ) -> Result<Vec<Delivery>>;
    /// Acking an ended delivery again changes nothing. `NOT_FOUND` for an unknown one, and for one of another account
    /// than the caller is bound to.
    async fn ack_delivery(
        &self,
        tenant: TenantId,
        id: DeliveryId,
        account: Option<&AccountId>,
        ack: &Ack,
    ) -> Result<()>;
}
