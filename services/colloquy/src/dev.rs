//! `colloquy dev`: everything in one process on SQLite, ready to be talked to.

use crate::cli::Refused;
use crate::config::Config;
use crate::embedded;
use anyhow::{Context, bail};
use colloquy_client::{Client, v1};
use colloquy_service_kit::shutdown::signal;
use colloquy_service_kit::telemetry;
use colloquy_types::Error;
use serde::{Deserialize, Serialize};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Keeps its data in a folder; deleting the folder starts over.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: colloquy dev --data ./dev-data")]
pub struct Args {
    /// Folder for the database and the first keys.
    #[arg(long, default_value = ".colloquy-dev", value_name = "DIR")]
    data: PathBuf,
    /// gRPC address.
    #[arg(long, default_value = "127.0.0.1:7100")]
    grpc: String,
    /// Webhook address.
    #[arg(long, default_value = "127.0.0.1:7180")]
    http: String,
}

/// What the first start made; kept beside the database.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Secrets {
    service_key: String,
    operator_key: String,
    admin_key: String,
    agent_key: String,
    account: String,
    account_secret: String,
}

pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    make_private(&args.data).with_context(|| format!("cannot make {}", args.data.display()))?;
    let _lock = lock(&args.data)?;
    let file = args.data.join("keys.json");
    let known = read(&file)?;
    let config = config(&args, known.as_ref());
    telemetry::init(&config.telemetry);
    let running = embedded::start_all(&config).await.map_err(by_option)?;
    let secrets = match known {
        Some(secrets) => secrets,
        None => {
            let secrets = first_start(&running.channel, &config).await?;
            write(&file, &secrets)?;
            secrets
        }
    };
    greet(&args, &secrets);
    signal().await?;
    say!("stopping");
    let clean = running.stop().await;
    Ok(if clean {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(4)
    })
}

/// Names the option behind a setting that does not work.
fn by_option(error: Error) -> anyhow::Error {
    let option = match error.field.as_deref() {
        Some("server.grpc_listen") => "--grpc",
        Some("server.http_listen") => "--http",
        _ => return error.into(),
    };
    let message = format!(
        "{}: choose another address with {option}, or stop what listens there",
        error.message
    );
    Refused {
        message,
        exit_code: 2,
    }
    .into()
}

/// For its owner only: keys and conversations are in it.
fn make_private(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
}

/// Two servers on one folder would not hear of each other's turns. The lock goes with the process, however it ends.
fn lock(folder: &Path) -> anyhow::Result<File> {
    let path = folder.join("lock");
    let file = File::create(&path).with_context(|| format!("cannot open {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => bail!(
            "another `colloquy dev` runs on {}: stop it, or take another folder with --data",
            folder.display()
        ),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {}", path.display()))
        }
    }
}

fn read(file: &Path) -> anyhow::Result<Option<Secrets>> {
    if !file.exists() {
        return Ok(None);
    }
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let secrets = serde_json::from_str(&text).with_context(|| format!("{} is damaged", file.display()))?;
    Ok(Some(secrets))
}

/// Readable by its owner only: the file holds keys.
fn write(file: &Path, secrets: &Secrets) -> anyhow::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    let mut opened = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(file)?;
    opened.write_all(serde_json::to_string_pretty(secrets)?.as_bytes())?;
    Ok(())
}

fn config(args: &Args, known: Option<&Secrets>) -> Config {
    let mut config = embedded::config();
    config.server.grpc_listen.clone_from(&args.grpc);
    config.server.http_listen.clone_from(&args.http);
    config.sqlite.path = args.data.join("colloquy.sqlite").display().to_string();
    config.telemetry.log = "warn".into();
    if let Some(secrets) = known {
        config.auth.service_key.clone_from(&secrets.service_key);
        config.auth.operator_key.clone_from(&secrets.operator_key);
    }
    config
}

async fn first_start(channel: &tonic::transport::Channel, config: &Config) -> anyhow::Result<Secrets> {
    let operator = Client::over(channel, &config.auth.operator_key)?;
    let tenant = v1::CreateTenantRequest { name: "dev".into() };
    let created = operator.control().create_tenant(tenant).await;
    let admin_key = match created {
        Ok(created) => created.into_inner().admin_key,
        Err(status) if status.code() == tonic::Code::AlreadyExists => bail!(
            "the database has data of an earlier start, but keys.json beside it is gone: put it back, delete the folder \
             to start over, or take another with --data"
        ),
        Err(status) => return Err(status.into()),
    };
    let mut control = operator.with_key(&admin_key)?.control();
    let agent = v1::Agent {
        agent_id: "default".into(),
        display_name: "Default".into(),
        ..Default::default()
    };
    control
        .put_agent(v1::PutAgentRequest { agent: Some(agent) })
        .await?;
    let key = v1::CreateApiKeyRequest {
        name: "worker".into(),
        roles: vec![v1::Role::Agent.into()],
        ..Default::default()
    };
    let agent_key = control.create_api_key(key).await?.into_inner().secret;
    let account = v1::ChannelAccount {
        channel: "telegram".into(),
        agent: "default".into(),
        name: "dev".into(),
        ..Default::default()
    };
    let put = v1::PutChannelAccountRequest {
        account: Some(account),
    };
    let account = control
        .put_channel_account(put)
        .await?
        .into_inner()
        .account
        .unwrap_or_default();
    Ok(Secrets {
        service_key: config.auth.service_key.clone(),
        operator_key: config.auth.operator_key.clone(),
        admin_key,
        agent_key,
        account: account.account_id,
        account_secret: account.secret,
    })
}

fn greet(args: &Args, secrets: &Secrets) {
    say!(
        "colloquy is up: gRPC http://{grpc}, webhooks http://{http}, data in {data}\n\n\
         In another terminal:\n\n  \
         export COLLOQUY_URL=http://{grpc} COLLOQUY_KEY={admin}\n  \
         colloquy send 'hello' --session-key agent:default:app:me\n  \
         colloquy sessions list\n\n\
         A Telegram update by hand:\n\n  \
         curl -H 'x-telegram-bot-api-secret-token: {secret}' -H 'content-type: application/json' \\\n    \
         -d '{{\"update_id\":1,\"message\":{{\"message_id\":1,\"text\":\"hello\",\"chat\":{{\"id\":5,\"type\":\"private\"}},\"from\":{{\"id\":5}}}}}}' \\\n    \
         http://{http}/v1/channels/telegram/{account}\n\n\
         A worker's key: {agent}\n\nCtrl-C stops it.",
        grpc = args.grpc,
        http = args.http,
        data = args.data.display(),
        admin = secrets.admin_key,
        agent = secrets.agent_key,
        secret = secrets.account_secret,
        account = secrets.account,
    );
}
