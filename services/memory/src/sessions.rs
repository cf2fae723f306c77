//! What this service asks of history.

use colloquy_proto::convert::required;
use colloquy_proto::v1::history_service_client::HistoryServiceClient;
use colloquy_proto::v1::{self, get_session_request::Session as Asked, list_entries_request::From};
use colloquy_service_kit::client::request;
use colloquy_service_kit::server::message_limit;
use colloquy_service_kit::{InternalChannel, from_status};
use colloquy_types::{BranchId, Entry, Error, Principal, Result, Seq, SessionKey, TenantId, TranscriptId};

/// Entries of one page.
const PAGE: u32 = 200;

/// A session as far as memory needs it.
#[derive(Debug, Clone)]
pub struct SessionView {
    pub id: String,
    pub key: SessionKey,
    pub transcript: TranscriptId,
    pub branch: BranchId,
}

#[derive(Clone)]
pub struct Sessions {
    history: HistoryServiceClient<InternalChannel>,
}

impl Sessions {
    pub fn new(history: InternalChannel) -> Self {
        Self {
            history: HistoryServiceClient::new(history).max_decoding_message_size(message_limit()),
        }
    }

    pub fn client(&self) -> HistoryServiceClient<InternalChannel> {
        self.history.clone()
    }

    /// # Errors
    /// `NOT_FOUND`.
    pub async fn get(&self, tenant: TenantId, id: &str) -> Result<SessionView> {
        if id.is_empty() {
            return Err(Error::invalid("session_id", "is required"));
        }
        let message = v1::GetSessionRequest {
            session: Some(Asked::SessionId(id.to_owned())),
        };
        let answer = self
            .client()
            .get_session(request(tenant, message))
            .await
            .map_err(from_status)?;
        let session = required("session", answer.into_inner().session)?;
        Ok(SessionView {
            id: session.session_id,
            key: SessionKey::parse(&session.key)?,
            transcript: session.transcript_id.parse()?,
            branch: session.branch_id.parse()?,
        })
    }

    /// As [`get`](Self::get), for a caller who may not see them all.
    ///
    /// # Errors
    /// `NOT_FOUND`, for what it may not see too.
    pub async fn visible(&self, principal: &Principal, tenant: TenantId, id: &str) -> Result<SessionView> {
        let session = self.get(tenant, id).await?;
        if principal.may_see(&session.key) {
            Ok(session)
        } else {
            Err(Error::not_found("session", id))
        }
    }

    /// The next page of entries behind `after`.
    pub async fn entries(
        &self,
        tenant: TenantId,
        session: &str,
        transcript: TranscriptId,
        branch: BranchId,
        after: Seq,
    ) -> Result<(Vec<Entry>, bool)> {
        let message = v1::ListEntriesRequest {
            session_id: session.to_owned(),
            transcript_id: transcript.to_string(),
            branch_id: branch.to_string(),
            from: Some(From::AfterSeq(after.0)),
            page_size: PAGE,
        };
        let answer = self
            .client()
            .list_entries(request(tenant, message))
            .await
            .map_err(from_status)?
            .into_inner();
        let entries = answer
            .entries
            .into_iter()
            .map(Entry::try_from)
            .collect::<Result<_>>()?;
        Ok((entries, answer.more))
    }
}
