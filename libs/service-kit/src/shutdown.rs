//! Stopping in two phases: first everything is asked to finish, then it is ended.

use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Handed to everything that waits. Cloning is cheap.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    soft: CancellationToken,
    tracker: TaskTracker,
}

impl Shutdown {
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks everything to finish.
    pub fn begin(&self) {
        self.soft.cancel();
    }

    pub fn has_begun(&self) -> bool {
        self.soft.is_cancelled()
    }

    /// Ends when stopping begins. Cancel-safe.
    pub async fn begun(&self) {
        self.soft.cancelled().await;
    }

    pub fn token(&self) -> CancellationToken {
        self.soft.clone()
    }

    /// Sleeps, but not into the stop: `false` when stopping began. Cancel-safe.
    pub async fn sleep(&self, duration: Duration) -> bool {
        tokio::select! {
            () = tokio::time::sleep(duration) => true,
            () = self.soft.cancelled() => false,
        }
    }

    /// Spawns a task that the stop waits for.
    pub fn spawn<F>(&self, name: &'static str, task: F) -> tokio::task::JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        tracing::trace!(task = name, "spawned");
        self.tracker.spawn(task)
    }

    /// Waits for all tracked tasks, at most `limit`. `false` when some are left.
    pub async fn drained(&self, limit: Duration) -> bool {
        self.tracker.close();
        tokio::time::timeout(limit, self.tracker.wait()).await.is_ok()
    }
}

/// Ends at SIGTERM or SIGINT.
///
/// # Errors
/// When the handlers cannot be installed.
pub async fn signal() -> std::io::Result<&'static str> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    })
}
