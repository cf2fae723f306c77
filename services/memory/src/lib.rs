//! What is remembered of conversations, and how it is found again.
//!
//! Owns memories and the watermarks up to which transcripts were read. Must not know channels or turns; it reads
//! entries through history's API. Ranking, scopes and reconciliation are pure.

mod convert;
mod extract;
mod manage;
pub mod rank;
mod recall;
pub mod reconcile;
pub mod scope;
mod service;
mod sessions;
mod worker;

use colloquy_bus::Bus;
use colloquy_llm::Extractor;
use colloquy_proto::v1::memory_service_server::MemoryServiceServer;
use colloquy_service_kit::server::message_limit;
use colloquy_service_kit::{Check, InternalChannel, Parts, Shutdown, Task};
use colloquy_storage::MemoryStore;
use std::sync::Arc;

/// What the service works with.
pub struct Deps {
    pub store: Arc<dyn MemoryStore>,
    pub history: InternalChannel,
    pub bus: Arc<dyn Bus>,
    pub extractor: Arc<dyn Extractor>,
}

/// The service's parts of a process.
pub fn parts(deps: Deps, shutdown: &Shutdown) -> Parts {
    let store = deps.store.clone();
    let server = service::MemoryServer {
        store: deps.store,
        sessions: sessions::Sessions::new(deps.history),
        extractor: deps.extractor,
        shutdown: shutdown.clone(),
    };
    let worker = worker::run(server.clone(), deps.bus, shutdown.clone());
    Parts::new("memory")
        .grpc(move |routes| {
            routes.add_service(MemoryServiceServer::new(server).max_decoding_message_size(message_limit()));
        })
        .task(Task::new("memory worker", worker))
        .check(Check::new("memory database", move || {
            let store = store.clone();
            async move { store.now().await.map(|_| ()) }
        }))
}
