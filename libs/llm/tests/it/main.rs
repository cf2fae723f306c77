//! Providers against a server on this machine that answers as theirs do, and badly; the offline tasks.

#![allow(clippy::unwrap_used)] // tests and their helpers alike

mod anthropic;
mod offline;
mod openai;
mod prompted;
mod server;
