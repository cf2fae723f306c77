//! Background jobs.

use super::output::{Output, Row, age, excerpt, instant, when, word};
use super::paging;
use super::sessions::find;
use clap::{Subcommand, ValueEnum};
use colloquy_client::{Client, v1};
use serde_json::json;

/// Characters of an error in a table.
const LINE: usize = 80;

#[derive(Debug, Subcommand)]
pub enum Jobs {
    /// Jobs, newest first.
    #[command(after_help = "Example: colloquy jobs list --state dead")]
    List(ListArgs),
    /// One job.
    #[command(after_help = "Example: colloquy jobs show job_…")]
    Show {
        /// `job_…`, as `jobs list` shows it.
        job_id: String,
    },
}

#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Only in this state.
    #[arg(long)]
    state: Option<State>,
    /// Only of this kind.
    #[arg(long)]
    kind: Option<Kind>,
    /// Only of this session: `ses_…` or a canonical key.
    #[arg(long)]
    session: Option<String>,
    /// At most this many.
    #[arg(long, default_value_t = 50)]
    limit: u32,
}

/// Where a job stands.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum State {
    Queued,
    Published,
    Running,
    Done,
    Cancelled,
    Dead,
}

impl From<State> for v1::JobState {
    fn from(state: State) -> Self {
        match state {
            State::Queued => Self::Queued,
            State::Published => Self::Published,
            State::Running => Self::Running,
            State::Done => Self::Done,
            State::Cancelled => Self::Cancelled,
            State::Dead => Self::Dead,
        }
    }
}

/// What a job does.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Kind {
    Compaction,
    MemoryExtract,
}

impl From<Kind> for v1::JobKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Compaction => Self::Compaction,
            Kind::MemoryExtract => Self::MemoryExtract,
        }
    }
}

pub async fn run(client: &Client, out: &Output, verb: Jobs) -> anyhow::Result<()> {
    match verb {
        Jobs::List(args) => list(client, out, args).await,
        Jobs::Show { job_id } => {
            let answer = client.compactor().get_job(v1::GetJobRequest { job_id }).await?;
            print(out, answer.into_inner().job.unwrap_or_default());
            Ok(())
        }
    }
}

async fn list(client: &Client, out: &Output, args: ListArgs) -> anyhow::Result<()> {
    let session_id = match &args.session {
        Some(session) => find(client, session).await?.session_id,
        None => String::new(),
    };
    let (jobs, more) = paging::up_to(args.limit, |page_size, page_token| {
        let ask = v1::ListJobsRequest {
            state: args.state.map_or(v1::JobState::Unspecified, Into::into).into(),
            kind: args.kind.map_or(v1::JobKind::Unspecified, Into::into).into(),
            session_id: session_id.clone(),
            page_size,
            page_token,
        };
        let mut compactor = client.compactor();
        async move {
            let page = compactor.list_jobs(ask).await?.into_inner();
            Ok((page.jobs, page.next_page_token))
        }
    })
    .await?;
    out.list(
        &["JOB", "KIND", "STATE", "ATTEMPTS", "AGE", "ERROR"],
        jobs.iter().map(row).collect(),
    );
    out.cut(more);
    Ok(())
}

fn print(out: &Output, job: v1::Job) {
    let (json, cells) = row(&job);
    out.one(
        &json,
        &[
            ("job", job.job_id),
            ("kind", cells[1].clone()),
            ("state", cells[2].clone()),
            ("session", job.session_id),
            ("failed attempts", job.attempts.to_string()),
            ("due", when(job.due_at.as_ref())),
            ("created", when(job.created_at.as_ref())),
            ("updated", when(job.updated_at.as_ref())),
            ("error", job.error),
            ("result", job.result_json),
        ],
    );
}

fn row(job: &v1::Job) -> Row {
    let kind = word(job.kind().as_str_name(), "JOB_KIND_");
    let state = word(job.state().as_str_name(), "JOB_STATE_");
    let json = json!({"job_id": job.job_id, "kind": kind, "session_id": job.session_id,
        "transcript_id": job.transcript_id, "branch_id": job.branch_id, "state": state,
        "attempts": job.attempts, "publish_no": job.publish_no, "due_at": instant(job.due_at.as_ref()),
        "payload_json": job.payload_json, "result_json": job.result_json, "error": job.error,
        "created_at": instant(job.created_at.as_ref()), "updated_at": instant(job.updated_at.as_ref())});
    let cells = vec![
        job.job_id.clone(),
        kind,
        state,
        job.attempts.to_string(),
        age(job.created_at.as_ref()),
        excerpt(&job.error, LINE),
    ];
    (json, cells)
}
