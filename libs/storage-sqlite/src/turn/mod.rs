//! The life of a turn.

mod claim;
mod commit;
mod end;
mod lease;
mod list;
mod staged;

pub(crate) use lease::{confirm, held};

use crate::SqliteStore;
use async_trait::async_trait;
use colloquy_storage::{
    ClaimRequest, Claimed, CommitInput, Committed, Expired, Queue, Release, Renewal, Runnable, RunnableScan,
    StageInput, StopScope, Stopped, TurnView, Turns,
};
use colloquy_types::{Fence, Result, SessionId, TenantId, TurnId};

#[async_trait]
impl Turns for SqliteStore {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claimed> {
        let mut tx = self.write().await?;
        let claimed = claim::claim(&mut tx, request).await?;
        tx.commit().await?;
        Ok(claimed)
    }

    async fn renew(
        &self,
        tenant: TenantId,
        turn: TurnId,
        fence: Fence,
        steer_through: i64,
    ) -> Result<Renewal> {
        let mut tx = self.write().await?;
        let renewal = lease::renew(&mut tx, tenant, turn, fence, steer_through).await?;
        tx.commit().await?;
        Ok(renewal)
    }

    /// Only the first reading writes: the others do not wait for the writer.
    async fn view(&self, tenant: TenantId, turn: TurnId, fence: Fence) -> Result<TurnView> {
        let seen = lease::view_confirmed(&mut self.read().await?, tenant, turn, fence).await?;
        if let Some(view) = seen {
            return Ok(view);
        }
        let mut tx = self.write().await?;
        let view = lease::view(&mut tx, tenant, turn, fence).await?;
        tx.commit().await?;
        Ok(view)
    }

    async fn stage(&self, input: &StageInput) -> Result<i64> {
        let mut tx = self.write().await?;
        let highest = staged::stage(&mut tx, input).await?;
        tx.commit().await?;
        Ok(highest)
    }

    async fn commit(&self, input: &CommitInput) -> Result<Committed> {
        let mut tx = self.write().await?;
        let committed = commit::commit(&mut tx, input).await?;
        tx.commit().await?;
        Ok(committed)
    }

    async fn release(
        &self,
        tenant: TenantId,
        turn: TurnId,
        fence: Fence,
        release: &Release,
    ) -> Result<Expired> {
        let mut tx = self.write().await?;
        let expired = end::release(&mut tx, tenant, turn, fence, release).await?;
        tx.commit().await?;
        Ok(expired)
    }

    async fn stop(
        &self,
        tenant: TenantId,
        session: SessionId,
        scope: StopScope,
        deadline_ms: i64,
    ) -> Result<Stopped> {
        let mut tx = self.write().await?;
        let stopped = end::stop(&mut tx, tenant, session, scope, deadline_ms).await?;
        tx.commit().await?;
        Ok(stopped)
    }

    async fn expire(&self, tenant: TenantId, turn: TurnId) -> Result<Expired> {
        let mut tx = self.write().await?;
        let expired = end::expire(&mut tx, tenant, turn).await?;
        tx.commit().await?;
        Ok(expired)
    }

    async fn list_expired(&self, limit: u32) -> Result<Vec<(TenantId, TurnId)>> {
        Ok(list::expired(&mut self.read().await?, limit).await?)
    }

    async fn list_runnable(&self, scan: &RunnableScan) -> Result<Vec<Runnable>> {
        Ok(list::runnable(&mut self.read().await?, scan).await?)
    }

    async fn queue(&self, tenant: TenantId, session: SessionId, outcomes: u32) -> Result<Queue> {
        Ok(list::queue(&mut self.read().await?, tenant, session, outcomes).await?)
    }
}
