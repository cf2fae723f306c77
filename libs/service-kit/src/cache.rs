//! Answers of another service, kept a short time while it is up and longer while it is down.

use colloquy_types::{Reason, Result};
use moka::future::Cache;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// How long an answer is used without asking again: the time in which a change is in force everywhere.
pub const FRESH: Duration = Duration::from_secs(4);
/// How long an answer is used while the other service cannot be asked.
pub const STALE: Duration = Duration::from_secs(600);

/// A bounded cache of successful answers.
#[derive(Clone)]
pub struct Answers<K, V> {
    known: Cache<K, (Instant, V)>,
    fresh: Duration,
}

impl<K: Hash + Eq + Clone + Send + Sync + 'static, V: Clone + Send + Sync + 'static> Answers<K, V> {
    pub fn new(fresh: Duration, stale: Duration) -> Self {
        Self {
            known: Cache::builder().max_capacity(10_000).time_to_live(stale).build(),
            fresh,
        }
    }

    /// The known answer while it is fresh, else what `ask` says. An old answer stands in only while the other
    /// service does not answer; a refusal is believed at once.
    ///
    /// # Errors
    /// Those of `ask`.
    pub async fn get<F, Fut>(&self, key: K, ask: F) -> Result<V>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<V>>,
    {
        let known = self.known.get(&key).await;
        if let Some((at, value)) = &known
            && at.elapsed() < self.fresh
        {
            return Ok(value.clone());
        }
        match (ask().await, known) {
            (Ok(value), _) => {
                self.known.insert(key, (Instant::now(), value.clone())).await;
                Ok(value)
            }
            (Err(error), Some((_, value)))
                if matches!(error.reason, Reason::Dependency | Reason::Deadline) =>
            {
                tracing::warn!(%error, "using an earlier answer");
                Ok(value)
            }
            (Err(error), _) => {
                self.known.invalidate(&key).await;
                Err(error)
            }
        }
    }
}

impl<K: Hash + Eq + Clone + Send + Sync + 'static, V: Clone + Send + Sync + 'static> Default
    for Answers<K, V>
{
    fn default() -> Self {
        Self::new(FRESH, STALE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use colloquy_types::Error;

    #[tokio::test]
    async fn an_old_answer_stands_in_for_a_service_that_is_down_but_not_for_a_refusal() {
        let answers: Answers<u8, u8> = Answers::new(Duration::ZERO, STALE);
        assert_eq!(answers.get(1, || async { Ok(7) }).await, Ok(7));
        assert_eq!(
            answers.get(1, || async { Err(Error::unavailable("down")) }).await,
            Ok(7)
        );
        let refused = Error::new(Reason::BadCredential, "revoked");
        assert_eq!(
            answers.get(1, || async { Err(refused.clone()) }).await,
            Err(refused)
        );
        assert!(
            answers
                .get(1, || async { Err(Error::unavailable("down")) })
                .await
                .is_err()
        );
    }

    #[tokio::test]
    async fn a_fresh_answer_is_not_asked_for_again() {
        let answers: Answers<u8, u8> = Answers::default();
        assert_eq!(answers.get(1, || async { Ok(7) }).await, Ok(7));
        assert_eq!(answers.get(1, || async { panic!("asked again") }).await, Ok(7));
    }
}
