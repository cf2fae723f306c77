//! The queue rules against the acceptance cases and against a model.

#![allow(clippy::unwrap_used)] // a test may panic

mod commands;
mod ends;
mod fair;
mod model;
mod modes;
mod queue;
mod reset;
mod simulator;

use std::path::PathBuf;

/// Lines of an acceptance file; none where the cases are not there.
fn cases(name: &str) -> Vec<serde_json::Value> {
    let default = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("COLLOQUY_SHARED").map_or_else(default, PathBuf::from);
    match std::fs::read_to_string(shared.join("cases").join(name)) {
        Ok(text) => text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect(),
        Err(_) => {
            println!("skipped: no acceptance cases here");
            Vec::new()
        }
    }
}
