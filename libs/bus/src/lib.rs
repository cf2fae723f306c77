//! Spreads background work over workers. The job table is the truth; a message is only an offer to look at it.
//!
//! Owns delivery: at least once, with acknowledgements, progress and redelivery. Must not know what a job does.
//! Another backend implements [`Bus`] and runs the conformance suite in `tests/it`.

mod jetstream;
mod memory;

pub use jetstream::JetStreamBus;
pub use memory::MemoryBus;

use async_trait::async_trait;
use colloquy_types::{JobId, Result, SessionId, TenantId};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A message that is not acknowledged within this time is delivered again; progress starts it anew.
pub const ACK_WAIT: Duration = Duration::from_secs(30);

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

/// The other end of a delivered message. Dropping it without a word lets it be delivered again.
#[async_trait]
pub trait Receipt: Send + Sync {
    /// It is dealt with.
    async fn ack(&self) -> Result<()>;
    /// Still working: start the wait anew.
    async fn progress(&self) -> Result<()>;
    /// Deliver it again after the delay.
    async fn nak(&self, delay: Duration) -> Result<()>;
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

    /// # Errors
    /// `DEPENDENCY`.
    async fn subscribe(&self, kind: &str) -> Result<Box<dyn Subscription>>;

    /// Whether the bus answers.
    ///
    /// # Errors
    /// `DEPENDENCY`.
    async fn ping(&self) -> Result<()>;
}
