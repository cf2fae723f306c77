//! A model that tries again: a deadline over all attempts, pauses with jitter, Retry-After honoured, an end.

use crate::{ChatReply, ChatRequest, Model, ModelError};
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// When a call is repeated. Only what [`ModelError::is_transient`] says is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// At least one is made.
    pub attempts: u32,
    /// Doubled from pause to pause; half to the whole of it is waited.
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
    /// Calls until it succeeds, fails for good, the attempts are used up, or `limit` is over. Where the next pause
    /// would end after the limit, the failure is told at once: it says more than that time is over.
    ///
    /// # Errors
    /// The last attempt's, or `Deadline`.
    pub async fn run<T, F, Fut>(&self, limit: Duration, mut attempt: F) -> Result<T, ModelError>
    where
        F: FnMut() -> Fut,
        Fut: Future<Output = Result<T, ModelError>>,
    {
        let start = Instant::now();
        let mut pause = self.first_pause;
        let mut made = 0;
        loop {
            let left = limit.saturating_sub(start.elapsed());
            let Some(end) = Instant::now().checked_add(left) else {
                return Err(ModelError::Unsupported("the deadline is too far away".into()));
            };
            let error = match timeout_at(end, attempt()).await {
                Ok(Ok(value)) => return Ok(value),
                Ok(Err(error)) => error,
                Err(_) => return Err(ModelError::Deadline),
            };
            made += 1;
            if made >= self.attempts || !error.is_transient() {
                return Err(error);
            }
            let wait = wait(&error, pause);
            if wait >= limit.saturating_sub(start.elapsed()) {
                return Err(error);
            }
            tracing::debug!(%error, ?wait, attempt = made, "model call is repeated");
            sleep(wait).await;
            pause = (pause * 2).min(self.longest_pause);
        }
    }
}

/// What the provider asks for, a little spread so that callers do not come back together; else the pause.
fn wait(error: &ModelError, pause: Duration) -> Duration {
    match error {
        ModelError::Rate {
            retry_after: Some(asked),
        } => asked.mul_f64(rand::random_range(1.0..1.1)),
        _ => pause.mul_f64(rand::random_range(0.5..1.0)),
    }
}

/// Another model, its calls repeated.
pub struct Retrying {
    inner: Arc<dyn Model>,
    retry: Retry,
    limit: Duration,
}

impl Retrying {
    /// `limit` bounds a call that brings no deadline of its own.
    pub fn new(inner: Arc<dyn Model>, retry: Retry, limit: Duration) -> Self {
        Self { inner, retry, limit }
    }
}

#[async_trait]
impl Model for Retrying {
    async fn chat(&self, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        let limit = request.deadline.unwrap_or(self.limit);
        // The deadline over all attempts is kept here; one attempt must not end earlier by its own.
        let bounded = ChatRequest {
            deadline: Some(limit),
            ..request.clone()
        };
        self.retry.run(limit, || self.inner.chat(&bounded)).await
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError> {
        self.retry.run(self.limit, || self.inner.embed(texts)).await
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn window_tokens(&self) -> u32 {
        self.inner.window_tokens()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    fn rate(seconds: u64) -> ModelError {
        ModelError::Rate {
            retry_after: Some(Duration::from_secs(seconds)),
        }
    }

    /// Runs attempts that all fail so; answers the error, how many there were and how long it took.
    async fn failing(error: ModelError, limit: Duration) -> (ModelError, u32, Duration) {
        let made = AtomicU32::new(0);
        let start = Instant::now();
        let attempt = || {
            made.fetch_add(1, Ordering::SeqCst);
            std::future::ready(Err::<(), _>(error.clone()))
        };
        let failed = Retry::default().run(limit, attempt).await.unwrap_err();
        (failed, made.load(Ordering::SeqCst), start.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn transient_failures_are_repeated_with_growing_pauses_and_an_end() {
        let transient = ModelError::Transient("it answered 500".into());
        let (error, made, took) = failing(transient.clone(), Duration::from_secs(60)).await;
        assert_eq!((error, made), (transient, 4));
        let pauses = Duration::from_millis(1_750)..=Duration::from_millis(3_600);
        assert!(pauses.contains(&took), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_wait_that_the_provider_asks_for_is_kept() {
        let (error, made, took) = failing(rate(9), Duration::from_secs(60)).await;
        assert_eq!((error, made), (rate(9), 4));
        assert!(
            took >= Duration::from_secs(27) && took < Duration::from_secs(30),
            "{took:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_beyond_the_deadline_is_told_at_once() {
        let (error, made, took) = failing(rate(90), Duration::from_secs(60)).await;
        assert_eq!((error, made, took), (rate(90), 1, Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_get_better_is_not_repeated() {
        for error in [
            ModelError::Auth,
            ModelError::Refused,
            ModelError::Deadline,
            ModelError::Malformed("x".into()),
            ModelError::Unsupported("x".into()),
            ModelError::Overflow {
                observed: None,
                limit: None,
            },
        ] {
            let (failed, made, _) = failing(error.clone(), Duration::from_secs(60)).await;
            assert_eq!((failed, made), (error, 1));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_that_hangs_ends_at_the_deadline() {
        let start = Instant::now();
        let hanging = || std::future::pending::<Result<(), ModelError>>();
        let failed = Retry::default().run(Duration::from_secs(7), hanging).await;
        assert_eq!(failed, Err(ModelError::Deadline));
        assert!(start.elapsed() < Duration::from_millis(7_010));
    }
}
