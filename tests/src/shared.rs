//! Data beside the project, where it is there.

use std::path::PathBuf;

/// The folder with real transcripts and webhooks; `None` (said on standard output) where it is not.
pub fn folder(name: &str) -> Option<PathBuf> {
    let default = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let folder = std::env::var_os("COLLOQUY_SHARED")
        .map_or_else(default, PathBuf::from)
        .join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    println!("skipped: no {name} here");
    None
}
