//! What runs behind the conversation: jobs, memories, recall.

use super::driver::{Driver, LOOK};
use super::script::{Chat, Script};
use super::timeline::excerpt;
use anyhow::bail;
use colloquy_client::v1;
use serde_json::Value;
use std::time::Duration;

/// How long the last jobs may take.
const SETTLE_WITHIN: Duration = Duration::from_secs(60);

impl Driver {
    /// Waits until no job is left to do, and shows what they did.
    pub async fn settle(&self, script: &Script) -> anyhow::Result<()> {
        self.timeline.title("Background work");
        let end = tokio::time::Instant::now() + SETTLE_WITHIN;
        loop {
            let jobs = self.jobs().await?;
            let ended = |job: &&v1::Job| {
                matches!(
                    job.state(),
                    v1::JobState::Done | v1::JobState::Cancelled | v1::JobState::Dead
                )
            };
            if jobs.iter().all(|job| ended(&job)) {
                self.show_jobs(script, &jobs).await?;
                return Ok(());
            }
            if tokio::time::Instant::now() > end {
                let open: Vec<String> = jobs
                    .iter()
                    .filter(|job| !ended(job))
                    .map(|job| {
                        format!(
                            "{} {} {}",
                            job.kind().as_str_name(),
                            job.state().as_str_name(),
                            job.error
                        )
                    })
                    .collect();
                bail!("jobs are still open: {}", open.join("; "));
            }
            tokio::time::sleep(LOOK * 4).await;
        }
    }

    async fn show_jobs(&self, script: &Script, jobs: &[v1::Job]) -> anyhow::Result<()> {
        for job in jobs.iter().rev() {
            let result: Value = serde_json::from_str(&job.result_json).unwrap_or_default();
            match job.kind() {
                v1::JobKind::Compaction if result["tokens_before"].is_number() => self.timeline.event(
                    "compacted",
                    &script.agent,
                    format!(
                        "{} messages, window {} → {} tokens by {}",
                        result["messages"], result["tokens_before"], result["tokens_after"], result["model"]
                    ),
                ),
                v1::JobKind::MemoryExtract if result["added"].as_u64().unwrap_or(0) > 0 => {
                    self.timeline
                        .event("remembered", &script.agent, format!("{} facts", result["added"]));
                }
                _ => {}
            }
        }
        for turns in &script.conversations {
            let session = self.session(&turns[0].chat).await?;
            let ask = v1::ListMemoriesRequest {
                session_id: session.session_id,
                page_size: 500,
                ..Default::default()
            };
            for memory in self
                .admin
                .memory()
                .list_memories(ask)
                .await?
                .into_inner()
                .memories
            {
                self.timeline.event(
                    "memory",
                    memory
                        .kind()
                        .as_str_name()
                        .trim_start_matches("MEMORY_KIND_")
                        .to_lowercase(),
                    excerpt(&memory.text, 90),
                );
            }
        }
        Ok(())
    }

    /// Asks what the script wants recalled.
    pub async fn recall(&self, script: &Script) -> anyhow::Result<()> {
        let Some((chat, query, expect)) = &script.recall else {
            return Ok(());
        };
        self.timeline.title("Recall");
        let session = self
            .session(&Chat {
                id: *chat,
                group: false,
            })
            .await?;
        let ask = v1::RecallRequest {
            session_id: session.session_id,
            query: query.clone(),
            ..Default::default()
        };
        let found = self.admin.memory().recall(ask).await?.into_inner();
        let best = found
            .results
            .first()
            .and_then(|result| result.memory.as_ref().map(|m| (result.score, m.text.clone())));
        match best {
            Some((score, text)) if text.contains(expect) => {
                self.timeline.event(
                    "recalled",
                    format!("score {score:.2}"),
                    format!("“{query}” → {text}"),
                );
                Ok(())
            }
            other => bail!("“{query}” recalled {other:?}, expected “{expect}”"),
        }
    }
}
