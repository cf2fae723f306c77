//! What earlier builds of the session tell the next one.

use super::subject::Subject;
use colloquy_context::Receipt;
use colloquy_context::tokens::anchor::Measured;
use colloquy_storage::HistoryStore;
use colloquy_types::{Result, TenantId, UnixMillis};

/// Receipts that are looked through for one whose prompt the provider counted.
const LOOKED_THROUGH: u32 = 8;

#[derive(Default)]
pub struct Past {
    /// The build before this one.
    pub previous: Option<Receipt>,
    /// The last prompt that the provider counted, when nothing has broken with it since: the same model, branch and
    /// compaction.
    pub measured: Option<Measured>,
    /// When the last model call began, as far as a build was made for it.
    pub last_call: Option<UnixMillis>,
}

impl Past {
    pub async fn load(
        store: &dyn HistoryStore,
        tenant: TenantId,
        subject: &Subject,
        model: &str,
    ) -> Result<Self> {
        let stored = store
            .last_receipts(tenant, subject.session, LOOKED_THROUGH)
            .await?;
        let last_call = stored.first().map(|receipt| receipt.at);
        // A receipt that this version cannot read is one of another version: it tells nothing.
        let mut read = stored.iter().map(|stored| {
            let receipt = serde_json::from_slice::<Receipt>(&stored.body).ok();
            (receipt, stored.reported)
        });
        let first = read.next();
        let branch = &subject.window.branch;
        let compaction = subject.window.summary.as_ref().map(|summary| summary.seq);
        let valid = |receipt: &Receipt| {
            receipt.model == model
                && receipt.branch == Some(branch.branch)
                && receipt.compaction == compaction
        };
        let measured = first.iter().cloned().chain(read).find_map(|(receipt, reported)| {
            let receipt = receipt.filter(valid)?;
            let reported = u32::try_from(reported?).ok()?;
            Some(Measured {
                reported,
                counted: receipt.tokens.total(),
            })
        });
        Ok(Self {
            previous: first.and_then(|(receipt, _)| receipt),
            measured,
            last_call,
        })
    }
}
