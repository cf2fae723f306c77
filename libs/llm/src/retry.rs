//! Retries with jitter and an end, honouring Retry-After.

use crate::ModelError;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Retry {
    pub attempts: u32,
    pub first_pause: Duration,
    pub longest_pause: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            attempts: 4,
            first_pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(20),
        }
    }
}

impl Retry {
    /// Calls until it succeeds, fails for good, or the attempts are used up. The caller bounds the time.
    pub async fn call<T, F, Fut>(&self, mut attempt: F) -> Result<T, ModelError>
    where
        F: FnMut() -> Fut,
        Fut: Future<Output = Result<T, ModelError>>,
    {
        let mut pause = self.first_pause;
        for left in (0..self.attempts.max(1)).rev() {
            let error = match attempt().await {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            if left == 0 || !error.is_transient() {
                return Err(error);
            }
            let wait = match &error {
                ModelError::Rate {
                    retry_after: Some(asked),
                } => *asked,
                _ => pause.mul_f64(rand::random_range(0.5..1.0)),
            };
            tracing::debug!(%error, ?wait, "model call is repeated");
            tokio::time::sleep(wait).await;
            pause = (pause * 2).min(self.longest_pause);
        }
        Err(ModelError::Deadline)
    }
}
