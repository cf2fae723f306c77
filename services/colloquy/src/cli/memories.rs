//! Memories.

use super::output::{Output, excerpt, word};
use super::sessions::find;
use clap::Subcommand;
use colloquy_client::{Client, v1};
use serde_json::{Value, json};

#[derive(Debug, Subcommand)]
pub enum Memories {
    /// What a session may recall, newest first.
    List {
        /// `ses_…` or a canonical key.
        session: String,
    },
    /// What fits a question best.
    #[command(after_help = "Example: colloquy memories recall agent:default:app:me 'when to send reports'")]
    Recall {
        /// `ses_…` or a canonical key.
        session: String,
        query: String,
    },
    /// Delete one.
    Forget { memory_id: String },
}

pub async fn run(client: &Client, out: &Output, verb: Memories) -> anyhow::Result<()> {
    match verb {
        Memories::List { session } => {
            let session_id = find(client, &session).await?.session_id;
            let ask = v1::ListMemoriesRequest {
                session_id,
                page_size: 500,
                ..Default::default()
            };
            let memories = client.memory().list_memories(ask).await?.into_inner().memories;
            out.list(
                &["MEMORY", "KIND", "SCOPE", "TEXT"],
                memories.iter().map(row).collect(),
            );
        }
        Memories::Recall { session, query } => {
            let session_id = find(client, &session).await?.session_id;
            let ask = v1::RecallRequest {
                session_id,
                query,
                ..Default::default()
            };
            let results = client.memory().recall(ask).await?.into_inner().results;
            let scored = |result: &v1::RecallResult| {
                let (mut json, mut cells) = row(&result.memory.clone().unwrap_or_default());
                json["score"] = json!(result.score);
                cells.insert(0, format!("{:.2}", result.score));
                (json, cells)
            };
            out.list(
                &["SCORE", "MEMORY", "KIND", "SCOPE", "TEXT"],
                results.iter().map(scored).collect(),
            );
        }
        Memories::Forget { memory_id } => {
            client
                .memory()
                .delete_memory(v1::DeleteMemoryRequest { memory_id })
                .await?;
            out.note("forgotten");
        }
    }
    Ok(())
}

fn row(memory: &v1::Memory) -> (Value, Vec<String>) {
    let kind = word(memory.kind().as_str_name(), "MEMORY_KIND_");
    let scope = word(memory.scope().as_str_name(), "MEMORY_SCOPE_");
    let json = json!({"memory_id": memory.memory_id, "kind": kind, "scope": scope, "owner": memory.owner,
        "text": memory.text, "importance": memory.importance, "entry_ids": memory.entry_ids});
    (
        json,
        vec![memory.memory_id.clone(), kind, scope, excerpt(&memory.text, 100)],
    )
}
