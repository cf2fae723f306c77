//! A server in this process, either way it can run; [`both_ways!`](crate::both_ways) stamps a test onto both.

use crate::cluster::free_port;
use crate::servers;
use colloquy::assemble::{CONTRACT, Service, build};
use colloquy::config::ServicesConfig;
use colloquy::{Config, embedded, wiring};
use colloquy_client::{Addresses, Client};
use colloquy_service_kit::run::start;
use colloquy_service_kit::{Running, Shutdown};
use std::sync::LazyLock;
use tokio::runtime::{Builder, Runtime};
use tonic::transport::{Channel, Endpoint};

/// Stamps tests onto both ways to run: on SQLite in memory with everything in one process, and as services of their
/// own, reached by the network, on Postgres, Redis and NATS.
///
/// A test is an `async fn(Server)` of the module the macro stands in; one that is not named is dead code, which is
/// refused, and the tests of the project's shape refuse a server that was started past the macro.
#[macro_export]
macro_rules! both_ways {
    ($($case:ident),+ $(,)?) => {
        mod embedded {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                super::$case($crate::server::Server::embedded().await).await;
            })+
        }

        mod distributed {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                if let Some(server) = $crate::server::Server::distributed() {
                    super::$case(server).await;
                }
            })+
        }
    };
}

/// What a test knows of the server it talks to. Others may share it: each test makes tenants of its own.
pub struct Server {
    /// The operator's client. Distributed, its router is not the one that messages come through.
    pub operator: Client,
    pub operator_key: String,
    pub service_key: String,
    /// Where webhooks go.
    pub http: String,
    addresses: Addresses,
    /// In process, where there is one process.
    local: Option<Channel>,
    _running: Option<Running>,
}

impl Server {
    /// Everything in one process, on SQLite in memory; the test's own.
    pub async fn embedded() -> Self {
        let config = embedded::config();
        let running = embedded::start_all(&config).await.unwrap();
        Self {
            operator: Client::over(&running.channel, &config.auth.operator_key).unwrap(),
            http: format!("http://{}", running.http.unwrap()),
            addresses: Addresses::single(&format!("http://{}", running.grpc.unwrap())),
            operator_key: config.auth.operator_key,
            service_key: config.auth.service_key,
            local: Some(running.channel.clone()),
            _running: Some(running),
        }
    }

    /// Services apart, on Postgres, Redis and NATS; started once and shared. `None` (said on standard output) where
    /// there are no servers and none are required.
    pub fn distributed() -> Option<Self> {
        let shared = DISTRIBUTED.as_ref();
        if shared.is_none() {
            println!("skipped: no servers here");
        }
        shared.map(|shared| Self {
            operator: Client::connect_each(&shared.addresses, &shared.config.auth.operator_key).unwrap(),
            operator_key: shared.config.auth.operator_key.clone(),
            service_key: shared.config.auth.service_key.clone(),
            http: shared.http.clone(),
            addresses: shared.addresses.clone(),
            local: None,
            _running: None,
        })
    }

    /// A client over the network.
    pub fn connect(&self, key: &str) -> Client {
        Client::connect_each(&self.addresses, key).unwrap()
    }

    /// A channel to the service of a method, for instance `/colloquy.v1.HistoryService/GetSession`.
    pub fn channel(&self, method: &str) -> Channel {
        if let Some(local) = &self.local {
            return local.clone();
        }
        let service = method.split(['.', '/']).nth(3).unwrap();
        let address = match service {
            "ControlService" => &self.addresses.control,
            "HistoryService" => &self.addresses.history,
            "RouterService" => &self.addresses.router,
            "IngressService" => &self.addresses.ingress,
            "MemoryService" => &self.addresses.memory,
            "CompactionService" => &self.addresses.compactor,
            other => panic!("{other} has no address"),
        };
        Endpoint::from_shared(address.clone()).unwrap().connect_lazy()
    }
}

/// Six services and a second router, for the life of the test process.
struct Distributed {
    config: Config,
    addresses: Addresses,
    http: String,
    _running: Vec<Running>,
}

/// On threads of its own: a test's runtime ends with the test.
static DISTRIBUTED: LazyLock<Option<Distributed>> = LazyLock::new(|| {
    let started = std::thread::spawn(|| {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let runtime: &'static Runtime = Box::leak(Box::new(runtime));
        runtime.block_on(start_apart())
    });
    started.join().unwrap()
});

/// Redis and NATS that no other process uses now: what another consumes there is none of ours. Where each test is a
/// process of its own, they are one pair for all that come one after the other.
async fn start_apart() -> Option<Distributed> {
    let postgres = servers::database().await?;
    let slot = std::env::var("NEXTEST_TEST_GLOBAL_SLOT").unwrap_or_else(|_| "0".into());
    let name = |kind: &str| format!("{kind}apart{slot}");
    let mut config = embedded::config();
    config.postgres.owner_url.clone_from(&postgres);
    config.postgres.url = postgres;
    config.postgres.max_connections = 6;
    config.redis.url = servers::own("redis", &name("redis"));
    config.nats.url = servers::own("nats", &name("nats"));
    config.history.republish_ms = 2_000;
    config.server.admin_listen.clear();
    wiring::migrate(&config).await.unwrap();
    let listen = || format!("127.0.0.1:{}", free_port());
    let (second_router, http) = (listen(), listen());
    let url = || format!("http://{}", listen());
    config.services = ServicesConfig {
        control: url(),
        history: url(),
        router: url(),
        memory: url(),
        compactor: url(),
        ingress: url(),
    };
    let running = start_each(&config, &second_router, &http).await;
    let at = config.services.clone();
    Some(Distributed {
        addresses: Addresses {
            control: at.control,
            history: at.history,
            ingress: at.ingress,
            router: format!("http://{second_router}"),
            memory: at.memory,
            compactor: at.compactor,
        },
        config,
        http: format!("http://{http}"),
        _running: running,
    })
}

async fn start_each(config: &Config, second_router: &str, http: &str) -> Vec<Running> {
    let at = &config.services;
    let second_router = format!("http://{second_router}");
    let mut running = Vec::new();
    for (service, url) in [
        (Service::Control, &at.control),
        (Service::History, &at.history),
        (Service::Router, &at.router),
        (Service::Router, &second_router),
        (Service::Memory, &at.memory),
        (Service::Compactor, &at.compactor),
        (Service::Ingress, &at.ingress),
    ] {
        let mut config = config.clone();
        config.server.grpc_listen = url.trim_start_matches("http://").to_owned();
        config.server.http_listen.clear();
        if service == Service::Ingress {
            config.server.http_listen = http.to_owned();
        }
        let server = config.server.clone();
        let build = |context| async move { build(&config, &[service], context).await };
        running.push(start(&server, CONTRACT, build, Shutdown::new()).await.unwrap());
    }
    running
}
