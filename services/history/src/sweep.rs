//! Ends or re-queues turns whose lease or stop deadline has passed. Every replica sweeps; the store decides
//! under the session's lock, so it does not matter who comes first.

use crate::Config;
use crate::each::each;
use colloquy_service_kit::Shutdown;
use colloquy_storage::{Expired, HistoryStore};
use colloquy_types::{Result, TenantId, TurnId};
use std::sync::Arc;

const BATCH: u32 = 200;

pub async fn run(store: Arc<dyn HistoryStore>, config: Config, shutdown: Shutdown) -> Result<()> {
    while shutdown.sleep(Config::jittered(config.sweep_ms)).await {
        if let Err(error) = sweep(&*store).await {
            tracing::warn!(%error, "turn sweep failed");
        }
    }
    Ok(())
}

async fn sweep(store: &dyn HistoryStore) -> Result<()> {
    let expired = store.list_expired(BATCH).await?;
    each("turn cannot be ended", expired, |tenant, turn| {
        expire(store, tenant, turn)
    })
    .await;
    Ok(())
}

async fn expire(store: &dyn HistoryStore, tenant: TenantId, turn: TurnId) -> Result<()> {
    match store.expire(tenant, turn).await? {
        Expired::Requeued { .. } => {
            tracing::info!(%turn, "lost turn is offered again");
            metrics::counter!("colloquy_turns_expired_total", "end" => "requeued").increment(1);
        }
        Expired::Ended { outcome, .. } => {
            tracing::info!(%turn, outcome = outcome.as_str(), "turn ended by its deadline");
            metrics::counter!("colloquy_turns_expired_total", "end" => "ended").increment(1);
        }
        Expired::NotExpired => {}
    }
    Ok(())
}
