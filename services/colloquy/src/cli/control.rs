//! Tenants, keys, agents, channel accounts.

use super::output::{Output, instant, word};
use anyhow::Context;
use clap::{Subcommand, ValueEnum};
use colloquy_client::{Client, v1};
use serde_json::{Value, json};

#[derive(Debug, Subcommand)]
pub enum Tenants {
    /// Create a tenant; prints its first admin key, this once.
    #[command(after_help = "Example: colloquy tenants create 'Harbour Bikes' --key op_…")]
    Create { name: String },
    /// All tenants by creation.
    List,
}

pub async fn tenants(client: &Client, out: &Output, verb: Tenants) -> anyhow::Result<()> {
    match verb {
        Tenants::Create { name } => {
            let created = client
                .control()
                .create_tenant(v1::CreateTenantRequest { name })
                .await?
                .into_inner();
            let tenant = created.tenant.unwrap_or_default();
            let json =
                json!({"tenant_id": tenant.tenant_id, "name": tenant.name, "admin_key": created.admin_key});
            out.one(
                &json,
                &[("tenant", tenant.tenant_id), ("admin key", created.admin_key)],
            );
            out.note("Keep the key: it is not shown again.");
        }
        Tenants::List => {
            let (mut rows, mut page_token) = (Vec::new(), String::new());
            loop {
                let ask = v1::ListTenantsRequest {
                    page_size: 500,
                    page_token,
                };
                let page = client.control().list_tenants(ask).await?.into_inner();
                rows.extend(page.tenants.into_iter().map(|tenant| {
                    let created = instant(tenant.created_at.as_ref());
                    let json =
                        json!({"tenant_id": tenant.tenant_id, "name": tenant.name, "created_at": created});
                    (json, vec![tenant.tenant_id, tenant.name, created])
                }));
                if page.next_page_token.is_empty() {
                    break;
                }
                page_token = page.next_page_token;
            }
            out.list(&["TENANT", "NAME", "CREATED"], rows);
        }
    }
    Ok(())
}

/// What a key may do.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum KeyRole {
    Admin,
    Agent,
    Channel,
    User,
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
    Create {
        name: String,
        /// Give it once per role.
        #[arg(long, required = true)]
        role: Vec<KeyRole>,
        /// The account of a channel key.
        #[arg(long, default_value = "")]
        account: String,
        /// Agents a worker may serve; all when left out.
        #[arg(long)]
        agent: Vec<String>,
        /// Stable name of the holder; the key's id when left out.
        #[arg(long, default_value = "")]
        subject: String,
    },
    /// All keys, without their secrets.
    List,
    /// Revoke a key, in force everywhere within seconds.
    Revoke { key_id: String },
}

pub async fn keys(client: &Client, out: &Output, verb: Keys) -> anyhow::Result<()> {
    match verb {
        Keys::Create {
            name,
            role,
            account,
            agent,
            subject,
        } => {
            let roles = role.into_iter().map(|role| v1::Role::from(role).into()).collect();
            let ask = v1::CreateApiKeyRequest {
                name,
                roles,
                subject,
                account,
                agents: agent,
            };
            let created = client.control().create_api_key(ask).await?.into_inner();
            let key_id = created.api_key.unwrap_or_default().key_id;
            out.one(
                &json!({"key_id": key_id, "secret": created.secret}),
                &[("id", key_id.clone()), ("key", created.secret.clone())],
            );
            out.note("Keep the key: it is not shown again.");
        }
        Keys::List => {
            let keys = client
                .control()
                .list_api_keys(v1::ListApiKeysRequest {})
                .await?
                .into_inner()
                .api_keys;
            let row = |key: v1::ApiKey| {
                let roles: Vec<String> = key
                    .roles()
                    .map(|role| word(role.as_str_name(), "ROLE_"))
                    .collect();
                let revoked = instant(key.revoked_at.as_ref());
                let json = json!({"key_id": key.key_id, "name": key.name, "roles": roles, "subject": key.subject,
                    "account": key.account, "agents": key.agents, "revoked_at": revoked});
                (
                    json,
                    vec![key.key_id, key.name, roles.join(","), key.subject, revoked],
                )
            };
            out.list(
                &["KEY", "NAME", "ROLES", "SUBJECT", "REVOKED"],
                keys.into_iter().map(row).collect(),
            );
        }
        Keys::Revoke { key_id } => {
            client
                .control()
                .revoke_api_key(v1::RevokeApiKeyRequest { key_id })
                .await?;
            out.note("revoked");
        }
    }
    Ok(())
}

#[derive(Debug, Subcommand)]
pub enum Agents {
    /// Create or replace an agent.
    #[command(
        after_help = "Example: colloquy agents put support --profile openclaw --overrides '{\"queue\":{\"capacity\":5}}'"
    )]
    Put {
        agent: String,
        /// goclaw, goclaw-lite or openclaw.
        #[arg(long, default_value = "goclaw")]
        profile: String,
        /// JSON merged over the profile, or @FILE.
        #[arg(long, default_value = "")]
        overrides: String,
        #[arg(long, default_value = "")]
        display_name: String,
    },
    /// All agents.
    List,
    /// One agent and every value of its policy that is not the profile's.
    Show { agent: String },
}

/// JSON on the command line, or of a file named with `@`.
fn inline_or_file(text: String) -> anyhow::Result<String> {
    match text.strip_prefix('@') {
        Some(file) => std::fs::read_to_string(file).with_context(|| format!("cannot read {file}")),
        None => Ok(text),
    }
}

pub async fn agents(client: &Client, out: &Output, verb: Agents) -> anyhow::Result<()> {
    match verb {
        Agents::Put {
            agent,
            profile,
            overrides,
            display_name,
        } => {
            let policy = v1::Policy {
                profile,
                overrides_json: inline_or_file(overrides)?,
            };
            let agent = v1::Agent {
                agent_id: agent,
                display_name,
                policy: Some(policy),
                ..Default::default()
            };
            let stored = client
                .control()
                .put_agent(v1::PutAgentRequest { agent: Some(agent) })
                .await?
                .into_inner();
            let (json, row) = agent_row(stored.agent.unwrap_or_default());
            out.one(
                &json,
                &[
                    ("agent", row[0].clone()),
                    ("profile", row[1].clone()),
                    ("version", row[2].clone()),
                ],
            );
        }
        Agents::List => {
            let agents = client
                .control()
                .list_agents(v1::ListAgentsRequest {})
                .await?
                .into_inner()
                .agents;
            out.list(
                &["AGENT", "PROFILE", "VERSION", "NAME"],
                agents.into_iter().map(agent_row).collect(),
            );
        }
        Agents::Show { agent } => {
            let ask = v1::ExplainPolicyRequest {
                agent_id: agent,
                account_id: String::new(),
            };
            let values = client.control().explain_policy(ask).await?.into_inner().values;
            let row = |value: v1::PolicyValue| {
                let parsed: Value = serde_json::from_str(&value.value_json).unwrap_or_default();
                let json = json!({"path": value.path, "value": parsed, "origin": value.origin});
                (json, vec![value.path, value.value_json, value.origin])
            };
            out.list(
                &["POLICY", "VALUE", "FROM"],
                values.into_iter().map(row).collect(),
            );
        }
    }
    Ok(())
}

fn agent_row(agent: v1::Agent) -> (Value, Vec<String>) {
    let policy = agent.policy.unwrap_or_default();
    let json = json!({"agent_id": agent.agent_id, "display_name": agent.display_name, "profile": policy.profile,
        "overrides_json": policy.overrides_json, "version": agent.version});
    (
        json,
        vec![
            agent.agent_id,
            policy.profile,
            agent.version.to_string(),
            agent.display_name,
        ],
    )
}

#[derive(Debug, Subcommand)]
pub enum Accounts {
    /// Create or replace a channel account; prints its secret, this once.
    #[command(after_help = "Example: colloquy accounts put main-bot --channel telegram --agent default")]
    Put {
        name: String,
        #[arg(long)]
        channel: String,
        #[arg(long)]
        agent: String,
        /// Made by the server when left out.
        #[arg(long, default_value = "")]
        secret: String,
        /// Of an account to replace.
        #[arg(long, default_value = "")]
        account_id: String,
        /// JSON merged over the agent's policy, or @FILE.
        #[arg(long, default_value = "")]
        overrides: String,
    },
    /// All accounts, without their secrets.
    List,
}

pub async fn accounts(client: &Client, out: &Output, verb: Accounts) -> anyhow::Result<()> {
    match verb {
        Accounts::Put {
            name,
            channel,
            agent,
            secret,
            account_id,
            overrides,
        } => {
            let overrides_json = inline_or_file(overrides)?;
            let account = v1::ChannelAccount {
                account_id,
                channel,
                agent,
                name,
                secret,
                overrides_json,
                created_at: None,
            };
            let ask = v1::PutChannelAccountRequest {
                account: Some(account),
            };
            let stored = client.control().put_channel_account(ask).await?.into_inner();
            let account = stored.account.unwrap_or_default();
            let json = json!({"account_id": account.account_id, "secret": account.secret, "webhook_path": stored.webhook_path});
            out.one(
                &json,
                &[
                    ("account", account.account_id),
                    ("secret", account.secret),
                    ("webhook", stored.webhook_path),
                ],
            );
            out.note("Keep the secret: it is not shown again.");
        }
        Accounts::List => {
            let ask = v1::ListChannelAccountsRequest {};
            let accounts = client
                .control()
                .list_channel_accounts(ask)
                .await?
                .into_inner()
                .accounts;
            let row = |account: v1::ChannelAccount| {
                let json = json!({"account_id": account.account_id, "channel": account.channel, "agent": account.agent,
                    "name": account.name});
                (
                    json,
                    vec![account.account_id, account.channel, account.name, account.agent],
                )
            };
            out.list(
                &["ACCOUNT", "CHANNEL", "NAME", "AGENT"],
                accounts.into_iter().map(row).collect(),
            );
        }
    }
    Ok(())
}
