//! Receipts and calibrations.

use crate::fault::Fault;
use crate::turn::{confirm, held};
use crate::{SqliteStore, Tx, block};
use async_trait::async_trait;
use colloquy_storage::{CalibrationKey, NewReceipt, Receipt, Receipts, Recent, StoredCalibration, TurnPlace};
use colloquy_types::{BranchId, Fence, Result, Seq, SessionId, TenantId, TranscriptId, TurnId, UnixMillis};
use sqlx::FromRow;
use uuid::Uuid;

#[async_trait]
impl Receipts for SqliteStore {
    async fn keep_receipt(&self, receipt: &NewReceipt) -> Result<u32> {
        let mut tx = self.write().await?;
        let build = keep(&mut tx, receipt).await?;
        tx.commit().await?;
        Ok(build)
    }

    async fn get_receipt(
        &self,
        tenant: TenantId,
        turn: TurnId,
        build: Option<u32>,
    ) -> Result<Option<Receipt>> {
        Ok(get(&mut self.read().await?, tenant, turn, build).await?)
    }

    async fn last_receipts(
        &self,
        tenant: TenantId,
        session: SessionId,
        which: Recent,
        limit: u32,
    ) -> Result<Vec<Receipt>> {
        Ok(last(&mut self.read().await?, tenant, session, which, limit).await?)
    }

    async fn turn_place(&self, tenant: TenantId, turn: TurnId) -> Result<Option<TurnPlace>> {
        Ok(place(&mut self.read().await?, tenant, turn).await?)
    }

    async fn get_calibration(
        &self,
        tenant: TenantId,
        key: &CalibrationKey,
    ) -> Result<Option<StoredCalibration>> {
        Ok(calibration(&mut self.read().await?, tenant, key).await?)
    }

    async fn put_calibration(
        &self,
        tenant: TenantId,
        key: &CalibrationKey,
        state: &[u8],
        version: i64,
    ) -> Result<bool> {
        let mut tx = self.write().await?;
        let stored = put(&mut tx, tenant, key, state, version).await?;
        tx.commit().await?;
        Ok(stored)
    }
}

#[derive(FromRow)]
struct ReceiptRow {
    turn: Uuid,
    session: Uuid,
    build: u32,
    fence: i64,
    body: Vec<u8>,
    reported: Option<i64>,
    at: i64,
}

impl From<ReceiptRow> for Receipt {
    fn from(row: ReceiptRow) -> Self {
        Self {
            turn: TurnId(row.turn),
            session: SessionId(row.session),
            build: row.build,
            fence: Fence(row.fence),
            body: row.body,
            reported: row.reported,
            at: UnixMillis(row.at),
        }
    }
}

async fn keep(tx: &mut Tx, receipt: &NewReceipt) -> Result<u32, Fault> {
    let mut row = held(tx, receipt.tenant, receipt.turn, receipt.fence).await?;
    confirm(tx, &mut row).await?;
    if let Some(marks) = receipt.marks {
        block::move_marks(tx, row.line(), marks, Seq(row.head_at_claim)).await?;
    }
    let sql = "/* keep_receipt */ INSERT INTO receipts (tenant, turn, build, session, fence, body, at) \
               VALUES (?, ?, (SELECT coalesce(max(build), 0) + 1 FROM receipts WHERE tenant = ? AND turn = ?), \
               ?, ?, ?, ?) RETURNING build";
    let query = sqlx::query_scalar(sql)
        .bind(row.tenant)
        .bind(row.id)
        .bind(row.tenant)
        .bind(row.id);
    let query = query
        .bind(row.session)
        .bind(row.fence)
        .bind(&receipt.body)
        .bind(tx.now.0);
    Ok(query.fetch_one(tx.conn()).await?)
}

async fn get(
    tx: &mut Tx,
    tenant: TenantId,
    turn: TurnId,
    build: Option<u32>,
) -> Result<Option<Receipt>, Fault> {
    let sql = "/* get_receipt */ SELECT turn, session, build, fence, body, reported, at FROM receipts \
               WHERE tenant = ? AND turn = ? AND build = coalesce(?, build) ORDER BY build DESC LIMIT 1";
    let query = sqlx::query_as::<_, ReceiptRow>(sql).bind(tenant.0).bind(turn.0);
    let found = query.bind(build.map(i64::from)).fetch_optional(tx.conn()).await?;
    Ok(found.map(Into::into))
}

async fn last(
    tx: &mut Tx,
    tenant: TenantId,
    session: SessionId,
    which: Recent,
    limit: u32,
) -> Result<Vec<Receipt>, Fault> {
    let sql = match which {
        Recent::All => {
            "/* last_receipts */ SELECT turn, session, build, fence, body, reported, at FROM receipts \
             WHERE tenant = ? AND session = ? ORDER BY at DESC, build DESC LIMIT ?"
        }
        Recent::Reported => {
            "/* last_receipts */ SELECT turn, session, build, fence, body, reported, at FROM receipts \
             WHERE tenant = ? AND session = ? AND reported IS NOT NULL ORDER BY at DESC, build DESC LIMIT ?"
        }
    };
    let query = sqlx::query_as::<_, ReceiptRow>(sql)
        .bind(tenant.0)
        .bind(session.0);
    let found = query.bind(i64::from(limit)).fetch_all(tx.conn()).await?;
    Ok(found.into_iter().map(Into::into).collect())
}

#[derive(FromRow)]
struct PlaceRow {
    session: Uuid,
    key: String,
    transcript: Uuid,
    branch: Uuid,
    fence: i64,
    has_ended: bool,
}

async fn place(tx: &mut Tx, tenant: TenantId, turn: TurnId) -> Result<Option<TurnPlace>, Fault> {
    let sql = "/* turn_place */ SELECT t.session, s.key, t.transcript, t.branch, t.fence, \
               t.ended IS NOT NULL AS has_ended FROM turns t \
               JOIN sessions s ON s.tenant = t.tenant AND s.id = t.session WHERE t.tenant = ? AND t.id = ?";
    let query = sqlx::query_as::<_, PlaceRow>(sql).bind(tenant.0).bind(turn.0);
    let found = query.fetch_optional(tx.conn()).await?;
    Ok(found.map(|row| TurnPlace {
        session: SessionId(row.session),
        key: row.key,
        transcript: TranscriptId(row.transcript),
        branch: BranchId(row.branch),
        fence: Fence(row.fence),
        has_ended: row.has_ended,
    }))
}

async fn calibration(
    tx: &mut Tx,
    tenant: TenantId,
    key: &CalibrationKey,
) -> Result<Option<StoredCalibration>, Fault> {
    let sql = "/* get_calibration */ SELECT state, version FROM calibrations \
               WHERE tenant = ? AND model = ? AND tokenizer = ?";
    let query = sqlx::query_as::<_, (Vec<u8>, i64)>(sql).bind(tenant.0);
    let query = query.bind(&key.model).bind(&key.tokenizer);
    let found = query.fetch_optional(tx.conn()).await?;
    Ok(found.map(|(state, version)| StoredCalibration { state, version }))
}

async fn put(
    tx: &mut Tx,
    tenant: TenantId,
    key: &CalibrationKey,
    state: &[u8],
    version: i64,
) -> Result<bool, Fault> {
    let sql = "/* put_calibration */ INSERT INTO calibrations (tenant, model, tokenizer, version, state) \
               VALUES (?, ?, ?, ? + 1, ?) ON CONFLICT (tenant, model, tokenizer) DO UPDATE \
               SET version = excluded.version, state = excluded.state \
               WHERE calibrations.version = excluded.version - 1";
    let query = sqlx::query(sql)
        .bind(tenant.0)
        .bind(&key.model)
        .bind(&key.tokenizer);
    let done = query.bind(version).bind(state).execute(tx.conn()).await?;
    Ok(done.rows_affected() > 0)
}
