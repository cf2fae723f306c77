//! `colloquy`: see `colloquy --help`.

use clap::Parser;
use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    colloquy::app::run(colloquy::app::App::parse()).await
}
