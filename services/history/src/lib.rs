//! Sessions, transcripts, the turns that write them, and the contexts that models see.
//!
//! Owns the truth of a conversation: every change is one transaction of the store. Must not know channels, Redis or
//! the control plane; the effective policy comes with each accepted message and is kept by its content.

mod accept;
mod calibration;
mod claim;
mod compaction;
mod config;
mod context;
mod convert;
mod deliveries;
mod each;
mod entries;
mod finish;
mod jobs;
mod policies;
mod relay;
mod service;
mod sessions;
mod sweep;

pub use config::Config;

use colloquy_bus::Bus;
use colloquy_proto::v1::history_service_server::HistoryServiceServer;
use colloquy_service_kit::server::message_limit;
use colloquy_service_kit::{Check, Parts, Shutdown, Task};
use colloquy_storage::HistoryStore;
use std::sync::Arc;

/// What the service works with.
pub struct Deps {
    pub store: Arc<dyn HistoryStore>,
    /// Where due jobs are published.
    pub bus: Arc<dyn Bus>,
}

/// The service's parts of a process.
pub fn parts(config: &Config, deps: Deps, shutdown: &Shutdown) -> Parts {
    let store = deps.store.clone();
    let wake = Arc::new(tokio::sync::Notify::new());
    let (calibrations, learner) = calibration::Calibrations::new(deps.store.clone());
    let history = service::History {
        calibrations,
        policies: policies::Policies::new(deps.store.clone()),
        turns: finish::TurnFacts::default(),
        store: deps.store.clone(),
        jobs_written: wake.clone(),
    };
    Parts::new("history")
        .grpc(move |routes| {
            routes.add_service(HistoryServiceServer::new(history).max_decoding_message_size(message_limit()));
        })
        .task(Task::new(
            "turn sweep",
            sweep::run(deps.store.clone(), config.clone(), shutdown.clone()),
        ))
        .task(Task::new("calibration", learner.run(shutdown.clone())))
        .task(Task::new(
            "job relay",
            relay::run(deps.store, deps.bus, config.clone(), wake, shutdown.clone()),
        ))
        .check(Check::new("history database", move || {
            let store = store.clone();
            async move { store.now().await.map(|_| ()) }
        }))
}
