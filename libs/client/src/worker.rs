//! The loop agents are written with: acquire, renew while the agent thinks, commit or give back.

use crate::error::{Error, Result};
use crate::turn::TurnHandle;
use crate::{Client, v1};
use futures::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::Request;

/// What an agent made of a turn.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// Behind what was staged; the final assistant message belongs here.
    pub entries: Vec<v1::EntryBody>,
    /// What to send; empty = nothing.
    pub reply: Vec<v1::Part>,
    pub usage: Option<v1::Usage>,
    /// The agent gave up: what is here is kept and sent, and the messages end as failed.
    pub failed: bool,
}

impl Answer {
    /// An assistant message that is also the reply.
    pub fn text(text: impl Into<String>) -> Self {
        let part = v1::Part {
            part: Some(v1::part::Part::Text(text.into())),
        };
        let message = v1::Message {
            role: v1::MessageRole::Assistant.into(),
            parts: vec![part.clone()],
            ..Default::default()
        };
        let body = v1::EntryBody {
            body: Some(v1::entry_body::Body::Message(message)),
        };
        Self {
            entries: vec![body],
            reply: vec![part],
            usage: None,
            failed: false,
        }
    }
}

/// Why an agent gives a turn back.
#[derive(Debug, Clone)]
pub enum Failure {
    /// Try again, on any worker.
    Retry(String),
    /// It can never succeed.
    Fail(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Retry(error.to_string())
    }
}

/// Takes turns for some agents until it is told to stop.
#[derive(Clone)]
pub struct Worker {
    client: Client,
    name: String,
    agents: Vec<String>,
    concurrency: usize,
    wait: Duration,
    lease: Option<Duration>,
    stop: CancellationToken,
}

impl Worker {
    /// `name` is for people who look at a queue.
    pub fn new(client: Client, name: impl Into<String>) -> Self {
        Self {
            client,
            name: name.into(),
            agents: Vec::new(),
            concurrency: 4,
            wait: Duration::from_secs(20),
            lease: None,
            stop: CancellationToken::new(),
        }
    }

    /// Agents it serves; all that the key may by default.
    #[must_use]
    pub fn agents<T: Into<String>>(mut self, agents: impl IntoIterator<Item = T>) -> Self {
        self.agents = agents.into_iter().map(Into::into).collect();
        self
    }

    /// Turns it holds at the same time; 4 by default.
    #[must_use]
    pub fn concurrency(mut self, turns: usize) -> Self {
        self.concurrency = turns.max(1);
        self
    }

    /// Lease of its turns, 1 s to 10 min; the policy's by default.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// Cancelling it ends `run` after the turns in hand.
    #[must_use]
    pub fn stop_with(mut self, stop: CancellationToken) -> Self {
        self.stop = stop;
        self
    }

    /// Runs until stopped. Claims no more turns than it has hands for; on stop it finishes what it holds.
    ///
    /// # Errors
    /// When the server refuses the worker for good (credential, role, unknown agent).
    pub async fn run<F, Fut>(self, agent: F) -> Result<()>
    where
        F: Fn(Arc<TurnHandle>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = std::result::Result<Answer, Failure>> + Send + 'static,
    {
        let (agent, hands, turns) = (
            Arc::new(agent),
            Arc::new(Semaphore::new(self.concurrency)),
            TaskTracker::new(),
        );
        let result = loop {
            let hand = tokio::select! {
                hand = hands.clone().acquire_owned() => hand.expect("the semaphore is never closed"),
                () = self.stop.cancelled() => break Ok(()),
            };
            let acquired = tokio::select! {
                acquired = self.acquire() => acquired,
                () = self.stop.cancelled() => break Ok(()),
            };
            match acquired {
                Ok(Some(turn)) => {
                    let (client, agent) = (self.client.clone(), agent.clone());
                    turns.spawn(async move {
                        handle(client, turn, &*agent).await;
                        drop(hand);
                    });
                }
                Ok(None) => {}
                Err(error) if error.is_transient() => {
                    tracing::debug!(%error, "no turn could be asked for");
                    tokio::time::sleep(Duration::from_millis(rand::random_range(50..300))).await;
                }
                Err(error) => break Err(error),
            }
        };
        turns.close();
        turns.wait().await;
        result
    }

    async fn acquire(&self) -> Result<Option<v1::Turn>> {
        let wait = prost_duration(self.wait);
        let message = v1::AcquireTurnRequest {
            agents: self.agents.clone(),
            worker: self.name.clone(),
            wait: Some(wait),
            lease: self.lease.map(prost_duration),
        };
        let mut request = Request::new(message);
        request.set_timeout(self.wait + Duration::from_secs(5));
        let answered = self.client.router().acquire_turn(request).await?;
        Ok(answered.into_inner().turn)
    }
}

fn prost_duration(duration: Duration) -> colloquy_proto::Duration {
    colloquy_proto::convert::duration(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
}

async fn handle<F, Fut>(client: Client, turn: v1::Turn, agent: &F)
where
    F: Fn(Arc<TurnHandle>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = std::result::Result<Answer, Failure>> + Send + 'static,
{
    let cancelled = CancellationToken::new();
    let done = CancellationToken::new();
    let turn = Arc::new(TurnHandle::new(client, turn, cancelled.clone()));
    let renewing = tokio::spawn(renew(turn.clone(), cancelled.clone(), done.clone()));
    // An agent that panics must not keep its turn: nothing of it is used behind the panic.
    let answer = AssertUnwindSafe(async { agent(turn.clone()).await })
        .catch_unwind()
        .await;
    let answer = answer.unwrap_or_else(|_| Err(Failure::Retry("the agent panicked".into())));
    let ended = match answer {
        Ok(answer) => commit(&turn, answer).await,
        Err(failure) => release(&turn, failure).await,
    };
    done.cancel();
    if let Err(error) = ended {
        // Lost or stopped: whoever holds the turn now answers it.
        tracing::info!(turn = %turn.turn.turn_id, %error, "the turn was not ended by this worker");
        if error.is("CANCELLED") {
            let _ = release(&turn, Failure::Retry("stopped".into())).await;
        }
    }
    let _ = renewing.await;
}

/// Renews at a third of the lease; the first renewal confirms the offer.
async fn renew(turn: Arc<TurnHandle>, cancelled: CancellationToken, done: CancellationToken) {
    loop {
        let message = v1::RenewTurnRequest {
            turn_id: turn.turn.turn_id.clone(),
            fence: turn.turn.fence,
            steer_through: 0,
        };
        let mut request = Request::new(message);
        request.set_timeout(Duration::from_secs(5));
        let pause = match turn.client.router().renew_turn(request).await {
            Ok(renewed) => {
                let renewed = renewed.into_inner();
                if renewed
                    .signals
                    .iter()
                    .any(|s| matches!(s.signal, Some(v1::signal::Signal::Cancel(_))))
                {
                    cancelled.cancel();
                }
                let left = renewed
                    .lease_left
                    .as_ref()
                    .map_or(3_000, colloquy_proto::convert::duration_ms);
                // At most a second late for a stop, whatever the lease.
                Duration::from_millis(u64::try_from(left / 3).unwrap_or(0).clamp(100, 1_000))
            }
            Err(status) => {
                let error = Error::from(status);
                if !error.is_transient() {
                    cancelled.cancel();
                    return;
                }
                Duration::from_millis(500)
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = done.cancelled() => return,
        }
    }
}

async fn commit(turn: &TurnHandle, answer: Answer) -> Result<()> {
    let status = if answer.failed {
        v1::CommitStatus::Failed
    } else {
        v1::CommitStatus::Answered
    };
    let request = v1::CommitTurnRequest {
        turn_id: turn.turn.turn_id.clone(),
        fence: turn.turn.fence,
        entries: answer.entries,
        usage: answer.usage,
        reply: answer.reply,
        steer_through: 0,
        status: status.into(),
    };
    let call = || {
        let (mut router, request) = (turn.client.router(), request.clone());
        async move { router.commit_turn(request).await }
    };
    turn.client.retry.call(call).await.map(|_| ())
}

async fn release(turn: &TurnHandle, failure: Failure) -> Result<()> {
    let (kind, error) = match failure {
        Failure::Retry(error) => (v1::ReleaseKind::Retry, error),
        Failure::Fail(error) => (v1::ReleaseKind::Fail, error),
    };
    let request = v1::ReleaseTurnRequest {
        turn_id: turn.turn.turn_id.clone(),
        fence: turn.turn.fence,
        kind: kind.into(),
        error,
    };
    let call = || {
        let (mut router, request) = (turn.client.router(), request.clone());
        async move { router.release_turn(request).await }
    };
    turn.client.retry.call(call).await.map(|_| ())
}
