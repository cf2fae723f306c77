//! What earlier builds of the session tell the next one.

use super::subject::Subject;
use colloquy_context::Receipt;
use colloquy_context::tokens::anchor::Measured;
use colloquy_storage::{HistoryStore, Recent};
use colloquy_types::{Result, TenantId, UnixMillis};

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
        let last = |which| store.last_receipts(tenant, subject.session, which, 1);
        let (all, reported) = tokio::join!(last(Recent::All), last(Recent::Reported));
        let (all, reported) = (all?, reported?);
        let branch = subject.window.branch.branch;
        let compaction = subject.window.summary.as_ref().map(|summary| summary.seq);
        let measured = reported.first().and_then(|stored| {
            let receipt = read(stored).filter(|receipt| {
                receipt.model == model && receipt.branch == Some(branch) && receipt.compaction == compaction
            })?;
            Some(Measured {
                reported: u32::try_from(stored.reported?).ok()?,
                counted: receipt.tokens.total(),
            })
        });
        Ok(Self {
            previous: all.first().and_then(read),
            measured,
            last_call: all.first().map(|stored| stored.at),
        })
    }
}

/// None for one of another version: it tells nothing.
fn read(stored: &colloquy_storage::Receipt) -> Option<Receipt> {
    serde_json::from_slice(&stored.body).ok()
}
