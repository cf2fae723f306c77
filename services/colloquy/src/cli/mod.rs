//! The operator's client commands: one file per noun, all over the typed client.
//!
//! To add a noun: a file with its `Args`, and a variant of [`ClientCommand`].

mod control;
mod jobs;
mod memories;
mod output;
mod send;
mod sessions;

use anyhow::anyhow;
use clap::Subcommand;
use colloquy_client::{Client, Error};

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
    /// Create or list tenants (operator key).
    #[command(subcommand)]
    Tenants(control::Tenants),
    /// Create, list or revoke API keys.
    #[command(subcommand)]
    Keys(control::Keys),
    /// Create, list or show agents and their policies.
    #[command(subcommand)]
    Agents(control::Agents),
    /// Create or list channel accounts.
    #[command(subcommand)]
    Accounts(control::Accounts),
    /// Send a message, as a person would.
    Send(send::Args),
    /// List sessions, show one, or follow its entries.
    #[command(subcommand)]
    Sessions(sessions::Sessions),
    /// What runs and waits in a session, and what became of its messages.
    Queue(sessions::QueueArgs),
    /// List, search or delete memories.
    #[command(subcommand)]
    Memories(memories::Memories),
    /// List or show background jobs.
    #[command(subcommand)]
    Jobs(jobs::Jobs),
}

/// Runs a command against the server of the options.
///
/// # Errors
/// What the server answered, with what to do about it.
pub async fn run(command: ClientCommand, options: &ClientOptions) -> anyhow::Result<()> {
    let client = Client::connect(&options.url, &options.key)?;
    let out = output::Output { json: options.json };
    let done = match command {
        ClientCommand::Tenants(verb) => control::tenants(&client, &out, verb).await,
        ClientCommand::Keys(verb) => control::keys(&client, &out, verb).await,
        ClientCommand::Agents(verb) => control::agents(&client, &out, verb).await,
        ClientCommand::Accounts(verb) => control::accounts(&client, &out, verb).await,
        ClientCommand::Send(args) => send::run(&client, &out, args).await,
        ClientCommand::Sessions(verb) => sessions::run(&client, &out, verb).await,
        ClientCommand::Queue(args) => sessions::queue(&client, &out, &args).await,
        ClientCommand::Memories(verb) => memories::run(&client, &out, verb).await,
        ClientCommand::Jobs(verb) => jobs::run(&client, &out, verb).await,
    };
    done.map_err(|error| explain(error, options))
}

/// What a person can do about the answer.
fn explain(error: anyhow::Error, options: &ClientOptions) -> anyhow::Error {
    let status = error.downcast_ref::<tonic::Status>().cloned().map(Error::from);
    let Some(known) = status.as_ref().or_else(|| error.downcast_ref::<Error>()) else {
        return error;
    };
    match known.reason.as_str() {
        "BAD_CREDENTIAL" if options.key.is_empty() => anyhow!("no API key: pass --key or set COLLOQUY_KEY"),
        "BAD_CREDENTIAL" => anyhow!("the API key is unknown or revoked: check --key or COLLOQUY_KEY"),
        "MISSING_ROLE" => anyhow!("the key may not do this: {}", known.message),
        "UNAVAILABLE" | "DEPENDENCY" => {
            anyhow!(
                "cannot reach {}: is `colloquy dev` running? ({})",
                options.url,
                known.message
            )
        }
        _ => match &known.field {
            Some(field) => anyhow!("{} ({field}): {}", known.reason, known.message),
            None => anyhow!("{}: {}", known.reason, known.message),
        },
    }
}
