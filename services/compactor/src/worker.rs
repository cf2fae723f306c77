//! Takes compaction jobs from the bus.

use crate::Config;
use crate::engine::{Ended, Engine};
use colloquy_bus::{Bus, Delivered};
use colloquy_service_kit::Shutdown;
use colloquy_types::Result;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// How often the bus is told that a job is still in work.
const PROGRESS: Duration = Duration::from_secs(10);

pub async fn run(engine: Engine, bus: Arc<dyn Bus>, config: Config, shutdown: Shutdown) -> Result<()> {
    let hands = Arc::new(Semaphore::new(config.concurrency.max(1)));
    while !shutdown.has_begun() {
        let mut subscription = match bus.subscribe("compaction").await {
            Ok(subscription) => subscription,
            Err(error) => {
                tracing::warn!(%error, "cannot subscribe");
                shutdown.sleep(Duration::from_secs(1)).await;
                continue;
            }
        };
        loop {
            // No more is taken than there are hands for.
            let Ok(hand) = hands.clone().acquire_owned().await else {
                return Ok(());
            };
            let delivered = tokio::select! {
                delivered = subscription.next() => delivered,
                () = shutdown.begun() => return Ok(()),
            };
            match delivered {
                Ok(delivered) => {
                    let engine = engine.clone();
                    shutdown.spawn("compaction", async move {
                        handle(&engine, delivered).await;
                        drop(hand);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "the bus does not answer");
                    shutdown.sleep(Duration::from_secs(1)).await;
                    break;
                }
            }
        }
    }
    Ok(())
}

async fn handle(engine: &Engine, delivered: Delivered) {
    let (message, receipt) = (delivered.message, delivered.receipt);
    let session = message.session.to_string();
    let work = engine.run(message.tenant, &session, message.job);
    tokio::pin!(work);
    let ended = loop {
        tokio::select! {
            ended = &mut work => break ended,
            () = tokio::time::sleep(PROGRESS) => {
                let _ = receipt.progress().await;
            }
        }
    };
    match &ended {
        Ok(Ended::Applied) => tracing::info!(job = %message.job, %session, "compacted"),
        Ok(Ended::Skipped(reason)) => {
            tracing::info!(job = %message.job, %session, reason, "nothing compacted")
        }
        Ok(Ended::Failed(reason)) => {
            tracing::warn!(job = %message.job, %session, reason, "compaction failed")
        }
        Err(error) => tracing::warn!(job = %message.job, %session, %error, "compaction was not recorded"),
    }
    let end = match &ended {
        Ok(Ended::Applied) => "applied",
        Ok(Ended::Skipped(_)) => "skipped",
        _ => "failed",
    };
    metrics::counter!("colloquy_compactions_total", "end" => end).increment(1);
    // The end stands in the table; whatever is not recorded there is published again.
    if let Err(error) = receipt.ack().await {
        tracing::debug!(job = %message.job, %error, "not acknowledged; the table knows better");
    }
}
