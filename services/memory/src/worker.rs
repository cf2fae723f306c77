//! Takes extraction jobs from the bus, works through the job table, and keeps its promises there.

use crate::extract;
use crate::service::MemoryServer;
use colloquy_bus::{Bus, Delivered};
use colloquy_proto::convert::duration;
use colloquy_proto::v1;
use colloquy_service_kit::client::request;
use colloquy_service_kit::{Shutdown, from_status};
use colloquy_types::Result;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Jobs in work at the same time.
const CONCURRENCY: usize = 4;
const LEASE_MS: i64 = 120_000;
const RETRY_MS: i64 = 60_000;

pub async fn run(server: MemoryServer, bus: Arc<dyn Bus>, shutdown: Shutdown) -> Result<()> {
    let hands = Arc::new(Semaphore::new(CONCURRENCY));
    while !shutdown.has_begun() {
        let mut subscription = match bus.subscribe("memory_extract").await {
            Ok(subscription) => subscription,
            Err(error) => {
                tracing::warn!(%error, "cannot subscribe");
                shutdown.sleep(Duration::from_secs(1)).await;
                continue;
            }
        };
        loop {
            let Ok(hand) = hands.clone().acquire_owned().await else {
                return Ok(());
            };
            let delivered = tokio::select! {
                delivered = subscription.next() => delivered,
                () = shutdown.begun() => return Ok(()),
            };
            match delivered {
                Ok(delivered) => {
                    let server = server.clone();
                    shutdown.spawn("memory extraction", async move {
                        handle(&server, delivered).await;
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

async fn handle(server: &MemoryServer, delivered: Delivered) {
    let job = delivered.message.job;
    if let Err(error) = work(server, &delivered).await {
        // The table publishes the job again; the message itself is done with.
        tracing::warn!(%job, %error, "extraction was not recorded");
    }
    if let Err(error) = delivered.receipt.ack().await {
        tracing::debug!(%job, %error, "not acknowledged; the table knows better");
    }
}

async fn work(server: &MemoryServer, delivered: &Delivered) -> Result<()> {
    let (tenant, job_id) = (delivered.message.tenant, delivered.message.job.to_string());
    let mut history = server.sessions.client();
    let start = v1::StartJobRequest {
        job_id: job_id.clone(),
        lease: Some(duration(LEASE_MS)),
    };
    let started = history
        .start_job(request(tenant, start))
        .await
        .map_err(from_status)?
        .into_inner();
    let Some(job) = started.job else { return Ok(()) };
    let extract = v1::ExtractRequest {
        session_id: job.session_id,
        transcript_id: job.transcript_id,
        branch_id: job.branch_id,
        through_seq: 0,
    };
    let end = match extract::extract(server, tenant, extract).await {
        Ok(done) => {
            let result_json = serde_json::json!({
                "extracted_through": done.extracted_through,
                "added": done.added,
                "reinforced": done.reinforced,
                "superseded": done.superseded,
            })
            .to_string();
            v1::EndJobRequest {
                job_id,
                result_json,
                ..Default::default()
            }
        }
        Err(error) => v1::EndJobRequest {
            job_id,
            error: error.to_string(),
            retry_after: Some(duration(RETRY_MS)),
            ..Default::default()
        },
    };
    history
        .end_job(request(tenant, end))
        .await
        .map_err(from_status)
        .map(|_| ())
}
