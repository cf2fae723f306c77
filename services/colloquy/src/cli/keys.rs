//! API keys.

use super::output::{Output, Row, instant, when, word};
use clap::{Subcommand, ValueEnum};
use colloquy_client::{Client, v1};
use serde_json::json;

/// What a key may do.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum KeyRole {
    /// Manage the tenant.
    Admin,
    /// Take turns as a worker.
    Agent,
    /// Bring in messages of one account and deliver its replies.
    Channel,
    /// Send messages.
    User,
    /// Look at everything, change nothing.
    Viewer,
}

impl From<KeyRole> for v1::Role {
    fn from(role: KeyRole) -> Self {
        match role {
            KeyRole::Admin => Self::Admin,
            KeyRole::Agent => Self::Agent,
            KeyRole::Channel => Self::Channel,
            KeyRole::User => Self::User,
            KeyRole::Viewer => Self::Viewer,
        }
    }
}

#[derive(Debug, Subcommand)]
pub enum Keys {
    /// Create a key; it is printed this once.
    #[command(after_help = "Example: colloquy keys create worker --role agent --agent default")]
    Create(CreateArgs),
    /// All keys, without their secrets.
    #[command(after_help = "Example: colloquy keys list")]
    List,
    /// Revoke a key, in force everywhere within seconds.
    #[command(after_help = "Example: colloquy keys revoke key_…")]
    Revoke {
        /// `key_…`, as `keys list` shows it.
        key_id: String,
    },
}

#[derive(Debug, clap::Args)]
pub struct CreateArgs {
    /// For people, 1 to 200 characters.
    name: String,
    /// What it may do; give it once per role.
    #[arg(long, required = true)]
    role: Vec<KeyRole>,
    /// The account of a channel key.
    #[arg(long, default_value = "", hide_default_value = true)]
    account: String,
    /// Agents a worker may serve, once per agent; all when left out.
    #[arg(long)]
    agent: Vec<String>,
    /// Stable name of the holder; the key's id when left out.
    #[arg(long, default_value = "", hide_default_value = true)]
    subject: String,
}

pub async fn run(client: &Client, out: &Output, verb: Keys) -> anyhow::Result<()> {
    match verb {
        Keys::Create(args) => create(client, out, args).await?,
        Keys::List => {
            let answer = client.control().list_api_keys(v1::ListApiKeysRequest {}).await?;
            let keys = answer.into_inner().api_keys;
            out.list(
                &["KEY", "NAME", "ROLES", "SUBJECT", "CREATED", "REVOKED"],
                keys.iter().map(row).collect(),
            );
        }
        Keys::Revoke { key_id } => {
            let ask = v1::RevokeApiKeyRequest {
                key_id: key_id.clone(),
            };
            client.control().revoke_api_key(ask).await?;
            out.one(&json!({"key_id": key_id}), &[("revoked", key_id.clone())]);
        }
    }
    Ok(())
}

async fn create(client: &Client, out: &Output, args: CreateArgs) -> anyhow::Result<()> {
    let roles = args.role.into_iter().map(|role| v1::Role::from(role).into());
    let ask = v1::CreateApiKeyRequest {
        name: args.name,
        roles: roles.collect(),
        subject: args.subject,
        account: args.account,
        agents: args.agent,
    };
    let created = client.control().create_api_key(ask).await?.into_inner();
    let key = created.api_key.unwrap_or_default();
    let (mut json, _) = row(&key);
    json["secret"] = created.secret.clone().into();
    out.one(&json, &[("id", key.key_id), ("key", created.secret)]);
    out.note("Keep the key: it is not shown again.");
    Ok(())
}

fn row(key: &v1::ApiKey) -> Row {
    let roles: Vec<String> = key
        .roles()
        .map(|role| word(role.as_str_name(), "ROLE_"))
        .collect();
    let json = json!({"key_id": key.key_id, "name": key.name, "roles": roles, "subject": key.subject,
        "account": key.account, "agents": key.agents, "created_at": instant(key.created_at.as_ref()),
        "revoked_at": instant(key.revoked_at.as_ref())});
    let cells = vec![
        key.key_id.clone(),
        key.name.clone(),
        roles.join(","),
        key.subject.clone(),
        when(key.created_at.as_ref()),
        when(key.revoked_at.as_ref()),
    ];
    (json, cells)
}
