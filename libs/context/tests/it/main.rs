//! Behaviour of the crate as its callers see it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod budget;
mod build;
mod cases;
mod compaction;
mod diff;
mod fuzz;
mod generated;
mod growing;
mod history_mode;
mod limit;
mod prefix;
mod project_ids;
mod project_prefix;
mod project_shapes;
mod project_switch;
mod project_transcripts;
mod projections;
mod prune;
mod rebuild;
mod recorded;
mod repair;
mod repair_properties;
mod support;
mod tokens;
mod transcripts;
mod usage;
mod validate_anthropic;
mod validate_chat;
mod validate_gemini;
mod validate_responses;
mod validate_rules;
mod window;
