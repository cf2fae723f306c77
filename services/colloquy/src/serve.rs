//! `colloquy serve`: services as a server process.

use crate::app::ConfigFile;
use crate::assemble::{CONTRACT, Service, build};
use crate::check::check;
use crate::config::Config;
use std::process::ExitCode;

/// Settings come from a TOML file and from variables like COLLOQUY_SERVER__GRPC_LISTEN.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: colloquy serve history router --config /etc/colloquy.toml")]
pub struct Args {
    /// Services of this process; those that are elsewhere are found by `[services]`.
    #[arg(required = true)]
    services: Vec<Service>,
    #[command(flatten)]
    file: ConfigFile,
}

pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let config = Config::load(args.file.config.as_deref())?;
    check(&config)?;
    let exit = colloquy_service_kit::run(&config.telemetry, &config.server, CONTRACT, |context| {
        build(&config, &args.services, context)
    })
    .await;
    Ok(ExitCode::from(exit as u8))
}
