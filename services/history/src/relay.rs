//! Hands due jobs to the bus: at least once, a limited number per tenant, never under the same id twice.

use crate::Config;
use colloquy_bus::{Bus, JobMessage};
use colloquy_service_kit::Shutdown;
use colloquy_storage::HistoryStore;
use colloquy_types::Result;
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
    for (tenant, job) in store
        .list_publishable(config.jobs_per_tenant, BATCH, republish_ms)
        .await?
    {
        // Marked first: a publication that fails after it is repeated under the next number.
        let Some(published) = store.mark_published(tenant, job, republish_ms).await? else {
            continue;
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
    }
    Ok(())
}
