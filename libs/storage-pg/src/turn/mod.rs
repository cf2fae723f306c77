//! The life of a turn.

mod claim;
mod commit;
mod end;
mod lease;
mod list;
mod staged;

use crate::PgStore;
use async_trait::async_trait;
use colloquy_storage::{
    ClaimRequest, Claimed, CommitInput, Committed, Expired, Queue, Release, Renewal, Runnable, RunnableScan,
    StageInput, StopScope, Stopped, TurnView, Turns,
};
use colloquy_types::{Fence, Result, SessionId, TenantId, TurnId};

#[async_trait]
impl Turns for PgStore {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claimed> {
        Ok(self.claim_next(request).await?)
    }

    async fn renew(
        &self,
        tenant: TenantId,
        turn: TurnId,
        fence: Fence,
        steer_through: i64,
    ) -> Result<Renewal> {
        Ok(self.renew_turn(tenant, turn, fence, steer_through).await?)
    }

    async fn view(&self, tenant: TenantId, turn: TurnId, fence: Fence) -> Result<TurnView> {
        Ok(self.view_turn(tenant, turn, fence).await?)
    }

    async fn stage(&self, input: &StageInput) -> Result<i64> {
        Ok(self.stage_entries(input).await?)
    }

    async fn commit(&self, input: &CommitInput) -> Result<Committed> {
        Ok(self.commit_turn(input).await?)
    }

    async fn release(
        &self,
        tenant: TenantId,
        turn: TurnId,
        fence: Fence,
        release: &Release,
    ) -> Result<Expired> {
        let mut tx = self.write(tenant).await?;
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
        let mut tx = self.write(tenant).await?;
        let stopped = end::stop(&mut tx, tenant, session, scope, deadline_ms).await?;
        tx.commit().await?;
        Ok(stopped)
    }

    async fn expire(&self, tenant: TenantId, turn: TurnId) -> Result<Expired> {
        let mut tx = self.write(tenant).await?;
        let expired = end::expire(&mut tx, tenant, turn).await?;
        tx.commit().await?;
        Ok(expired)
    }

    async fn list_expired(&self, limit: u32) -> Result<Vec<(TenantId, TurnId)>> {
        Ok(list::expired(&mut self.sweep().await?, limit).await?)
    }

    async fn list_runnable(&self, scan: &RunnableScan) -> Result<Vec<Runnable>> {
        Ok(list::runnable(&mut self.sweep().await?, scan).await?)
    }

    async fn queue(&self, tenant: TenantId, session: SessionId, outcomes: u32) -> Result<Queue> {
        Ok(list::queue(&mut self.read(tenant).await?, tenant, session, outcomes).await?)
    }
}
