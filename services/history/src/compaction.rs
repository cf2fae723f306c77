//! History's half of a compaction: the marker, the chunks, the apply.

use crate::finish::counted;
use crate::jobs::lease;
use crate::policies::Policies;
use colloquy_proto::convert::{duration_ms, id, required};
use colloquy_proto::v1;
use colloquy_storage::{
    ApplyCompaction, BeginCompaction, Begun, Chunk, FailCompaction, HistoryStore, Marker, SkipReason,
};
use colloquy_types::entry::Compaction;
use colloquy_types::{EntryBody, Epoch, Error, Fence, JobId, Result, Seq, SessionId, TenantId};
use prost::Message as _;

/// Entries beyond this many bytes are fetched in pages.
const PAGE_BYTES: usize = 2 * 1024 * 1024;
/// First back-off after a failed compaction.
const RETRY_MS: i64 = 60_000;

/// Session, job and marker of a request.
fn running(session: &str, job: &str, marker: i64) -> Result<(SessionId, JobId, Marker)> {
    Ok((
        id("session_id", session)?,
        id("job_id", job)?,
        Marker(Fence(marker)),
    ))
}

pub async fn begin(
    store: &dyn HistoryStore,
    policies: &Policies,
    tenant: TenantId,
    request: v1::BeginCompactionRequest,
) -> Result<v1::BeginCompactionResponse> {
    let (session, job) = (
        id("session_id", &request.session_id)?,
        id("job_id", &request.job_id)?,
    );
    let begin = BeginCompaction {
        tenant,
        session,
        job,
        lease_ms: lease(request.lease.as_ref()),
    };
    let (marker, snapshot, chunks) = match store.begin_compaction(&begin).await? {
        Begun::Run {
            marker,
            snapshot,
            chunks,
        } => (marker, snapshot, chunks),
        Begun::Skipped(reason) => {
            let skipped = match reason {
                SkipReason::AlreadyRunning => "already running",
                SkipReason::Superseded => "superseded",
            };
            return Ok(v1::BeginCompactionResponse {
                skipped: skipped.into(),
                ..Default::default()
            });
        }
    };
    let policy = snapshot
        .policy
        .as_ref()
        .ok_or_else(|| Error::internal("a session without a policy"))?;
    let policy_json = policies.get(tenant, policy).await?.json.clone();
    let branch = snapshot.branch;
    let window = store
        .window(tenant, branch.transcript, branch.branch, Some(branch.head))
        .await?;
    let found = store.get_job(tenant, job).await?;
    let all = window.entries.len();
    let entries = first_page(window.entries.into_iter().map(v1::Entry::from));
    Ok(v1::BeginCompactionResponse {
        skipped: String::new(),
        marker: marker.0.0,
        transcript_id: branch.transcript.to_string(),
        branch_id: branch.branch.to_string(),
        epoch: branch.epoch.0,
        policy_json,
        chunks: chunks.into_iter().map(wire_chunk).collect(),
        summary: window.summary.map(Into::into),
        more: entries.len() < all,
        head_seq: branch.head.0,
        entries,
        payload_json: found.map(|job| job.payload_json).unwrap_or_default(),
    })
}

/// As many as fit into a page, at least one.
fn first_page(entries: impl Iterator<Item = v1::Entry>) -> Vec<v1::Entry> {
    let mut bytes = 0;
    let fits = |entry: &v1::Entry| {
        let first = bytes == 0;
        bytes += entry.encoded_len();
        first || bytes <= PAGE_BYTES
    };
    entries.take_while(fits).collect()
}

fn wire_chunk(chunk: Chunk) -> v1::CompactionChunk {
    v1::CompactionChunk {
        index: chunk.index,
        from_seq: chunk.from.0,
        to_seq: chunk.to.0,
        summary: chunk.summary,
    }
}

pub async fn renew(
    store: &dyn HistoryStore,
    tenant: TenantId,
    request: v1::RenewCompactionRequest,
) -> Result<()> {
    let (session, job, marker) = running(&request.session_id, &request.job_id, request.marker)?;
    store
        .renew_compaction(tenant, session, job, marker, lease(request.lease.as_ref()))
        .await
}

pub async fn save(
    store: &dyn HistoryStore,
    tenant: TenantId,
    request: v1::SaveCompactionChunkRequest,
) -> Result<()> {
    let (session, job, marker) = running(&request.session_id, &request.job_id, request.marker)?;
    let chunk = required("chunk", request.chunk)?;
    let chunk = Chunk {
        index: chunk.index,
        from: Seq(chunk.from_seq),
        to: Seq(chunk.to_seq),
        summary: chunk.summary,
    };
    store.save_chunk(tenant, session, job, marker, &chunk).await
}

pub async fn apply(
    store: &dyn HistoryStore,
    tenant: TenantId,
    request: v1::ApplyCompactionRequest,
) -> Result<v1::ApplyCompactionResponse> {
    let (session, job, marker) = running(&request.session_id, &request.job_id, request.marker)?;
    let compaction = Compaction::try_from(required("compaction", request.compaction)?)?;
    let first_kept = compaction.first_kept;
    let apply = ApplyCompaction {
        tenant,
        session,
        job,
        marker,
        transcript: id("transcript_id", &request.transcript_id)?,
        branch: id("branch_id", &request.branch_id)?,
        epoch: Epoch(request.epoch),
        entry: counted(EntryBody::Compaction(compaction)),
        first_kept,
        result_json: request.result_json,
    };
    let branch = store.apply_compaction(&apply).await?;
    metrics::counter!("colloquy_compactions_applied_total").increment(1);
    Ok(v1::ApplyCompactionResponse {
        epoch: branch.epoch.0,
        window_tokens: branch.window_tokens,
        window_messages: branch.window_messages,
    })
}

pub async fn fail(
    store: &dyn HistoryStore,
    tenant: TenantId,
    request: v1::FailCompactionRequest,
) -> Result<()> {
    let (session, job, marker) = running(&request.session_id, &request.job_id, request.marker)?;
    let fail = FailCompaction {
        tenant,
        session,
        job,
        marker,
        reason: request
            .reason
            .chars()
            .filter(|c| *c != '\0')
            .take(1_000)
            .collect(),
        retry_ms: request.retry_after.as_ref().map_or(RETRY_MS, duration_ms),
    };
    if request.skipped {
        store.skip_compaction(&fail).await
    } else {
        store.fail_compaction(&fail).await
    }
}
