//! A build on the wire: its numbers, then its bytes.

use colloquy_context::{Built, Decision};
use colloquy_proto::v1::{self, build_context_response::Part};
use colloquy_types::{Error, Result};
use tonic::Status;

/// Largest piece of a body in one response message, in bytes.
const CHUNK_BYTES: usize = 1 << 20;

pub fn pieces(
    built: &Built<'_>,
    tokens_in: u32,
    number: u32,
) -> Result<Vec<Result<v1::BuildContextResponse, Status>>> {
    let piece = |part| Ok(v1::BuildContextResponse { part: Some(part) });
    let mut pieces = vec![piece(Part::Header(header(built, tokens_in, number)?))];
    pieces.extend(chunks(&built.bytes).map(|bytes| piece(Part::Chunk(bytes))));
    Ok(pieces)
}

pub fn chunks(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    bytes.chunks(CHUNK_BYTES).map(<[u8]>::to_vec)
}

pub fn header(built: &Built<'_>, tokens_in: u32, number: u32) -> Result<v1::ContextHeader> {
    let decision = match built.decision {
        Decision::Fits => v1::ContextDecision::Fits,
        Decision::CompactSoon => v1::ContextDecision::CompactSoon,
        Decision::CompactNow => v1::ContextDecision::CompactNow,
        Decision::OverBudget => v1::ContextDecision::OverBudget,
    };
    let receipt_json = serde_json::to_string(&built.receipt)
        .map_err(|error| Error::internal(format!("the receipt cannot be written: {error}")))?;
    Ok(v1::ContextHeader {
        decision: decision.into(),
        tokens_in,
        tokens_out: built.tokens.total().saturating_sub(built.tokens.overhead),
        overhead_tokens: built.tokens.overhead,
        reserve_tokens: built.numbers.reserve,
        window_tokens: built.numbers.window,
        messages: u32::try_from(built.messages.len()).unwrap_or(u32::MAX),
        trimmed: built.trimmed,
        cleared: built.cleared,
        repaired: built.repaired,
        receipt_json,
        sha256: built.receipt.sha256.clone(),
        body_bytes: built.bytes.len() as u64,
        build: number,
        expected_tokens: built.numbers.expected,
    })
}
