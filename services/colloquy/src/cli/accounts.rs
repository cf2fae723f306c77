//! Channel accounts.

use super::output::{Output, Row, instant, when};
use super::overrides;
use clap::Subcommand;
use colloquy_client::{Client, v1};
use serde_json::json;

#[derive(Debug, Subcommand)]
pub enum Accounts {
    /// Create or replace a channel account; prints its secret, this once.
    #[command(
        visible_alias = "create",
        after_help = "Example: colloquy accounts put main-bot --channel telegram --agent default"
    )]
    Put(PutArgs),
    /// All accounts, without their secrets.
    #[command(after_help = "Example: colloquy accounts list")]
    List,
}

#[derive(Debug, clap::Args)]
pub struct PutArgs {
    /// Unique per channel, 1 to 64 characters.
    name: String,
    /// `telegram`, or any other name for the generic signed webhook.
    #[arg(long)]
    channel: String,
    /// Agent that answers.
    #[arg(long)]
    agent: String,
    /// What a webhook must prove; made by the server when left out.
    #[arg(long, default_value = "", hide_default_value = true)]
    secret: String,
    /// Of an account to replace; made by the server when left out.
    #[arg(long, default_value = "", hide_default_value = true)]
    account_id: String,
    /// JSON object merged over the agent's policy, or a file with one.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "FILE|JSON")]
    overrides: String,
}

pub async fn run(client: &Client, out: &Output, verb: Accounts) -> anyhow::Result<()> {
    match verb {
        Accounts::Put(args) => put(client, out, args).await?,
        Accounts::List => {
            let ask = v1::ListChannelAccountsRequest {};
            let accounts = client
                .control()
                .list_channel_accounts(ask)
                .await?
                .into_inner()
                .accounts;
            out.list(
                &["ACCOUNT", "CHANNEL", "NAME", "AGENT", "CREATED"],
                accounts.iter().map(row).collect(),
            );
        }
    }
    Ok(())
}

async fn put(client: &Client, out: &Output, args: PutArgs) -> anyhow::Result<()> {
    let account = v1::ChannelAccount {
        account_id: args.account_id,
        channel: args.channel,
        agent: args.agent,
        name: args.name,
        secret: args.secret,
        overrides_json: overrides(&args.overrides)?,
        created_at: None,
    };
    let ask = v1::PutChannelAccountRequest {
        account: Some(account),
    };
    let stored = client.control().put_channel_account(ask).await?.into_inner();
    let account = stored.account.unwrap_or_default();
    let (mut json, _) = row(&account);
    json["secret"] = account.secret.clone().into();
    json["webhook_path"] = stored.webhook_path.clone().into();
    out.one(
        &json,
        &[
            ("account", account.account_id),
            ("secret", account.secret),
            ("webhook", stored.webhook_path),
        ],
    );
    out.note("Keep the secret: it is not shown again.");
    Ok(())
}

/// Without the secret.
fn row(account: &v1::ChannelAccount) -> Row {
    let json = json!({"account_id": account.account_id, "channel": account.channel, "agent": account.agent,
        "name": account.name, "overrides_json": account.overrides_json,
        "created_at": instant(account.created_at.as_ref())});
    let cells = vec![
        account.account_id.clone(),
        account.channel.clone(),
        account.name.clone(),
        account.agent.clone(),
        when(account.created_at.as_ref()),
    ];
    (json, cells)
}
