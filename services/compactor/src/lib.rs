//! Compaction: one job, one session, one marker; flush, summarise in chunks, audit, apply.
//!
//! Owns nothing of its own: it works through history's API, so any number of workers may run and any may die. What
//! is planned is pure (`colloquy_context::compaction`); what is applied is compare-and-set in history.

mod config;
mod engine;
mod plan;
mod service;
mod summarise;
mod window;
mod worker;

pub use config::Config;

use colloquy_bus::Bus;
use colloquy_llm::Summariser;
use colloquy_proto::v1::compaction_service_server::CompactionServiceServer;
use colloquy_service_kit::{InternalChannel, Parts, Shutdown, Task};
use std::sync::Arc;

/// What the service works with.
pub struct Deps {
    pub history: InternalChannel,
    pub memory: InternalChannel,
    pub bus: Arc<dyn Bus>,
    pub summariser: Arc<dyn Summariser>,
}

/// The service's parts of a process.
pub fn parts(config: &Config, deps: Deps, shutdown: &Shutdown) -> Parts {
    let service = service::Compaction::new(deps.history.clone());
    let engine = engine::Engine::new(deps.history, deps.memory, deps.summariser);
    let worker = worker::run(engine, deps.bus, config.clone(), shutdown.clone());
    Parts::new("compactor")
        .task(Task::new("compaction worker", worker))
        .grpc(move |routes| {
            routes.add_service(CompactionServiceServer::new(service));
        })
}
