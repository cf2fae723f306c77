//! Retries with jitter and an end. Only calls that are safe to repeat go through here.

use crate::error::{Error, Result};
use std::time::Duration;
use tokio::time::Instant;
use tonic::{Response, Status};

/// How long and how patiently a call is repeated.
#[derive(Debug, Clone)]
pub struct Retry {
    /// No attempt starts later than this after the first one.
    pub limit: Duration,
    pub first_pause: Duration,
    pub longest_pause: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            limit: Duration::from_secs(30),
            first_pause: Duration::from_millis(50),
            longest_pause: Duration::from_secs(2),
        }
    }
}

impl Retry {
    /// Calls until it succeeds, fails for good, or the limit has passed.
    ///
    /// # Errors
    /// The last attempt's.
    pub async fn call<T, F, Fut>(&self, mut attempt: F) -> Result<T>
    where
        F: FnMut() -> Fut,
        Fut: Future<Output = Result<Response<T>, Status>>,
    {
        let end = Instant::now() + self.limit;
        let mut pause = self.first_pause;
        loop {
            let error = match attempt().await {
                Ok(response) => return Ok(response.into_inner()),
                Err(status) => Error::from(status),
            };
            let wait = error
                .retry_after
                .unwrap_or(pause)
                .mul_f64(rand::random_range(0.5..1.0));
            if !error.is_transient() || Instant::now() + wait > end {
                return Err(error);
            }
            tracing::debug!(reason = %error.reason, "retrying");
            tokio::time::sleep(wait).await;
            pause = (pause * 2).min(self.longest_pause);
        }
    }
}
