//! One path for every compaction: begin → flush → chunks → audit → apply.

use crate::plan::{Plan, plan};
use crate::summarise::{Summary, summarise};
use crate::window;
use colloquy_context::compaction::CompactionOptions;
use colloquy_llm::Summariser;
use colloquy_proto::convert::{duration, id};
use colloquy_proto::v1::history_service_client::HistoryServiceClient;
use colloquy_proto::v1::memory_service_client::MemoryServiceClient;
use colloquy_proto::v1::{self};
use colloquy_service_kit::client::{request, request_within};
use colloquy_service_kit::server::message_limit;
use colloquy_service_kit::{InternalChannel, from_status};
use colloquy_types::entry::Compaction;
use colloquy_types::{Entry, Error, JobId, Policy, Reason, Result, TenantId};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

/// Lease of the running marker, and how often it is renewed.
const LEASE_MS: i64 = 60_000;
const RENEW: Duration = Duration::from_secs(15);
/// Back-off after the first failure, doubled with each; at most an hour.
const RETRY_MS: i64 = 60_000;

pub type History = HistoryServiceClient<InternalChannel>;

#[derive(Clone)]
pub struct Engine {
    history: History,
    memory: MemoryServiceClient<InternalChannel>,
    pub summariser: Arc<dyn Summariser>,
}

/// How a run of a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    Applied,
    Skipped(String),
    Failed(String),
}

/// A job under the session's marker.
pub struct Marked {
    pub tenant: TenantId,
    pub session: String,
    job: String,
    marker: i64,
    pub chunks: Vec<v1::CompactionChunk>,
    pub instructions: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Payload {
    instructions: String,
}

impl Marked {
    /// Keeps a finished chunk.
    pub async fn save(&self, engine: &Engine, index: i32, place: (i64, i64), summary: &str) -> Result<()> {
        let chunk = v1::CompactionChunk {
            index,
            from_seq: place.0,
            to_seq: place.1,
            summary: summary.to_owned(),
        };
        let message = v1::SaveCompactionChunkRequest {
            session_id: self.session.clone(),
            job_id: self.job.clone(),
            marker: self.marker,
            chunk: Some(chunk),
        };
        let saved = engine
            .history
            .clone()
            .save_compaction_chunk(request(self.tenant, message))
            .await;
        saved.map(|_| ()).map_err(from_status)
    }

    async fn renew(&self, engine: &Engine) -> Result<()> {
        let message = v1::RenewCompactionRequest {
            session_id: self.session.clone(),
            job_id: self.job.clone(),
            marker: self.marker,
            lease: Some(duration(LEASE_MS)),
        };
        engine
            .history
            .clone()
            .renew_compaction(request(self.tenant, message))
            .await
            .map(|_| ())
            .map_err(from_status)
    }
}

impl Engine {
    pub fn new(history: InternalChannel, memory: InternalChannel, summariser: Arc<dyn Summariser>) -> Self {
        let history = HistoryServiceClient::new(history)
            .max_decoding_message_size(message_limit())
            .max_encoding_message_size(message_limit());
        Self {
            history,
            memory: MemoryServiceClient::new(memory),
            summariser,
        }
    }

    /// Runs a job to its end. The end is recorded in the job table before this returns.
    ///
    /// # Errors
    /// When history cannot be reached or the marker was lost; the table offers the job again.
    pub async fn run(&self, tenant: TenantId, session: &str, job: JobId) -> Result<Ended> {
        let message = v1::BeginCompactionRequest {
            session_id: session.to_owned(),
            job_id: job.to_string(),
            lease: Some(duration(LEASE_MS)),
        };
        let begun = self
            .history
            .clone()
            .begin_compaction(request(tenant, message))
            .await
            .map_err(from_status)?;
        let mut begun = begun.into_inner();
        if !begun.skipped.is_empty() {
            return Ok(Ended::Skipped(begun.skipped));
        }
        let payload: Payload = serde_json::from_str(&begun.payload_json).unwrap_or_default();
        let marked = Marked {
            tenant,
            session: session.to_owned(),
            job: job.to_string(),
            marker: begun.marker,
            chunks: std::mem::take(&mut begun.chunks),
            instructions: payload.instructions,
        };
        let working = self.work(&marked, begun);
        let ended = self.while_renewing(&marked, working).await;
        self.record(&marked, ended).await
    }

    /// Renews the marker while the work goes on; a lost marker ends the work.
    async fn while_renewing<T>(&self, marked: &Marked, work: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                () = tokio::time::sleep(RENEW) => match marked.renew(self).await {
                    Err(error) if error.reason == Reason::Fenced => return Err(error),
                    _ => {}
                },
            }
        }
    }

    async fn work(&self, marked: &Marked, mut begun: v1::BeginCompactionResponse) -> Result<Ended> {
        let policy = Policy::from_json(&begun.policy_json)?;
        let window_tokens = policy.model.window_tokens;
        let entries = window::entries(&self.history, marked, &mut begun).await?;
        let summary = begun.summary.map(Entry::try_from).transpose()?;
        let options = CompactionOptions::from(&policy);
        let Some(plan) = plan(&entries, summary.as_ref(), window_tokens, &options)? else {
            return Ok(Ended::Skipped("nothing to compact".into()));
        };
        let flushed = self
            .flush(marked, &policy, &begun.transcript_id, &begun.branch_id, &plan)
            .await;
        let limit = Duration::from_millis(u64::try_from(policy.compaction.summarise_timeout_ms).unwrap_or(0));
        let made = tokio::time::timeout(limit, summarise(self, marked, &plan, window_tokens)).await;
        let made = made.unwrap_or_else(|_| Err(Error::internal(format!("no summary within {limit:?}"))))?;
        let place = (begun.transcript_id, begun.branch_id, begun.epoch);
        self.apply(marked, place, &plan, made, flushed).await
    }

    /// Memories of exactly the range, before it leaves the window. A failure is recorded, not fatal.
    async fn flush(
        &self,
        marked: &Marked,
        policy: &Policy,
        transcript: &str,
        branch: &str,
        plan: &Plan,
    ) -> String {
        if !policy.memory.enabled {
            return "memory is off".into();
        }
        let message = v1::ExtractRequest {
            session_id: marked.session.clone(),
            transcript_id: transcript.to_owned(),
            branch_id: branch.to_owned(),
            through_seq: plan.first_kept.0 - 1,
        };
        let limit = Duration::from_millis(u64::try_from(policy.compaction.flush_timeout_ms).unwrap_or(0));
        match self
            .memory
            .clone()
            .extract(request_within(marked.tenant, message, limit))
            .await
        {
            Ok(done) => format!("{} added", done.into_inner().added),
            Err(status) => {
                tracing::warn!(job = %marked.job, %status, "memory flush failed");
                format!("failed: {}", status.message())
            }
        }
    }

    async fn apply(
        &self,
        marked: &Marked,
        (transcript_id, branch_id, epoch): (String, String, i64),
        plan: &Plan,
        made: Summary,
        flushed: String,
    ) -> Result<Ended> {
        let tokens_after = plan.tokens_kept.saturating_add(made.tokens);
        let result_json = serde_json::json!({
            "tokens_before": plan.tokens_before,
            "tokens_after": tokens_after,
            "messages": plan.messages.len(),
            "first_kept_seq": plan.first_kept.0,
            "model": made.model,
            "flush": flushed,
        });
        let compaction = Compaction {
            summary: made.text,
            first_kept: plan.first_kept,
            tokens_before: plan.tokens_before,
            tokens_after,
            model: made.model,
            job: id("job_id", &marked.job)?,
            degraded: false,
        };
        let message = v1::ApplyCompactionRequest {
            session_id: marked.session.clone(),
            job_id: marked.job.clone(),
            marker: marked.marker,
            transcript_id,
            branch_id,
            epoch,
            compaction: Some(compaction.into()),
            result_json: result_json.to_string(),
        };
        self.history
            .clone()
            .apply_compaction(request(marked.tenant, message))
            .await
            .map_err(from_status)?;
        Ok(Ended::Applied)
    }

    /// Writes what did not end with an apply.
    async fn record(&self, marked: &Marked, ended: Result<Ended>) -> Result<Ended> {
        let (reason, skipped) = match ended {
            Ok(Ended::Applied) => return Ok(Ended::Applied),
            Ok(Ended::Skipped(reason)) => (reason, true),
            Ok(Ended::Failed(reason)) => (reason, false),
            // The marker is somebody else's now: nothing is ours to record.
            Err(error) if error.reason == Reason::Fenced => return Err(error),
            // The session was reset, rewound or compacted by hand meanwhile.
            Err(error) if error.reason == Reason::Conflict => ("superseded".to_owned(), true),
            Err(error) => (error.message, false),
        };
        let message = v1::FailCompactionRequest {
            session_id: marked.session.clone(),
            job_id: marked.job.clone(),
            marker: marked.marker,
            reason: reason.clone(),
            skipped,
            retry_after: Some(duration(RETRY_MS)),
        };
        self.history
            .clone()
            .fail_compaction(request(marked.tenant, message))
            .await
            .map_err(from_status)?;
        Ok(if skipped {
            Ended::Skipped(reason)
        } else {
            Ended::Failed(reason)
        })
    }
}
