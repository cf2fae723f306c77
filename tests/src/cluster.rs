//! Servers under test as processes, which can be killed.

use colloquy::{Config, embedded};
use colloquy_client::{Addresses, Client};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// The built program.
pub fn program() -> PathBuf {
    if let Some(path) = std::env::var_os("COLLOQUY_TEST_BIN") {
        return path.into();
    }
    // target/debug/deps/it-… → target/debug/colloquy
    let here = std::env::current_exe().unwrap();
    let program = here.parent().unwrap().parent().unwrap().join("colloquy");
    assert!(
        program.exists(),
        "build the program first: cargo build -p colloquy"
    );
    program
}

/// A port nobody listens on, below the range from which the system gives ports to outgoing connections.
pub fn free_port() -> u16 {
    loop {
        let port = rand::random_range(10_000..20_000);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

struct Process {
    name: String,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    child: Option<Child>,
    listens: Vec<String>,
}

impl Process {
    fn start(&mut self) {
        let mut command = Command::new(program());
        command.args(&self.arguments).envs(self.variables.iter().cloned());
        command.env(
            "COLLOQUY_TELEMETRY__LOG",
            std::env::var("COLLOQUY_TEST_LOG").unwrap_or_else(|_| "off".into()),
        );
        command.stdin(Stdio::null()).stdout(Stdio::null());
        self.child = Some(command.spawn().unwrap());
    }

    /// As `kill -9` does.
    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

/// Services as processes.
pub struct Cluster {
    processes: Vec<Process>,
    pub operator: Client,
    /// A client whose router is the second replica.
    pub other_router: Client,
    pub http: String,
    _folder: Option<TempDir>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.processes.iter_mut().for_each(Process::kill);
    }
}

fn base(config: &Config) -> Vec<(String, String)> {
    [
        ("AUTH__SERVICE_KEY", config.auth.service_key.clone()),
        ("AUTH__OPERATOR_KEY", config.auth.operator_key.clone()),
        ("POSTGRES__URL", config.postgres.url.clone()),
        ("POSTGRES__OWNER_URL", config.postgres.owner_url.clone()),
        ("POSTGRES__MAX_CONNECTIONS", "6".into()),
        ("SQLITE__PATH", config.sqlite.path.clone()),
        ("REDIS__URL", config.redis.url.clone()),
        ("NATS__URL", config.nats.url.clone()),
        ("SERVER__ADMIN_LISTEN", String::new()),
        ("SERVER__HTTP_LISTEN", String::new()),
        ("SERVER__DRAIN_MS", "0".into()),
        ("HISTORY__REPUBLISH_MS", "2000".into()),
    ]
    .into_iter()
    .map(|(name, value)| (format!("COLLOQUY_{name}"), value))
    .collect()
}

impl Cluster {
    /// One process with everything, on a SQLite file.
    pub async fn one_process() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = embedded::config();
        config.sqlite.path = folder.path().join("colloquy.sqlite").display().to_string();
        let (grpc, http) = (
            format!("127.0.0.1:{}", free_port()),
            format!("127.0.0.1:{}", free_port()),
        );
        let mut variables = base(&config);
        variables.push(("COLLOQUY_SERVER__GRPC_LISTEN".into(), grpc.clone()));
        variables.push(("COLLOQUY_SERVER__HTTP_LISTEN".into(), http.clone()));
        let process = Process {
            name: "all".into(),
            arguments: vec!["serve".into(), "all".into()],
            variables,
            child: None,
            listens: vec![grpc.clone(), http.clone()],
        };
        let operator = Client::connect(&format!("http://{grpc}"), &config.auth.operator_key).unwrap();
        let mut cluster = Self {
            processes: vec![process],
            other_router: operator.clone(),
            operator,
            http: format!("http://{http}"),
            _folder: Some(folder),
        };
        cluster.start_all().await;
        cluster
    }

    /// A process per service, two routers, on servers.
    pub async fn distributed(postgres: &str, redis: &str, nats: &str) -> Self {
        let mut config = embedded::config();
        config.postgres.url = postgres.to_owned();
        config.postgres.owner_url = postgres.to_owned();
        config.redis.url = redis.to_owned();
        config.nats.url = nats.to_owned();
        let names = [
            "control",
            "history",
            "router",
            "memory",
            "compactor",
            "ingress",
            "router",
        ];
        let listens: Vec<String> = names
            .iter()
            .map(|_| format!("127.0.0.1:{}", free_port()))
            .collect();
        let http = format!("127.0.0.1:{}", free_port());
        let mut shared = base(&config);
        for (name, listen) in names.iter().zip(&listens).take(6) {
            shared.push((
                format!("COLLOQUY_SERVICES__{}", name.to_uppercase()),
                format!("http://{listen}"),
            ));
        }
        let process = |(name, listen): (&&str, &String)| {
            let mut variables = shared.clone();
            variables.push(("COLLOQUY_SERVER__GRPC_LISTEN".into(), listen.clone()));
            let mut listens = vec![listen.clone()];
            if *name == "ingress" {
                variables.push(("COLLOQUY_SERVER__HTTP_LISTEN".into(), http.clone()));
                listens.push(http.clone());
            }
            Process {
                name: (*name).to_owned(),
                arguments: vec!["serve".into(), (*name).to_owned()],
                variables,
                child: None,
                listens,
            }
        };
        let processes: Vec<Process> = names.iter().zip(&listens).map(process).collect();
        let migrated = Command::new(program())
            .arg("migrate")
            .envs(shared.iter().cloned())
            .stdout(Stdio::null())
            .status();
        assert!(migrated.unwrap().success());
        let url = |place: usize| format!("http://{}", listens[place]);
        let mut addresses = Addresses {
            control: url(0),
            history: url(1),
            router: url(2),
            memory: url(3),
            compactor: url(4),
            ingress: url(5),
        };
        let operator = Client::connect_each(&addresses, &config.auth.operator_key).unwrap();
        addresses.router = url(6);
        let other_router = Client::connect_each(&addresses, &config.auth.operator_key).unwrap();
        let mut cluster = Self {
            processes,
            operator,
            other_router,
            http: format!("http://{http}"),
            _folder: None,
        };
        cluster.start_all().await;
        cluster
    }

    async fn start_all(&mut self) {
        self.processes.iter_mut().for_each(Process::start);
        for place in 0..self.processes.len() {
            self.wait_for(place).await;
        }
    }

    async fn wait_for(&self, place: usize) {
        for listen in &self.processes[place].listens {
            let reached = async {
                while tokio::net::TcpStream::connect(listen).await.is_err() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            };
            let name = &self.processes[place].name;
            tokio::time::timeout(Duration::from_secs(60), reached)
                .await
                .unwrap_or_else(|_| panic!("{name} does not listen"));
        }
    }

    /// Processes that can be killed.
    pub fn len(&self) -> usize {
        self.processes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.processes.is_empty()
    }

    /// Kills one as `kill -9` does and starts it again; returns its name.
    pub async fn kill_and_restart(&mut self, place: usize) -> String {
        self.processes[place].kill();
        self.processes[place].start();
        self.wait_for(place).await;
        self.processes[place].name.clone()
    }
}
