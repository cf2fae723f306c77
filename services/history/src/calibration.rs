//! How far counts are off, per tenant and model: learned from what providers report, used by the next builds.
//!
//! Learning is beside the turns, never in their way: what is lost with a process is learned from the next call.

use colloquy_context::tokens::anchor::Measured;
use colloquy_context::tokens::calibrate::{Calibration, Observation};
use colloquy_context::{Receipt, Tokenizer};
use colloquy_storage::{CalibrationKey, HistoryStore, Recent, StoredCalibration};
use colloquy_types::{Result, SessionId, TenantId};
use moka::future::Cache;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// How long a replica goes on with a state that another may have changed.
const FRESH: Duration = Duration::from_secs(10);
/// Sessions that wait to be learned from; more are not.
const BACKLOG: usize = 1_024;

/// The states this replica knows, and the sessions to learn from.
#[derive(Clone)]
pub struct Calibrations {
    store: Arc<dyn HistoryStore>,
    known: Cache<(TenantId, String), Calibration>,
    reported: mpsc::Sender<(TenantId, SessionId)>,
}

/// The learner's end.
pub struct Learner {
    calibrations: Calibrations,
    reported: mpsc::Receiver<(TenantId, SessionId)>,
}

impl Calibrations {
    pub fn new(store: Arc<dyn HistoryStore>) -> (Self, Learner) {
        let (send, receive) = mpsc::channel(BACKLOG);
        let known = Cache::builder().max_capacity(10_000).time_to_live(FRESH).build();
        let calibrations = Self {
            store,
            known,
            reported: send,
        };
        let learner = Learner {
            calibrations: calibrations.clone(),
            reported: receive,
        };
        (calibrations, learner)
    }

    /// What is to be expected of the model; the published expectation before anything was learned.
    pub async fn get(&self, tenant: TenantId, model: &str) -> Result<Calibration> {
        let name = (tenant, model.to_owned());
        if let Some(state) = self.known.get(&name).await {
            return Ok(state);
        }
        let state = self.load(tenant, model).await?.0;
        self.known.insert(name, state).await;
        Ok(state)
    }

    /// A turn was committed with the size of its last prompt.
    pub fn reported(&self, tenant: TenantId, session: SessionId) {
        // With a full backlog there is enough to learn from.
        let _ = self.reported.try_send((tenant, session));
    }

    async fn load(&self, tenant: TenantId, model: &str) -> Result<(Calibration, i64)> {
        let fresh = Calibration::for_model(model, Tokenizer::default());
        let stored = self.store.get_calibration(tenant, &key(model)).await?;
        Ok(match stored {
            Some(StoredCalibration { state, version }) => {
                (serde_json::from_slice(&state).unwrap_or(fresh), version)
            }
            None => (fresh, 0),
        })
    }

    async fn learn(&self, tenant: TenantId, session: SessionId) -> Result<()> {
        let stored = self
            .store
            .last_receipts(tenant, session, Recent::Reported, 2)
            .await?;
        let mut counted = stored.iter().filter_map(|stored| {
            let receipt: Receipt = serde_json::from_slice(&stored.body).ok()?;
            Some((receipt, u32::try_from(stored.reported?).ok()?))
        });
        let (Some((after, after_reported)), Some((before, before_reported))) =
            (counted.next(), counted.next())
        else {
            return Ok(());
        };
        let seen = Observation::between(
            measured(&before, before_reported),
            measured(&after, after_reported),
        );
        let Some(seen) = seen.filter(|_| is_grown_from(&before, &after)) else {
            return Ok(());
        };
        // Once more when another replica came first; a third time is not worth it.
        for _ in 0..2 {
            let (state, version) = self.load(tenant, &after.model).await?;
            let state = state.observe(seen);
            let body = serde_json::to_vec(&state).unwrap_or_default();
            if self
                .store
                .put_calibration(tenant, &key(&after.model), &body, version)
                .await?
            {
                self.known.insert((tenant, after.model.clone()), state).await;
                return Ok(());
            }
        }
        Ok(())
    }
}

impl Learner {
    /// Learns until nothing more can be reported.
    pub async fn run(mut self, shutdown: colloquy_service_kit::Shutdown) -> Result<()> {
        loop {
            let (tenant, session) = tokio::select! {
                reported = self.reported.recv() => match reported {
                    Some(reported) => reported,
                    None => return Ok(()),
                },
                () = shutdown.begun() => return Ok(()),
            };
            if let Err(error) = self.calibrations.learn(tenant, session).await {
                tracing::debug!(%error, "a call was not learned from");
            }
        }
    }
}

fn key(model: &str) -> CalibrationKey {
    CalibrationKey {
        model: model.replace('\0', ""),
        tokenizer: Tokenizer::default().name().to_owned(),
    }
}

fn measured(receipt: &Receipt, reported: u32) -> Measured {
    Measured {
        reported,
        counted: receipt.tokens.total(),
    }
}

/// Whether the second prompt is the first with more behind it: what was compacted or shortened in between says nothing of
/// how tokens are counted.
fn is_grown_from(before: &Receipt, after: &Receipt) -> bool {
    before.model == after.model
        && before.tokenizer == after.tokenizer
        && before.format == after.format
        && before.branch == after.branch
        && before.compaction == after.compaction
        && before.watermarks == after.watermarks
}
