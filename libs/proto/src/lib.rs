//! The contract in Rust: generated messages, clients and servers, and conversions to and from `types`.
//!
//! Owns the wire form and nothing else. To add a message: write it in `proto/colloquy/v1`, and a conversion in
//! `convert` when it stands for a type of `types`.

pub mod convert;

/// Generated code.
#[allow(clippy::all, clippy::pedantic, clippy::unwrap_used, clippy::doc_markdown)]
pub mod v1 {
    tonic::include_proto!("colloquy.v1");
}

use colloquy_types::CallerRole;
pub use prost_types::{Duration, Timestamp};

/// The encoded file descriptor set, for reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/colloquy.v1.binpb"));

/// A method of the contract and who may call it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Method {
    /// `/colloquy.v1.RouterService/AcquireTurn`.
    pub path: &'static str,
    pub roles: &'static [CallerRole],
}

/// Every method, with the roles that its `roles` option names.
pub static METHODS: &[Method] = include!(concat!(env!("OUT_DIR"), "/methods.rs"));
