//! The life of a turn: a message finds its session, a worker finds its turn.
//!
//! Owns routing and dispatch. Must not know stores: history decides in its transactions, the schedule in `coord`
//! only hints which session to try, and a sweep seeds it again when it was lost.

mod acquire;
mod config;
mod policies;
mod route;
mod service;
mod sweep;
mod turns;

pub use config::Config;

use colloquy_coord::Coord;
use colloquy_proto::v1::router_service_server::RouterServiceServer;
use colloquy_service_kit::server::message_limit;
use colloquy_service_kit::{InternalChannel, Parts, Shutdown, Task};
use std::sync::Arc;

/// What the service works with.
pub struct Deps {
    pub control: InternalChannel,
    pub history: InternalChannel,
    pub coord: Arc<dyn Coord>,
}

/// The service's parts of a process.
pub fn parts(config: &Config, deps: Deps, shutdown: &Shutdown) -> Parts {
    let router = service::Router::new(deps, shutdown.clone());
    let sweep = sweep::run(router.clone(), config.clone());
    Parts::new("router")
        .task(Task::new("schedule sweep", sweep))
        .grpc(move |routes| {
            routes.add_service(RouterServiceServer::new(router).max_decoding_message_size(message_limit()));
        })
}
