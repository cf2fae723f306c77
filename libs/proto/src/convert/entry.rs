//! Entries.

use super::{id, list, millis, optional_id, required, timestamp, under};
use crate::v1;
use colloquy_types::entry::Compaction;
use colloquy_types::{Entry, EntryBody, Error, Result, Seq};

impl From<Compaction> for v1::Compaction {
    fn from(compaction: Compaction) -> Self {
        Self {
            summary: compaction.summary,
            first_kept_seq: compaction.first_kept.0,
            tokens_before: compaction.tokens_before,
            tokens_after: compaction.tokens_after,
            model: compaction.model,
            job_id: compaction.job.to_string(),
            degraded: compaction.degraded,
        }
    }
}

impl TryFrom<v1::Compaction> for Compaction {
    type Error = Error;

    fn try_from(compaction: v1::Compaction) -> Result<Self> {
        Ok(Self {
            summary: compaction.summary,
            first_kept: Seq(compaction.first_kept_seq),
            tokens_before: compaction.tokens_before,
            tokens_after: compaction.tokens_after,
            model: compaction.model,
            job: id("job_id", &compaction.job_id)?,
            degraded: compaction.degraded,
        })
    }
}

impl From<EntryBody> for v1::EntryBody {
    fn from(body: EntryBody) -> Self {
        use v1::entry_body::Body;
        let body = match body {
            EntryBody::Message(message) => Body::Message(message.into()),
            EntryBody::CustomMessage { kind, message } => Body::CustomMessage(v1::CustomMessage {
                kind,
                message: Some(message.into()),
            }),
            EntryBody::Custom { kind, json } => Body::Custom(v1::Custom { kind, json }),
            EntryBody::Compaction(compaction) => Body::Compaction(compaction.into()),
            EntryBody::BranchSummary { summary } => Body::BranchSummary(v1::BranchSummary { summary }),
            EntryBody::Reset { reason } => Body::Reset(v1::Reset { reason }),
            EntryBody::Interrupted {
                reason,
                attempt,
                staged,
            } => Body::Interrupted(v1::Interrupted {
                reason,
                attempt,
                staged: staged.into_iter().map(Into::into).collect(),
            }),
            EntryBody::Label { label } => Body::Label(v1::Label { label }),
            EntryBody::ModelChange { provider, model } => {
                Body::ModelChange(v1::ModelChange { provider, model })
            }
        };
        Self { body: Some(body) }
    }
}

impl TryFrom<v1::EntryBody> for EntryBody {
    type Error = Error;

    fn try_from(body: v1::EntryBody) -> Result<Self> {
        use v1::entry_body::Body;
        Ok(match required("body", body.body)? {
            Body::Message(message) => Self::Message(message.try_into().map_err(under("message"))?),
            Body::CustomMessage(custom) => Self::CustomMessage {
                kind: custom.kind,
                message: required("custom_message.message", custom.message)?
                    .try_into()
                    .map_err(under("custom_message.message"))?,
            },
            Body::Custom(custom) => Self::Custom {
                kind: custom.kind,
                json: custom.json,
            },
            Body::Compaction(compaction) => {
                Self::Compaction(compaction.try_into().map_err(under("compaction"))?)
            }
            Body::BranchSummary(branch) => Self::BranchSummary {
                summary: branch.summary,
            },
            Body::Reset(reset) => Self::Reset { reason: reset.reason },
            Body::Interrupted(interrupted) => Self::Interrupted {
                reason: interrupted.reason,
                attempt: interrupted.attempt,
                staged: list("staged", interrupted.staged).map_err(under("interrupted"))?,
            },
            Body::Label(label) => Self::Label { label: label.label },
            Body::ModelChange(change) => Self::ModelChange {
                provider: change.provider,
                model: change.model,
            },
        })
    }
}

impl From<Entry> for v1::Entry {
    fn from(entry: Entry) -> Self {
        Self {
            entry_id: entry.id.to_string(),
            seq: entry.seq.0,
            body: Some(entry.body.into()),
            turn_id: entry.turn.map(|turn| turn.to_string()).unwrap_or_default(),
            tokens: entry.tokens,
            tokenizer: entry.tokenizer,
            at: Some(timestamp(entry.at)),
        }
    }
}

impl TryFrom<v1::Entry> for Entry {
    type Error = Error;

    fn try_from(entry: v1::Entry) -> Result<Self> {
        Ok(Self {
            id: id("entry_id", &entry.entry_id)?,
            seq: Seq(entry.seq),
            body: required("body", entry.body)?.try_into().map_err(under("body"))?,
            turn: optional_id(&entry.turn_id)?,
            tokens: entry.tokens,
            tokenizer: entry.tokenizer,
            at: entry.at.as_ref().map(millis).unwrap_or_default(),
        })
    }
}
