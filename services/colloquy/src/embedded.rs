//! Everything in this process: the dev server, the demo, tests.

use crate::assemble::{CONTRACT, Service, build};
use crate::config::Config;
use colloquy_service_kit::run::start;
use colloquy_service_kit::{Running, Shutdown};
use colloquy_types::Result;

/// A configuration for one process: in-process coordination and bus, fresh secrets, free ports.
pub fn config() -> Config {
    let mut config = Config::default();
    let secret = || hex::encode(rand::random::<[u8; 24]>());
    config.auth.service_key = format!("svc_{}", secret());
    config.auth.operator_key = format!("op_{}", secret());
    config.server.grpc_listen = "127.0.0.1:0".into();
    config.server.http_listen = "127.0.0.1:0".into();
    config.server.admin_listen = "127.0.0.1:0".into();
    config.server.drain_ms = 0;
    config.server.stop_limit_s = 5;
    config
}

/// Starts every service and returns once the ports are bound.
///
/// # Errors
/// Those of the stores and of binding the ports.
pub async fn start_all(config: &Config) -> Result<Running> {
    start(
        &config.server,
        CONTRACT,
        |context| build(config, &[Service::All], context),
        Shutdown::new(),
    )
    .await
}
