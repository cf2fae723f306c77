//! What the server's lists say afterwards.

use super::driver::Driver;
use super::script::Chat;
use anyhow::Context;
use colloquy_client::v1;
use colloquy_types::Entry;

impl Driver {
    pub async fn jobs(&self) -> anyhow::Result<Vec<v1::Job>> {
        let (mut jobs, mut page_token) = (Vec::new(), String::new());
        loop {
            let ask = v1::ListJobsRequest {
                page_size: 500,
                page_token,
                ..Default::default()
            };
            let page = self.admin.compactor().list_jobs(ask).await?.into_inner();
            jobs.extend(page.jobs);
            if page.next_page_token.is_empty() {
                return Ok(jobs);
            }
            page_token = page.next_page_token;
        }
    }

    pub async fn session(&self, chat: &Chat) -> anyhow::Result<v1::Session> {
        let kind = if chat.group { "group" } else { "direct" };
        let key = format!("agent:{}:telegram:{kind}:{}", self.agent, chat.id);
        let ask = v1::GetSessionRequest {
            session: Some(v1::get_session_request::Session::Key(key)),
        };
        self.admin
            .history()
            .get_session(ask)
            .await?
            .into_inner()
            .session
            .context("no session")
    }

    pub async fn memories(&self, session_id: &str) -> anyhow::Result<u64> {
        let ask = v1::ListMemoriesRequest {
            session_id: session_id.to_owned(),
            page_size: 500,
            ..Default::default()
        };
        Ok(self
            .admin
            .memory()
            .list_memories(ask)
            .await?
            .into_inner()
            .memories
            .len() as u64)
    }

    /// Every entry of the session's transcript.
    pub async fn entries(&self, session_id: &str) -> anyhow::Result<Vec<Entry>> {
        let (mut entries, mut after) = (Vec::new(), 0);
        loop {
            let ask = v1::ListEntriesRequest {
                session_id: session_id.to_owned(),
                from: Some(v1::list_entries_request::From::AfterSeq(after)),
                page_size: 500,
                ..Default::default()
            };
            let page = self.admin.history().list_entries(ask).await?.into_inner();
            for entry in page.entries {
                after = entry.seq;
                entries.push(Entry::try_from(entry)?);
            }
            if !page.more {
                return Ok(entries);
            }
        }
    }
}
