//! Behaviour of the crate as its callers see it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod budget;
mod build;
mod cases;
mod compaction;
mod generated;
mod history_mode;
mod limit;
mod projections;
mod prune;
mod repair;
mod support;
mod tokens;
mod transcripts;
mod usage;
mod window;
