//! Spreads background work over workers. The job table is the truth; a message is only an offer to look at it.
//!
//! Owns delivery: at least once, with acknowledgements, progress and redelivery. Must not know what a job does.
//! Another backend implements [`Bus`] and runs the conformance suite in `tests/it`.

mod jetstream;
mod limited;
mod memory;

pub use jetstream::{JetStreamBus, NatsConfig};
pub use memory::MemoryBus;

use async_trait::async_trait;
use colloquy_types::{JobId, Result, SessionId, TenantId};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A message that is not acknowledged within this time is delivered again; progress starts it anew.
pub const ACK_WAIT: Duration = Duration::from_secs(30);

/// A message id is remembered this long; a job's next publication has a new one.
pub const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);

/// An offer of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobMessage {
    pub job: JobId,
    /// With the job the message's id, never used twice: a bus drops ids it has seen.
    pub publish_no: i64,
    pub tenant: TenantId,
    pub session: SessionId,
    /// Lower-case word, `[a-z_]+`; a consumer takes one kind.
    pub kind: String,
}

impl JobMessage {
    /// What a bus deduplicates by.
    pub fn id(&self) -> String {
        format!("{}.{}", self.job, self.publish_no)
    }
}

/// The other end of a delivered message. Dropping it without a word lets it be delivered again. Every call fails
/// with `DEPENDENCY` when the bus does not answer; the message is then delivered again.
#[async_trait]
pub trait Receipt: Send + Sync {
    /// It is dealt with.
    async fn ack(&self) -> Result<()>;
    /// Still working: start the wait anew.
    async fn progress(&self) -> Result<()>;
    /// Deliver it again after the delay.
    async fn nak(&self, delay: Duration) -> Result<()>;
    /// Never deliver it again, though it was not dealt with.
    async fn term(&self) -> Result<()>;
}

/// A message in a worker's hands.
pub struct Delivered {
    pub message: JobMessage,
    pub receipt: Box<dyn Receipt>,
}

/// Messages of one kind, shared with all other subscribers of the kind.
#[async_trait]
pub trait Subscription: Send {
    /// Waits for the next message. Cancel-safe. Heals by itself; an error is worth a pause and another call.
    ///
    /// # Errors
    /// `DEPENDENCY`.
    async fn next(&mut self) -> Result<Delivered>;
}

#[async_trait]
pub trait Bus: Send + Sync + 'static {
    /// Durable on the bus when it returns; a message id seen within the duplicate window is dropped.
    ///
    /// # Errors
    /// `DEPENDENCY`.
    async fn publish(&self, message: &JobMessage) -> Result<()>;

    /// The messages of a kind. All subscribers of the kind, in any process, share them.
    ///
    /// # Errors
    /// `DEPENDENCY`.
    async fn subscribe(&self, kind: &str) -> Result<Box<dyn Subscription>>;

    /// The same with at most `most` (at least one) messages handed out at a time: the next one waits until a
    /// receipt is dropped.
    ///
    /// # Errors
    /// `DEPENDENCY`.
    async fn subscribe_at_most(&self, kind: &str, most: usize) -> Result<Box<dyn Subscription>> {
        let all = self.subscribe(kind).await?;
        Ok(Box::new(limited::Limited::new(all, most)))
    }

    /// Whether the bus answers.
    ///
    /// # Errors
    /// `DEPENDENCY`.
    async fn ping(&self) -> Result<()>;
}
