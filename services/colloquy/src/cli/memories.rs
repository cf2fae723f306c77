//! Memories.

use super::output::{Output, Row, excerpt, instant, word};
use super::paging;
use super::sessions::find;
use clap::Subcommand;
use colloquy_client::{Client, v1};
use serde_json::json;

/// Characters of a memory in a table.
const LINE: usize = 100;

#[derive(Debug, Subcommand)]
pub enum Memories {
    /// What a session may recall, newest first.
    #[command(after_help = "Example: colloquy memories list agent:default:app:me")]
    List {
        /// `ses_…` or a canonical key.
        session: String,
        /// Also those that are no longer true.
        #[arg(long)]
        ended: bool,
        /// At most this many.
        #[arg(long, default_value_t = 50)]
        limit: u32,
    },
    /// What fits a question best.
    #[command(after_help = "Example: colloquy memories recall agent:default:app:me 'when to send reports'")]
    Recall {
        /// `ses_…` or a canonical key.
        session: String,
        /// The question.
        query: String,
        /// At most this many; the policy's number when left out.
        #[arg(long, default_value_t = 0, hide_default_value = true)]
        limit: u32,
    },
    /// Delete one.
    #[command(after_help = "Example: colloquy memories forget mem_…")]
    Forget {
        /// `mem_…`, as `memories list` shows it.
        memory_id: String,
    },
}

pub async fn run(client: &Client, out: &Output, verb: Memories) -> anyhow::Result<()> {
    match verb {
        Memories::List {
            session,
            ended,
            limit,
        } => list(client, out, &session, ended, limit).await,
        Memories::Recall {
            session,
            query,
            limit,
        } => recall(client, out, &session, query, limit).await,
        Memories::Forget { memory_id } => {
            let ask = v1::DeleteMemoryRequest {
                memory_id: memory_id.clone(),
            };
            client.memory().delete_memory(ask).await?;
            out.one(
                &json!({"memory_id": memory_id}),
                &[("forgotten", memory_id.clone())],
            );
            Ok(())
        }
    }
}

async fn list(client: &Client, out: &Output, session: &str, ended: bool, limit: u32) -> anyhow::Result<()> {
    let session_id = find(client, session).await?.session_id;
    let (memories, more) = paging::up_to(limit, |page_size, page_token| {
        let ask = v1::ListMemoriesRequest {
            session_id: session_id.clone(),
            include_ended: ended,
            page_size,
            page_token,
            ..Default::default()
        };
        let mut memory = client.memory();
        async move {
            let page = memory.list_memories(ask).await?.into_inner();
            Ok((page.memories, page.next_page_token))
        }
    })
    .await?;
    out.list(
        &["MEMORY", "KIND", "SCOPE", "TEXT"],
        memories.iter().map(row).collect(),
    );
    out.cut(more);
    Ok(())
}

async fn recall(
    client: &Client,
    out: &Output,
    session: &str,
    query: String,
    limit: u32,
) -> anyhow::Result<()> {
    let ask = v1::RecallRequest {
        session_id: find(client, session).await?.session_id,
        query,
        limit,
        ..Default::default()
    };
    let results = client.memory().recall(ask).await?.into_inner().results;
    let scored = |result: v1::RecallResult| {
        let (memory, mut cells) = row(&result.memory.unwrap_or_default());
        cells.insert(0, format!("{:.2}", result.score));
        let json = json!({"memory": memory, "score": result.score, "lexical": result.lexical,
            "recency": result.recency});
        (json, cells)
    };
    out.list(
        &["SCORE", "MEMORY", "KIND", "SCOPE", "TEXT"],
        results.into_iter().map(scored).collect(),
    );
    Ok(())
}

fn row(memory: &v1::Memory) -> Row {
    let kind = word(memory.kind().as_str_name(), "MEMORY_KIND_");
    let scope = word(memory.scope().as_str_name(), "MEMORY_SCOPE_");
    let provenance = word(memory.provenance().as_str_name(), "PROVENANCE_");
    let json = json!({"memory_id": memory.memory_id, "agent": memory.agent, "scope": scope,
        "owner": memory.owner, "kind": kind, "text": memory.text, "importance": memory.importance,
        "confidence": memory.confidence, "provenance": provenance, "entry_ids": memory.entry_ids,
        "valid_from": instant(memory.valid_from.as_ref()), "valid_to": instant(memory.valid_to.as_ref()),
        "supersedes": memory.supersedes, "recall_count": memory.recall_count,
        "created_at": instant(memory.created_at.as_ref()), "updated_at": instant(memory.updated_at.as_ref())});
    let cells = vec![memory.memory_id.clone(), kind, scope, excerpt(&memory.text, LINE)];
    (json, cells)
}
