//! Verbs.

use crate::cli::{self, ClientCommand, ClientOptions};
use crate::{demo, dev, ops, serve};
use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// The session plane for multi-tenant AI agents.
///
/// Exit codes: 0 done · 1 failed · 2 wrong usage, key or configuration · 3 the server or a dependency did not answer in
/// time · 4 stopped with work cut off.
#[derive(Debug, Parser)]
#[command(name = "colloquy", version, max_term_width = 100)]
pub struct App {
    #[command(flatten)]
    pub client: ClientOptions,
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Play a conversation through a whole server in this process and show what happens.
    Demo(demo::Args),
    /// Start everything in one process on SQLite, with a tenant, an agent and a key to try it with.
    Dev(dev::Args),
    /// Run one or more services: control, history, router, ingress, memory, compactor, or all.
    Serve(serve::Args),
    /// Bring the database's schema up to date (as the owner of the schema).
    Migrate(ops::ConfigArgs),
    /// Wait until the stores of the configuration answer.
    WaitFor(ops::WaitArgs),
    /// Ask a running process whether it is ready; for container probes.
    Healthcheck(ops::HealthArgs),
    /// Check, print or list the settings.
    #[command(subcommand)]
    Config(ops::ConfigVerb),
    #[command(flatten)]
    Client(ClientCommand),
    /// Print the version.
    Version,
}

/// Where the settings come from.
#[derive(Debug, Clone, clap::Args)]
pub struct ConfigFile {
    /// TOML file; environment variables `COLLOQUY_SECTION__KEY` override it.
    #[arg(long, env = "COLLOQUY_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Runs a verb to its exit code.
pub async fn run(app: App) -> ExitCode {
    let done = match app.verb {
        Verb::Demo(args) => demo::run(args, app.client.json).await,
        Verb::Dev(args) => dev::run(args).await,
        Verb::Serve(args) => serve::run(args).await,
        Verb::Migrate(args) => ops::migrate(&args).await,
        Verb::WaitFor(args) => ops::wait_for(&args).await,
        Verb::Healthcheck(args) => ops::healthcheck(&args).await,
        Verb::Config(verb) => ops::config(&verb),
        Verb::Client(command) => cli::run(command, &app.client).await.map(|()| ExitCode::SUCCESS),
        Verb::Version => {
            say!("colloquy {}", env!("CARGO_PKG_VERSION"));
            Ok(ExitCode::SUCCESS)
        }
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(ops::exit_code(&error))
        }
    }
}
