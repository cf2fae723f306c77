//! What the builds of a turn did, and how far the counts behind them are off.

use crate::Marks;
use async_trait::async_trait;
use colloquy_types::{BranchId, Fence, Result, SessionId, TenantId, TranscriptId, TurnId, UnixMillis};

/// A build of a running turn.
#[derive(Debug, Clone, PartialEq)]
pub struct NewReceipt {
    pub tenant: TenantId,
    pub turn: TurnId,
    pub fence: Fence,
    /// Watermarks that the build moved.
    pub marks: Option<Marks>,
    /// JSON of the receipt.
    pub body: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Receipt {
    pub turn: TurnId,
    pub session: SessionId,
    /// From 1 within the turn, over all its attempts.
    pub build: u32,
    pub fence: Fence,
    pub body: Vec<u8>,
    /// Prompt tokens that the provider counted: of a committed turn's last build, where its worker told.
    pub reported: Option<i64>,
    pub at: UnixMillis,
}

/// Where a turn commits to, whatever became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnPlace {
    pub session: SessionId,
    /// Canonical string of the session's key.
    pub key: String,
    pub transcript: TranscriptId,
    pub branch: BranchId,
    /// Of its last claim.
    pub fence: Fence,
    pub has_ended: bool,
}

/// Which of a session's receipts are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recent {
    All,
    /// Those whose prompt the provider counted.
    Reported,
}

/// Names a calibration within the tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CalibrationKey {
    pub model: String,
    pub tokenizer: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCalibration {
    /// JSON, the owner's business.
    pub state: Vec<u8>,
    pub version: i64,
}

#[async_trait]
pub trait Receipts: Send + Sync {
    /// Confirms the offer, moves the watermarks and answers the build's number. The row may be lost with the database's
    /// machine as long as nothing else of the turn was written behind it: a turn that is committed has its receipts.
    /// `FENCED`, `NOT_FOUND` for an unknown turn.
    async fn keep_receipt(&self, receipt: &NewReceipt) -> Result<u32>;

    /// The last build's when none is named.
    async fn get_receipt(
        &self,
        tenant: TenantId,
        turn: TurnId,
        build: Option<u32>,
    ) -> Result<Option<Receipt>>;

    /// Of all turns of the session, newest first, at most `limit`.
    async fn last_receipts(
        &self,
        tenant: TenantId,
        session: SessionId,
        which: Recent,
        limit: u32,
    ) -> Result<Vec<Receipt>>;

    async fn turn_place(&self, tenant: TenantId, turn: TurnId) -> Result<Option<TurnPlace>>;

    async fn get_calibration(
        &self,
        tenant: TenantId,
        key: &CalibrationKey,
    ) -> Result<Option<StoredCalibration>>;

    /// Compare-and-set: `version` is the one that was read, 0 when there was none. False when another came first.
    async fn put_calibration(
        &self,
        tenant: TenantId,
        key: &CalibrationKey,
        state: &[u8],
        version: i64,
    ) -> Result<bool>;
}
