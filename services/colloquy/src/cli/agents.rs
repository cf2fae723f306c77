//! Agents and their policies.

use super::output::{Output, Row, instant, when};
use super::overrides;
use clap::Subcommand;
use colloquy_client::{Client, v1};
use serde_json::{Value, json};

#[derive(Debug, Subcommand)]
pub enum Agents {
    /// Create or replace an agent.
    #[command(
        visible_alias = "create",
        after_help = "Example: colloquy agents put support --profile openclaw --overrides '{\"dm_scope\":\"main\"}'"
    )]
    Put(PutArgs),
    /// All agents.
    #[command(after_help = "Example: colloquy agents list")]
    List,
    /// One agent, each value of its policy and where the value comes from.
    #[command(after_help = "Example: colloquy agents show default")]
    Show {
        /// Agent id.
        agent: String,
        /// Explain what is in force for this session (a canonical key).
        #[arg(long, default_value = "", hide_default_value = true, value_name = "KEY")]
        session_key: String,
        /// Explain what is in force for chats of this kind: direct, group, channel or room.
        #[arg(long, default_value = "", hide_default_value = true, value_name = "KIND")]
        chat_kind: String,
        /// Explain what is in force on this channel, for instance telegram.
        #[arg(long, default_value = "", hide_default_value = true, value_name = "NAME")]
        channel: String,
        /// With the settings of this channel account.
        #[arg(long, default_value = "", hide_default_value = true, value_name = "ID")]
        account: String,
    },
}

#[derive(Debug, clap::Args)]
pub struct PutArgs {
    /// Agent id: `[a-z0-9][a-z0-9_-]{0,63}`.
    agent: String,
    /// goclaw, goclaw-lite or openclaw.
    #[arg(long, default_value = "goclaw")]
    profile: String,
    /// JSON object merged over the profile, or a file with one.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "FILE|JSON")]
    overrides: String,
    /// For people.
    #[arg(long, default_value = "", hide_default_value = true)]
    display_name: String,
}

pub async fn run(client: &Client, out: &Output, verb: Agents) -> anyhow::Result<()> {
    match verb {
        Agents::Put(args) => put(client, out, args).await,
        Agents::List => {
            let answer = client.control().list_agents(v1::ListAgentsRequest {}).await?;
            let agents = answer.into_inner().agents;
            out.list(
                &["AGENT", "PROFILE", "VERSION", "NAME", "UPDATED"],
                agents.iter().map(row).collect(),
            );
            Ok(())
        }
        Agents::Show {
            agent,
            session_key,
            chat_kind,
            channel,
            account,
        } => {
            let ask = v1::ExplainPolicyRequest {
                agent_id: agent,
                account_id: account,
                session_key,
                chat_kind,
                channel,
            };
            show(client, out, ask).await
        }
    }
}

async fn put(client: &Client, out: &Output, args: PutArgs) -> anyhow::Result<()> {
    let policy = v1::Policy {
        profile: args.profile,
        overrides_json: overrides(&args.overrides)?,
    };
    let agent = v1::Agent {
        agent_id: args.agent,
        display_name: args.display_name,
        policy: Some(policy),
        ..Default::default()
    };
    let ask = v1::PutAgentRequest { agent: Some(agent) };
    let stored = client.control().put_agent(ask).await?.into_inner();
    print(out, &stored.agent.unwrap_or_default(), None);
    Ok(())
}

async fn show(client: &Client, out: &Output, ask: v1::ExplainPolicyRequest) -> anyhow::Result<()> {
    let get = v1::GetAgentRequest {
        agent_id: ask.agent_id.clone(),
    };
    let agent = client.control().get_agent(get).await?.into_inner().agent;
    let values = client.control().explain_policy(ask).await?.into_inner().values;
    let rows: Vec<Row> = values.into_iter().map(value).collect();
    let explained = rows.iter().map(|(json, _)| json.clone()).collect();
    print(out, &agent.unwrap_or_default(), Some(explained));
    if !out.json {
        out.note("");
        out.list(&["POLICY", "VALUE", "FROM"], rows);
    }
    Ok(())
}

fn print(out: &Output, agent: &v1::Agent, values: Option<Vec<Value>>) {
    let (mut json, _) = row(agent);
    if let Some(values) = values {
        json["values"] = values.into();
    }
    let policy = agent.policy.clone().unwrap_or_default();
    out.one(
        &json,
        &[
            ("agent", agent.agent_id.clone()),
            ("name", agent.display_name.clone()),
            ("profile", policy.profile),
            ("overrides", policy.overrides_json),
            ("version", agent.version.to_string()),
            ("updated", when(agent.updated_at.as_ref())),
        ],
    );
}

fn value(value: v1::PolicyValue) -> Row {
    let json = json!({"path": value.path, "value_json": value.value_json, "origin": value.origin, "rule": value.rule});
    let from = match value.rule.as_str() {
        "" => value.origin,
        rule => format!("{}: {rule}", value.origin),
    };
    (json, vec![value.path, value.value_json, from])
}

fn row(agent: &v1::Agent) -> Row {
    let policy = agent.policy.clone().unwrap_or_default();
    let json = json!({"agent_id": agent.agent_id, "display_name": agent.display_name,
        "policy": {"profile": policy.profile, "overrides_json": policy.overrides_json}, "version": agent.version,
        "created_at": instant(agent.created_at.as_ref()), "updated_at": instant(agent.updated_at.as_ref())});
    let cells = vec![
        agent.agent_id.clone(),
        policy.profile,
        agent.version.to_string(),
        agent.display_name.clone(),
        when(agent.updated_at.as_ref()),
    ];
    (json, cells)
}
