//! One call from the start of a process to its exit code.

use crate::auth::Auth;
use crate::server::{Contract, Inlet, Parts, Running, in_process, serve};
use crate::settings::ServerConfig;
use crate::shutdown::{Shutdown, signal};
use crate::telemetry::{self, TelemetryConfig};
use colloquy_types::{Error, Reason, Result};
use std::time::Duration;
use tonic::transport::Channel;

/// How a process ends; the numbers are part of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Stopped on a signal, everything finished.
    Clean = 0,
    /// A task or listener failed.
    Failed = 1,
    /// The configuration is wrong; a restart will not help.
    Configuration = 2,
    /// A dependency did not come up in time; a restart may help.
    Dependency = 3,
    /// Stopped on a signal, but work had to be cut off.
    Forced = 4,
}

/// What a process is made of, once its dependencies answer.
pub struct Boot {
    pub auth: Auth,
    pub parts: Vec<Parts>,
}

/// What `build` gets: the stop, and a channel to the services of this same process.
#[derive(Clone)]
pub struct Context {
    pub shutdown: Shutdown,
    pub local: Channel,
}

/// Boots, serves until SIGTERM or SIGINT (or until a task fails), stops within bounds.
///
/// `build` connects to the dependencies ([`connect_within`]) and returns the parts.
pub async fn run<F, Fut>(
    telemetry: &TelemetryConfig,
    server: &ServerConfig,
    contract: Contract,
    build: F,
) -> Exit
where
    F: FnOnce(Context) -> Fut,
    Fut: Future<Output = Result<Boot>>,
{
    telemetry::init(telemetry);
    let shutdown = Shutdown::new();
    let started = tokio::select! {
        started = start(server, contract, build, shutdown.clone()) => started,
        // A signal while waiting for a dependency ends the wait.
        _ = signal() => return Exit::Clean,
    };
    let running = match started {
        Ok(running) => running,
        Err(error) => {
            tracing::error!(%error, "cannot start");
            return exit_of(&error);
        }
    };
    tracing::info!(grpc = ?running.grpc, http = ?running.http, admin = ?running.admin, "serving");
    let failed = tokio::select! {
        name = signal() => {
            tracing::info!(signal = name.unwrap_or("none"), "stopping");
            false
        }
        () = shutdown.begun() => true,
    };
    let clean = tokio::select! {
        clean = running.stop() => clean,
        _ = signal() => false,
    };
    match (failed, clean) {
        (true, _) => Exit::Failed,
        (false, true) => Exit::Clean,
        (false, false) => Exit::Forced,
    }
}

/// Builds and serves without waiting for a signal: what `run` does first, and what embedded mode and tests use.
///
/// # Errors
/// Those of `build` and of binding the listeners.
pub async fn start<F, Fut>(
    server: &ServerConfig,
    contract: Contract,
    build: F,
    shutdown: Shutdown,
) -> Result<Running>
where
    F: FnOnce(Context) -> Fut,
    Fut: Future<Output = Result<Boot>>,
{
    let (local, inlet): (Channel, Inlet) = in_process();
    let boot = build(Context {
        shutdown: shutdown.clone(),
        local: local.clone(),
    })
    .await?;
    serve(server, contract, boot.auth, boot.parts, (local, inlet), shutdown).await
}

/// Tries with growing pauses (0.1 to 3 s, with jitter) until it works or `limit` has passed.
///
/// # Errors
/// The last error, as `DEPENDENCY`, or at once when a retry cannot help.
pub async fn connect_within<T, F, Fut>(name: &str, limit: Duration, mut connect: F) -> Result<T>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T>>,
{
    let end = tokio::time::Instant::now() + limit;
    let mut pause = Duration::from_millis(100);
    loop {
        let error = match connect().await {
            Ok(connected) => return Ok(connected),
            Err(error) => error,
        };
        if !matches!(error.reason, Reason::Dependency | Reason::Deadline) {
            return Err(error);
        }
        if tokio::time::Instant::now() + pause > end {
            return Err(Error::unavailable(format!(
                "{name} did not answer within {limit:?}: {}",
                error.message
            )));
        }
        tracing::warn!(dependency = name, error = %error.message, "not reachable yet");
        tokio::time::sleep(pause.mul_f64(rand::random_range(0.5..1.0))).await;
        pause = (pause * 2).min(Duration::from_secs(3));
    }
}

fn exit_of(error: &Error) -> Exit {
    match error.reason {
        Reason::InvalidField => Exit::Configuration,
        Reason::Dependency | Reason::Deadline => Exit::Dependency,
        _ => Exit::Failed,
    }
}
