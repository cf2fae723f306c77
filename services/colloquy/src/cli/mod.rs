//! The operator's client commands.
use clap::Subcommand;

/// How to reach a server.
#[derive(Debug, clap::Args)]
pub struct ClientOptions {
    /// gRPC URL of the server.
    #[arg(
        long,
        global = true,
        env = "COLLOQUY_URL",
        default_value = "http://127.0.0.1:7100"
    )]
    pub url: String,
    /// API key.
    #[arg(
        long,
        global = true,
        env = "COLLOQUY_KEY",
        hide_env_values = true,
        default_value = ""
    )]
    pub key: String,
    /// Print JSON for scripts.
    #[arg(long, global = true)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum ClientCommand {
    /// Sessions.
    Sessions,
}

pub async fn run(_: ClientCommand, _: &ClientOptions) -> anyhow::Result<()> {
    Ok(())
}
