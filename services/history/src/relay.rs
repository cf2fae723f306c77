//! Hands due jobs to the bus: at least once, a limited number per tenant, never under the same id twice.

use crate::Config;
use crate::each::each;
use colloquy_bus::{Bus, JobMessage};
use colloquy_service_kit::Shutdown;
use colloquy_storage::HistoryStore;
use colloquy_types::{JobId, Result, TenantId};
use std::sync::Arc;
use tokio::sync::Notify;

const BATCH: u32 = 200;

pub async fn run(
    store: Arc<dyn HistoryStore>,
    bus: Arc<dyn Bus>,
    config: Config,
    written: Arc<Notify>,
    shutdown: Shutdown,
) -> Result<()> {
    loop {
        if let Err(error) = round(&*store, &*bus, &config).await {
            tracing::warn!(%error, "job relay failed");
        }
        tokio::select! {
            slept = shutdown.sleep(Config::jittered(config.relay_ms)) => if !slept { return Ok(()) },
            () = written.notified() => {}
        }
    }
}

async fn round(store: &dyn HistoryStore, bus: &dyn Bus, config: &Config) -> Result<()> {
    let republish_ms = i64::try_from(config.republish_ms).unwrap_or(i64::MAX);
    let due = store
        .list_publishable(config.jobs_per_tenant, BATCH, republish_ms)
        .await?;
    each("job not published", due, |tenant, job| {
        publish(store, bus, tenant, job, republish_ms)
    })
    .await;
    Ok(())
}

async fn publish(
    store: &dyn HistoryStore,
    bus: &dyn Bus,
    tenant: TenantId,
    job: JobId,
    republish_ms: i64,
) -> Result<()> {
    // Marked first: a publication that fails after it is repeated under the next number.
    let Some(published) = store.mark_published(tenant, job, republish_ms).await? else {
        return Ok(());
    };
    let job = published.job;
    let message = JobMessage {
        job: job.id,
        publish_no: job.publish_no,
        tenant,
        session: job.session,
        kind: job.kind.as_str().to_owned(),
    };
    bus.publish(&message).await?;
    metrics::counter!("colloquy_jobs_published_total", "kind" => job.kind.as_str()).increment(1);
    Ok(())
}
