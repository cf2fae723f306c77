//! Live and ready, apart: a process that waits for its database is alive and not ready.

use crate::shutdown::Shutdown;
use colloquy_types::Result;
use futures::future::BoxFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Failures in a row after which a service stops being ready; one success brings it back.
const FAILURES_TO_LEAVE: u32 = 3;
const INTERVAL: Duration = Duration::from_secs(1);

/// Something a service needs to be ready.
#[derive(Clone)]
pub struct Check {
    pub name: &'static str,
    probe: Arc<dyn Fn() -> BoxFuture<'static, Result<()>> + Send + Sync>,
}

impl Check {
    pub fn new<F, Fut>(name: &'static str, probe: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        Self {
            name,
            probe: Arc::new(move || Box::pin(probe())),
        }
    }
}

/// Whether traffic should come here.
#[derive(Clone, Default)]
pub struct Readiness {
    ready: Arc<AtomicBool>,
    leaving: CancellationToken,
}

impl Readiness {
    pub fn get(&self) -> bool {
        self.ready.load(Ordering::SeqCst) && !self.leaving.is_cancelled()
    }

    /// Not ready from now on, whatever the checks find.
    pub fn leave(&self) {
        self.leaving.cancel();
    }

    fn set(&self, ready: bool) {
        self.ready.store(ready, Ordering::SeqCst);
    }
}

/// Runs the checks until the process leaves; then ready is false at once, and stays so.
pub async fn watch(
    checks: Vec<Check>,
    readiness: Readiness,
    reporter: tonic_health::server::HealthReporter,
    shutdown: Shutdown,
) {
    let mut failures = vec![0_u32; checks.len()];
    loop {
        let healthy = tokio::select! {
            healthy = round(&checks, &mut failures) => healthy && !shutdown.has_begun(),
            () = readiness.leaving.cancelled() => false,
        };
        if healthy != readiness.get() {
            tracing::info!(ready = healthy, "readiness changed");
        }
        publish(&reporter, &readiness, healthy).await;
        let left = tokio::select! {
            slept = shutdown.sleep(INTERVAL) => !slept,
            () = readiness.leaving.cancelled() => true,
        };
        if left {
            publish(&reporter, &readiness, false).await;
            return;
        }
    }
}

async fn publish(reporter: &tonic_health::server::HealthReporter, readiness: &Readiness, ready: bool) {
    use tonic_health::ServingStatus::{NotServing, Serving};
    readiness.set(ready);
    reporter
        .set_service_status("", if ready { Serving } else { NotServing })
        .await;
}

async fn round(checks: &[Check], failures: &mut [u32]) -> bool {
    let probes = checks
        .iter()
        .map(|check| tokio::time::timeout(INTERVAL * 2, (check.probe)()));
    let results = futures::future::join_all(probes).await;
    for ((check, result), failed) in checks.iter().zip(results).zip(failures.iter_mut()) {
        let error = match result {
            Ok(Ok(())) => {
                *failed = 0;
                continue;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer in time".to_owned(),
        };
        *failed = failed.saturating_add(1);
        tracing::warn!(check = check.name, %error, failures = *failed, "dependency check failed");
    }
    failures.iter().all(|failed| *failed < FAILURES_TO_LEAVE)
}
