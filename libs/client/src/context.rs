//! Contexts come in pieces: the numbers first, then the body.

use crate::Client;
use crate::error::{Error, Result};
use colloquy_proto::v1::{self, build_context_response, rebuild_context_response};
use tonic::{Status, Streaming};

/// A context: the provider's messages as JSON bytes, and the numbers.
#[derive(Debug, Clone)]
pub struct BuiltContext {
    pub header: v1::ContextHeader,
    pub body: Vec<u8>,
}

enum Piece {
    Header(v1::ContextHeader),
    Chunk(Vec<u8>),
}

impl Client {
    /// What a model would see: of a turn in hand, or of any session.
    ///
    /// # Errors
    /// `FENCED` when the turn was lost, `NOT_FOUND`, `INVALID_FIELD`.
    pub async fn build_context(&self, request: &v1::BuildContextRequest) -> Result<BuiltContext> {
        let open = || {
            let (mut history, request) = (self.history(), request.clone());
            async move { history.build_context(request).await }
        };
        let stream = self.retry.call(open).await?;
        collect(stream, |response: v1::BuildContextResponse| {
            response.part.map(|part| match part {
                build_context_response::Part::Header(header) => Piece::Header(header),
                build_context_response::Part::Chunk(bytes) => Piece::Chunk(bytes),
            })
        })
        .await
    }

    /// The bytes of a build of the past, made again, and whether they are the same.
    ///
    /// # Errors
    /// `NOT_FOUND`, `CONFLICT` while a lost attempt's turn still runs.
    pub async fn rebuild_context(&self, request: &v1::RebuildContextRequest) -> Result<(BuiltContext, bool)> {
        let open = || {
            let (mut history, request) = (self.history(), request.clone());
            async move { history.rebuild_context(request).await }
        };
        let stream = self.retry.call(open).await?;
        let mut matches = false;
        let context = collect(stream, |response: v1::RebuildContextResponse| {
            matches |= response.matches;
            response.part.map(|part| match part {
                rebuild_context_response::Part::Header(header) => Piece::Header(header),
                rebuild_context_response::Part::Chunk(bytes) => Piece::Chunk(bytes),
            })
        })
        .await?;
        Ok((context, matches))
    }
}

async fn collect<T>(
    mut stream: Streaming<T>,
    mut piece: impl FnMut(T) -> Option<Piece>,
) -> Result<BuiltContext> {
    let (mut header, mut body) = (None, Vec::new());
    while let Some(response) = stream.message().await.map_err(Error::from)? {
        match piece(response) {
            Some(Piece::Header(found)) => header = Some(found),
            Some(Piece::Chunk(bytes)) => body.extend_from_slice(&bytes),
            None => {}
        }
    }
    let missing = || Error::from(Status::internal("a context without a header"));
    Ok(BuiltContext {
        header: header.ok_or_else(missing)?,
        body,
    })
}
