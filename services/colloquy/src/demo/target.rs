//! What the demo plays against: everything in this process, or one process per service on real servers.

use super::timeline::Timeline;
use crate::config::Config;
use crate::embedded;
use anyhow::{Context, bail};
use colloquy_client::{Addresses, Client};
use colloquy_service_kit::Running;
use colloquy_service_kit::config::own_variables;
use std::net::TcpListener;
use std::process::Stdio;
use std::str::FromStr;
use std::time::Duration;
use tokio::process::{Child, Command};

/// `postgres=URL,redis=URL,nats=URL`.
#[derive(Debug, Clone)]
pub struct Stores {
    postgres: String,
    redis: String,
    nats: String,
}

impl FromStr for Stores {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let find = |name: &str| {
            let found = text
                .split(',')
                .find_map(|part| part.trim().strip_prefix(&format!("{name}=")));
            found
                .map(str::to_owned)
                .ok_or_else(|| format!("`{name}=URL` is missing"))
        };
        Ok(Self {
            postgres: find("postgres")?,
            redis: find("redis")?,
            nats: find("nats")?,
        })
    }
}

/// A running server and how to reach it.
pub struct Target {
    running: Option<Running>,
    processes: Vec<Child>,
    client: Client,
    pub webhooks: String,
    /// Keeps the embedded database's folder.
    _folder: Option<tempfile::TempDir>,
}

/// Services and the setting of their address.
const SERVICES: [&str; 6] = ["control", "history", "router", "memory", "compactor", "ingress"];
const READY_WITHIN: Duration = Duration::from_secs(60);

impl Target {
    pub async fn start(stores: Option<&Stores>, log: &str, timeline: &Timeline) -> anyhow::Result<Self> {
        match stores {
            None => Self::embedded(timeline).await,
            Some(stores) => Self::distributed(stores, log, timeline).await,
        }
    }

    /// A client under the operator's key.
    pub fn operator(&self) -> &Client {
        &self.client
    }

    async fn embedded(timeline: &Timeline) -> anyhow::Result<Self> {
        timeline.title("Starting every service in this process, on SQLite");
        let folder = tempfile::tempdir()?;
        let mut config = embedded::config();
        config.sqlite.path = folder.path().join("demo.sqlite").display().to_string();
        let running = embedded::start_all(&config).await?;
        let http = running.http.context("no webhook address")?;
        Ok(Self {
            client: Client::over(&running.channel, &config.auth.operator_key)?,
            webhooks: format!("http://{http}"),
            running: Some(running),
            processes: Vec::new(),
            _folder: Some(folder),
        })
    }

    async fn distributed(stores: &Stores, log: &str, timeline: &Timeline) -> anyhow::Result<Self> {
        timeline.title("Starting one process per service, on PostgreSQL, Redis and NATS");
        let mut config = embedded::config();
        config.postgres.url.clone_from(&stores.postgres);
        config.postgres.owner_url.clone_from(&stores.postgres);
        config.redis.url.clone_from(&stores.redis);
        config.nats.url.clone_from(&stores.nats);
        let address = || format!("127.0.0.1:{}", free_port());
        let grpc: Vec<String> = SERVICES.iter().map(|_| address()).collect();
        let url = |service: &str| {
            let place = SERVICES.iter().position(|name| *name == service).unwrap_or(0);
            format!("http://{}", grpc[place])
        };
        let (http, program) = (
            address(),
            std::env::current_exe().context("where is this program?")?,
        );
        let environment = environment(&config, log, &url);
        let migrated = command(&program, &environment)
            .arg("migrate")
            .stdout(Stdio::null())
            .status()
            .await?;
        if !migrated.success() {
            bail!("the schema could not be brought up to date ({migrated})");
        }
        let mut processes = Vec::new();
        for (service, listen) in SERVICES.iter().zip(&grpc) {
            let mut process = command(&program, &environment);
            process
                .args(["serve", service])
                .env("COLLOQUY_SERVER__GRPC_LISTEN", listen);
            if *service == "ingress" {
                process.env("COLLOQUY_SERVER__HTTP_LISTEN", &http);
            }
            processes.push(
                process
                    .spawn()
                    .with_context(|| format!("cannot start {service}"))?,
            );
        }
        for listen in grpc.iter().chain([&http]) {
            listening(listen).await?;
        }
        let addresses = Addresses {
            control: url("control"),
            history: url("history"),
            ingress: url("ingress"),
            router: url("router"),
            memory: url("memory"),
            compactor: url("compactor"),
        };
        let client = Client::connect_each(&addresses, &config.auth.operator_key)?;
        Ok(Self {
            running: None,
            processes,
            client,
            webhooks: format!("http://{http}"),
            _folder: None,
        })
    }

    pub async fn stop(mut self) {
        if let Some(running) = &self.running {
            running.stop().await;
        }
        for process in &mut self.processes {
            let _ = process.start_kill();
            let _ = process.wait().await;
        }
    }
}

/// Settings by environment, as an orchestrator gives them.
fn environment(config: &Config, log: &str, url: &dyn Fn(&str) -> String) -> Vec<(String, String)> {
    let mut variables: Vec<(String, String)> = [
        ("AUTH__SERVICE_KEY", config.auth.service_key.clone()),
        ("AUTH__OPERATOR_KEY", config.auth.operator_key.clone()),
        ("POSTGRES__URL", config.postgres.url.clone()),
        ("POSTGRES__OWNER_URL", config.postgres.owner_url.clone()),
        ("POSTGRES__MAX_CONNECTIONS", "8".into()),
        ("REDIS__URL", config.redis.url.clone()),
        ("NATS__URL", config.nats.url.clone()),
        ("SERVER__HTTP_LISTEN", String::new()),
        ("SERVER__ADMIN_LISTEN", String::new()),
        ("SERVER__DRAIN_MS", "0".into()),
        ("TELEMETRY__LOG", log.to_owned()),
    ]
    .into_iter()
    .map(|(name, value)| (format!("COLLOQUY_{name}"), value))
    .collect();
    for service in SERVICES {
        variables.push((
            format!("COLLOQUY_SERVICES__{}", service.to_uppercase()),
            url(service),
        ));
    }
    variables
}

/// Settings of the shell that this was started from are of another installation: they must not reach the processes.
pub fn command(program: &std::path::Path, environment: &[(String, String)]) -> Command {
    let mut command = Command::new(program);
    for name in own_variables() {
        command.env_remove(name);
    }
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    let bound = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    bound.map_or(0, |address| address.port())
}

async fn listening(address: &str) -> anyhow::Result<()> {
    let try_it = async {
        while tokio::net::TcpStream::connect(address).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let waited = tokio::time::timeout(READY_WITHIN, try_it).await;
    waited.with_context(|| format!("nothing listens on {address} after {READY_WITHIN:?}"))
}
