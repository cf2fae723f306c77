//! The conformance suite on a server, and what is Postgres' own.

#![allow(clippy::unwrap_used)] // a test may panic

mod backend;
mod deployed;
mod isolation;
mod plans;

mod on_a_server {
    use super::backend::server_store;
    colloquy_storage::conformance!(server_store);
}
