//! Background jobs.

use super::output::{Output, age, instant, word};
use clap::Subcommand;
use colloquy_client::{Client, v1};
use serde_json::{Value, json};

#[derive(Debug, Subcommand)]
pub enum Jobs {
    /// Jobs, newest first.
    List {
        #[arg(long, default_value_t = 50)]
        limit: u32,
    },
    /// One job.
    Show { job_id: String },
}

pub async fn run(client: &Client, out: &Output, verb: Jobs) -> anyhow::Result<()> {
    match verb {
        Jobs::List { limit } => {
            let ask = v1::ListJobsRequest {
                page_size: limit,
                ..Default::default()
            };
            let jobs = client.compactor().list_jobs(ask).await?.into_inner().jobs;
            out.list(
                &["JOB", "KIND", "STATE", "ATTEMPTS", "AGE", "ERROR"],
                jobs.iter().map(row).collect(),
            );
        }
        Jobs::Show { job_id } => {
            let job = client
                .compactor()
                .get_job(v1::GetJobRequest { job_id })
                .await?
                .into_inner()
                .job;
            let job = job.unwrap_or_default();
            let (json, cells) = row(&job);
            out.one(
                &json,
                &[
                    ("job", cells[0].clone()),
                    ("kind", cells[1].clone()),
                    ("state", cells[2].clone()),
                    ("session", job.session_id),
                    ("failed runs", cells[3].clone()),
                    ("error", job.error),
                    ("result", job.result_json),
                ],
            );
        }
    }
    Ok(())
}

fn row(job: &v1::Job) -> (Value, Vec<String>) {
    let (kind, state) = (
        word(job.kind().as_str_name(), "JOB_KIND_"),
        word(job.state().as_str_name(), "JOB_STATE_"),
    );
    let result: Value = serde_json::from_str(&job.result_json).unwrap_or_default();
    let json = json!({"job_id": job.job_id, "kind": kind, "state": state, "session_id": job.session_id,
        "attempts": job.attempts, "error": job.error, "result": result, "created_at": instant(job.created_at.as_ref())});
    let cells = vec![
        job.job_id.clone(),
        kind,
        state,
        job.attempts.to_string(),
        age(job.created_at.as_ref()),
        job.error.clone(),
    ];
    (json, cells)
}
