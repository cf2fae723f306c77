//! The listeners: gRPC (contract, health, reflection), HTTP (webhooks), and an admin port for probes.

use crate::auth::Auth;
use crate::client::configure;
use crate::health::{Check, Readiness, watch};
use crate::malformed::Malformed;
use crate::settings::ServerConfig;
use crate::shutdown::Shutdown;
use crate::trace::Trace;
use crate::{MAX_MESSAGE_BYTES, telemetry};
use axum::Router;
use axum::routing::get;
use colloquy_types::{Error, Result};
use futures::future::BoxFuture;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_stream::StreamExt;
use tonic::service::RoutesBuilder;
use tonic::transport::{Channel, Endpoint, Server};
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;

/// A long-running task of a service; ending before the stop, with or without an error, stops the process.
pub struct Task {
    pub name: &'static str,
    pub run: BoxFuture<'static, Result<()>>,
}

impl Task {
    pub fn new(name: &'static str, run: impl Future<Output = Result<()>> + Send + 'static) -> Self {
        Self {
            name,
            run: Box::pin(run),
        }
    }
}

type Register = Box<dyn FnOnce(&mut RoutesBuilder) + Send>;

/// What a service puts into a process.
#[derive(Default)]
pub struct Parts {
    pub name: &'static str,
    grpc: Vec<Register>,
    http: Router,
    tasks: Vec<Task>,
    checks: Vec<Check>,
}

impl Parts {
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }

    /// Adds gRPC services: `parts.grpc(move |routes| { routes.add_service(XServer::new(x)); })`.
    #[must_use]
    pub fn grpc(mut self, register: impl FnOnce(&mut RoutesBuilder) + Send + 'static) -> Self {
        self.grpc.push(Box::new(register));
        self
    }

    #[must_use]
    pub fn http(mut self, router: Router) -> Self {
        self.http = self.http.merge(router);
        self
    }

    #[must_use]
    pub fn task(mut self, task: Task) -> Self {
        self.tasks.push(task);
        self
    }

    #[must_use]
    pub fn check(mut self, check: Check) -> Self {
        self.checks.push(check);
        self
    }
}

/// What the kit must be told of the contract.
#[derive(Clone, Copy)]
pub struct Contract {
    /// The encoded file descriptor set, for reflection.
    pub descriptors: &'static [u8],
}

/// A serving process; dropping it does not stop it.
pub struct Running {
    pub grpc: Option<SocketAddr>,
    pub http: Option<SocketAddr>,
    pub admin: Option<SocketAddr>,
    pub readiness: Readiness,
    /// In-process channel to the gRPC services.
    pub channel: Channel,
    pub shutdown: Shutdown,
    drain: Duration,
    stop_limit: Duration,
}

impl Running {
    /// Ready false, a pause for load balancers, then a bounded stop. `false` when something had to be ended.
    pub async fn stop(&self) -> bool {
        self.readiness.leave();
        tokio::time::sleep(self.drain).await;
        self.shutdown.begin();
        let clean = self.shutdown.drained(self.stop_limit).await;
        if !clean {
            tracing::warn!(limit_s = self.stop_limit.as_secs(), "stopped with work left");
        }
        clean
    }
}

/// The server end of an in-process channel.
pub struct Inlet {
    incoming: tokio::sync::mpsc::Receiver<tokio::io::DuplexStream>,
}

/// A channel whose server end is served later, so that services can be built with clients of each other.
pub fn in_process() -> (Channel, Inlet) {
    let (send, incoming) = tokio::sync::mpsc::channel(16);
    let connector = tower::service_fn(move |_: http::Uri| {
        let send = send.clone();
        async move {
            let (client, server) = tokio::io::duplex(1 << 20);
            let gone = |_| std::io::Error::other("the in-process server has stopped");
            send.send(server).await.map_err(gone)?;
            Ok::<_, std::io::Error>(hyper_util::rt::TokioIo::new(client))
        }
    });
    let channel =
        configure(Endpoint::from_static("http://in-process")).connect_with_connector_lazy(connector);
    (channel, Inlet { incoming })
}

/// Starts the listeners and tasks of all parts and returns once the ports are bound.
///
/// # Errors
/// When an address cannot be bound or the descriptors are broken.
pub async fn serve(
    config: &ServerConfig,
    contract: Contract,
    auth: Auth,
    parts: Vec<Parts>,
    in_process: (Channel, Inlet),
    shutdown: Shutdown,
) -> Result<Running> {
    let (channel, inlet) = in_process;
    let (reporter, health) = tonic_health::server::health_reporter();
    let readiness = Readiness::default();
    let mut routes = RoutesBuilder::default();
    routes.add_service(health);
    add_reflection(&mut routes, contract)?;

    let mut http = Router::new();
    let mut checks = Vec::new();
    for part in parts {
        tracing::info!(service = part.name, "starting");
        part.grpc.into_iter().for_each(|register| register(&mut routes));
        http = http.merge(part.http);
        checks.extend(part.checks);
        part.tasks
            .into_iter()
            .for_each(|task| spawn_task(task, &shutdown));
    }

    let limit = Duration::from_secs(config.call_limit_s);
    let routes = routes.routes();
    let layers = ServiceBuilder::new()
        .layer(Trace)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(auth)
        .layer(Malformed)
        .into_inner();
    let mut inlet = inlet;
    let incoming = async_stream(move |cx| inlet.incoming.poll_recv(cx));
    let stop = shutdown.token();
    let in_process = Server::builder()
        .layer(layers.clone())
        .add_routes(routes.clone())
        .serve_with_incoming_shutdown(incoming, stop.clone().cancelled_owned());
    shutdown.spawn("grpc in process", log_end("grpc in process", in_process));

    let grpc = match bind("server.grpc_listen", &config.grpc_listen).await? {
        Some((listener, address)) => {
            let server = Server::builder()
                .timeout(limit)
                .max_connection_age(connection_age())
                .initial_stream_window_size(4 << 20)
                .initial_connection_window_size(8 << 20)
                .http2_keepalive_interval(Some(Duration::from_secs(20)))
                .layer(layers)
                .add_routes(routes)
                .serve_with_incoming_shutdown(accept(listener), stop.clone().cancelled_owned());
            shutdown.spawn("grpc", log_end("grpc", server));
            Some(address)
        }
        None => None,
    };
    let http = spawn_http("server.http_listen", &config.http_listen, http, &shutdown).await?;
    let admin = spawn_http(
        "server.admin_listen",
        &config.admin_listen,
        admin(readiness.clone()),
        &shutdown,
    )
    .await?;
    shutdown.spawn(
        "readiness",
        watch(checks, readiness.clone(), reporter, shutdown.clone()),
    );
    let (drain, stop_limit) = (
        Duration::from_millis(config.drain_ms),
        Duration::from_secs(config.stop_limit_s),
    );
    Ok(Running {
        grpc,
        http,
        admin,
        readiness,
        channel,
        shutdown,
        drain,
        stop_limit,
    })
}

fn add_reflection(routes: &mut RoutesBuilder, contract: Contract) -> Result<()> {
    let builder = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(contract.descriptors)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let broken = |error| Error::internal(format!("broken file descriptors: {error}"));
    routes.add_service(builder().build_v1().map_err(broken)?);
    routes.add_service(builder().build_v1alpha().map_err(broken)?);
    Ok(())
}

/// Connections end after 5 minutes ± 10 % so that clients spread over new replicas.
fn connection_age() -> Duration {
    Duration::from_secs(300).mul_f64(rand::random_range(0.9..1.1))
}

fn async_stream<T>(
    mut poll: impl FnMut(&mut std::task::Context<'_>) -> std::task::Poll<Option<T>>,
) -> impl tokio_stream::Stream<Item = std::io::Result<T>> {
    futures::stream::poll_fn(move |cx| poll(cx)).map(Ok)
}

fn accept(listener: TcpListener) -> impl tokio_stream::Stream<Item = std::io::Result<tokio::net::TcpStream>> {
    let prepare = |stream: std::io::Result<tokio::net::TcpStream>| {
        stream.inspect(|stream| {
            // Only latency suffers when this fails.
            let _ = stream.set_nodelay(true);
        })
    };
    tokio_stream::wrappers::TcpListenerStream::new(listener).map(prepare)
}

async fn bind(setting: &str, listen: &str) -> Result<Option<(TcpListener, SocketAddr)>> {
    if listen.is_empty() {
        return Ok(None);
    }
    let failed = |error| Error::invalid(setting, format!("cannot listen on `{listen}`: {error}"));
    let listener = TcpListener::bind(listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok(Some((listener, address)))
}

async fn spawn_http(
    setting: &str,
    listen: &str,
    router: Router,
    shutdown: &Shutdown,
) -> Result<Option<SocketAddr>> {
    let Some((listener, address)) = bind(setting, listen).await? else {
        return Ok(None);
    };
    crate::http::spawn("http", listener, router, shutdown);
    Ok(Some(address))
}

fn admin(readiness: Readiness) -> Router {
    let ready = move || {
        let ready = readiness.get();
        async move {
            let status = if ready {
                http::StatusCode::OK
            } else {
                http::StatusCode::SERVICE_UNAVAILABLE
            };
            (status, if ready { "ready\n" } else { "not ready\n" })
        }
    };
    Router::new()
        .route("/livez", get(|| async { "alive\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(|| async { telemetry::render_metrics() }))
}

fn spawn_task(task: Task, shutdown: &Shutdown) {
    let stop = shutdown.clone();
    shutdown.spawn(task.name, async move {
        match task.run.await {
            Ok(()) if stop.has_begun() => {}
            Ok(()) => {
                tracing::error!(task = task.name, "task ended early, stopping");
                stop.begin();
            }
            Err(error) => {
                tracing::error!(task = task.name, %error, "task failed, stopping");
                stop.begin();
            }
        }
    });
}

async fn log_end(name: &'static str, server: impl Future<Output = Result<(), tonic::transport::Error>>) {
    if let Err(error) = server.await {
        tracing::error!(server = name, %error, "server ended");
    }
}

/// A panic answers `INTERNAL` and is logged; the process goes on.
fn panicked(panic: Box<dyn std::any::Any + Send + 'static>) -> http::Response<tonic::body::Body> {
    let message = panic.downcast_ref::<String>().map(String::as_str);
    let message = message
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("unknown");
    tracing::error!(panic = message, "handler panicked");
    crate::to_status(Error::internal("the request hit a fault of the server")).into_http()
}

/// The limit a generated server must be given: `XServer::new(x).max_decoding_message_size(message_limit())`.
pub const fn message_limit() -> usize {
    MAX_MESSAGE_BYTES
}
