//! Tests across services, and of the project's shape.

#![allow(clippy::unwrap_used)] // a test may panic

mod accounts;
mod bad_input;
mod channels;
mod configs;
mod context;
mod contract;
mod faults;
mod internal;
mod isolation;
mod lists;
mod program;
mod rights;
mod structure;
mod transcripts;
mod turns;
mod workers;
