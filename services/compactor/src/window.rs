//! The window of a plan: what came with the marker, and the pages behind it.

use crate::engine::{History, Marked};
use colloquy_proto::v1::{self, list_entries_request::From};
use colloquy_service_kit::client::request;
use colloquy_service_kit::from_status;
use colloquy_types::{Entry, Result};

/// Entries of the window in order, taken out of the answer. What is behind the marker's head is not part of it: entries
/// are only ever appended, so pages fetched later show the same window.
pub async fn entries(
    history: &History,
    marked: &Marked,
    begun: &mut v1::BeginCompactionResponse,
) -> Result<Vec<Entry>> {
    let mut found = std::mem::take(&mut begun.entries);
    let summary = begun.summary.as_ref().map_or(0, |summary| summary.seq);
    let mut more = begun.more;
    while more {
        let ask = v1::ListEntriesRequest {
            session_id: marked.session.clone(),
            transcript_id: begun.transcript_id.clone(),
            branch_id: begun.branch_id.clone(),
            from: Some(From::AfterSeq(found.last().map_or(0, |entry| entry.seq))),
            page_size: 500,
        };
        let page = history.clone().list_entries(request(marked.tenant, ask)).await;
        let page = page.map_err(from_status)?.into_inner();
        more = page.more && page.entries.last().is_some_and(|last| last.seq < begun.head_seq);
        let within = |entry: &v1::Entry| entry.seq <= begun.head_seq && entry.seq != summary;
        found.extend(page.entries.into_iter().filter(within));
    }
    found.into_iter().map(Entry::try_from).collect()
}
